"""``sendonce workers``, ``suspects`` and ``audit``; and a worker that obeys its button."""

from __future__ import annotations

import threading
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from dashboard.cli import Mistake
from dashboard.cli.looking import audit, suspects
from dashboard.cli.workers import workers
from dashboard.ledger.database import Database
from dashboard.settings import Settings
from dashboard.worker import process
from dashboard.worker.process import Worker
from tests.crew import ask, person, until
from tests.place import KEYS, Place


@pytest.fixture
def place(ledger: Database) -> Place:
    place = Place(ledger)
    person(place)
    return place


def run(command: object, *arguments: str) -> Result:
    return CliRunner().invoke(command, list(arguments), standalone_mode=False)  # type: ignore[arg-type]


def test_a_worker_obeys_its_button(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "HEARTBEAT", 0.2)
    settings = Settings(database_url=place.database.url, secret_key="s" * 40, encryption_keys=KEYS, environment="test")
    worker = Worker(settings, only=("relay",))
    running = threading.Thread(target=worker.run, daemon=True)
    running.start()
    until(lambda: place.count("workers") == 1)
    line = run(workers, "list").stdout.splitlines()[-1].split("\t")  # the worker's log is on the same screen
    assert (UUID(line[0]), line[1], line[6]) == (worker.identity.id, "running", "relay")
    told = run(workers, "drain", str(worker.identity.id), "--user", "ada", "--reason", "new version")
    assert f"{worker.identity.name} finishes what it has in flight, and ends.\n" in told.stdout
    running.join(30)
    assert not running.is_alive()
    assert run(workers, "list").stdout.splitlines()[-1].split("\t")[1] == "stopped"
    late = run(workers, "drain", str(worker.identity.id), "--user", "ada", "--reason", "again").exception
    assert isinstance(late, Mistake)
    assert place.one("select action, reason from sendonce.audit") == {
        "action": "drain_worker", "reason": "new version",
    }  # fmt: skip


def test_suspects_are_lines_and_a_code(place: Place) -> None:
    assert run(suspects).return_value == 0
    first, second = ask(place, "welcome:1", "welcome:2")
    told = run(suspects)
    assert told.return_value == 1
    line = told.stdout.rstrip().split("\t")
    assert line[0] == "one trigger made two keys"
    assert {line[2], line[3]} == {str(first), str(second)}


def test_the_audit_log_is_filtered(place: Place) -> None:
    place.run(
        "insert into sendonce.audit (workspace_id, user_id, action, subject, reason)"
        " values (%s, %s, 'pause_stream', 'news', 'x')",
        place.workspace, person(place),
    )  # fmt: skip
    assert run(audit, "--who", "ada", "--subject", "news").stdout.split("\t")[2:6] == [
        "ada",
        "pause_stream",
        "news",
        "x",
    ]
    for nothing in (("--who", "bob"), ("--until", "2020-01-01"), ("--action", "log_in")):
        assert run(audit, *nothing).stdout == "No entry fits.\n"
