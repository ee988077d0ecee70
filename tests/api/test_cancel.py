"""Cancelling over the API: what it answers is what has happened."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from werkzeug.test import TestResponse

from tests.api.conftest import Api, asked
from tests.crew import Hand, ask_one, state_of
from tests.place import Place


def cancel(api: Api, send: object, reason: Any = "the order was cancelled", **how: Any) -> TestResponse:
    return api.send("POST", f"/api/v1/sends/{send}/cancel", json={"reason": reason}, **how)


def ask(api: Api, **changes: Any) -> str:
    answer = api.post(asked(**changes))
    assert answer.status_code == 201
    send: str = answer.json["id"]  # type: ignore[index]
    return send


def outcome(answer: TestResponse) -> tuple[int, str, str]:
    assert answer.json is not None
    return answer.status_code, answer.json["outcome"], answer.json["send"]["state"]


def test_what_no_call_is_running_for_is_cancelled(api: Api) -> None:
    send = ask(api)
    answer = cancel(api, send)
    assert outcome(answer) == (200, "cancelled", "cancelled")
    assert "Idempotent-Replayed" not in answer.headers
    row = api.place.one(
        "select a.action, a.subject, a.reason, t.name from sendonce.audit a"
        " join sendonce.api_tokens t on t.id = a.token_id"
    )
    assert row == {
        "action": "cancel_send", "subject": send, "reason": "the order was cancelled", "name": "shop",
    }  # fmt: skip
    assert Hand(api.place).claim() == []


def test_a_repeat_is_answered_alike_and_says_that_it_is_one(api: Api) -> None:
    send = ask(api)
    cancel(api, send)
    answer = cancel(api, send)
    assert outcome(answer) == (200, "cancelled", "cancelled")
    assert answer.headers["Idempotent-Replayed"] == "true"
    assert api.place.count("audit") == 1


@pytest.mark.parametrize(("kind", "end"), [("accepted", "accepted"), ("refused_for_now", "cancelled")])
def test_a_cancel_that_meets_a_call_is_remembered_and_too_late_if_it_is_taken(api: Api, kind: Any, end: str) -> None:
    send, hand = ask(api), Hand(api.place)
    (started,) = hand.start()
    assert [outcome(cancel(api, send)) for _ in range(2)] == [(202, "remembered", "claimed")] * 2
    hand.finish(started, kind, "msg-1" if kind == "accepted" else None)
    assert api.get(f"/api/v1/sends/{send}").json["state"] == end  # type: ignore[index]


def test_a_held_and_an_unknown_send_are_cancelled_too(api: Api) -> None:
    send, hand = ask(api), Hand(api.place)
    (started,) = hand.start()
    hand.finish(started, "ambiguous")
    assert outcome(cancel(api, send)) == (200, "cancelled", "cancelled")


@pytest.mark.parametrize(("kind", "end"), [("accepted", "accepted"), ("refused", "failed")])
def test_what_has_come_to_its_end_is_refused(api: Api, kind: Any, end: str) -> None:
    send = ask(api)
    Hand(api.place).send(kind)
    answer = cancel(api, send)
    assert (answer.status_code, answer.content_type) == (409, "application/problem+json")
    assert answer.json["type"].endswith("/docs/problems/settled")  # type: ignore[index]
    assert answer.json["detail"] == f"It is {end}: there is nothing to cancel."  # type: ignore[index]
    assert "Retry-After" not in answer.headers


def test_the_sends_of_others_and_of_nobody_are_404(api: Api, place: Place) -> None:
    foreign = ask_one(Place(place.database, name="other"))
    for send in (uuid4(), foreign, "no-id"):
        assert cancel(api, send).status_code == 404
    assert (api.place.count("audit"), state_of(place, foreign)) == (0, "pending")


@pytest.mark.parametrize("reason", ["", "  ", None, 7, "x" * 2_001, "\0", "\ud800"])
def test_without_a_reason_that_can_be_kept_it_is_400(api: Api, reason: Any) -> None:
    send = ask(api)
    answer = cancel(api, send, reason)
    assert (answer.status_code, answer.json and answer.json["field"]) == (400, "reason")
    assert api.get(f"/api/v1/sends/{send}").json["state"] == "pending"  # type: ignore[index]


def test_a_body_of_another_kind_and_no_token_are_refused(api: Api) -> None:
    path = f"/api/v1/sends/{ask(api)}/cancel"
    assert api.send("POST", path, data=b"reason=x").status_code == 415
    assert api.send("POST", path, json={"why": "x"}).status_code == 400
    assert api.send("POST", path, json=["x"]).status_code == 400
    assert api.send("POST", path, json={"reason": "x" * 30_000}).status_code == 413
    assert api.send("POST", path, json={"reason": "x"}, token="nobody").status_code == 401


def test_a_send_that_somebody_else_holds_is_409_with_retry_after(api: Api, place: Place) -> None:
    send = ask(api)
    with place.database.transaction() as connection:
        connection.execute("select from sendonce.work for update")
        answer = cancel(api, send)
    assert (answer.status_code, answer.headers["Retry-After"]) == (409, "1")
    assert "holds this send" in answer.json["detail"]  # type: ignore[index]
