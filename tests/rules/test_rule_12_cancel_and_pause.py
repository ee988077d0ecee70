"""Rule 12: a cancel that meets a call is remembered; a pause starts nothing, and what is under way runs to its end."""

from __future__ import annotations

from uuid import uuid4

import pytest

from dashboard.ledger.attempts import Kind
from dashboard.ledger.cancelling import Cancelled, Remembered, cancel_send
from dashboard.ledger.holds import Refused
from dashboard.lifecycle import EventType
from tests.crew import (
    Hand,
    Rival,
    ask_one,
    attempts_of,
    due_now,
    graces_end,
    hear,
    held,
    open_transaction,
    person,
    reason_of,
    reconciled,
    released,
    state_of,
    swept,
    told,
    unknown,
    wait_for_a_waiter,
    work_of,
)
from tests.place import Place


def cancel(place: Place, send: object, *, reason: str = "the order was cancelled") -> object:
    """What a person asks for."""
    user = person(place)
    with place.database.transaction() as connection:
        return cancel_send(
            connection, workspace_id=place.workspace, send_id=send, user_id=user, reason=reason  # type: ignore[arg-type]
        )  # fmt: skip


# ── cancel ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_no_call_is_running_for_is_cancelled_at_once(place: Place) -> None:
    send = ask_one(place)
    assert cancel(place, send) == Cancelled(send)
    assert (state_of(place, send), reason_of(place, send)) == ("cancelled", "cancelled_by_person")
    assert Hand(place).claim() == []
    row = place.one("select action, subject, reason, detail, user_id from sendonce.audit")
    assert row == {
        "action": "cancel_send", "subject": str(send), "reason": "the order was cancelled",
        "detail": {"before": "pending", "call_running": False}, "user_id": person(place),
    }  # fmt: skip


