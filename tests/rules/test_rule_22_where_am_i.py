"""Rule 22: a ledger that was moved does not send until a named person adopts the new place."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb

from dashboard.cli import run as run_command
from dashboard.embedded.postgres import EmbeddedPostgres
from dashboard.ledger import attempts, holds, place
from dashboard.ledger.attempts import Windows
from dashboard.ledger.database import Connection, Database, migrate
from dashboard.ledger.place import CannotAdopt, Moved, Same
from dashboard.lifecycle import Decision
from tests.conftest import SERVER_SETTINGS
from tests.factories import Factory
from tests.folders import server_folder
from tests.ledger.course import Ledger
from tests.ledger.test_verify import broken


@pytest.fixture
def ledger(ledger: Ledger) -> Ledger:
    """A ledger at home in ``production``."""
    with ledger.step() as connection:
        assert place.may_send(connection, "production")
    return ledger


def state_of(connection: Connection) -> dict[str, tuple[str, str]]:
    rows = connection.execute(
        "select s.key, coalesce(w.state::text, s.state::text), coalesce(w.reason, s.reason)"
        " from sendonce.sends s left join sendonce.work w on w.send_id = s.id"
    )
    return {row[0]: (row[1], row[2]) for row in rows}


def adopt(ledger: Ledger, environment: str = "staging") -> int:
    with ledger.step() as connection:
        return place.adopt_place(connection, environment, user_id=ledger.made.person, reason="a restore, incident 12")


# ── checking ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_first_worker_writes_the_place_down(factory: Factory) -> None:
    connection = factory.connection
    assert place.remembered_place(connection) is None
    assert place.check_place(connection, "production") == Same()
    written = place.remembered_place(connection)
    assert written == place.read_place(connection, "production")
    assert written is not None
    assert written.unknown == []
    assert place.check_place(connection, "production") == Same()
    assert place.sending_allowed(connection)


def test_another_environment_name_switches_sending_off_for_all_workers(ledger: Ledger) -> None:
    with ledger.step() as connection:
        assert place.check_place(connection, "staging") == Moved(
            ("The environment name is staging, and was production.",)
        )
    with ledger.step() as connection:
        assert not place.sending_allowed(connection)
        assert not place.may_send(connection, "production"), "it stays off, also where it would be at home"
        off = place.sending_off(connection)
    assert off is not None
    assert off.reason == "The environment name is staging, and was production."


def test_while_sending_is_off_nothing_is_claimed_and_no_claim_of_before_is_started(ledger: Ledger) -> None:
    ledger.ask("claimed before")
    claims = ledger.claim()
    ledger.ask("pending")
    with ledger.step() as connection:
        assert not place.may_send(connection, "staging")
    assert ledger.claim() == []
    with ledger.step() as connection:
        assert attempts.start(connection, ledger.worker, claims, Windows()) == []
        assert state_of(connection) == {"claimed before": ("pending", "ledger_moved"), "pending": ("pending", "due")}


@pytest.mark.parametrize("what", ["system_identifier", "timeline", "database"])
def test_another_server_timeline_or_database_switches_sending_off(what: str, factory: Factory) -> None:
    connection = factory.connection
    place.check_place(connection, "production")
    connection.execute(
        "update sendonce.settings set value = jsonb_set(value, array[%s], '\"1\"') where name = 'place'", [what]
    )
    moved = place.check_place(connection, "production")
    assert isinstance(moved, Moved)
    assert len(moved.what) == 1
    assert not place.sending_allowed(connection)


def test_what_the_role_may_not_ask_is_unknown_and_not_compared(factory: Factory) -> None:
    connection = factory.connection
    place.check_place(connection, "production")
    with connection.transaction(force_rollback=True):
        role = f"asker_{uuid4().hex}"
        connection.execute(f'create role "{role}"')  # type: ignore[call-overload]
        connection.execute("revoke execute on function pg_catalog.pg_control_system() from public")
        connection.execute(f'grant usage on schema sendonce to "{role}"')  # type: ignore[call-overload]
        connection.execute(f'grant all on all tables in schema sendonce to "{role}"')  # type: ignore[call-overload]
        connection.execute(f'set local role "{role}"')  # type: ignore[call-overload]
        here = place.read_place(connection, "production")
        assert here.system_identifier is None
        assert here.unknown == ["server"]
        assert place.check_place(connection, "production") == Same()


# ── adopting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_adopting_holds_whatever_is_unsettled_from_before(ledger: Ledger) -> None:
    with ledger.step() as connection:
        connection.execute("update sendonce.mailstreams set unknown_policy = 'hold'")
    ledger.ask("held before")
    ledger.finish(*ledger.start(), "ambiguous")
    ledger.reconcile()
    for key in ("accepted", "doubtful", "running"):
        ledger.ask(key)
    started = {ledger.key(one.send_id): one for one in ledger.start()}
    ledger.finish(started["accepted"], "accepted", "m-1")
    ledger.finish(started["doubtful"], "ambiguous")
    ledger.ask("claimed")
    ledger.claim()
    ledger.ask("pending")
    with ledger.step() as connection:
        assert not place.may_send(connection, "staging")
    ledger.ask("asked for since")
    with ledger.step() as connection:
        off = place.sending_off(connection)
        assert off is not None
        before = place.count_from_before(connection, off.since)
    assert (before.pending, before.claimed, before.unknown, before.held) == (1, 2, 1, 1)
    assert (before.to_hold, before.in_doubt) == (4, 3)

    assert adopt(ledger) == 4
    with ledger.step() as connection:
        assert state_of(connection) == {
            "accepted": ("accepted", "answered"),
            "doubtful": ("held", "ledger_moved"),
            "running": ("held", "ledger_moved"),
            "held before": ("held", "unconfirmed"),
            "claimed": ("held", "ledger_moved"),
            "pending": ("held", "ledger_moved"),
            "asked for since": ("pending", "due"),
        }
        assert place.may_send(connection, "staging")
        waived = {one.key: one.waives for one in holds.open_holds(connection, ledger.made.workspace)}
        row = connection.execute("select user_id, reason, detail from sendonce.audit").fetchone()
    assert waived["running"] == waived["doubtful"] == ["ambiguous"]
    assert waived["claimed"] == waived["pending"] == []
    assert row is not None
    assert (row[0], row[1], row[2]["held"]) == (ledger.made.person, "a restore, incident 12", 4)
    with ledger.database.snapshot() as connection:
        assert broken(connection) == {}


def test_the_worker_of_a_call_that_was_running_may_still_settle_it(ledger: Ledger) -> None:
    ledger.ask("running")
    (started,) = ledger.start()
    with ledger.step() as connection:
        place.check_place(connection, "staging")
    adopt(ledger)
    ledger.finish(started, "accepted", "m-1")
    with ledger.step() as connection:
        assert state_of(connection)["running"][0] == "accepted"
    with ledger.database.snapshot() as connection:
        assert broken(connection) == {}


def test_what_was_held_is_sent_only_when_a_person_says_so(ledger: Ledger) -> None:
    ledger.ask("pending")
    with ledger.step() as connection:
        place.check_place(connection, "staging")
    adopt(ledger)
    assert ledger.start() == []
    ledger.decide(Decision.RESEND)
    (started,) = ledger.start()
    ledger.finish(started, "accepted")
    with ledger.database.snapshot() as connection:
        assert broken(connection) == {}


def test_more_sends_than_one_statement_holds_are_all_held(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "SET", 2)
    for i in range(5):
        ledger.ask(f"send {i}")
    with ledger.step() as connection:
        place.check_place(connection, "staging")
    assert adopt(ledger) == 5


def test_nobody_adopts_without_a_name_a_reason_or_a_cause(ledger: Ledger) -> None:
    with ledger.step() as connection, pytest.raises(CannotAdopt, match="sending is not off"):
        place.adopt_place(connection, "production", user_id=ledger.made.person, reason="just so")
    with ledger.step() as connection, pytest.raises(CannotAdopt, match="only a person"):
        place.adopt_place(connection, "staging", user_id=uuid4(), reason="a restore")
    with ledger.step() as connection, pytest.raises(CannotAdopt, match="give a reason"):
        place.adopt_place(connection, "staging", user_id=ledger.made.person, reason=" ")


def test_requests_from_before_must_be_recorded_first(ledger: Ledger) -> None:
    with ledger.step() as connection:
        connection.execute(
            "insert into sendonce.outbox (send_id, workspace_id, request) values (%s, %s, %s)",
            (uuid4(), ledger.made.workspace, Jsonb({})),
        )
    with ledger.step() as connection:
        place.check_place(connection, "staging")
    with pytest.raises(CannotAdopt, match="1 requests from before"):
        adopt(ledger)


def test_a_look_at_the_place_during_an_adoption_does_not_undo_it(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look has read the old place when the adoption begins, and would switch off what it switches on."""
    with ledger.step() as connection:
        place.check_place(connection, "staging")
    looked, adopting, answers = threading.Event(), threading.Event(), []
    read_place = place.remembered_place

    def read_and_wait(connection: Connection) -> place.Place | None:
        read = read_place(connection)
        if threading.current_thread() is looking:
            looked.set()
            assert adopting.wait(30)
        return read

    def look() -> None:
        with ledger.step() as connection:
            answers.append(place.may_send(connection, "staging"))

    monkeypatch.setattr(place, "remembered_place", read_and_wait)
    looking = threading.Thread(target=look)
    looking.start()
    assert looked.wait(30)
    with ledger.step() as connection:
        place.adopt_place(connection, "staging", user_id=ledger.made.person, reason="a restore")
        adopting.set()
        ledger.wait_for_a_waiter()
    looking.join()
    assert answers == [True]
    with ledger.step() as connection:
        assert place.sending_allowed(connection)


