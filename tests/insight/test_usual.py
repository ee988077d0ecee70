"""Harmless retry noise lies in the band, a real change above it."""

from __future__ import annotations

import random
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from dashboard.insight.usual import Rise, rises, usual_bands
from dashboard.ledger.metrics import Hour, Point
from tests.factories import NOON

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)

BUSY_AT_NOON = [
    Hour(at=NOON - DAY * day + HOUR * hour, deliveries=600, later=120 if hour in (0, 1) else 12)
    for day in range(1, 15)
    for hour in range(-12, 12)
]
"""Two weeks in which every fifth delivery from noon to two is a later one, and every fiftieth otherwise."""


def points(*rates: float, each: int = 100, start: timedelta = timedelta()) -> list[Point]:
    return [
        Point(at=NOON + start + MINUTE * i, recorded=each - round(rate * each), duplicate=round(rate * each))
        for i, rate in enumerate(rates)
    ]


def test_the_same_rate_is_usual_at_one_time_of_the_day_and_a_rise_at_another() -> None:
    for start, expected in ((timedelta(), 0), (6 * HOUR, 1)):
        shown = points(0.2, 0.2, 0.2, start=start)
        assert len(rises(shown, MINUTE, usual_bands(shown, MINUTE, BUSY_AT_NOON))) == expected


def test_a_rise_is_told_from_its_first_point_to_the_end_of_its_last() -> None:
    shown = points(0.2, 0.7, 0.2, 0.7, 0.7, 0.2)
    (rise,) = rises(shown, MINUTE, usual_bands(shown, MINUTE, BUSY_AT_NOON))
    assert rise == Rise(NOON + MINUTE, NOON + 5 * MINUTE, rise.extra)
    assert round(rise.extra) == 150


def test_two_of_three_deliveries_are_no_rise() -> None:
    shown = points(0.67, each=3)
    assert rises(shown, MINUTE, usual_bands(shown, MINUTE, BUSY_AT_NOON)) == []


def test_without_such_days_the_hours_just_before_are_the_measure_and_without_those_there_is_none() -> None:
    shown = points(0.2, 0.02)
    yesterday = [one for one in BUSY_AT_NOON if one.at >= NOON - DAY]
    assert usual_bands(shown, MINUTE, []) == [None, None]
    (high, low) = usual_bands(shown, MINUTE, yesterday)
    assert high is not None
    assert round(high.usual, 2) == 0.02
    assert len(rises(shown, MINUTE, [high, low])) == 1


def test_an_hour_of_trouble_in_the_past_is_not_what_is_usual() -> None:
    spoilt = [Hour(at=one.at, deliveries=600, later=540) if one.at == NOON - DAY * 2 else one for one in BUSY_AT_NOON]
    shown = points(0.2)
    assert usual_bands(shown, MINUTE, spoilt)[0] == usual_bands(shown, MINUTE, BUSY_AT_NOON)[0]


def test_chance_alone_hardly_ever_leaves_the_band() -> None:
    dice = random.Random(3)
    drawn = [sum(dice.random() < 0.2 for _ in range(100)) / 100 for _ in range(500)]
    shown = [
        Point(at=NOON + MINUTE * (i % 60), recorded=round(100 - rate * 100), duplicate=round(rate * 100))
        for i, rate in enumerate(drawn)
    ]
    bands = usual_bands(shown, MINUTE, BUSY_AT_NOON)
    outside = [point for point, band in zip(shown, bands, strict=True) if band and point.duplicate_rate > band.high]  # type: ignore[operator]
    assert len(outside) <= 5


hours = st.lists(st.tuples(st.integers(0, 700), st.integers(0, 100_000), st.integers(0, 100_000)), max_size=80)


@given(hours, st.lists(st.tuples(st.integers(0, 500), st.integers(0, 500)), min_size=1, max_size=30))
def test_a_band_is_a_band_of_rates_and_holds_the_usual_one(
    past: list[tuple[int, int, int]], shown: list[tuple[int, int]]
) -> None:
    history = [Hour(at=NOON - HOUR * (ago + 1), deliveries=max(n + later, 1), later=later) for ago, n, later in past]
    found = [Point(at=NOON + MINUTE * i, recorded=n, duplicate=later) for i, (n, later) in enumerate(shown)]
    bands = usual_bands(found, MINUTE, history)
    assert len(bands) == len(found)
    for band in bands:
        if band:
            assert 0 <= band.low <= band.usual <= band.high <= 1
    for rise in rises(found, MINUTE, bands):
        assert rise.since < rise.until
        assert rise.extra >= 5
