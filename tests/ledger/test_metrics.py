"""Gauges of this moment, series from roll-ups, workers and mailstreams."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from psycopg.types.json import Jsonb

from dashboard.ledger.metrics import (
    POINTS,
    SUMMED,
    Series,
    fitting_bucket,
    read_gauges,
    read_series,
    read_streams,
    read_workers,
)
from dashboard.ledger.tables import rollups
from dashboard.lifecycle import Reason
from tests.factories import NOON, Factory

HOUR = timedelta(hours=1)


def now(factory: Factory) -> datetime:
    row = factory.connection.execute("select now()").fetchone()
    assert row is not None
    found: datetime = row[0]
    return found


def from_now(factory: Factory, **ago: float) -> float:
    """Seconds from noon to that long ago, for the factory's times."""
    return (now(factory) - timedelta(**ago) - NOON).total_seconds()


# ── gauges ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_workspace_has_zeros_and_no_ages(factory: Factory) -> None:
    gauges = read_gauges(factory.connection, factory.workspace)
    assert (gauges.outbox, gauges.pending, gauges.claimed, gauges.stale_claims, gauges.unknown, gauges.held) == (0,) * 6
    assert gauges.outbox_age is gauges.pending_due_age is gauges.unknown_age is None
    assert not gauges.outbox_is_more


def test_gauges_count_what_is_open_in_this_workspace_only(factory: Factory) -> None:
    for workspace in (factory, Factory(factory.connection)):
        moment = from_now(workspace)
        workspace.pending(due=moment - 90, asked=moment - 90)
        workspace.pending(due=moment + 900, asked=moment, reason=Reason.SCHEDULED)
        workspace.claimed(claimed=moment - 5, lease=moment + 60)
        workspace.claimed(claimed=moment - 500, lease=moment - 100)
        workspace.unknown(started=moment - 130, doubted=moment - 100)
        workspace.held(started=moment - 130, doubted=moment - 100, opened=moment)
    gauges = read_gauges(factory.connection, factory.workspace)
    assert (gauges.pending, gauges.pending_due, gauges.claimed, gauges.stale_claims) == (2, 1, 2, 1)
    assert (gauges.unknown, gauges.held) == (1, 1)
    assert gauges.pending_due_age == timedelta(seconds=90)
    assert gauges.unknown_age == timedelta(seconds=100)


def test_the_outbox_age_is_of_its_oldest_row_whatever_the_order_of_commits(factory: Factory) -> None:
    for seconds in (10, 70, 30):
        factory.add(
            "outbox", send_id=uuid4(), workspace_id=factory.workspace, request=Jsonb({}),
            asked_at=now(factory) - timedelta(seconds=seconds),
        )  # fmt: skip
    gauges = read_gauges(factory.connection, factory.workspace)
    assert (gauges.outbox, gauges.outbox_age) == (3, timedelta(seconds=70))