# ── a copy of a whole server ─────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def server(folder: Path, **settings: str) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(folder, settings=SERVER_SETTINGS | settings) as running:
        yield running


def test_a_copy_of_the_servers_files_does_not_send(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with server_folder() as home:
        with server(home / "one") as first:
            migrate(first.url())
            database = Database(first.url(), pool_size=2)
            original = Ledger(database)
            original.ask("pending")
            with original.step() as connection:
                assert place.may_send(connection, "production")
                login = f"ada-{original.made.person}"
            database.close()
        for copy in ("cloned", "recovered"):
            (home / copy).mkdir()
            subprocess.run(["cp", "-a", first.cluster, home / copy], check=True)

        with server(home / "cloned") as second:
            monkeypatch.setenv("DATABASE_URL", second.url())
            monkeypatch.setenv("SENDONCE_SECRET_KEY", "s" * 40)
            monkeypatch.setenv("SENDONCE_ENCRYPTION_KEYS", "k1:a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=")
            monkeypatch.setenv("SENDONCE_ENVIRONMENT", "staging")
            assert run_command(["place"]) == 1
            assert "The environment name is staging, and was production." in capsys.readouterr().out
            reason = "staging is made from last night's copy"
            assert run_command(["place", "adopt", "--user", "nobody", "--reason", reason, "--yes"]) == 2
            assert run_command(["place", "adopt", "--user", login, "--reason", reason, "--yes"]) == 0
            told = capsys.readouterr().out
            assert "Adopting the place will hold 1 sends" in told
            assert "Adopted. 1 sends are held" in told
            assert run_command(["place"]) == 0
            assert "Sending is on." in capsys.readouterr().out

        # Recovery to the end of an archive is how a backup comes back; it begins a new timeline.
        (home / "recovered" / first.cluster.name / "recovery.signal").touch()
        with server(home / "recovered", restore_command="false", hot_standby="off") as third:
            database = Database(third.url(), pool_size=1)
            with database.transaction() as connection:
                moved = place.check_place(connection, "production")
                assert not place.sending_allowed(connection)
            database.close()
        assert moved == Moved(("The timeline is 00000002, and was 00000001.",))
