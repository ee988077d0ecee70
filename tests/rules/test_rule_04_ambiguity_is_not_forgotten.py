"""Rule 4: a send fails, or freely returns to pending, only when every one of its attempts is refused or not written."""

from __future__ import annotations

import pytest

from dashboard.ledger.attempts import Kind
from dashboard.lifecycle import Decision
from tests.crew import (
    DAY,
    Hand,
    ask_one,
    attempt_ages,
    attempts_of,
    decide,
    due_now,
    graces_end,
    reason_of,
    reconciled,
    released,
    state_of,
    swept,
    work_of,
)
from tests.place import Place

NOT_TAKEN: list[Kind] = [
    "refused",
    "refused_for_now",
    "account_trouble",
    "never_written",
    "cannot_be_written",
    "message_gone",
]


@pytest.fixture(autouse=True)
def _policy(place: Place) -> None:
    place.run("update sendonce.mailstreams set unknown_policy = 'release' where name = 'receipts'")


@pytest.mark.parametrize("kind", NOT_TAKEN)
def test_a_refusal_beside_an_attempt_in_doubt_returns_the_send_to_unknown(place: Place, kind: Kind) -> None:
    send, *_ = released(place)
    hand = Hand(place)
    (second,) = hand.start()
    hand.finish(second, kind)
    assert (state_of(place, send), reason_of(place, send)) == ("unknown", "earlier_doubt")
    assert work_of(place, send)["ambiguous_since"] is not None
    assert attempts_of(place, send)[0] == "ambiguous"


@pytest.mark.parametrize(
    ("kind", "state"),
    [
        ("refused", "failed"), ("cannot_be_written", "failed"), ("refused_for_now", "pending"),
        ("account_trouble", "pending"), ("never_written", "pending"), ("message_gone", "held"),
    ],
)  # fmt: skip
def test_where_nothing_is_in_doubt_a_refusal_has_its_own_end(place: Place, kind: Kind, state: str) -> None:
    send, hand = ask_one(place), Hand(place)
    (started,) = hand.start()
    hand.finish(started, kind)
    assert state_of(place, send) == state


def test_a_claim_that_is_given_back_keeps_the_doubt_and_the_unused_release(place: Place) -> None:
    send, *_ = released(place)
    Hand(place).claim()
    assert swept(place).given_back == 1
    row = work_of(place, send)
    assert (row["state"], row["released_by"], row["ambiguous_since"] is not None) == ("pending", "reconcile", True)
    attempt_ages(place, send, DAY)
    assert Hand(place).start() == [], "the doubt was not forgotten on the way"
    assert state_of(place, send) == "held"


def test_a_release_that_was_used_does_not_come_back(place: Place) -> None:
    send, *_ = released(place)
    hand = Hand(place)
    hand.start()
    assert swept(place).doubted == 1
    row = work_of(place, send)
    assert (row["state"], row["released_by"]) == ("unknown", None)
    assert hand.claim() == []


def test_attempts_that_are_used_up_beside_a_doubt_end_held_and_never_failed(place: Place) -> None:
    place.run("update sendonce.mailstreams set max_attempts = 2")
    send, *_ = released(place)
    hand = Hand(place)
    (second,) = hand.start()
    hand.finish(second, "refused")
    graces_end(place)
    assert reconciled(place).held == 1
    assert (state_of(place, send), reason_of(place, send)) == ("held", "attempts_used_up")


def test_once_the_doubt_itself_turns_out_refused_the_send_is_free_again(place: Place) -> None:
    send, late, first = released(place)
    hand = Hand(place)
    (second,) = hand.start()
    hand.finish(second, "refused_for_now")
    assert state_of(place, send) == "unknown"
    late.finish(first, "never_written")
    assert (state_of(place, send), attempts_of(place, send)) == ("pending", ["abandoned", "rejected"])
    due_now(place)
    assert [s.n for s in hand.start()] == [3], "no release is needed any more"


def test_a_person_who_lets_it_go_on_does_not_make_the_earlier_doubt_undone(place: Place) -> None:
    place.run("update sendonce.mailstreams set unknown_policy = 'hold'")
    send, hand = ask_one(place), Hand(place)
    (first,) = hand.start()
    hand.finish(first, "ambiguous")
    graces_end(place)
    reconciled(place)
    decide(place, Decision.RESEND)
    (second,) = hand.start()
    hand.finish(second, "refused")
    assert (state_of(place, send), attempts_of(place, send)) == ("unknown", ["ambiguous", "rejected"])