def test_a_claim_without_a_call_ends_with_the_cancel(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    claims = hand.claim()
    with open_transaction(place) as connection:
        user = person(place)
        cancel_send(connection, workspace_id=place.workspace, send_id=send, user_id=user, reason="no")
        start = Rival(lambda: hand.start(claims))
        wait_for_a_waiter(place, start)
    assert start.result == []
    assert (state_of(place, send), attempts_of(place, send)) == ("cancelled", [])


def test_a_cancel_that_meets_a_start_waits_for_it_and_is_remembered(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    claims = hand.claim()
    with open_transaction(place) as connection:
        hand.start_in(connection, claims)
        cancelling = Rival(lambda: cancel(place, send))
        wait_for_a_waiter(place, cancelling)
    assert cancelling.result == Remembered(send)
    assert (state_of(place, send), work_of(place, send)["cancel_reason"]) == ("claimed", "cancelled_by_person")


RETURNS: list[Kind] = [
    "refused_for_now", "account_trouble", "never_written", "refused", "cannot_be_written", "message_gone",
]  # fmt: skip


@pytest.mark.parametrize("kind", RETURNS)
def test_wherever_the_send_would_go_on_a_remembered_cancel_ends_it(place: Place, kind: Kind) -> None:
    send, hand = ask_one(place), Hand(place)
    (started,) = hand.start()
    assert cancel(place, send) == Remembered(send)
    hand.finish(started, kind)
    assert (state_of(place, send), reason_of(place, send)) == ("cancelled", "cancelled_by_person")
    assert place.one("select taken_at from sendonce.sends")["taken_at"] is None


def test_a_remembered_cancel_is_too_late_if_the_provider_took_it(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    (started,) = hand.start()
    assert cancel(place, send) == Remembered(send)
    hand.finish(started, "accepted", "msg-1")
    assert state_of(place, send) == "accepted"


def test_a_call_without_an_answer_leaves_a_cancelled_send_unknown_until_its_grace_is_over(place: Place) -> None:
    place.run("update sendonce.mailstreams set unknown_policy = 'release'")
    send, hand = ask_one(place), Hand(place)
    hand.start()
    cancel(place, send)
    assert swept(place).doubted == 1
    assert state_of(place, send) == "unknown"
    graces_end(place)
    assert reconciled(place).cancelled == 1, "it is cancelled, and not released under its key"
    assert attempts_of(place, send) == ["ambiguous"]
    hear(place, told(EventType.DELIVERED, send))
    row = place.one("select state::text, taken_at is not null as taken from sendonce.sends")
    assert row == {"state": "cancelled", "taken": True}


def test_a_late_refusal_of_an_unknown_send_follows_the_remembered_cancel(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    (started,) = hand.start()
    cancel(place, send)
    swept(place)
    hand.finish(started, "refused_for_now")
    assert state_of(place, send) == "cancelled"


def test_an_unknown_send_is_cancelled_at_once_and_may_have_left(place: Place) -> None:
    send, hand, started = unknown(place)
    assert cancel(place, send) == Cancelled(send)
    assert state_of(place, send) == "cancelled"
    hand.finish(started, "accepted", "msg-1")
    row = place.one("select state::text, taken_at is not null as taken from sendonce.sends")
    assert row == {"state": "cancelled", "taken": True}


def test_a_released_send_is_cancelled_before_its_next_attempt(place: Place) -> None:
    place.run("update sendonce.mailstreams set unknown_policy = 'release'")
    send, *_ = released(place)
    assert cancel(place, send) == Cancelled(send)
    assert Hand(place).claim() == []


def test_a_held_send_is_cancelled_by_a_decision_of_its_person(place: Place) -> None:
    send, *_ = held(place)
    assert cancel(place, send) == Cancelled(send)
    row = place.one("select decision::text, reason, user_id from sendonce.decisions")
    assert row == {"decision": "cancel", "reason": "the order was cancelled", "user_id": person(place)}
    assert state_of(place, send) == "cancelled"


def test_a_program_may_cancel_too(place: Place) -> None:
    for send in (held(place, "order:1")[0], ask_one(place, "order:2")):
        with place.database.transaction() as connection:
            cancel_send(connection, workspace_id=place.workspace, send_id=send, user_id=None, reason="refunded")
        assert state_of(place, send) == "cancelled"


def test_what_has_ended_what_is_foreign_and_what_has_no_reason_is_refused(place: Place) -> None:
    send = ask_one(place)
    assert isinstance(cancel(place, send, reason=" "), Refused)
    with place.database.transaction() as connection:
        foreign = cancel_send(connection, workspace_id=uuid4(), send_id=send, user_id=None, reason="r")
    assert isinstance(foreign, Refused)
    assert state_of(place, send) == "pending"
    Hand(place).send()
    assert isinstance(cancel(place, send), Refused)
    assert isinstance(cancel(place, uuid4()), Refused)
    assert state_of(place, send) == "accepted"


def test_a_second_cancel_changes_nothing(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    (started,) = hand.start()
    assert [cancel(place, send), cancel(place, send)] == [Remembered(send)] * 2
    hand.finish(started, "never_written")
    assert state_of(place, send) == "cancelled"
    assert isinstance(cancel(place, send), Refused)


# ── pause ────────────────────────────────────────────────────────────────────────────────────────────────────────────

PAUSES = {
    "stream": (
        "update sendonce.mailstreams set paused_at = now(), paused_reason = 'p'",
        "update sendonce.mailstreams set paused_at = null, paused_reason = null",
    ),
    "workspace": (
        "update sendonce.workspaces set paused_at = now(), paused_reason = 'p'",
        "update sendonce.workspaces set paused_at = null, paused_reason = null",
    ),
    "account": (
        "update sendonce.accounts set paused_until = now() + interval '1 day', paused_reason = 'p'",
        "update sendonce.accounts set paused_until = null, paused_reason = null",
    ),
}


@pytest.mark.parametrize("what", PAUSES)
def test_under_a_pause_no_attempt_starts_and_a_claim_is_given_back(place: Place, what: str) -> None:
    send, hand = ask_one(place), Hand(place)
    claims = hand.claim()
    place.run(PAUSES[what][0])
    assert hand.start(claims) == []
    assert (state_of(place, send), attempts_of(place, send)) == ("pending", [])
    assert reason_of(place, send) == ("provider_paused" if what == "account" else "stream_paused")
    assert hand.claim() == []
    place.run(PAUSES[what][1])
    assert [s.send_id for s in hand.start()] == [send]


@pytest.mark.parametrize("what", PAUSES)
def test_under_a_pause_a_call_that_is_running_runs_to_its_end(place: Place, what: str) -> None:
    send, hand = ask_one(place), Hand(place)
    (started,) = hand.start()
    place.run(PAUSES[what][0])
    assert state_of(place, send) == "claimed"
    assert hand.finish(started, "accepted", "msg-1").accepted == 1
    assert state_of(place, send) == "accepted"


@pytest.mark.parametrize("what", PAUSES)
def test_under_a_pause_what_returns_to_pending_waits(place: Place, what: str) -> None:
    send, hand = ask_one(place), Hand(place)
    (started,) = hand.start()
    place.run(PAUSES[what][0])
    hand.finish(started, "refused_for_now")
    due_now(place)
    assert hand.claim() == []
    assert state_of(place, send) == "pending"
    place.run(PAUSES[what][1])
    assert [s.n for s in hand.start()] == [2]
