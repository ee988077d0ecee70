"""What is usual: the band in which the duplicate-claim rate lies at this time of the day, and what rises above it.

Retries make later deliveries all the time, more at some hours than at others. So each moment is compared with the same
hours of the days before; where there are not three such days yet, with the hours just before. The band is as wide as
those hours differ among themselves, and as chance makes a rate of so few deliveries differ: three times either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import sqrt
from statistics import median

from dashboard.ledger.metrics import Hour, Point

HISTORY = timedelta(days=28)
"""So far back the same hours of the day are looked at."""

RECENT = timedelta(days=1)
"""So far back hours of any time of the day are, where there are no such days yet."""

DAYS = 3
"""Fewer days than this tell nothing about a time of the day."""

DELIVERIES = 30
"""Fewer deliveries than this tell nothing about a rate."""

WIDTH = 3.0
"""The band reaches so many standard deviations to either side."""

MOST_EXTRA = 5
"""A rise has at least so many more later deliveries than is usual: two of three is no rise."""


@dataclass(frozen=True, slots=True)
class Band:
    """Between which rates (0 to 1) a point usually lies, and the usual rate itself."""

    low: float
    usual: float
    high: float


@dataclass(frozen=True, slots=True)
class Rise:
    """A time in which the rate lay above its band. ``extra``: later deliveries beyond the usual ones."""

    since: datetime
    until: datetime
    extra: float


def usual_bands(points: Sequence[Point], bucket: timedelta, history: Sequence[Hour]) -> list[Band | None]:
    """The band of each point; None where too little is known. ``history``: hours from before the points."""
    if not points:
        return []
    first = points[0].at
    by_hour: dict[int, list[Hour]] = {}
    for one in history:
        if one.at < first:
            by_hour.setdefault(one.at.hour, []).append(one)
    recent = [one for one in history if first - RECENT <= one.at < first]
    known: dict[int, tuple[float, float, float] | None] = {}
    bands = []
    for point in points:
        hour = point.at.hour
        if hour not in known:
            like = [one for near in (-1, 0, 1) for one in by_hour.get((hour + near) % 24, [])]
            known[hour] = _usual(like) if len({one.at.date() for one in like}) >= DAYS else _usual(recent)
        bands.append(_band(point, bucket, known[hour]))
    return bands


def rises(points: Sequence[Point], bucket: timedelta, bands: Sequence[Band | None]) -> list[Rise]:
    """The times above the band, oldest first. Two with one point between them are one."""
    found: list[Rise] = []
    for point, band in zip(points, bands, strict=True):
        rate = point.duplicate_rate
        if band is None or rate is None or rate <= band.high:
            continue
        extra = point.later_deliveries - band.usual * point.deliveries
        if found and point.at - found[-1].until <= bucket:
            found[-1] = Rise(found[-1].since, point.at + bucket, found[-1].extra + extra)
        else:
            found.append(Rise(point.at, point.at + bucket, extra))
    return [rise for rise in found if rise.extra >= MOST_EXTRA]


def _usual(hours: Sequence[Hour]) -> tuple[float, float, float] | None:
    """The usual rate, how far hours differ from it, and the deliveries of an hour."""
    deliveries = sum(hour.deliveries for hour in hours)
    if deliveries < DELIVERIES:
        return None
    # The middle one: an hour of trouble among them is not what is usual.
    rates = sorted(hour.later / hour.deliveries for hour in hours if hour.deliveries * len(hours) * 4 >= deliveries)
    rate = median(rates)
    spread = 1.4826 * median(abs(one - rate) for one in rates)
    return rate, spread, deliveries / len(hours)


def _band(point: Point, bucket: timedelta, usual: tuple[float, float, float] | None) -> Band | None:
    if usual is None:
        return None
    rate, spread, hourly = usual
    number = point.deliveries or max(hourly * (bucket / timedelta(hours=1)), 1.0)
    # As if one of two more deliveries were a later one: what never happened yet is not impossible.
    likely = (rate * number + 1) / (number + 2)
    half = WIDTH * sqrt(spread**2 + likely * (1 - likely) / number)
    return Band(max(rate - half, 0.0), rate, min(rate + half, 1.0))
