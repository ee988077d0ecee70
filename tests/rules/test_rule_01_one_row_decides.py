"""Rule 1: the work row alone decides who may do what, and a move with more than one end locks it before it chooses."""

from __future__ import annotations

from datetime import timedelta

from dashboard.ledger.cancelling import Remembered, cancel_send
from dashboard.worker.sweep import Swept, sweep
from tests.crew import (
    Hand,
    Rival,
    ask,
    ask_one,
    attempts_of,
    leases_end,
    open_transaction,
    reason_of,
    state_of,
    swept,
    until,
    wait_for_a_waiter,
    work_of,
)
from tests.place import Place


def test_a_claim_that_has_lapsed_starts_nothing(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    claims = hand.claim()
    leases_end(place)
    assert hand.start(claims) == []
    assert attempts_of(place, send) == []


def test_a_stale_claim_starts_nothing_once_another_worker_has_the_send(place: Place) -> None:
    send, frozen, other = ask_one(place), Hand(place), Hand(place)
    stale = frozen.claim()
    swept(place)
    claims = other.claim()
    assert frozen.start(stale) == []
    assert [s.claim_number for s in other.start(claims)] == [2]
    assert attempts_of(place, send) == ["submitting"]


def test_a_stale_claim_of_the_same_worker_starts_nothing_under_its_newer_one(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    stale = hand.claim()
    swept(place)
    claims = hand.claim()
    assert hand.start(stale) == []
    assert [s.claim_number for s in hand.start(claims)] == [2]
    assert attempts_of(place, send) == ["submitting"]


def test_one_claim_starts_one_attempt_however_often_it_is_asked(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    claims = hand.claim()
    with open_transaction(place) as first:
        assert len(hand.start_in(first, claims)) == 1
        second = Rival(lambda: hand.start(claims))
        wait_for_a_waiter(place, second)
    assert second.result == []
    assert attempts_of(place, send) == ["submitting"]


def test_a_started_attempt_moves_the_lease_past_the_end_of_its_call(place: Place) -> None:
    send, hand = ask_one(place), Hand(place, lease=timedelta(seconds=1))
    hand.start()
    row = work_of(place, send)
    attempt = place.one("select * from sendonce.attempts")
    assert row["open_attempt"] == attempt["n"] == 1
    assert row["lease_until"] == attempt["request_deadline"] + hand.windows.margin
    assert attempt["request_deadline"] == attempt["submit_deadline"] + hand.windows.request
    assert attempt["submit_deadline"] == attempt["started_at"] + hand.windows.submit


def test_a_sweep_that_meets_a_start_at_the_end_of_the_lease_leaves_it_alone(place: Place) -> None:
    send, hand = ask_one(place), Hand(place, lease=timedelta(milliseconds=400))
    claims = hand.claim()
    with open_transaction(place) as connection:
        assert len(hand.start_in(connection, claims)) == 1, "its lease held when its transaction began"
        until(lambda: place.one("select lease_until < now() as over from sendonce.work")["over"])
        assert _sweep(place) == Swept(), "a row that is being decided is not waited for"
    assert _sweep(place) == Swept()
    assert (state_of(place, send), attempts_of(place, send)) == ("claimed", ["submitting"])


def test_a_start_that_meets_a_sweep_does_not_start(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    claims = hand.claim()
    with open_transaction(place) as connection:
        connection.execute("update sendonce.work set lease_until = now() - interval '1 second'")
        assert sweep(connection) == Swept(given_back=1)
        start = Rival(lambda: hand.start(claims))
        wait_for_a_waiter(place, start)
    assert start.result == []
    assert (state_of(place, send), attempts_of(place, send)) == ("pending", [])


def test_the_sweep_gives_back_what_has_no_attempt_and_doubts_what_has_one(place: Place) -> None:
    idle, busy = ask(place, "idle", "busy")
    hand = Hand(place)
    claims = hand.claim()
    hand.start([claim for claim in claims if claim.send_id == busy])
    assert swept(place) == Swept(given_back=1, doubted=1)
    assert (state_of(place, idle), reason_of(place, idle)) == ("pending", "worker_stopped")
    assert (state_of(place, busy), reason_of(place, busy)) == ("unknown", "worker_lost")
    assert (attempts_of(place, idle), attempts_of(place, busy)) == ([], ["ambiguous"])


def test_a_refusal_that_meets_a_cancel_waits_for_it_and_follows_it(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    (started,) = hand.start()
    with open_transaction(place) as connection:
        cancelled = cancel_send(
            connection, workspace_id=place.workspace, send_id=send, user_id=None, reason="the order was cancelled"
        )
        assert cancelled == Remembered(send)
        refusal = Rival(lambda: hand.finish(started, "refused_for_now"))
        wait_for_a_waiter(place, refusal)
    assert refusal.result.late == 0
    assert (state_of(place, send), reason_of(place, send)) == ("cancelled", "cancelled_by_person")


def test_sets_that_share_sends_are_moved_in_one_order_and_never_wait_in_a_circle(place: Place) -> None:
    first, second = sorted(ask(place, *(f"order:{i}" for i in range(2))))
    hand = Hand(place)
    claims = sorted(hand.claim(), key=lambda claim: claim.send_id, reverse=True)
    with open_transaction(place) as connection:
        connection.execute("select from sendonce.work where send_id = %s for update", (first,))
        start = Rival(lambda: hand.start(claims))
        wait_for_a_waiter(place, start)
        # Had the other one taken its rows in the order in which it was asked, this would be a deadlock.
        connection.execute("select from sendonce.work where send_id = %s for update", (second,))
    assert len(start.result) == 2


def _sweep(place: Place) -> Swept:
    with place.database.transaction() as connection:
        return sweep(connection)
