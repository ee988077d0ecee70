"""Whether mail is moving, and if not, why and what to do: the banner on every page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from dashboard.ledger.metrics import Gauges, WorkerRow

RELAY_LATE = timedelta(minutes=1)
"""An outbox row that could be relayed waits seconds; a minute means that nobody relays."""

CLAIM_LATE = timedelta(minutes=5)
"""A due send that nobody claims for so long, while nothing at all is claimed, is not a backlog."""


class Motion(StrEnum):
    """The three states of the banner."""

    RUNNING = "running"
    IDLE = "idle"
    STALLED = "stalled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """``cause`` is one sentence; ``next_step`` says what to do, or is empty where nothing is to be done."""

    motion: Motion
    cause: str
    next_step: str = ""


def judge_health(gauges: Gauges, workers: list[WorkerRow]) -> Health:
    """Judge a workspace by what waits in it and by the workers that beat."""
    running = [worker for worker in workers if worker.state == "running"]
    loops = {loop for worker in running for loop in worker.loops}
    waiting = gauges.outbox + gauges.pending_due + gauges.claimed + gauges.unknown
    if not running:
        return _without_workers(waiting)
    if gauges.outbox and "relay" not in loops:
        return _stalled(
            "Requests wait in the outbox, and no running worker relays them.", "Start a worker with all loops."
        )
    if gauges.outbox_age and gauges.outbox_age > RELAY_LATE:
        return _stalled(
            "The oldest request in the outbox has waited for more than a minute.",
            "Look at the workers' logs for what stops the relay.",
        )
    if gauges.pending_due and "dispatch" not in loops:
        return _stalled("Sends are due, and no running worker dispatches them.", "Start a worker with all loops.")
    if gauges.stale_claims and "sweep" not in loops:
        return _stalled("Claims are past their lease, and no running worker sweeps.", "Start a worker with all loops.")
    if gauges.pending_due_age and gauges.pending_due_age > CLAIM_LATE and not gauges.claimed:
        return _stalled(
            "Sends have been due for more than five minutes, and none is being worked on.",
            "See whether a provider account or mailstream is paused.",
        )
    if gauges.outbox or gauges.pending_due or gauges.claimed:
        return Health(motion=Motion.RUNNING, cause=f"{_workers(len(running))} on it.")
    return Health(motion=Motion.IDLE, cause=f"{_workers(len(running))} ready, nothing is due.")


def _without_workers(waiting: int) -> Health:
    if waiting:
        return _stalled("No worker is running, and mail waits.", "Start one with: sendonce worker")
    return Health(
        motion=Motion.IDLE,
        cause="No worker is running, and nothing waits.",
        next_step="Start one with: sendonce worker",
    )


def _stalled(cause: str, next_step: str) -> Health:
    return Health(motion=Motion.STALLED, cause=cause, next_step=next_step)


def _workers(number: int) -> str:
    return "1 worker is" if number == 1 else f"{number} workers are"