def test_a_long_outbox_is_counted_up_to_a_number(factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dashboard.ledger.metrics.COUNTED", 3)
    for _ in range(3):
        factory.add("outbox", send_id=uuid4(), workspace_id=factory.workspace, request=Jsonb({}))
    gauges = read_gauges(factory.connection, factory.workspace)
    assert (gauges.outbox, gauges.outbox_is_more) == (3, False)
    factory.add("outbox", send_id=uuid4(), workspace_id=factory.workspace, request=Jsonb({}))
    gauges = read_gauges(factory.connection, factory.workspace)
    assert (gauges.outbox, gauges.outbox_is_more) == (3, True)


def test_many_open_sends_are_counted_up_to_a_number_by_mailstream(
    factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dashboard.ledger.metrics.COUNTED", 3)
    factory.stream("welcome")
    for stream in ("receipts", "welcome"):
        for _ in range(6):
            factory.pending(mailstream=stream)
            factory.unknown(mailstream=stream)
            factory.held(mailstream=stream)
    gauges = read_gauges(factory.connection, factory.workspace)
    assert (gauges.pending, gauges.unknown, gauges.held) == (8, 3, 3)


# ── series ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def series(factory: Factory, **options: object) -> Series:
    return read_series(factory.connection, factory.workspace, NOON, NOON + HOUR, **options)  # type: ignore[arg-type]


def test_an_empty_range_has_zeros_and_no_rates(factory: Factory) -> None:
    found = series(factory)
    assert len(found.points) == 60
    assert {point.deliveries for point in found.points} == {0}
    assert {point.duplicate_rate for point in found.points} == {None}
    assert {point.outbox_age_seconds for point in found.points} == {None}
    assert (found.total.duplicate_rate, found.total.gap) == (None, 0)


def test_every_summed_column_of_the_table_is_a_figure_of_a_point() -> None:
    assert set(SUMMED) == {
        column.name for column in rollups.c if column.server_default is not None and not column.primary_key
    }


def test_the_duplicate_claim_rate_is_later_deliveries_by_all_deliveries(factory: Factory) -> None:
    factory.rollup(5, recorded=6, duplicate=2, in_progress=1, mismatch=1)
    found = series(factory)
    assert found.points[5].duplicate_rate == found.total.duplicate_rate == 0.4
    assert [point.at for point in found.points if point.deliveries] == [NOON + timedelta(minutes=5)]


def test_the_gap_is_what_was_due_and_meant_and_not_accepted(factory: Factory) -> None:
    factory.rollup(5, due=10, due_accepted=6, due_stopped=1)
    assert series(factory).points[5].gap == 3


def test_buckets_add_up_minutes_and_mailstreams_and_keep_the_greatest_of_what_is_measured(factory: Factory) -> None:
    for minute in (0, 3, 7):
        factory.rollup(minute, recorded=1)
        factory.rollup(minute, mailstream="welcome", recorded=10)
        factory.rollup(minute, mailstream="", outbox_age_seconds=minute, unknown=7 - minute)
    found = series(factory, bucket=timedelta(minutes=5))
    assert [point.recorded for point in found.points] == [22, 11] + [0] * 10
    assert [point.outbox_age_seconds for point in found.points[:3]] == [3, 7, None]
    assert [point.unknown for point in found.points[:3]] == [7, 0, None]
    assert (found.total.recorded, found.total.outbox_age_seconds, found.total.unknown) == (33, 7, 7)
    assert series(factory, mailstream="welcome").total.recorded == 30


def test_minutes_outside_the_range_and_other_workspaces_do_not_count(factory: Factory) -> None:
    factory.rollup(-1, recorded=1)
    factory.rollup(60, recorded=1)
    Factory(factory.connection).rollup(5, recorded=1)
    assert series(factory).total.recorded == 0


@pytest.mark.parametrize(
    "span", [timedelta(minutes=1), HOUR, timedelta(days=1), timedelta(days=7), timedelta(days=90), timedelta(days=3000)]
)
def test_no_range_has_more_points_than_a_chart_can_show(factory: Factory, span: timedelta) -> None:
    start = NOON + timedelta(minutes=17, seconds=5)
    found = read_series(factory.connection, factory.workspace, start, start + span, bucket=timedelta(minutes=1))
    assert 1 <= len(found.points) <= POINTS
    assert found.points[0].at <= start < found.points[0].at + found.bucket
    assert found.points[-1].at < start + span <= found.points[-1].at + found.bucket


def test_a_wished_bucket_is_kept_where_it_fits() -> None:
    assert fitting_bucket(HOUR) == timedelta(minutes=1)
    assert fitting_bucket(HOUR, timedelta(minutes=7)) == timedelta(minutes=7)
    assert fitting_bucket(timedelta(days=1), timedelta(minutes=1)) == timedelta(minutes=10)


def test_a_range_that_ends_before_it_begins_is_refused(factory: Factory) -> None:
    with pytest.raises(ValueError, match="after it begins"):
        read_series(factory.connection, factory.workspace, NOON, NOON)


# ── workers and mailstreams ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_worker_that_stopped_beating_is_lost_and_one_that_said_so_is_stopped(factory: Factory) -> None:
    factory.connection.execute("delete from sendonce.workers")
    moment = now(factory)
    for name, beat, stopped in (("gone", 60, None), ("off", 60, 60), ("on", 1, None), ("old", 100_000, None)):
        factory.add(
            "workers", id=uuid4(), name=name, version="0.1.0", loops=["relay"],
            heartbeat_at=moment - timedelta(seconds=beat),
            stopped_at=None if stopped is None else moment - timedelta(seconds=stopped),
        )  # fmt: skip
    found = read_workers(factory.connection)
    assert [(worker.name, worker.state) for worker in found] == [
        ("on", "running"),
        ("gone", "lost"),
        ("off", "stopped"),
    ]


def test_the_inventory_has_each_mailstream_with_its_volume_of_a_day(factory: Factory) -> None:
    factory.stream("welcome")
    minutes = (datetime.now(UTC) - NOON) // timedelta(minutes=1)
    factory.rollup(minutes - 30, recorded=5, duplicate=2, attempts_accepted=4)
    factory.rollup(minutes - 3000, recorded=100)
    receipts, welcome = read_streams(factory.connection, factory.workspace)
    assert (receipts.name, receipts.recorded, receipts.later_deliveries, receipts.attempts_accepted) == (
        "receipts",
        5,
        2,
        4,
    )
    assert receipts.last_recorded_minute == NOON + timedelta(minutes=minutes - 30)
    assert (welcome.name, welcome.recorded, welcome.last_recorded_minute) == ("welcome", 0, None)
    assert (welcome.account, welcome.provider, welcome.owner) == ("main", "resend", "Shop")
