"""The database server is killed and comes back: workers wait and say so, the web answers 503, nothing is half done."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from dashboard.embedded.postgres import EmbeddedPostgres
from dashboard.ledger.access import add_token
from dashboard.ledger.database import Database, migrate
from tests.api.conftest import Api, app_on, asked
from tests.conftest import SERVER_SETTINGS, SOAK
from tests.crew import until
from tests.flow.town import Town
from tests.folders import server_folder
from tests.place import Place
from tests.survival.ending import nothing_lost_nothing_twice, wait_for_rest

ENDS = 20 if SOAK else 2


@pytest.fixture
def server() -> Iterator[EmbeddedPostgres]:
    """A server of this test's own, which it may kill."""
    with server_folder() as folder, EmbeddedPostgres(folder, tcp=True, settings=SERVER_SETTINGS) as server:
        migrate(server.url())
        yield server


@pytest.fixture
def place(server: EmbeddedPostgres) -> Iterator[Place]:
    database = Database(server.url())
    yield Place(database)
    database.close()


def end_at_once(server: EmbeddedPostgres) -> None:
    """An immediate shutdown, by SIGQUIT: no session ends in good order, and the next start recovers."""
    os.kill(int((server.cluster / "postmaster.pid").read_text().splitlines()[0]), signal.SIGQUIT)
    server.stop()


def kill(server: EmbeddedPostgres) -> None:
    """SIGKILL."""
    server.stop(hard=True)


def said(town: Town) -> list[dict[str, Any]]:
    """What the workers have logged."""
    return [json.loads(line) for line in town.log.read_text().splitlines()]


def test_killed_under_load_it_comes_back_and_every_mail_goes_out_once(town: Town, server: EmbeddedPostgres) -> None:
    town.simulator.configure(http={"slow": 1.0}, slow_ms=40)
    sends = town.enqueue([f"order:{i}" for i in range(200 * (ENDS + 1))])
    for _ in range(2):
        town.worker(SENDONCE_IN_FLIGHT="20")
    for number in range(ENDS):
        assert town.simulator.wait_taken(100 + 200 * number, timeout=60), town.log.read_text()[-3000:]
        (end_at_once, kill)[number % 2](server)
        server.start()
    assert wait_for_rest(town, seconds=60) == {"accepted": len(sends)}
    nothing_lost_nothing_twice(town, sends)
    assert {line["action"] for line in said(town)} >= {"loop_failed"}, "they said what they waited for"
    assert {line["level"] for line in said(town)} <= {"info", "warning"}, "and took it for nothing else"


def test_while_it_is_away_workers_wait_and_the_web_says_so(town: Town, server: EmbeddedPostgres) -> None:
    with town.place.database.transaction() as connection:
        _, token = add_token(connection, workspace_id=town.place.workspace, name="shop")
    api = Api(app_on(town.place.database, town.place), town.place, token)
    server.stop(hard=True)
    started = town.worker()
    until(lambda: any(line["action"] == "database_unreachable" for line in said(town)), what="a word of the worker")
    with town.web() as webhook:
        for method, path in (("POST", "/api/v1/sends"), ("POST", "/api/v1/sends/batch"), ("GET", "/readyz")):
            answer = api.send(method, path, json=asked())
            assert answer.status_code == 503, path
        event = api.app.test_client().post(f"/webhooks/{webhook.rpartition('/')[2]}", data=b"{}")
        assert event.status_code == 503, "so that the provider comes again"
    assert started.poll() is None, "it waits"
    server.start()
    assert api.get("/readyz").status_code == 200
    assert town.place.count("sends") == town.place.count("outbox") == town.place.count("dead_letters") == 0
    assert api.post(asked()).status_code == 201
    assert wait_for_rest(town) == {"accepted": 1}
    assert api.post(asked()).status_code == 200, "asked again: a duplicate"
    assert len(town.simulator.books) == 1
