"""Whether mail is moving, and if not, why and what to do: the banner on every page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from dashboard.insight.wording import number, span
from dashboard.ledger.accounts import AccountRow
from dashboard.ledger.metrics import Gauges, Hearing, WorkerRow
from dashboard.providers import PROVIDERS

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
    if gauges.paused_reason is not None:
        return _stalled(
            f"All sending of this workspace is paused by a person: {gauges.paused_reason}.",
            "Resume it under Operations when the reason is gone.",
        )
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


# ── named checks ─────────────────────────────────────────────────────────────────────────────────────────────────────

LOOP_LATE = {"retain": timedelta(minutes=4), "alert": timedelta(minutes=3)}
"""A loop that has not gone round without an error for so long does not work. Two rest for up to a minute in between."""

ANY_LOOP_LATE = timedelta(minutes=2)

ROLL_UP_LATE = timedelta(minutes=5)
"""Every minute is measured, whether mail moves or not."""

ENOUGH_TO_HEAR = 20
"""So many accepted sends in an hour, and not one event about any of them: the webhook does not arrive."""

ENOUGH_TO_JUDGE = 20
"""Fewer attempts than this in ten minutes say nothing about a provider."""

OFTEN_UNANSWERED = 0.05
"""The share of unanswered attempts above which a provider is in trouble, as by the alert rule of the first day."""

LOST_LATELY = timedelta(minutes=15)
"""For so long a lost worker is told of, here as by the alert of lost workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One part of Sendonce and how it is doing."""

    name: str
    motion: Motion
    cause: str
    next_step: str = ""


def named_checks(
    gauges: Gauges, workers: list[WorkerRow], accounts: list[AccountRow], hearing: list[Hearing]
) -> list[Check]:
    """Lost workers, relay, dispatch, sweep, providers, webhooks, roll-ups, retention, alerts: stalled ones first."""
    running = [worker for worker in workers if worker.state == "running"]
    lost = [worker for worker in workers if worker.state == "lost"]
    heard = {one.account: one for one in hearing}
    checks = [
        *(_lost(worker, gauges) for worker in lost if gauges.at - worker.heartbeat_at < LOST_LATELY),
        _relay(gauges, running),
        _dispatch(gauges, running),
        _sweep(gauges, running),
        *(_provider(account, heard.get(account.name)) for account in accounts),
        *(_webhook(heard) for heard in hearing if _tells_events(heard.provider)),
        _roll_ups(gauges, running),
        _loop("Retention", "retain", running, "takes away what is kept long enough"),
        _loop("Alerts", "alert", running, "looks at the rules"),
    ]
    return sorted(checks, key=lambda check: check.motion is not Motion.STALLED)


def banner(health: Health, checks: list[Check], workers: list[WorkerRow]) -> Health:
    """What the banner of every page says: what stalls mail first, then whatever else is stalled."""
    stalled = next((check for check in checks if check.motion is Motion.STALLED), None)
    if health.motion is Motion.STALLED or stalled is None or not any(w.state == "running" for w in workers):
        return health
    return _stalled(f"{stalled.name}: {stalled.cause[:1].lower()}{stalled.cause[1:]}", stalled.next_step)


def _loop(name: str, loop: str, running: list[WorkerRow], does: str) -> Check:
    """Whether some worker has the loop, and it goes round."""
    having = [worker for worker in running if loop in worker.loops]
    if not having:
        return Check(
            name=name, motion=Motion.STALLED, cause=f"No running worker {does}.",
            next_step="Start a worker with all loops: sendonce worker",
        )  # fmt: skip
    ages = [age for worker in having if (age := worker.loop_ages.get(loop)) is not None]
    late = LOOP_LATE.get(loop, ANY_LOOP_LATE)
    if ages and timedelta(seconds=min(ages)) > late:
        return Check(
            name=name, motion=Motion.STALLED,
            cause=f"It has not gone round without an error for {span(timedelta(seconds=min(ages)))}.",
            next_step="See loop_failed in the workers' logs.",
        )  # fmt: skip
    return Check(name=name, motion=Motion.IDLE, cause=f"{_workers(len(having))} on it, nothing is to be done.")


def _busy(check: Check, cause: str) -> Check:
    return check if check.motion is Motion.STALLED else Check(name=check.name, motion=Motion.RUNNING, cause=cause)


def _relay(gauges: Gauges, running: list[WorkerRow]) -> Check:
    check = _loop("Relay", "relay", running, "relays the outbox")
    if not gauges.outbox or check.motion is Motion.STALLED:
        return check
    age = gauges.outbox_age or timedelta()
    waits = f"{number(gauges.outbox, 'request')} in the outbox, the oldest for {span(age)}."
    if age > RELAY_LATE:
        return Check(
            name="Relay", motion=Motion.STALLED, cause=waits,
            next_step="Look for a lock that is held for long, and at loop_failed in the workers' logs.",
        )  # fmt: skip
    return _busy(check, waits)


def _dispatch(gauges: Gauges, running: list[WorkerRow]) -> Check:
    check = _loop("Dispatch", "dispatch", running, "submits what is due")
    if check.motion is Motion.STALLED or not (gauges.pending_due or gauges.claimed):
        return check
    age = gauges.pending_due_age or timedelta()
    if gauges.pending_due and age > CLAIM_LATE and not gauges.claimed:
        return Check(
            name="Dispatch", motion=Motion.STALLED,
            cause=f"{number(gauges.pending_due, 'send')} due, the first for {span(age)}, and none is being worked on.",
            next_step="See whether an account or mailstream is paused, and whether the ledger is in its place.",
        )  # fmt: skip
    return _busy(check, f"{gauges.pending_due} due, {gauges.claimed} being worked on.")


def _sweep(gauges: Gauges, running: list[WorkerRow]) -> Check:
    check = _loop("Sweep", "sweep", running, "takes claims of lost workers back")
    return _busy(check, f"{number(gauges.stale_claims, 'claim')} past the lease.") if gauges.stale_claims else check


def _lost(worker: WorkerRow, gauges: Gauges) -> Check:
    flying = number(worker.in_flight, "call") if worker.in_flight else "no call"
    silent = span(gauges.at - worker.heartbeat_at)
    return Check(
        name=f"Worker {worker.name}", motion=Motion.STALLED,
        cause=f"It has not beaten for {silent} without a word, and had {flying} in flight.",
        next_step="See why the process ended. Another worker takes its claims over; what it had in flight is unknown.",
    )  # fmt: skip


def _provider(account: AccountRow, heard: Hearing | None) -> Check:
    name = f"Account {account.name}"
    if account.paused_for_good:
        return Check(
            name=name, motion=Motion.STALLED, cause=f"Paused by a person: {account.paused_reason or 'no reason'}.",
            next_step=f"Resume it when the reason is gone: sendonce account resume {account.name}",
        )  # fmt: skip
    if account.paused_until:
        return Check(
            name=name, motion=Motion.STALLED, cause=f"Paused after trouble: {account.paused_reason or 'no reason'}.",
            next_step="It is tried again by itself. If it stays: credentials, quota, the provider's status page.",
        )  # fmt: skip
    if heard and heard.attempts >= ENOUGH_TO_JUDGE and heard.unanswered > OFTEN_UNANSWERED * heard.attempts:
        return Check(
            name=name, motion=Motion.STALLED,
            cause=f"{heard.unanswered} of {heard.attempts} attempts of the last 10 minutes were not answered.",
            next_step=f"See the status page of {account.provider}. It may have taken them: none is repeated blindly.",
        )  # fmt: skip
    return Check(name=name, motion=Motion.RUNNING, cause="Takes submissions.")


def _tells_events(provider: str) -> bool:
    return all(one.capabilities({}).webhooks for one in PROVIDERS if one.name == provider)


def _webhook(heard: Hearing) -> Check:
    name = f"Webhooks of {heard.account}"
    if heard.accepted >= ENOUGH_TO_HEAR and not heard.events:
        return Check(
            name=name, motion=Motion.STALLED,
            cause=f"{heard.accepted} sends were accepted within the hour, and no event about any was told.",
            next_step="Check the webhook's address and its signing secret at the provider.",
        )  # fmt: skip
    if not heard.events:
        return Check(name=name, motion=Motion.IDLE, cause="No event within the hour.")
    return Check(name=name, motion=Motion.RUNNING, cause=f"{number(heard.events, 'event')} within the hour.")


def _roll_ups(gauges: Gauges, running: list[WorkerRow]) -> Check:
    check = _loop("Roll-ups", "roll_up", running, "makes the figures of the charts")
    measured = gauges.measured_at
    if check.motion is not Motion.STALLED and measured is not None and gauges.at - measured > ROLL_UP_LATE:
        return Check(
            name="Roll-ups", motion=Motion.STALLED,
            cause=f"The charts end {span(gauges.at - measured)} ago.",
            next_step="See loop_failed of roll_up in the workers' logs; rates of alerts do not move meanwhile.",
        )  # fmt: skip
    return check
