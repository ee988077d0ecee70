"""Rule 14: a decision waives only what its hold names, for one attempt, and only if its maker saw all there is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from dashboard.ledger.holds import Decided, OpenHold, Refused
from dashboard.ledger.streams import read_stream, save_stream
from dashboard.ledger.suppressions import Statement, say
from dashboard.ledger.tables import Policy, SuppressionScope
from dashboard.lifecycle import Decision, EventType, State
from tests.crew import (
    Hand,
    Rival,
    ask_one,
    attempts_of,
    decide,
    graces_end,
    hear,
    hear_in,
    held,
    hold_of,
    open_transaction,
    reason_of,
    reconciled,
    state_of,
    told,
    wait_for_a_waiter,
    work_of,
)
from tests.place import Place


def _suppress(place: Place, send: UUID) -> None:
    row = place.one("select address_lookup, now() as now from sendonce.sends where id = %s", send)
    statement = Statement(
        workspace_id=place.workspace, address_lookup=row["address_lookup"], scope=SuppressionScope.EVERYTHING,
        said_at=row["now"], source="bounced",
    )  # fmt: skip
    with place.database.transaction() as connection:
        say(connection, [statement])


def _late(place: Place) -> UUID:
    """Held because it is too late."""
    place.run("update sendonce.mailstreams set too_late_after = interval '1 hour', late_policy = 'hold'")
    send = ask_one(place)
    place.run("update sendonce.work set due_at = due_at - interval '2 hours'")
    assert Hand(place).start() == []
    assert (state_of(place, send), reason_of(place, send)) == ("held", "late")
    return send


def test_a_decision_to_resend_allows_one_attempt(place: Place) -> None:
    send, *_ = held(place)
    assert decide(place, Decision.RESEND) == Decided(send, State.PENDING)
    hand = Hand(place)
    (second,) = hand.start()
    hand.finish(second, "ambiguous")
    graces_end(place)
    assert reconciled(place).held == 1
    assert hand.claim() == []
    assert attempts_of(place, send) == ["ambiguous", "ambiguous"]


def test_what_was_decided_stands_with_who_when_why_and_what_was_seen(place: Place) -> None:
    send, *_ = held(place)
    hold = hold_of(place)
    decide(place, Decision.CANCEL, reason="  the customer wrote to us  ")
    row = place.one("select send_id, hold_id, decision::text, reason, evidence, seen, before_state::text,"
                    " after_state::text from sendonce.decisions")  # fmt: skip
    assert row.pop("seen")["attempts"] == 1
    assert row == {
        "send_id": send, "hold_id": hold.hold_id, "decision": "cancel", "reason": "the customer wrote to us",
        "evidence": 0, "before_state": "held", "after_state": "cancelled",
    }  # fmt: skip
    assert place.one("select action from sendonce.audit") == {"action": "held.cancel"}


def test_without_a_reason_nothing_is_decided(place: Place) -> None:
    send, *_ = held(place)
    assert isinstance(decide(place, Decision.RESEND, reason=" \n"), Refused)
    assert state_of(place, send) == "held"


def test_a_late_hold_waives_lateness_for_one_attempt(place: Place) -> None:
    send = _late(place)
    assert hold_of(place).waives == ["late"]
    assert isinstance(decide(place, Decision.RESEND), Decided)
    hand = Hand(place)
    (started,) = hand.start()
    hand.finish(started, "refused_for_now")
    place.run("update sendonce.work set claim_at = now()")
    assert hand.start() == [], "the waiver was for one attempt"
    assert (state_of(place, send), reason_of(place, send)) == ("held", "late")


def test_a_doubtful_hold_does_not_waive_lateness(place: Place) -> None:
    send, *_ = held(place)
    assert hold_of(place).waives == ["ambiguous"]
    place.run("update sendonce.mailstreams set too_late_after = interval '1 hour', late_policy = 'hold'")
    place.run("update sendonce.work set due_at = due_at - interval '2 hours'")
    decide(place, Decision.RESEND)
    assert Hand(place).start() == []
    assert (state_of(place, send), reason_of(place, send)) == ("held", "late")


@pytest.mark.parametrize("why", ["late", "ambiguous"])
def test_suppression_counts_whatever_was_decided(place: Place, why: str) -> None:
    send = _late(place) if why == "late" else held(place)[0]
    decide(place, Decision.RESEND)
    _suppress(place, send)
    assert Hand(place).start() == []
    assert state_of(place, send) == "suppressed"


def test_a_decision_whose_maker_has_not_seen_the_newest_word_is_refused(place: Place) -> None:
    send, *_ = held(place)
    seen = hold_of(place)
    hear(place, told(EventType.UNKNOWN, send))
    for choice in Decision:
        answer = decide(place, choice, hold=seen)
        assert isinstance(answer, Refused)
        assert "Look again" in answer.reason
    assert (state_of(place, send), place.count("decisions")) == ("held", 0)
    assert isinstance(decide(place, Decision.RESEND), Decided)


def test_a_decision_that_meets_a_word_waits_for_it_and_is_refused(place: Place) -> None:
    send, *_ = held(place)
    seen = hold_of(place)
    with open_transaction(place) as connection:
        hear_in(connection, place, told(EventType.UNKNOWN, send))
        deciding = Rival(lambda: decide(place, Decision.RESEND, hold=seen))
        wait_for_a_waiter(place, deciding)
    assert isinstance(deciding.result, Refused)
    assert state_of(place, send) == "held"


def test_a_decision_that_meets_proof_waits_for_it_and_is_refused(place: Place) -> None:
    send, *_ = held(place)
    seen = hold_of(place)
    with open_transaction(place) as connection:
        hear_in(connection, place, told(EventType.DELIVERED, send))
        deciding = Rival(lambda: decide(place, Decision.RESEND, hold=seen))
        wait_for_a_waiter(place, deciding)
    assert isinstance(deciding.result, Refused)
    assert state_of(place, send) == "accepted"


def test_of_two_people_who_decide_at_once_one_is_refused(place: Place) -> None:
    send, *_ = held(place)
    seen = hold_of(place)
    first, second = (
        Rival(lambda login=login: decide(place, Decision.RESEND, hold=seen, login=login)) for login in "ab"
    )
    results = [first.result, second.result]
    assert sorted(type(result).__name__ for result in results) == ["Decided", "Refused"]
    assert place.count("decisions") == 1
    assert len(Hand(place).start()) == 1
    assert attempts_of(place, send) == ["ambiguous", "submitting"]


def test_the_second_of_two_people_waits_for_the_first(place: Place) -> None:
    held(place)
    seen = hold_of(place)
    with open_transaction(place) as connection:
        connection.execute("select from sendonce.work for update")
        second = Rival(lambda: decide(place, Decision.CANCEL, hold=seen))
        wait_for_a_waiter(place, second)
        connection.execute("update sendonce.work set evidence = evidence + 1")
    assert isinstance(second.result, Refused)


def test_a_hold_that_was_released_by_mistake_is_not_decided_twice(place: Place) -> None:
    send, *_ = held(place)
    seen = hold_of(place)
    decide(place, Decision.RESEND, hold=seen)
    assert isinstance(decide(place, Decision.RESEND, hold=seen), Refused)
    assert work_of(place, send)["state"] == "pending"


def test_marked_accepted_may_be_only_what_may_have_been_accepted(place: Place) -> None:
    send = _late(place)
    assert Decision.MARK_ACCEPTED not in hold_of(place).choices
    assert isinstance(decide(place, Decision.MARK_ACCEPTED), Refused)
    assert state_of(place, send) == "held"


def test_marked_accepted_settles_the_send_and_its_attempt(place: Place) -> None:
    send, *_ = held(place)
    assert isinstance(decide(place, Decision.MARK_ACCEPTED), Decided)
    assert (state_of(place, send), reason_of(place, send)) == ("accepted", "marked_by_person")
    assert attempts_of(place, send) == ["accepted"]


def test_time_never_decides_to_send_a_held_one_again(place: Place) -> None:
    send, *_ = held(place)
    place.time_passes(timedelta(days=400))
    graces_end(place)
    assert reconciled(place).released == 0
    assert Hand(place).claim() == []
    assert state_of(place, send) == "held"


def test_what_nobody_wants_any_more_is_cancelled_while_it_is_held_and_says_until_when(place: Place) -> None:
    place.run("update sendonce.mailstreams set too_late_after = interval '1 hour', late_policy = 'cancel'")
    send, *_ = held(place)
    until_when = hold_of(place).useful_until
    assert until_when == work_of(place, send)["check_at"]
    assert reconciled(place).cancelled == 0
    assert state_of(place, send) == "held"
    place.time_passes(timedelta(hours=2))
    assert reconciled(place).cancelled == 1
    assert (state_of(place, send), reason_of(place, send)) == ("cancelled", "late")
    assert place.one("select closed_by::text from sendonce.holds") == {"closed_by": "reconcile"}
    assert place.count("decisions") == 0
    assert Hand(place).claim() == []


def test_a_stream_that_starts_to_cancel_what_is_late_means_what_is_held_as_well(place: Place) -> None:
    send, *_ = held(place)
    place.time_passes(timedelta(hours=2))
    assert reconciled(place).cancelled == 0
    with place.database.transaction() as connection:
        found = read_stream(connection, place.workspace, "receipts")
        assert found is not None
        rules = replace(found.rules, too_late_after=timedelta(hours=1), late_policy=Policy.CANCEL)
        save_stream(
            connection, workspace_id=place.workspace, name=found.name, mail_class=found.mail_class,
            account_id=found.account_id, rules=rules,
        )  # fmt: skip
    assert reconciled(place).cancelled == 1
    assert state_of(place, send) == "cancelled"


@pytest.mark.parametrize("decision", Decision)
def test_another_workspace_decides_nothing_here(place: Place, decision: Decision) -> None:
    send, *_ = held(place)
    seen: OpenHold = hold_of(place)
    other = Place(place.database, name="other")
    assert isinstance(decide(other, decision, hold=seen), Refused)
    assert state_of(place, send) == "held"
