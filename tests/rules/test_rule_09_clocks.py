"""Rule 9: the database's clock for leases, a clock that never stands still for deadlines, checked before any byte."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest

from dashboard.ledger.attempts import Windows
from dashboard.ledger.database import IDLE_TIMEOUT_MS, LOCK_TIMEOUT_MS
from dashboard.providers.base import Deadline
from dashboard.simulator import Config, Simulator
from tests.crew import (
    Hand,
    Rival,
    ask_one,
    attempts_of,
    open_transaction,
    until,
    wait_for_a_waiter,
)
from tests.lanes import a_lane, point_at
from tests.place import Place


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(Config()) as running:
        yield running


def test_a_call_that_comes_to_its_turn_after_its_submit_deadline_writes_no_byte(
    place: Place, simulator: Simulator
) -> None:
    point_at(place, simulator)
    simulator.hold_answers()
    first, second = ask_one(place, "order:1"), ask_one(place, "order:2")
    # One thread for two places: the second call waits for it, and the first is not answered.
    with a_lane(place, places=2, threads=1, windows=Windows(submit=timedelta(milliseconds=300))) as lane:
        lane.go_round()
        assert simulator.wait_taken(1)
        taken = simulator.books[0].send_id
        late = next(send for send in (first, second) if str(send) != taken)
        until(lambda: place.one("select bool_and(submit_deadline < now()) as over from sendonce.work")["over"])
        simulator.release_answers()
        until(lambda: not lane.go_round())
    assert attempts_of(place, late) == ["abandoned", "accepted"]
    assert sorted(str(row.send_id) for row in simulator.books) == sorted(map(str, (first, second)))
    moved = place.one("select send_id, to_state::text, reason from sendonce.moves")
    assert moved == {"send_id": late, "to_state": "pending", "reason": "never_written"}


def test_a_deadline_goes_on_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = {time.CLOCK_BOOTTIME: 1000.0, time.CLOCK_MONOTONIC: 1000.0}
    monkeypatch.setattr(time, "clock_gettime", clocks.__getitem__)
    deadline = Deadline.after(10.0)
    assert not deadline.passed
    clocks[time.CLOCK_BOOTTIME] += 3600  # an hour of sleep, in which the monotonic clock stands still
    assert deadline.passed


def test_a_lease_ends_by_the_databases_clock_whatever_a_worker_thinks(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    send, hand = ask_one(place), Hand(place)
    yesterday = time.time() - 86_400
    monkeypatch.setattr(time, "time", lambda: yesterday)
    claims = hand.claim()
    row = place.one("select lease_until - now() as left, claimed_at = now() as now from sendonce.work")
    assert timedelta(0) < row["left"] <= hand.lease
    place.run("update sendonce.work set lease_until = now() - interval '1 millisecond'")
    assert hand.start(claims) == []
    assert attempts_of(place, send) == []


def test_a_transaction_gives_up_waiting_for_a_lock_before_the_margin_of_a_lease_is_used(place: Place) -> None:
    with place.database.transaction() as connection:
        shown = connection.execute("select current_setting('lock_timeout')::interval").fetchone()
    assert shown is not None
    assert shown[0] == timedelta(milliseconds=LOCK_TIMEOUT_MS) < Windows().margin


def test_a_process_that_stands_still_within_a_transaction_does_not_keep_its_locks(place: Place) -> None:
    ask_one(place)
    with place.database.transaction() as connection:
        shown = connection.execute("select current_setting('idle_in_transaction_session_timeout')::interval").fetchone()
    assert shown == (timedelta(milliseconds=IDLE_TIMEOUT_MS),)
    assert shown[0] < Hand(place).lease

    def stand_still() -> None:
        with place.database.transaction() as connection:
            connection.execute("update sendonce.work set claim_at = claim_at")
            connection.execute("select set_config('idle_in_transaction_session_timeout', '20', true)")
            place.run("update sendonce.work set claim_at = now()")  # waits for the lock, and gets it
            connection.execute("select 1")

    with pytest.raises(psycopg.errors.IdleInTransactionSessionTimeout):
        stand_still()
    assert len(Hand(place).claim()) == 1, "and the pool has no broken connection"


def test_a_deadline_counts_from_before_the_write_ahead_was_sent(place: Place, simulator: Simulator) -> None:
    point_at(place, simulator)
    send = ask_one(place)
    window = timedelta(milliseconds=300)
    with a_lane(place, windows=Windows(submit=window)) as lane:
        with open_transaction(place) as connection:
            connection.execute("lock table sendonce.attempts in share row exclusive mode")
            round_ = Rival(lane.go_round)
            wait_for_a_waiter(place, round_)
            began = place.one("select clock_timestamp() as now")["now"]
            until(lambda: place.one("select now() - %s > %s as over", began, window)["over"])
        assert round_.result
        until(lambda: not lane.go_round())
    assert attempts_of(place, send) == ["abandoned", "accepted"]
    assert len(simulator.books) == 1
