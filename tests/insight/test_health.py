"""The banner: running, idle or stalled, with the cause and the next step."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from dashboard.insight.health import Check, Motion, banner, judge_health, named_checks
from dashboard.ledger.accounts import AccountRow
from dashboard.ledger.metrics import Gauges, Hearing, WorkerRow
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
        (replace(QUIET, paused_reason="wrong prices"), [], "paused by a person: wrong prices."),
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


# ── named checks ─────────────────────────────────────────────────────────────────────────────────────────────────────

EVERY = [*ALL, "alert", "notify"]
ACCOUNT = AccountRow(
    id=uuid4(), name="main", provider="resend", key_window=None, rate_per_second=None, paused_for_good=False,
    paused_until=None, paused_reason=None, troubles=0, settling_time=None, mailstreams=[],
)  # fmt: skip
HEARD = Hearing(account="main", provider="resend", accepted=50, events=40)


def checks(
    gauges: Gauges = QUIET, worked: WorkerRow | None = None, account: AccountRow = ACCOUNT, heard: Hearing = HEARD
) -> dict[str, Check]:
    found = named_checks(gauges, [worked or worker(EVERY)], [account], [heard])
    return {check.name: check for check in found}


def test_every_part_has_its_check() -> None:
    assert set(checks()) == {
        "Relay", "Dispatch", "Sweep", "Account main", "Webhooks of main", "Roll-ups", "Retention", "Alerts"
    }  # fmt: skip
    assert not any(check.motion is Motion.STALLED for check in checks().values())


@pytest.mark.parametrize(
    ("name", "given", "cause"),
    [
        ("Relay", {"gauges": replace(QUIET, outbox=3, outbox_age=timedelta(minutes=3))}, "3 requests in the outbox"),
        ("Relay", {"worked": worker(["dispatch"])}, "No running worker relays"),
        ("Dispatch", {"gauges": replace(QUIET, pending_due=1, pending_due_age=timedelta(hours=1))}, "1 send due"),
        ("Sweep", {"worked": replace(worker(EVERY), loop_ages={"sweep": 300.0})}, "not gone round"),
        ("Account main", {"account": replace(ACCOUNT, paused_for_good=True, paused_reason="a test")}, "by a person"),
        ("Account main", {"account": replace(ACCOUNT, paused_until=NOON, paused_reason="quota")}, "after trouble"),
        ("Account main", {"heard": replace(HEARD, attempts=20, unanswered=2)}, "2 of 20 attempts"),
        ("Webhooks of main", {"heard": replace(HEARD, events=0)}, "no event about any"),
        ("Roll-ups", {"gauges": replace(QUIET, measured_at=NOON - timedelta(minutes=9))}, "end 9 min ago"),
        ("Retention", {"worked": replace(worker(EVERY), loop_ages={"retain": 300.0})}, "not gone round"),
        ("Alerts", {"worked": worker(ALL)}, "No running worker looks"),
    ],
)
def test_what_is_stalled_is_named_with_its_cause_and_a_next_step(name: str, given: dict[str, Any], cause: str) -> None:
    found = checks(**given)
    assert next(iter(found.values())).motion is Motion.STALLED, "it stands first"
    assert found[name].motion is Motion.STALLED
    assert cause in found[name].cause
    assert found[name].next_step


@pytest.mark.parametrize("heard", [{"attempts": 19, "unanswered": 19}, {"attempts": 100, "unanswered": 5}])
def test_few_attempts_or_few_of_them_without_an_answer_say_nothing_about_a_provider(heard: dict[str, int]) -> None:
    assert checks(heard=replace(HEARD, **heard))["Account main"].motion is Motion.RUNNING


def test_a_worker_that_was_lost_is_named_for_a_while_though_others_run() -> None:
    gone = replace(worker(EVERY, "lost"), name="host-2:7:ab", in_flight=3)
    for minutes, named in ((1, True), (16, False)):
        gone = replace(gone, heartbeat_at=NOON - timedelta(minutes=minutes))
        workers = [worker(EVERY), gone]
        found = banner(judge_health(QUIET, workers), named_checks(QUIET, workers, [ACCOUNT], [HEARD]), workers)
        assert found.cause.startswith("Worker host-2:7:ab: it has not beaten for 60 s") is named
        assert ("3 calls in flight" in found.cause) is named


def test_a_provider_that_tells_nothing_later_has_no_check_of_webhooks() -> None:
    assert "Webhooks of main" not in checks(heard=replace(HEARD, provider="smtp", events=0))


def test_the_banner_says_what_stalls_mail_before_whatever_else_is_stalled() -> None:
    workers = [replace(worker(EVERY), loop_ages={"retain": 300.0})]
    late = replace(QUIET, outbox=1, outbox_age=timedelta(minutes=2))
    for gauges, said in ((QUIET, "Retention: it has not gone round"), (late, "more than a minute")):
        found = banner(judge_health(gauges, workers), named_checks(gauges, workers, [ACCOUNT], [HEARD]), workers)
        assert found.motion is Motion.STALLED
        assert said in found.cause


def test_where_nothing_waits_and_nobody_works_the_banner_is_idle() -> None:
    found = banner(judge_health(QUIET, []), named_checks(QUIET, [], [ACCOUNT], [HEARD]), [])
    assert found.motion is Motion.IDLE
