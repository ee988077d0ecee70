"""Rule 20, replay: a person brings back what failed, under its own key, with its own message, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from dashboard.ledger.holds import Refused
from dashboard.ledger.replay import Replayed, replay_send
from dashboard.lifecycle import Decision, EventType
from tests.crew import (
    Hand,
    Rival,
    ask,
    ask_one,
    attempts_of,
    decide,
    due_now,
    graces_end,
    hear,
    held,
    open_transaction,
    person,
    reason_of,
    reconciled,
    state_of,
    told,
    unknown,
    verdicts_of,
    wait_for_a_waiter,
    work_of,
)
from tests.place import Place


def failed(place: Place, key: str = "order:1") -> UUID:
    send = ask_one(place, key)
    Hand(place).send("refused")
    assert state_of(place, send) == "failed"
    return send


def replayed(place: Place, send: UUID, reason: str = "the domain is verified now") -> Replayed | Refused:
    user = person(place)
    with place.database.transaction() as connection:
        return replay_send(connection, workspace_id=place.workspace, send_id=send, user_id=user, reason=reason)


def test_a_failed_send_becomes_pending_and_goes_out_under_its_own_key_and_numbered_on(place: Place) -> None:
    send = failed(place)
    assert replayed(place, send) == Replayed(send)
    assert (state_of(place, send), reason_of(place, send)) == ("pending", "replayed")
    again = Hand(place).send("accepted", "msg-2")
    assert (again.send_id, again.n, again.claim_number) == (send, 2, 2)
    keys = place.all("select idempotency_key, account_id from sendonce.attempts order by n")
    assert keys == [{"idempotency_key": str(send), "account_id": place.account}] * 2
    assert (state_of(place, send), attempts_of(place, send)) == ("accepted", ["rejected", "accepted"])


def test_the_replay_stands_in_the_history_and_in_the_audit_log_with_its_person_and_reason(place: Place) -> None:
    send = failed(place)
    replayed(place, send)
    move = place.one("select from_state::text, to_state::text, user_id from sendonce.moves where move = 'replay'")
    assert move == {"from_state": "failed", "to_state": "pending", "user_id": person(place)}
    audit = place.one("select subject, reason, user_id from sendonce.audit where action = 'replay_send'")
    assert audit == {"subject": str(send), "reason": "the domain is verified now", "user_id": person(place)}


def test_pressing_three_times_at_once_makes_one(place: Place) -> None:
    send = failed(place)
    user = person(place)
    with open_transaction(place) as connection:
        first = replay_send(connection, workspace_id=place.workspace, send_id=send, user_id=user, reason="again")
        others = [Rival(lambda: replayed(place, send)) for _ in range(2)]
        for other in others:
            wait_for_a_waiter(place, other)
    assert first == Replayed(send)
    assert [other.result for other in others] == [
        Refused("This send is open: it is on its way, or waits for a decision.")
    ] * 2
    assert len(Hand(place).start()) == 1
    assert place.one("select count(*) as n from sendonce.moves where move = 'replay'") == {"n": 1}


def _pending(place: Place) -> UUID:
    return ask_one(place)


def _accepted(place: Place) -> UUID:
    send = ask_one(place)
    Hand(place).send()
    return send


def _cancelled(place: Place) -> UUID:
    send, *_ = held(place)
    decide(place, Decision.CANCEL)
    return send


STATES: dict[str, tuple[Callable[[Place], UUID], str]] = {
    "pending": (_pending, "is open"),
    "unknown": (lambda place: unknown(place)[0], "is open"),
    "held": (lambda place: held(place)[0], "is open"),
    "accepted": (_accepted, "is accepted: only a failed one"),
    "cancelled": (_cancelled, "is cancelled: only a failed one"),
}


@pytest.mark.parametrize("state", STATES)
def test_nothing_but_a_failed_send_can_be_replayed(place: Place, state: str) -> None:
    make, words = STATES[state]
    send = make(place)
    refused = replayed(place, send)
    assert isinstance(refused, Refused)
    assert words in refused.reason
    assert state_of(place, send) == state


def test_kept_evidence_is_looked_at_before_a_replay(place: Place) -> None:
    send = failed(place)
    place.run(
        "insert into sendonce.unmatched (workspace_id, account_id, event_id, fact, event_type, occurred_at, send_id)"
        " values (%s, %s, 'e', 'f', 'delivered', now(), %s)",
        place.workspace, place.account, send,
    )  # fmt: skip
    refused = replayed(place, send)
    assert isinstance(refused, Refused)
    assert "is accepted" in refused.reason
    assert (state_of(place, send), place.count("unmatched")) == ("accepted", 0)


def test_without_its_message_a_send_is_not_replayed(place: Place) -> None:
    send = failed(place)
    place.run("delete from sendonce.messages")
    refused = replayed(place, send)
    assert isinstance(refused, Refused)
    assert "Its message is gone" in refused.reason
    assert state_of(place, send) == "failed"


def test_what_could_not_be_rendered_needs_a_corrected_send(place: Place) -> None:
    message = {"from": "shop@example.com", "subject": "Hello", "text": "Dear {{ name }}", "variables": {"order": 1}}
    send = ask_one(place, message=message)
    refused = replayed(place, send)
    assert isinstance(refused, Refused)
    assert "by a new key" in refused.reason
    assert state_of(place, send) == "failed"


def test_a_replay_is_never_a_way_round_an_attempt_that_may_have_been_taken(place: Place) -> None:
    send = failed(place)
    place.run("update sendonce.attempts set status = 'ambiguous', doubted_at = now()")
    refused = replayed(place, send)
    assert isinstance(refused, Refused)
    assert "may have been taken" in refused.reason
    place.run("update sendonce.attempts set status = 'rejected', doubted_at = null")
    assert state_of(place, send) == "failed"


def test_a_replay_counts_its_attempts_anew_and_is_not_too_late_for_its_first(place: Place) -> None:
    place.run("update sendonce.mailstreams set max_attempts = 2 where name = 'receipts'")
    send = ask_one(place)
    for _ in range(2):
        due_now(place)
        Hand(place).send("refused_for_now")
    assert (state_of(place, send), reason_of(place, send)) == ("failed", "attempts_used_up")
    place.run("update sendonce.mailstreams set too_late_after = '1 microsecond' where name = 'receipts'")
    replayed(place, send)
    assert work_of(place, send)["counted_attempts"] == 0
    assert [s.n for s in Hand(place).start()] == [3]


def test_a_replayed_send_that_becomes_unknown_is_as_careful_as_ever(place: Place) -> None:
    send = failed(place)
    replayed(place, send)
    hand = Hand(place)
    (second,) = hand.start()
    hand.finish(second, "ambiguous")
    graces_end(place)
    assert reconciled(place).held == 1
    hear(place, told(EventType.DELIVERED, send, "msg-2"))
    assert (state_of(place, send), attempts_of(place, send)) == ("accepted", ["rejected", "accepted"])


def test_a_delivery_of_the_same_key_after_a_replay_is_still_a_later_one(place: Place) -> None:
    send = failed(place)
    replayed(place, send)
    ask(place, "order:1")
    assert verdicts_of(place, send) == ["in_progress"]


def test_a_person_of_another_workspace_has_nothing_to_replay(place: Place) -> None:
    send = failed(place)
    other = place.one("insert into sendonce.workspaces (name) values ('other') returning id")["id"]
    with place.database.transaction() as connection:
        result = replay_send(connection, workspace_id=other, send_id=send, user_id=person(place), reason="again")
    assert result == Refused("There is no send of this id.")
    assert state_of(place, send) == "failed"


def test_a_replay_needs_a_reason(place: Place) -> None:
    send = failed(place)
    assert isinstance(replayed(place, send, " "), Refused)
    assert state_of(place, send) == "failed"
