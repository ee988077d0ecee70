"""Rule 7: a worker may settle its own attempt however late, and never starts or touches another one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dashboard.ledger import attempts
from dashboard.ledger.attempts import Kind
from dashboard.lifecycle import Decision
from tests.crew import (
    BACKOFF,
    Hand,
    Rival,
    ask_one,
    attempts_of,
    decide,
    due_now,
    held,
    open_transaction,
    reason_of,
    released,
    state_of,
    swept,
    unknown,
    violations,
    wait_for_a_waiter,
    work_of,
)
from tests.place import Place, outcome_of


@pytest.fixture(autouse=True)
def _policy(place: Place) -> None:
    place.run("update sendonce.mailstreams set unknown_policy = 'release' where name = 'receipts'")


def test_a_yes_after_the_claim_was_swept_accepts_the_send(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    (started,) = hand.start()
    swept(place)
    settled = hand.finish(started, "accepted", "msg-1")
    assert (settled.accepted, settled.late) == (0, 1)
    assert (state_of(place, send), reason_of(place, send)) == ("accepted", "late_answer")
    assert place.one("select status::text, provider_message_id from sendonce.attempts") == {
        "status": "accepted", "provider_message_id": "msg-1",
    }  # fmt: skip


def test_a_yes_beside_a_newer_attempt_accepts_the_send_and_leaves_the_newer_one_in_doubt(place: Place) -> None:
    send, late, first = released(place)
    newer = Hand(place)
    (second,) = newer.start()
    late.finish(first, "accepted", "msg-1")
    assert (state_of(place, send), attempts_of(place, send)) == ("accepted", ["accepted", "ambiguous"])
    assert newer.finish(second, "refused").late == 1
    assert (state_of(place, send), attempts_of(place, send)) == ("accepted", ["accepted", "rejected"])


@pytest.mark.parametrize(
    ("kind", "state"),
    [("refused", "failed"), ("refused_for_now", "pending"), ("never_written", "pending"), ("ambiguous", "unknown")],
)
@pytest.mark.parametrize("before", ["unknown", "held"])
def test_a_late_refusal_of_the_only_attempt_settles_an_unknown_or_held_send(
    place: Place, before: str, kind: Kind, state: str
) -> None:
    if before == "held":
        place.run("update sendonce.mailstreams set unknown_policy = 'hold'")
    send, hand, started = held(place) if before == "held" else unknown(place)
    hand.finish(started, kind)
    assert state_of(place, send) == (before if kind == "ambiguous" else state)
    if kind != "ambiguous":
        assert place.all("select from sendonce.holds where closed_at is null") == []


def test_a_late_refusal_beside_an_open_attempt_settles_its_own_attempt_alone(place: Place) -> None:
    send, late, first = released(place)
    newer = Hand(place)
    (second,) = newer.start()
    late.finish(first, "refused")
    row = work_of(place, send)
    assert (row["state"], row["open_attempt"], row["claimed_by"]) == ("claimed", 2, newer.id)
    assert attempts_of(place, send) == ["rejected", "submitting"]
    assert newer.finish(second, "accepted", "msg-2").accepted == 1


def test_a_late_refusal_that_meets_a_start_waits_and_sees_the_new_attempt(place: Place) -> None:
    send, late, first = released(place)
    newer = Hand(place)
    claims = newer.claim()
    with open_transaction(place) as connection:
        (second,) = newer.start_in(connection, claims)
        refusal = Rival(lambda: late.finish(first, "refused"))
        wait_for_a_waiter(place, refusal)
    assert refusal.result.late == 1
    row = work_of(place, send)
    assert (row["state"], row["open_attempt"], row["ambiguous_since"] is not None) == ("claimed", 2, True)
    assert newer.finish(second, "accepted", "msg-2").accepted == 1


def test_a_late_refusal_that_meets_another_late_refusal_ends_the_doubt_once(place: Place) -> None:
    send, late, first = released(place)
    newer = Hand(place)
    (second,) = newer.start()
    newer.finish(second, "ambiguous")
    with open_transaction(place) as connection:
        late.finish_in(connection, first, "refused_for_now")
        refusal = Rival(lambda: newer.finish(second, "refused_for_now"))
        wait_for_a_waiter(place, refusal)
    refusal.join()
    assert (state_of(place, send), attempts_of(place, send)) == ("pending", ["rejected", "rejected"])
    assert work_of(place, send)["ambiguous_since"] is None


def test_a_late_refusal_of_a_send_that_waits_for_its_next_attempt_lets_it_wait_without_doubt(place: Place) -> None:
    send, late, first = released(place)
    late.finish(first, "refused")
    assert (state_of(place, send), work_of(place, send)["ambiguous_since"]) == ("pending", None)
    assert [s.n for s in Hand(place).start()] == [2]


def test_nobody_settles_the_attempt_of_another_worker(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    (started,) = hand.start()
    for kind in ("refused", "never_written", "ambiguous"):
        assert Hand(place).finish(started, kind).late == 1
    assert (state_of(place, send), attempts_of(place, send)) == ("claimed", ["submitting"])
    swept(place)
    Hand(place).finish(started, "refused")
    assert (state_of(place, send), attempts_of(place, send)) == ("unknown", ["ambiguous"])


def test_a_refusal_after_the_claim_was_swept_is_no_claim(place: Place) -> None:
    place.run("update sendonce.mailstreams set unknown_policy = 'hold'")
    send, late, first = held(place)
    decide(place, Decision.RESEND)
    newer = Hand(place)
    claims = newer.claim()
    late.finish(first, "refused_for_now")
    assert (state_of(place, send), work_of(place, send)["claimed_by"]) == ("claimed", newer.id)
    assert [s.n for s in newer.start(claims)] == [2]


def test_the_same_outcome_stored_twice_changes_nothing_the_second_time(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    (started,) = hand.start()
    hand.finish(started, "refused_for_now")
    due_now(place)
    (second,) = hand.start()
    hand.finish(started, "refused_for_now")
    assert attempts_of(place, send) == ["rejected", "submitting"]
    hand.finish(second, "accepted", "msg-1")
    hand.finish(second, "accepted", "msg-1")
    assert (state_of(place, send), attempts_of(place, send)) == ("accepted", ["rejected", "accepted"])
    assert place.count("second_message_ids") == 0


def test_an_attempt_that_was_lost_with_its_commit_settles_none_that_has_its_number_since(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    with open_transaction(place, commit=False) as connection:
        (lost,) = hand.start_in(connection, hand.claim())
    swept(place)
    due_now(place)
    (running,) = hand.start()  # by another lane of the same worker
    assert (lost.n, running.n) == (1, 1)
    assert hand.finish(lost, "never_written").late == 1
    assert (state_of(place, send), attempts_of(place, send)) == ("claimed", ["submitting"])
    hand.finish(running, "ambiguous")
    assert hand.finish(lost, "refused").late == 1
    assert (state_of(place, send), attempts_of(place, send)) == ("unknown", ["ambiguous"])


@pytest.mark.parametrize("first", ["accepted", "refused"])
def test_the_answers_of_two_attempts_of_one_send_may_be_stored_together(place: Place, first: Kind) -> None:
    """As after a time without the database, in which another attempt was released and made."""
    send, hand, once = released(place)
    (again,) = hand.start()
    second: Kind = "refused" if first == "accepted" else "accepted"
    outcomes = [
        outcome_of(once, first, "m-1" if first == "accepted" else None),
        outcome_of(again, second, "m-2" if second == "accepted" else None),
    ]
    with place.database.transaction() as connection:
        attempts.finish(connection, hand.id, outcomes, backoff=BACKOFF, breaker=timedelta(seconds=30))
    assert state_of(place, send) == "accepted"
    assert attempts_of(place, send) == [
        {"accepted": "accepted", "refused": "rejected"}[kind] for kind in (first, second)
    ]
    assert violations(place) == []
