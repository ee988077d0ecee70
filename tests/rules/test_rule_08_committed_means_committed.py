"""Rule 8: nothing is submitted unless its write-ahead was committed for certain, as durably as the server can."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest

from dashboard.embedded.postgres import EmbeddedPostgres
from dashboard.ledger.database import Database, NotCommitted, migrate
from dashboard.simulator import Config, Simulator
from tests.conftest import SERVER_SETTINGS
from tests.crew import Hand, Rival, ask_one, attempts_of, state_of, until, violations
from tests.folders import server_folder
from tests.lanes import a_lane, point_at
from tests.place import Place


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(Config()) as running:
        yield running


@pytest.fixture
def standby_less() -> Iterator[Place]:
    """A ledger on a server that must wait for a standby which does not come."""
    with server_folder() as folder, EmbeddedPostgres(folder, settings=SERVER_SETTINGS) as server:
        url = server.url("postgres")
        migrate(url)
        database = Database(url, pool_size=3)
        yield Place(database)
        with psycopg.connect(url, autocommit=True) as administrator:
            administrator.execute("alter system reset synchronous_standby_names")
            administrator.execute("select pg_reload_conf()")
        database.close()


def test_a_commit_that_is_cancelled_while_it_waits_for_the_standby_sends_nothing(
    standby_less: Place, simulator: Simulator
) -> None:
    point_at(standby_less, simulator)
    send = ask_one(standby_less)
    url = standby_less.database.url
    with a_lane(standby_less) as lane, psycopg.connect(url, autocommit=True) as administrator:
        administrator.execute("alter system set synchronous_standby_names = 'nobody'")
        administrator.execute("select pg_reload_conf()")
        until(lambda: administrator.execute("show synchronous_standby_names").fetchone() == ("nobody",))
        round_ = Rival(lane.go_round)
        waiting = "from pg_stat_activity where wait_event = 'SyncRep'"
        until(lambda: administrator.execute(f"select {waiting}").rowcount > 0)
        # The claim's commit waits first: a claim that may not last does no harm. Then the write-ahead does.
        until(lambda: not (administrator.execute(f"select pg_cancel_backend(pid) {waiting}") and round_.is_alive()))
        with pytest.raises(NotCommitted, match="cancel"):
            _ = round_.result
        assert simulator.books == []
        administrator.execute("alter system reset synchronous_standby_names")
        administrator.execute("select pg_reload_conf()")
        until(lambda: administrator.execute("show synchronous_standby_names").fetchone() == ("",))
        assert attempts_of(standby_less, send) == ["submitting"], "it is on record all the same"
        lane.go_round()
        assert attempts_of(standby_less, send)[0] == "abandoned"
        until(lambda: not lane.go_round())
    assert (state_of(standby_less, send), attempts_of(standby_less, send)) == ("accepted", ["abandoned", "accepted"])
    assert len(simulator.books) == 1
    assert violations(standby_less) == []


def test_a_commit_that_fails_sends_nothing_and_the_claim_is_tried_again(own_place: Place, simulator: Simulator) -> None:
    point_at(own_place, simulator)
    send = ask_one(own_place)
    own_place.run(
        "create function refuse() returns trigger language plpgsql as"
        " $$ begin raise exception 'no' using errcode = 'disk_full'; end $$"
    )
    own_place.run(
        "create constraint trigger refuse after insert on sendonce.attempts"
        " deferrable initially deferred for each row execute function refuse()"
    )
    with a_lane(own_place) as lane:
        with pytest.raises(psycopg.errors.DiskFull):
            lane.go_round()
        assert (simulator.books, attempts_of(own_place, send)) == ([], [])
        own_place.run("drop trigger refuse on sendonce.attempts")
        until(lambda: not lane.go_round())
    assert (state_of(own_place, send), attempts_of(own_place, send)) == ("accepted", ["accepted"])


def test_a_transaction_that_ended_itself_is_not_taken_for_committed(place: Place) -> None:
    def hide_an_error() -> None:
        with place.database.transaction() as connection:
            connection.execute("insert into sendonce.workspaces (name) values ('another')")
            with suppress(psycopg.errors.DivisionByZero):
                connection.execute("select 1 / 0")

    with pytest.raises(NotCommitted):
        hide_an_error()
    assert place.count("workspaces") == 1


@pytest.mark.parametrize(
    ("default", "used"),
    [("off", "on"), ("local", "on"), ("remote_write", "on"), ("on", "on"), ("remote_apply", "remote_apply")],
)
def test_write_ahead_waits_for_the_disk_whatever_the_default_is(own_place: Place, default: str, used: str) -> None:
    name = own_place.one("select current_database() as name")["name"]
    own_place.run(f'alter database "{name}" set synchronous_commit = {default}')
    fresh = Database(own_place.database.url, pool_size=1)
    with fresh.transaction() as connection:
        assert connection.execute("show synchronous_commit").fetchone() == (used,)
    with fresh.transaction(durable=False) as connection:
        assert connection.execute("show synchronous_commit").fetchone() == (default,), "of this transaction only"
    fresh.close()


def test_transactions_read_committed_whatever_the_default_is(own_place: Place) -> None:
    name = own_place.one("select current_database() as name")["name"]
    own_place.run(f"alter database \"{name}\" set default_transaction_isolation = 'serializable'")
    fresh = Database(own_place.database.url, pool_size=1)
    with fresh.transaction() as connection:
        assert connection.execute("show transaction_isolation").fetchone() == ("read committed",)
    fresh.close()


def test_a_claim_that_may_not_be_committed_is_not_used(own_place: Place, simulator: Simulator) -> None:
    """Another lane of the same worker may have claimed the same sends under the same numbers meanwhile."""
    point_at(own_place, simulator)
    send = ask_one(own_place)
    own_place.run(
        "create function refuse() returns trigger language plpgsql as"
        " $$ begin raise exception 'no' using errcode = 'disk_full'; end $$"
    )
    own_place.run(
        "create constraint trigger refuse after update on sendonce.work"
        " deferrable initially deferred for each row execute function refuse()"
    )
    with a_lane(own_place) as lane:
        with pytest.raises(psycopg.errors.DiskFull):
            lane.go_round()
        own_place.run("drop trigger refuse on sendonce.work")
        other = Hand(own_place, id=lane._worker)
        claims = other.claim()
        assert [claim.number for claim in claims] == [1]
        until(lambda: not lane.go_round())
        assert other.start(claims) == []
    numbers = own_place.all("select claim_number, status::text from sendonce.attempts where send_id = %s", send)
    assert numbers == [{"claim_number": 2, "status": "accepted"}], "under a claim of its own"
