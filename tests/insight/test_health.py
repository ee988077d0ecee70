"""The banner: running, idle or stalled, with the cause and the next step."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest

from dashboard.insight.health import Motion, judge_health
from dashboard.ledger.metrics import Gauges, WorkerRow
from tests.factories import NOON

ALL = ["relay", "dispatch", "reconcile", "sweep", "roll_up", "retain"]
QUIET = Gauges(
    at=NOON, outbox=0, outbox_is_more=False, outbox_age=None, pending=0, pending_due=0, pending_due_age=None,
    claimed=0, stale_claims=0, unknown=0, unknown_age=None, held=0,
)  # fmt: skip


def worker(loops: list[str] = ALL, state: str = "running") -> WorkerRow:
    """A worker that runs these loops."""
    return WorkerRow(
        id=uuid4(), name="host-1", version="0.1.0", loops=loops, started_at=NOON, heartbeat_at=NOON, stopped_at=None,
        in_flight=0, refused_moves=0, state=state,
    )  # fmt: skip


def test_with_workers_and_nothing_due_it_is_idle() -> None:
    assert judge_health(QUIET, [worker()]).motion is Motion.IDLE


def test_a_send_that_a_person_must_decide_stalls_nothing() -> None:
    assert judge_health(replace(QUIET, held=3), [worker()]).motion is Motion.IDLE


def test_with_something_under_way_it_runs() -> None:
    assert judge_health(replace(QUIET, claimed=1), [worker()]).motion is Motion.RUNNING


@pytest.mark.parametrize(
    ("gauges", "workers", "cause"),
    [
        (replace(QUIET, outbox=1), [worker(state="lost")], "No worker is running"),
        (replace(QUIET, unknown=1), [], "No worker is running"),
        (replace(QUIET, outbox=1), [worker(["dispatch"])], "no running worker relays"),
        (replace(QUIET, pending_due=1), [worker(["relay"])], "no running worker dispatches"),
        (replace(QUIET, stale_claims=1, claimed=1), [worker(["relay", "dispatch"])], "no running worker sweeps"),
        (replace(QUIET, outbox=1, outbox_age=timedelta(minutes=2)), [worker()], "more than a minute"),
        (replace(QUIET, pending_due=1, pending_due_age=timedelta(minutes=6)), [worker()], "more than five minutes"),
    ],
)
def test_what_stalls_is_named_with_what_to_do(gauges: Gauges, workers: list[WorkerRow], cause: str) -> None:
    health = judge_health(gauges, workers)
    assert health.motion is Motion.STALLED
    assert cause in health.cause
    assert health.next_step
