"""The figures of DESIGN §1, each defined once: gauges of this moment, series over time, workers, mailstreams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from sqlalchemy import BigInteger, ColumnElement, DateTime, Interval, Select, Table, cast, func, literal, select

from dashboard.ledger.database import Connection, compiled, statement
from dashboard.ledger.latency import Measure
from dashboard.ledger.tables import carriers, latencies, latency_hours, rollup_hours, rollups

POINTS = 200
"""A series has at most so many points."""

COUNTED = 10_000
"""Rows of the outbox, of each mailstream's queue, unknown and held ones are counted up to here."""

WORKERS = 500

SILENCE = timedelta(seconds=30)
"""A worker that has not beaten for so long, and did not say that it stopped, is lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gauges:
    """How the workspace, or one mailstream, stands at this moment: read from the outbox, the work table and the holds.

    A number counts up to :data:`COUNTED`, by mailstream where it is of the queue; where there are more it says so many.
    """

    at: datetime
    outbox: int
    outbox_is_more: bool  # there are more than were counted
    outbox_age: timedelta | None  # of the oldest row that could be relayed now; None: the outbox is empty
    pending: int
    pending_due: int
    pending_due_age: timedelta | None  # how long the longest-waiting send has been due and unclaimed
    claimed: int
    stale_claims: int  # past their lease
    unknown: int
    unknown_age: timedelta | None
    held: int
    held_age: timedelta | None = None
    measured_at: datetime | None = None  # the end of the last minute that was measured; None: nobody ever did
    paused_reason: str | None = None  # why all sending of the workspace is paused; None: it is not


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Sums over one bucket that starts at ``at``."""

    at: datetime
    recorded: int = 0
    duplicate: int = 0
    in_progress: int = 0
    mismatch: int = 0
    due: int = 0
    due_accepted: int = 0
    due_stopped: int = 0
    claims: int = 0
    attempts: int = 0
    attempts_accepted: int = 0
    attempts_rejected: int = 0
    attempts_ambiguous: int = 0
    attempts_abandoned: int = 0
    doubted: int = 0
    held: int = 0
    delivered: int = 0
    bounced: int = 0
    complained: int = 0
    event_repeats: int = 0
    stale_claims: int = 0
    outbox_age_seconds: float | None = None  # the greatest of the bucket; None where nobody measured it
    unknown: int | None = None  # the most at once in the bucket; None where nobody measured it

    @property
    def later_deliveries(self) -> int:
        """Duplicates, deliveries in progress and mismatches."""
        return self.duplicate + self.in_progress + self.mismatch

    @property
    def deliveries(self) -> int:
        """First and later deliveries."""
        return self.recorded + self.later_deliveries

    @property
    def duplicate_rate(self) -> float | None:
        """Duplicate-claim rate, 0 to 1; None where nothing was delivered."""
        return self.later_deliveries / self.deliveries if self.deliveries else None

    @property
    def intended(self) -> int:
        """Sends due, minus suppressed and cancelled."""
        return self.due - self.due_stopped

    @property
    def gap(self) -> int:
        """Sends due, minus suppressed and cancelled, minus accepted."""
        return self.intended - self.due_accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points without holes, oldest first; ``total`` sums them (its ``at`` is ``since``)."""

    since: datetime
    until: datetime
    bucket: timedelta
    mailstream: str | None
    points: list[Point]
    total: Point

    @property
    def starts(self) -> list[datetime]:
        """When each bucket begins."""
        return [point.at for point in self.points]


Histograms = dict[datetime, dict[int, int]]
"""Of each bucket that has any: how many took how long, by the steps of ``latency.BOUNDS``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """The deliveries of one hour."""

    at: datetime
    deliveries: int
    later: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Carrier:
    """Deliveries of some time that have all this in common. ``version``: of the worker that recorded later ones."""

    mailstream: str
    source: str
    trigger_type: str
    endpoint: str
    version: str
    recorded: int = 0
    duplicate: int = 0
    in_progress: int = 0
    mismatch: int = 0

    @property
    def later(self) -> int:
        """Later deliveries."""
        return self.duplicate + self.in_progress + self.mismatch

    @property
    def deliveries(self) -> int:
        """First and later ones."""
        return self.recorded + self.later


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """A worker process. ``state``: running, draining (asked to end), stopped (it said so), or lost (no beat comes)."""

    id: UUID
    name: str
    version: str
    loops: list[str]
    started_at: datetime
    heartbeat_at: datetime
    stopped_at: datetime | None
    in_flight: int
    refused_moves: int
    state: str
    loop_ages: dict[str, float] = field(default_factory=dict)
    """Of each loop: for how many seconds, at the last beat, it had not gone round without an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRow:
    """A mailstream of the inventory, with its volume of the last day (from roll-ups)."""

    name: str
    title: str
    owner: str
    mail_class: str
    account: str
    provider: str
    unknown_policy: str
    late_policy: str
    grace: timedelta
    too_late_after: timedelta | None
    max_attempts: int
    retry_for: timedelta
    paused_at: datetime | None
    paused_reason: str | None
    batches: bool
    recorded: int
    later_deliveries: int
    attempts_accepted: int
    last_recorded_minute: datetime | None  # None: silent for a day


MEASURED = ("outbox_age_seconds", "unknown")
"""The columns of ``rollups`` of which a bucket keeps the greatest. They are of the whole workspace, not of a stream."""

SUMMED = tuple(one.name for one in fields(Point) if one.name not in ("at", *MEASURED))
"""The columns of ``rollups`` that add up."""

ASKED = ("recorded", "duplicate", "in_progress", "mismatch", "due", "due_accepted", "due_stopped")
"""Those that are of no account: what is asked for is counted before anybody knows by which one it will leave."""


def read_gauges(connection: Connection, workspace_id: UUID, *, mailstream: str | None = None) -> Gauges:
    """How the workspace, or one mailstream of it, stands now."""
    bind = {"workspace_id": workspace_id, "mailstream": mailstream, "counted": COUNTED + 1}
    rows = connection.cursor(row_factory=class_row(Gauges))
    (gauges,) = rows.execute(statement("read_gauges"), bind, binary=True)
    return gauges


@dataclass(frozen=True, slots=True, kw_only=True)
class Hearing:
    """What was accepted on an account within the hour, and how many events were told of such.

    ``attempts`` and, of them, ``unanswered``: those of the last ten minutes.
    """

    account: str
    provider: str
    accepted: int
    events: int
    attempts: int = 0
    unanswered: int = 0


def read_hearing(connection: Connection, workspace_id: UUID) -> list[Hearing]:
    """The accounts that a mailstream uses, by name."""
    rows = connection.cursor(row_factory=class_row(Hearing))
    return rows.execute(statement("read_hearing"), {"workspace_id": workspace_id}, binary=True).fetchall()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scraped:
    """A workspace as a scrape sees it; the age in seconds, 0 where nothing waits."""

    workspace_id: UUID
    workspace: str
    outbox: int
    outbox_age: float
    dead_letters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """What is open in a mailstream in one state, as a scrape sees it.

    ``age``: for how many seconds the first has waited; of pending ones, since it was due. ``stale``: claims past their
    lease.
    """

    workspace_id: UUID
    mailstream: str
    state: str
    number: int
    age: float
    stale: int


def read_watched_all(connection: Connection) -> list[Scraped]:
    """All workspaces, by name."""
    rows = connection.cursor(row_factory=class_row(Scraped))
    return rows.execute(statement("read_watched_all"), {"counted": COUNTED}, binary=True).fetchall()


def read_open_all(connection: Connection) -> list[Open]:
    """All that is open; of each mailstream's queue, and of a workspace's unknown and held ones, the first 10,000."""
    rows = connection.cursor(row_factory=class_row(Open))
    return rows.execute(statement("read_open_all"), {"counted": COUNTED}, binary=True).fetchall()


def read_workers(connection: Connection) -> list[WorkerRow]:
    """The workers seen in the last day, running ones first, at most :data:`WORKERS`."""
    rows = connection.cursor(row_factory=class_row(WorkerRow))
    return rows.execute(statement("read_workers"), {"silence": SILENCE, "limit": WORKERS}, binary=True).fetchall()


def read_streams(connection: Connection, workspace_id: UUID) -> list[StreamRow]:
    """The automation inventory, by name."""
    rows = connection.cursor(row_factory=class_row(StreamRow))
    return rows.execute(statement("read_streams"), {"workspace_id": workspace_id}, binary=True).fetchall()


def read_account_names(connection: Connection, workspace_id: UUID) -> dict[UUID, str]:
    """The names of the provider accounts, in their order."""
    rows = connection.execute(
        "select id, name from sendonce.accounts where workspace_id = %s order by name", (workspace_id,)
    )
    return dict(rows.fetchall())


def read_series(
    connection: Connection,
    workspace_id: UUID,
    since: datetime,
    until: datetime,
    *,
    mailstream: str | None = None,
    account_id: UUID | None = None,
    bucket: timedelta | None = None,
) -> Series:
    """Roll-ups of ``since`` ≤ minute < ``until`` in buckets of whole minutes.

    Without ``bucket``, or with one that would make more than :data:`POINTS` points, a round one that fits is taken.
    The first bucket starts at a multiple of the bucket's length (in UTC), at or before ``since``, and is whole.
    Buckets of whole hours are read from the hours, so that the hour of ``until`` counts as far as it is known.
    ``account_id`` narrows what was done, not what was asked for (:data:`ASKED`).
    Raises ValueError where ``until`` is not after ``since``.
    """
    if until <= since:
        raise ValueError("the range must end after it begins")
    width = fitting_bucket(until - since, bucket)
    starts = _starts(since, until, width)
    table = rollup_hours if _in_hours(width) else rollups
    query = _sums(table, width, account_id).where(*_within(table, workspace_id, starts[0], until, mailstream))
    text, parameters = compiled(query)
    rows = connection.cursor(row_factory=class_row(Point)).execute(text, parameters)
    known = {point.at: point for point in rows}
    points = [known.get(start) or Point(at=start) for start in starts]
    return Series(since=since, until=until, bucket=width, mailstream=mailstream, points=points, total=_total(points))


def fitting_bucket(span: timedelta, wished: timedelta | None = None) -> timedelta:
    """The wished length, or the shortest round one, that cuts the span into at most :data:`POINTS` points."""
    if wished is not None and wished >= timedelta(minutes=1) and span / wished <= POINTS - 1:
        return timedelta(minutes=wished // timedelta(minutes=1))
    for minutes in _ROUND_MINUTES:
        if span / timedelta(minutes=minutes) <= POINTS - 1:
            return timedelta(minutes=minutes)
    return timedelta(days=-(-span // (timedelta(days=1) * (POINTS - 1))))


_ROUND_MINUTES = (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def _starts(since: datetime, until: datetime, width: timedelta) -> list[datetime]:
    first = _EPOCH + (since - _EPOCH) // width * width
    return [first + i * width for i in range(-(-(until - first) // width))]


def _sums(table: Table, width: timedelta, account_id: UUID | None) -> Select[Any]:
    start = _start(table, width)
    sums = []
    for name in SUMMED:
        total: Any = func.sum(table.c[name])
        if account_id is not None and name not in ASKED:
            total = func.coalesce(total.filter(table.c.account_id == account_id), 0)
        sums.append(cast(total, BigInteger).label(name))
    greatest = [func.max(table.c[name]).label(name) for name in MEASURED]
    return select(start.label("at"), *sums, *greatest).group_by(start)


def _start(table: Table, width: timedelta) -> ColumnElement[Any]:
    """The bucket that a row lies in."""
    return func.date_bin(literal(width, Interval), table.c.minute, literal(_EPOCH, DateTime(timezone=True)))


def _in_hours(width: timedelta) -> bool:
    return width % timedelta(hours=1) == timedelta()


def _within(
    table: Table, workspace_id: UUID, since: datetime, until: datetime, mailstream: str | None
) -> list[ColumnElement[bool]]:
    mine = [table.c.workspace_id == workspace_id, table.c.minute >= since, table.c.minute < until]
    return mine if mailstream is None else [*mine, table.c.mailstream == mailstream]


def read_latencies(
    connection: Connection, workspace_id: UUID, series: Series, measure: Measure, *, account_id: UUID | None = None
) -> dict[UUID, Histograms]:
    """How long things took in the buckets of a series, by account (``NO_ACCOUNT`` where it is of none)."""
    table = latency_hours if _in_hours(series.bucket) else latencies
    start = _start(table, series.bucket)
    within = _within(table, workspace_id, series.points[0].at, series.until, series.mailstream)
    query = select(table.c.account_id, start.label("at"), table.c.step, cast(func.sum(table.c.number), BigInteger))
    query = query.where(*within, table.c.measure == str(measure)).group_by(table.c.account_id, start, table.c.step)
    if account_id is not None:
        query = query.where(table.c.account_id == account_id)
    text, parameters = compiled(query)
    found: dict[UUID, Histograms] = {}
    for account, at, step, number in connection.execute(text, parameters):
        found.setdefault(account, {}).setdefault(at, {})[step] = number
    return found


def read_hours(
    connection: Connection, workspace_id: UUID, since: datetime, until: datetime, *, mailstream: str | None = None
) -> list[Hour]:
    """The deliveries of each hour that had any, oldest first: what is usual is learnt from them."""
    later = rollup_hours.c.duplicate + rollup_hours.c.in_progress + rollup_hours.c.mismatch
    query = (
        select(
            rollup_hours.c.minute.label("at"),
            cast(func.sum(rollup_hours.c.recorded + later), BigInteger).label("deliveries"),
            cast(func.sum(later), BigInteger).label("later"),
        )
        .where(*_within(rollup_hours, workspace_id, since, until, mailstream))
        .group_by(rollup_hours.c.minute)
        .having(func.sum(rollup_hours.c.recorded + later) > 0)
        .order_by(rollup_hours.c.minute)
    )
    text, parameters = compiled(query)
    return connection.cursor(row_factory=class_row(Hour)).execute(text, parameters).fetchall()


def read_carriers(
    connection: Connection, workspace_id: UUID, since: datetime, until: datetime, *, mailstream: str | None = None
) -> list[Carrier]:
    """Who carried the deliveries of this time."""
    names = ("mailstream", "source", "trigger_type", "endpoint", "version")
    counts = ("recorded", "duplicate", "in_progress", "mismatch")
    query = select(
        *(carriers.c[name] for name in names),
        *(cast(func.sum(carriers.c[name]), BigInteger).label(name) for name in counts),
    )
    query = query.where(*_within(carriers, workspace_id, since, until, mailstream))
    text, parameters = compiled(query.group_by(*(carriers.c[name] for name in names)))
    return connection.cursor(row_factory=class_row(Carrier)).execute(text, parameters).fetchall()


def _total(points: Sequence[Point]) -> Point:
    total: dict[str, Any] = {name: sum(getattr(point, name) for point in points) for name in SUMMED}
    for name in MEASURED:
        total[name] = max((v for point in points if (v := getattr(point, name)) is not None), default=None)
    return Point(at=points[0].at, **total)
