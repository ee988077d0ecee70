"""What a rule may watch: each measure with its unit, its words, and where its value is read.

All values come from the outbox, the work table, the roll-ups and a few small tables: never from sends, attempts or
events. A measure has the same meaning here as on the overview, since both read it from ``metrics.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from uuid import UUID

from psycopg.rows import class_row

from dashboard.ledger.database import Connection, database_now, statement
from dashboard.ledger.metrics import SILENCE, Gauges, Point, read_gauges, read_series

LAG = timedelta(minutes=5)
"""What is due needs a moment to be accepted: the gap is counted up to so long ago."""

COUNTED = 1000
"""Dead letters are counted up to here."""


class Measure(StrEnum):
    """What can be watched."""

    OUTBOX_AGE = "outbox_age"
    DUE_AGE = "due_age"
    STALE_CLAIMS = "stale_claims"
    UNKNOWN = "unknown"
    HELD = "held"
    HELD_AGE = "held_age"
    DUPLICATE_RATE = "duplicate_rate"
    MISMATCHES = "mismatches"
    GAP_RATE = "gap_rate"
    AMBIGUOUS_RATE = "ambiguous_rate"
    REJECTED_RATE = "rejected_rate"
    BOUNCE_RATE = "bounce_rate"
    COMPLAINT_RATE = "complaint_rate"
    DEAD_LETTERS = "dead_letters"
    ACCOUNTS_PAUSED = "accounts_paused"
    ACCOUNTS_BROKEN = "accounts_broken"
    WORKERS_LOST = "workers_lost"
    ACCEPTED_TWICE = "accepted_twice"
    SENDING_OFF = "sending_off"


class Unit(StrEnum):
    """What a value of a measure counts."""

    SECONDS = "seconds"
    SHARE = "share"  # 0 to 1
    COUNT = "count"
    YES = "yes"  # 1: it is so


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """Small figures that only rules read."""

    dead_letters: int
    accounts_paused: int
    accounts_broken: int
    workers_lost: int
    accepted_twice: int
    sending_off: int


@dataclass(frozen=True, slots=True)
class Fact:
    """A measure in words. ``title`` begins a sentence; ``meaning`` says what is counted."""

    title: str
    unit: Unit
    meaning: str
    by_stream: bool = True
    """Whether it can be read for one mailstream."""
    counted: bool = False
    """Whether it is counted over the span of its rule."""


FACTS: dict[Measure, Fact] = {
    Measure.OUTBOX_AGE: Fact("Outbox age", Unit.SECONDS, "how long the oldest request has waited to be relayed"),
    Measure.DUE_AGE: Fact("Longest wait of a due send", Unit.SECONDS, "how long a send has been due and unclaimed"),
    Measure.STALE_CLAIMS: Fact("Stale claims", Unit.COUNT, "claims past their lease"),
    Measure.UNKNOWN: Fact("Unknown sends", Unit.COUNT, "sends whose outcome is not known, now"),
    Measure.HELD: Fact("Held sends", Unit.COUNT, "sends that wait for a person, now"),
    Measure.HELD_AGE: Fact("Longest hold", Unit.SECONDS, "how long a held send has waited for a person"),
    Measure.DUPLICATE_RATE: Fact(
        "Duplicate-claim rate", Unit.SHARE, "later deliveries of a key, of all deliveries", counted=True
    ),
    Measure.MISMATCHES: Fact("Mismatches", Unit.COUNT, "keys that came again with other content", counted=True),
    Measure.GAP_RATE: Fact(
        "Intended but not accepted", Unit.SHARE,
        "sends that were due, without suppressed and cancelled ones, and are not accepted after 5 minutes",
        counted=True,
    ),
    Measure.AMBIGUOUS_RATE: Fact("Unanswered attempts", Unit.SHARE, "ambiguous attempts, of all", counted=True),
    Measure.REJECTED_RATE: Fact("Refused attempts", Unit.SHARE, "rejected attempts, of all", counted=True),
    Measure.BOUNCE_RATE: Fact("Bounces", Unit.SHARE, "bounced, of delivered and bounced", counted=True),
    Measure.COMPLAINT_RATE: Fact("Complaints", Unit.SHARE, "complaints, of delivered", counted=True),
    Measure.DEAD_LETTERS: Fact(
        "Dead letters", Unit.COUNT, "what could not be taken and waits for a person", by_stream=False
    ),
    Measure.ACCOUNTS_PAUSED: Fact(
        "Accounts paused by trouble", Unit.COUNT, "provider accounts that rest after failures", by_stream=False
    ),
    Measure.ACCOUNTS_BROKEN: Fact(
        "Accounts whose set-up broke", Unit.COUNT,
        "provider accounts in whose check something is wrong that was well before", by_stream=False,
    ),
    Measure.WORKERS_LOST: Fact(
        "Workers lost", Unit.COUNT, "workers of the last 15 minutes that stopped beating without a word",
        by_stream=False,
    ),
    Measure.ACCEPTED_TWICE: Fact(
        "Accepted more than once", Unit.COUNT, "sends that got a second message id", by_stream=False, counted=True
    ),
    Measure.SENDING_OFF: Fact("Sending is off", Unit.YES, "the ledger is not where it was", by_stream=False),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """What one rule wants to know."""

    measure: Measure
    mailstream: str  # empty: the whole workspace
    span: timedelta
    least: int


def read_measures(connection: Connection, workspace_id: UUID, questions: list[Question]) -> list[float]:
    """The value of each question now; a rate over fewer than its ``least`` is 0."""
    readings = _Readings(connection, workspace_id)
    return [readings.value(question) for question in questions]


class _Readings:
    """Reads each source once, however many questions ask for it."""

    def __init__(self, connection: Connection, workspace_id: UUID) -> None:
        self._connection = connection
        self._workspace_id = workspace_id
        self._now = database_now(connection)
        self._gauges: dict[str, Gauges] = {}
        self._totals: dict[tuple[str, timedelta, timedelta], Point] = {}
        self._watched: dict[timedelta, Watched] = {}

    def value(self, question: Question) -> float:
        measure = question.measure
        if measure in _OF_GAUGES:
            return float(_OF_GAUGES[measure](self._read_gauges(question.mailstream)))
        if measure in _OF_TOTALS:
            part, whole = _OF_TOTALS[measure](self._total(question))
            if FACTS[measure].unit is Unit.COUNT:
                return float(part)
            return part / whole if whole and whole >= question.least else 0.0
        return float(getattr(self._read_watched(question.span), measure.value))

    def _read_gauges(self, mailstream: str) -> Gauges:
        if mailstream not in self._gauges:
            self._gauges[mailstream] = read_gauges(self._connection, self._workspace_id, mailstream=mailstream or None)
        return self._gauges[mailstream]

    def _total(self, question: Question) -> Point:
        lag = LAG if question.measure is Measure.GAP_RATE else timedelta()
        key = (question.mailstream, question.span, lag)
        if key not in self._totals:
            until = self._now - lag
            self._totals[key] = read_series(
                self._connection, self._workspace_id, until - question.span, until,
                mailstream=question.mailstream or None,
            ).total  # fmt: skip
        return self._totals[key]

    def _read_watched(self, span: timedelta) -> Watched:
        if span not in self._watched:
            rows = self._connection.cursor(row_factory=class_row(Watched))
            bind = {"workspace_id": self._workspace_id, "counted": COUNTED, "silence": SILENCE, "span": span}
            (self._watched[span],) = rows.execute(statement("read_watched"), bind, binary=True)
        return self._watched[span]


def _seconds(span: timedelta | None) -> float:
    return span.total_seconds() if span else 0.0


_OF_GAUGES: dict[Measure, Callable[[Gauges], float]] = {
    Measure.OUTBOX_AGE: lambda gauges: _seconds(gauges.outbox_age),
    Measure.DUE_AGE: lambda gauges: _seconds(gauges.pending_due_age),
    Measure.STALE_CLAIMS: lambda gauges: gauges.stale_claims,
    Measure.UNKNOWN: lambda gauges: gauges.unknown,
    Measure.HELD: lambda gauges: gauges.held,
    Measure.HELD_AGE: lambda gauges: _seconds(gauges.held_age),
}

_OF_TOTALS: dict[Measure, Callable[[Point], tuple[int, int]]] = {
    Measure.DUPLICATE_RATE: lambda total: (total.later_deliveries, total.deliveries),
    Measure.MISMATCHES: lambda total: (total.mismatch, total.deliveries),
    Measure.GAP_RATE: lambda total: (max(total.gap, 0), total.intended),
    Measure.AMBIGUOUS_RATE: lambda total: (total.attempts_ambiguous, total.attempts),
    Measure.REJECTED_RATE: lambda total: (total.attempts_rejected, total.attempts),
    Measure.BOUNCE_RATE: lambda total: (total.bounced, total.delivered + total.bounced),
    Measure.COMPLAINT_RATE: lambda total: (total.complained, total.delivered),
}
