"""SIGKILL of a real worker process at each boundary between two steps, and a fresh worker that goes on.

The provider honours no keys unless a test says so: a second call for a send would be seen in its books. How a process
comes to die at a step stands in ``doomed.py``.
"""

from __future__ import annotations

import signal
from datetime import timedelta
from pathlib import Path

import pytest

from dashboard.ledger.attempts import Windows
from tests import crew
from tests.crew import leases_end
from tests.flow.town import Town
from tests.survival.ending import nothing_lost_nothing_twice, wait_for_rest

DOOMED = (str(Path(__file__).with_name("doomed.py")),)
SENDS = 8
KEYS = [f"order:{i}" for i in range(SENDS)]
HASTY = Windows(submit=timedelta(seconds=1), request=timedelta(seconds=1))


def kill_at(town: Town, step: str, *only: str) -> None:
    """Let a worker run into its end at this step."""
    victim = town.worker(*only, hasty=True, program=DOOMED, SENDONCE_DIES_AT=step)
    assert victim.wait(crew.PATIENCE) == -signal.SIGKILL, town.log.read_text()[-3000:]


def on_record(town: Town) -> dict[str, int]:
    """Where the ledger has the sends, and how many messages the provider took."""
    row = town.place.one(
        "select (select count(*) from sendonce.outbox) as asked,"
        " count(*) filter (where state = 'pending') as pending,"
        " count(*) filter (where state = 'claimed' and open_attempt is null) as claimed,"
        " count(*) filter (where open_attempt is not null) as submitting,"
        " (select count(*) from sendonce.sends where state = 'accepted') as accepted from sendonce.work"
    )
    return {**{name: n for name, n in row.items() if n}, "taken": len(town.simulator.books)}


def test_one_worker_after_the_other_is_killed_a_step_further_and_the_last_one_ends_it(town: Town) -> None:
    sends = town.enqueue(KEYS)
    for step, left in (
        ("before relay", {"asked": SENDS}),
        ("after relay", {"pending": SENDS}),
        ("before claim", {"pending": SENDS}),
        ("after claim", {"claimed": SENDS}),
        ("before start", {"claimed": SENDS}),
    ):
        kill_at(town, step)
        assert on_record(town) == {**left, "taken": 0}, step
        leases_end(town.place)
    town.worker(hasty=True)
    assert wait_for_rest(town) == {"accepted": SENDS}
    nothing_lost_nothing_twice(town, sends)


@pytest.mark.parametrize("step", ["after start", "before submit"])
def test_killed_between_the_write_ahead_and_the_first_byte_it_leaves_a_doubt_that_nobody_repeats(
    town: Town, step: str
) -> None:
    sends = town.enqueue(KEYS)
    kill_at(town, step)
    assert on_record(town) == {"submitting": SENDS, "taken": 0}
    leases_end(town.place)
    town.worker(hasty=True)
    assert wait_for_rest(town) == {"held": SENDS}
    nothing_lost_nothing_twice(town, sends)


@pytest.mark.parametrize("step", ["after submit", "before finish", "after finish"])
def test_killed_with_answers_in_its_hands_it_leaves_what_is_not_stored_in_doubt(town: Town, step: str) -> None:
    sends = town.enqueue(KEYS)
    kill_at(town, step)
    left = on_record(town)
    stored, in_doubt = left.get("accepted", 0), left.get("submitting", 0)
    assert stored + in_doubt == SENDS
    assert left["taken"] > 0, "and the provider has it"
    assert (stored > 0) == (step == "after finish")
    leases_end(town.place)
    town.worker(hasty=True)
    expected = {"accepted": stored, "held": in_doubt}
    assert wait_for_rest(town) == {state: n for state, n in expected.items() if n}
    nothing_lost_nothing_twice(town, sends)


def test_where_keys_are_honoured_the_next_worker_sends_again_and_the_provider_takes_it_once(town: Town) -> None:
    town.stream(policy="release", keys=True)
    town.simulator.configure(honour_keys=True)
    sends = town.enqueue(KEYS)
    kill_at(town, "after submit")
    taken = on_record(town)["taken"]
    assert taken > 0
    leases_end(town.place)
    town.worker(hasty=True)
    assert wait_for_rest(town) == {"accepted": SENDS}
    nothing_lost_nothing_twice(town, sends)
    assert town.simulator.counts()["replayed"] >= 1, "the provider knew the key"


def test_killed_in_its_sweep_a_worker_leaves_the_claims_to_the_next_sweep(town: Town) -> None:
    idle, calling = crew.ask(town.place, "order:idle", "order:calling")
    dead = crew.Hand(town.place, windows=HASTY)
    dead.start([claim for claim in dead.claim() if claim.send_id == calling])
    leases_end(town.place)
    for step, states in (("before sweep", ["claimed", "claimed"]), ("after sweep", ["pending", "unknown"])):
        kill_at(town, step, "sweep")
        assert [crew.state_of(town.place, send) for send in (idle, calling)] == states
    town.worker(hasty=True)
    assert wait_for_rest(town) == {"accepted": 1, "held": 1}
    assert crew.state_of(town.place, calling) == "held"
    nothing_lost_nothing_twice(town, [idle, calling])


def test_killed_as_it_reconciles_a_worker_leaves_one_hold(town: Town) -> None:
    send, _, _ = crew.unknown(town.place)
    crew.graces_end(town.place)
    for step, state in (("before reconcile", "unknown"), ("after reconcile", "held")):
        kill_at(town, step, "reconcile")
        assert crew.state_of(town.place, send) == state
    town.worker(hasty=True)
    assert wait_for_rest(town) == {"held": 1}
    nothing_lost_nothing_twice(town, [send])
    assert town.place.count("holds") == 1
