"""PgBouncer in transaction mode: each transaction may have another session of the server, and nothing notices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from dashboard.ledger.database import LOCK_TIMEOUT_MS, Database, migrate
from dashboard.producer.once import Ledger, send_once
from dashboard.providers.base import Accepted
from dashboard.simulator import Simulator
from tests.crew import state_of
from tests.flow.town import Town
from tests.place import Place
from tests.survival.ending import nothing_lost_nothing_twice, wait_for_rest
from tests.survival.pooler import SESSIONS, pgbouncer


@pytest.fixture
def pooled_url(database_url: str, requires_program: Callable[[str], str]) -> Iterator[str]:
    """The test's database, reached through PgBouncer."""
    with pgbouncer(requires_program("pgbouncer"), database_url) as url:
        yield url


@pytest.fixture
def pooled(pooled_url: str) -> Iterator[Database]:
    database = Database(pooled_url)
    yield database
    database.close()


@pytest.fixture
def pooled_town(pooled: Database, simulator: Simulator, tmp_path: Path) -> Iterator[Town]:
    town = Town(Place(pooled), simulator, tmp_path / "workers.log")
    town.stream(policy="hold", keys=False)
    yield town
    town.end()


def test_worker_web_and_producer_do_all_their_work_through_it(
    pooled: Database, pooled_town: Town, simulator: Simulator, database_url: str
) -> None:
    town, place = pooled_town, pooled_town.place
    sends = town.enqueue([f"order:{i}" for i in range(200)])
    town.enqueue([f"order:{i}" for i in range(50)])
    with town.web():
        for _ in range(2):
            town.worker()
        own = send_once(
            Ledger(pooled, place.vault), mailstream="news", key="own:1", recipient_id="r", fingerprint="f",
            trigger=("job", "1"), submit=lambda _key: Accepted("own-message"),
        )  # fmt: skip
        assert wait_for_rest(town) == {"accepted": 201}
        simulator.flush()
        assert simulator.wait_idle()
    with psycopg.connect(database_url) as direct:
        row = direct.execute(
            "select count(*) from pg_stat_activity"
            " where datname = current_database() and application_name like 'sendonce%'"
        ).fetchone()
    town.end()
    assert row is not None
    assert 1 <= row[0] <= SESSIONS
    assert state_of(place, own.send_id) == "accepted"
    assert place.count("duplicates") == 50
    assert place.one("select count(*) as n from sendonce.sends where delivery = 'delivered'") == {"n": 200}
    assert town.violations() == []
    assert town.log.read_text().count("loop_failed") == 0, town.log.read_text()[-3000:]
    place.run("delete from sendonce.sends where id = %s", own.send_id)  # its provider is not the simulator
    nothing_lost_nothing_twice(town, sends)


def test_every_transaction_has_its_settings_whichever_session_it_gets(pooled: Database, database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as direct:
        (name,) = direct.execute("select current_database()").fetchone() or ("",)
        direct.execute(f"alter database \"{name}\" set timezone = 'Asia/Kolkata'")  # type: ignore[call-overload]
        direct.execute(f'alter database "{name}" set lock_timeout = 0')  # type: ignore[call-overload]
    asked = "select current_setting('lock_timeout')::interval, current_setting('TimeZone'), now(), pg_backend_pid()"
    seen = []
    with pooled.transaction() as first, pooled.transaction() as second, pooled.snapshot() as third:
        for connection in (first, second, third):
            row = connection.execute(asked).fetchone()
            assert row is not None
            seen.append(row)
    assert {row[:2] for row in seen} == {(timedelta(milliseconds=LOCK_TIMEOUT_MS), "UTC")}
    assert {row[2].utcoffset() for row in seen} == {timedelta(0)}
    assert len({row[3] for row in seen}) == 3, "three sessions"


def test_a_migration_leaves_no_lock_behind_in_a_session_of_the_pool(pooled_url: str, database_url: str) -> None:
    for _ in range(SESSIONS + 1):
        migrate(pooled_url)
    with psycopg.connect(database_url) as direct:
        held = direct.execute("select count(*) from pg_locks where locktype = 'advisory'").fetchone()
    assert held == (0,)


def test_statements_are_prepared_where_the_server_itself_answers(pooled: Database, place: Place) -> None:
    for database, prepared in ((place.database, True), (pooled, False)):
        with database.transaction() as connection:
            assert (connection.prepare_threshold is not None) == prepared
