"""Charts say what their tables say, honestly: zeros, holes, and an axis that begins at nought."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from dashboard.insight.charts import Chart, charts, duplicate_claim_rate, intended_against_accepted, outbox_age, unknown
from dashboard.ledger.metrics import Point, Series
from tests.factories import NOON

MINUTE = timedelta(minutes=1)


def series(*points: Point) -> Series:
    until = NOON + MINUTE * len(points)
    return Series(since=NOON, until=until, bucket=MINUTE, mailstream=None, points=list(points), total=Point(at=NOON))


def point(minute: int, **sums: int) -> Point:
    return Point(at=NOON + MINUTE * minute, **sums)


BUSY = series(
    point(0, recorded=8, duplicate=2, due=10, due_accepted=7, due_stopped=1, doubted=3, stale_claims=1, unknown=2),
    point(1),
    point(2, recorded=1, due=1, due_accepted=1, outbox_age_seconds=4),
)
EMPTY = series(point(0), point(1))


def values(chart: Chart, line: int = 0) -> list[float | None]:
    found: list[float | None] = chart.figure["data"][line]["y"]
    return found


@pytest.mark.parametrize("shown", [BUSY, EMPTY], ids=["busy", "empty"])
def test_every_chart_is_plain_json_with_a_table_of_as_many_rows(shown: Series) -> None:
    for chart in charts(shown):
        assert json.loads(json.dumps(chart.figure)) == chart.figure
        assert len(chart.rows) == len(shown.points)
        assert {len(row) for row in chart.rows} == {len(chart.header)}
        assert chart.unit
        low, high = chart.figure["layout"]["yaxis"]["range"]
        assert low == 0 < high


def test_the_charts_are_the_five_of_the_overview() -> None:
    names = [chart.name for chart in charts(EMPTY)]
    assert names == ["duplicate_claim_rate", "unknown", "stale_claims", "outbox_age", "intended_against_accepted"]


def test_a_rate_without_deliveries_is_a_hole_and_not_nought() -> None:
    chart = duplicate_claim_rate(BUSY)
    assert values(chart) == [20.0, None, 0.0]
    assert [row[1:] for row in chart.rows] == [["0", "1", "0.0"], ["0", "0", "–"], ["2", "10", "20.0"]]


def test_an_age_that_nobody_measured_is_a_hole() -> None:
    assert values(outbox_age(BUSY)) == [None, None, 4]
    assert values(outbox_age(EMPTY)) == [None, None]


def test_a_value_alone_between_holes_is_a_dot_that_can_be_seen() -> None:
    assert duplicate_claim_rate(BUSY).figure["data"][0]["marker"]["size"] == [6, 0, 6]


def test_intended_leaves_out_what_was_stopped_and_the_table_tells_the_gap() -> None:
    chart = intended_against_accepted(BUSY)
    assert (values(chart, 0), values(chart, 1)) == ([9, 0, 1], [7, 0, 1])
    assert chart.rows[-1] == ["30 Nov 12:00", "9", "7", "2"]
    assert {note["text"] for note in chart.figure["layout"]["annotations"]} == {"intended", "accepted"}


def test_unknown_shows_how_many_became_so_where_nobody_measured_how_many_are() -> None:
    assert values(unknown(BUSY)) == [2, None, None]
    alone = series(point(0, doubted=3), point(1))
    assert values(unknown(alone)) == [3, 0]


def test_colours_are_names_of_tokens_and_points_know_their_bucket() -> None:
    for chart in charts(BUSY):
        assert "#" not in json.dumps(chart.figure)
        assert chart.figure["data"][0]["customdata"][1] == "2026-11-30T12:01Z"
        assert chart.figure["layout"]["meta"] == {"bucket_seconds": 60}
