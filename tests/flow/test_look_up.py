"""A send in doubt is settled by asking its provider: by our own id only, and never by what is not found."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest

from dashboard.ledger.accounts import pause_account, save_account
from dashboard.ledger.database import Database
from dashboard.ledger.recording import record
from dashboard.ledger.requests import read_request
from dashboard.providers import provider
from dashboard.providers.base import endpoint
from dashboard.worker import look_up
from dashboard.worker.look_up import Asker
from dashboard.worker.reconcile import reconcile
from dashboard.worker.submit import Submitter
from tests.place import Place
from tests.providers.rig import PATIENCE, Server, http_answer


class Postmark:
    """A provider that answers look-ups out of its books."""

    def __init__(self) -> None:
        self.books: list[dict[str, Any]] = []
        self.asked: list[str] = []
        self.status = "200 OK"

    def behave(self, connection: socket.socket, _: int) -> None:
        while head := connection.recv(65536):
            self.asked.append(head.split(b" ")[1].decode())
            body = json.dumps({"TotalCount": len(self.books), "Messages": self.books}).encode()
            connection.sendall(http_answer(body, status=self.status))

    def took(self, send: UUID, attempt: int = 1, message_id: str = "m-1") -> None:
        metadata = {"send_id": str(send), "attempt": str(attempt)}
        self.books.append({"MessageID": message_id, "Metadata": metadata, "ReceivedAt": "2026-11-30T09:00:00Z"})


class Scene:
    """A workspace whose account is at Postmark, and a worker that can ask there."""

    def __init__(self, place: Place, postmark: Postmark, url: str) -> None:
        self.place, self.postmark = place, postmark
        self.point_at(url)
        self.submitter = Submitter(place.database, place.vault, request_timeout=PATIENCE)
        self.asker = Asker(place.database, place.vault, self.submitter)

    def point_at(self, url: str) -> None:
        settings = {"base_url": url}
        with self.place.database.transaction() as connection:
            save_account(
                connection, self.place.vault, workspace_id=self.place.workspace, name="main", provider="postmark",
                settings=settings, secrets={"server_token": "t"},
                endpoint=endpoint(provider("postmark"), {**settings, "server_token": "t"}),
            )  # fmt: skip

    def in_doubt(self, key: str = "receipt:1") -> UUID:
        """A send whose call was not answered, some time ago."""
        raw = {
            "mailstream": "receipts", "key": key, "recipient": {"id": "r", "address": "ada@example.com"},
            "trigger": {"type": "order.paid", "id": key},
            "message": {"from": "shop@example.com", "subject": "Your receipt", "text": "Thank you"},
        }  # fmt: skip
        request = read_request(raw, workspace_id=self.place.workspace, source="api", asked_at=datetime.now(UTC))
        with self.place.database.transaction() as connection:
            send = record(connection, self.place.vault, [request])[0].send_id
        self.place.fail_all("ambiguous")
        self.place.time_passes(timedelta(minutes=5))
        return send

    def walk(self) -> None:
        """The asker's loop until it has nothing more to do."""
        while self.asker.ask_one():
            pass

    def state(self, send: UUID) -> str:
        row = self.place.one(
            "select coalesce(w.state::text, s.state::text) as state from sendonce.sends s"
            " left join sendonce.work w on w.send_id = s.id where s.id = %s",
            send,
        )
        return str(row["state"])


@pytest.fixture
def scene(database_url: str) -> Iterator[Scene]:
    database, postmark = Database(database_url), Postmark()
    with Server(postmark.behave) as server:
        made = Scene(Place(database, key_window=None), postmark, server.url)
        yield made
        made.submitter.close()
    database.close()


def test_a_hit_settles_a_send_in_doubt_and_stands_on_its_trace(scene: Scene) -> None:
    send = scene.in_doubt()
    scene.postmark.took(send)
    scene.walk()
    assert scene.state(send) == "accepted"
    attempt = scene.place.one("select status::text, provider_message_id from sendonce.attempts")
    assert attempt == {"status": "accepted", "provider_message_id": "m-1"}
    event = scene.place.one("select event_id, event_type::text, matched_by from sendonce.events")
    assert event == {"event_id": "look-up:m-1", "event_type": "accepted", "matched_by": "send_id"}


def test_rule_14_a_held_send_is_asked_about_too(scene: Scene) -> None:
    send = scene.in_doubt()
    scene.place.time_passes(timedelta(hours=1))
    with scene.place.database.transaction() as connection:
        assert reconcile(connection, submit_window=timedelta(seconds=10)).held == 1
    assert scene.state(send) == "held"
    scene.postmark.took(send)
    scene.walk()
    assert scene.state(send) == "accepted"


def test_rule_6_what_is_not_found_proves_nothing(scene: Scene) -> None:
    send = scene.in_doubt()
    scene.postmark.took(uuid4())
    scene.walk()
    assert scene.state(send) == "unknown"
    assert len(scene.postmark.asked) == 1
    assert scene.place.count("events") == scene.place.count("unmatched") == 0


def test_rule_6_nobody_asks_while_the_call_may_still_be_running(scene: Scene) -> None:
    scene.in_doubt()
    scene.place.time_passes(-timedelta(minutes=10))
    scene.walk()
    assert scene.postmark.asked == []


def test_the_second_of_two_acceptances_is_told_apart_by_its_attempt(scene: Scene) -> None:
    send = scene.in_doubt()
    scene.postmark.took(send)
    scene.postmark.took(send, attempt=2, message_id="m-2")
    scene.walk()
    assert scene.state(send) == "accepted"
    assert scene.place.count("events") == 2


def test_one_send_is_asked_about_less_and_less_often(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.in_doubt()
    clock = [1000.0]
    monkeypatch.setattr(look_up, "boot_time", lambda: clock[0])
    times = []
    for _ in range(7200):
        before = len(scene.postmark.asked)
        clock[0] += 5
        scene.asker._page.clear()
        if scene.asker.ask_one() and len(scene.postmark.asked) > before:
            times.append(clock[0])
        if len(times) == 6:
            break
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == [10.0, 20.0, 40.0, 80.0, 160.0]


def test_an_account_that_gave_no_answer_is_left_alone_for_a_while(scene: Scene) -> None:
    for number in range(5):
        scene.in_doubt(f"receipt:{number}")
    scene.postmark.status = "429 Too Many Requests"
    scene.walk()
    assert len(scene.postmark.asked) == 1


@pytest.mark.parametrize("change", ["paused", "moved"])
def test_an_account_that_is_paused_or_moved_is_not_asked(scene: Scene, change: str) -> None:
    send = scene.in_doubt()
    scene.postmark.took(send)
    if change == "moved":
        scene.point_at("http://127.0.0.1:1")
    else:
        with scene.place.database.transaction() as connection:
            pause_account(connection, scene.place.account, reason="their status page is red")
    scene.walk()
    assert (scene.postmark.asked, scene.state(send)) == ([], "unknown")


def test_more_sends_than_a_page_holds_are_all_asked_about(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(look_up, "PAGE", 2)
    sends = [scene.in_doubt(f"receipt:{number}") for number in range(5)]
    for number, send in enumerate(sends):
        scene.postmark.took(send, message_id=f"m-{number}")
    scene.walk()
    assert {scene.state(send) for send in sends} == {"accepted"}
