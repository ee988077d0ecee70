"""The provider takes no more for now: S21, S22."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from uuid import UUID

from dashboard.insight.judging import Cause
from dashboard.ledger.metrics import read_gauges
from dashboard.ledger.standing import read_standings
from tests.crew import until
from tests.scenarios.scene import Scene

# ── S21 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

RETRY_AFTER = timedelta(seconds=1)


def test_S21_the_provider_says_slow_down(scene: Scene) -> None:
    """Ten times as fast: a hundred in a second, and Retry-After: 1, but that at first it takes none at all, so that
    there is something to slow down on any machine; the last of the sends meets it so again. *Got it late* has no
    verdict of its own yet: the timeline shows each refusal with the provider's words.
    """
    scene.mailstream(policy="hold", keys=False, max_attempts=3)
    scene.simulator.configure(honour_keys=False, rate_limit=0, retry_after_seconds=1)
    scene.ask(*(f"order:{i}" for i in range(499)))
    with scene.staff(only=("relay",)):
        until(lambda: scene.place.count("outbox") == 0)
    with scene.staff(8, only=("dispatch",), lanes=1, in_flight=100), scene.watched():
        until(lambda: scene.simulator.counts().get("http_429", 0) > 0)
        scene.simulator.configure(rate_limit=100)
        scene.wait_for(accepted=499)
    last = _refused_more_than_three_times(scene)
    scene.shows(
        provider_took=500, most_copies=1, sends={"accepted": 500}, reconciliations={},
        attempts={"accepted": 500, "rejected": scene.simulator.counts()["http_429"]},
    )  # fmt: skip
    too_soon = scene.place.one(
        "select count(*) as n from sendonce.attempts a"
        " join sendonce.attempts b on b.send_id = a.send_id and b.n = a.n + 1"
        " where a.status = 'rejected' and b.started_at < a.finished_at + %s and a.send_id <> %s",
        RETRY_AFTER, last,
    )["n"]  # fmt: skip
    assert too_soon == 0, "nobody tried before Retry-After had passed"
    scene.says_one_acceptance(last)
    refused = [entry for entry in scene.timeline(last) if entry.what == "Attempt 1: refused"]
    assert "Too many requests in this second." in refused[0].detail


def _refused_more_than_three_times(scene: Scene) -> UUID:
    """More often than its mailstream allows attempts: those that were throttled do not count."""
    scene.simulator.configure(rate_limit=0, retry_after_seconds=0)
    (send,) = scene.ask("order:499")
    with scene.staff():
        until(lambda: scene.of(send).attempts().get("rejected", 0) > 3)
        scene.simulator.configure(rate_limit=100)
        scene.wait_for(accepted=500)
    return send


# ── S22 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S22_the_daily_quota_runs_out(scene: Scene) -> None:
    """The reset is at the next midnight in UTC, as the provider documents it; time is moved on to there. An alert does
    not exist yet: the gauges, which it will read, tell how many wait and how old the oldest is.
    """
    _stay_clear_of_midnight()
    account = scene.mailstream(policy="hold", keys=False)
    scene.simulator.configure(honour_keys=False, daily_quota=100)
    scene.ask(*(f"order:{i}" for i in range(140)))
    with scene.staff(lanes=1, in_flight=4), scene.watched():
        scene.wait_for(accepted=100, pending=40)
        until(lambda: bool(scene.place.all(PAUSED, account)))
        threading.Event().wait(1.0)
        scene.shows(provider_took=100, sends={"accepted": 100, "pending": 40})
        _each_of_the_forty_says_why_and_until_when(scene)
        refusals = scene.simulator.counts()["http_429"]
        assert 1 <= refusals <= 5, "with four calls at once, only those that were under way"
        scene.simulator.configure(daily_quota=None)
        scene.place.run(
            "update sendonce.accounts set paused_until = now() - interval '5 minutes' where id = %s", account
        )
        scene.wait_for(accepted=140)
    scene.shows(
        provider_took=140, most_copies=1, sends={"accepted": 140},
        attempts={"accepted": 140, "rejected": refusals},
    )  # fmt: skip


PAUSED = "select from sendonce.accounts where id = %s and paused_until > now()"


def _stay_clear_of_midnight() -> None:
    """The quota that the test needs would be reset in its middle."""
    while datetime.now(UTC).strftime("%H:%M") == "23:59":
        threading.Event().wait(1)


def _each_of_the_forty_says_why_and_until_when(scene: Scene) -> None:
    midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    waiting = [row["send_id"] for row in scene.place.all("select send_id from sendonce.work where state = 'pending'")]
    with scene.place.database.snapshot() as connection:
        standings = read_standings(connection, scene.place.workspace, waiting)
        gauges = read_gauges(connection, scene.place.workspace)
    assert len(standings) == 40
    for standing in standings.values():
        assert standing.reason == "provider_paused"
        assert standing.next_try is not None
        assert abs(standing.next_try - midnight) < timedelta(minutes=1)
        found = scene.says(standing.send_id, Cause.PAUSED, words='is paused: "The quota of the day is used up"')
        assert found.next.startswith("The pause ends on")
    assert (gauges.pending, gauges.pending_due_age is not None) == (40, True)
