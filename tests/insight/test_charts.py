"""Charts say what their tables say, honestly: zeros, holes, and an axis that begins at nought."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4
from zoneinfo import ZoneInfo

import pytest

from dashboard.insight.charts import (
    Board,
    Chart,
    charts,
    deliveries,
    duplicate_claim_rate,
    intended_against_accepted,
    outbox_age,
    outcome_shares,
    overall,
    provider_latency,
    unknown,
)
from dashboard.insight.usual import Band
from dashboard.ledger.behind import Behind
from dashboard.ledger.markers import Marker
from dashboard.ledger.metrics import Point, Series
from tests.factories import NOON

MINUTE = timedelta(minutes=1)


def series(*points: Point, **more: Any) -> Board:
    until = NOON + MINUTE * len(points)
    made = Series(since=NOON, until=until, bucket=MINUTE, mailstream=None, points=list(points), total=Point(at=NOON))
    return Board(series=made, **more)


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
def test_every_chart_is_plain_json_with_a_table_of_as_many_rows(shown: Board) -> None:
    for chart in charts(shown):
        assert json.loads(json.dumps(chart.figure)) == chart.figure
        assert len(chart.rows) == len(chart.starts) == len(shown.series.points)
        assert {len(row) for row in chart.rows} == {len(chart.header)}
        assert chart.unit
        low, high = chart.figure["layout"]["yaxis"]["range"]
        assert low == 0 < high


def test_the_charts_are_those_of_the_overview_and_each_leads_to_its_sends() -> None:
    assert {chart.name: chart.behind for chart in charts(EMPTY)} == {
        "duplicate_claim_rate": Behind.DELIVERED_AGAIN, "unknown": Behind.DOUBTED, "stale_claims": Behind.CLAIM_LAPSED,
        "outbox_age": Behind.RECORDED, "intended_against_accepted": Behind.NOT_ACCEPTED,
        "acceptance_time": Behind.TRIED, "provider_latency": Behind.TRIED, "outcome_shares": Behind.TRIED,
        "deliveries": Behind.REPORTED, "delivery_time": Behind.REPORTED,
    }  # fmt: skip


def test_a_rate_without_deliveries_is_a_hole_and_not_nought() -> None:
    chart = duplicate_claim_rate(BUSY)
    assert values(chart) == [20.0, None, 0.0]
    assert [row[1:] for row in chart.rows] == [["0", "1", "0.0", "–"], ["0", "0", "–", "–"], ["2", "10", "20.0", "–"]]


def test_an_age_that_nobody_measured_is_a_hole() -> None:
    assert values(outbox_age(BUSY)) == [None, None, 4]
    assert values(outbox_age(EMPTY)) == [None, None]


def test_a_value_alone_between_holes_is_a_dot_that_can_be_seen() -> None:
    assert duplicate_claim_rate(BUSY).figure["data"][0]["marker"]["size"] == [6, 0, 6]


def test_intended_leaves_out_what_was_stopped_and_the_table_tells_the_gap() -> None:
    chart = intended_against_accepted(BUSY)
    assert (values(chart, 0), values(chart, 1)) == ([9, 0, 1], [7, 0, 1])
    assert chart.rows[-1] == ["30 Nov 12:00", "9", "7", "2"]
    assert [(key.name, key.colour, key.drawn) for key in chart.keys] == [
        ("intended", "var(--ink-soft)", "dot"), ("accepted", "var(--accepted)", "solid"),
    ]  # fmt: skip


def test_unknown_shows_how_many_became_so_where_nobody_measured_how_many_are() -> None:
    assert values(unknown(BUSY)) == [2, None, None]
    alone = series(point(0, doubted=3), point(1))
    assert values(unknown(alone)) == [3, 0]


def test_colours_are_names_of_tokens_and_points_know_their_bucket() -> None:
    for chart in charts(BUSY):
        assert "#" not in json.dumps(chart.figure)
        assert chart.figure["data"][0]["customdata"][1] == "2026-11-30T12:01Z"
        assert chart.figure["layout"]["meta"] == {"bucket_seconds": 60, "behind": chart.behind}


def test_the_band_of_the_usual_is_drawn_behind_the_rate_where_it_is_known() -> None:
    points = [point(minute, recorded=9, duplicate=1) for minute in range(4)]
    board = series(*points, bands=[Band(0.0, 0.1, 0.2), Band(0.05, 0.1, 0.25), None, Band(0.0, 0.1, 0.2)])
    chart = duplicate_claim_rate(board)
    first, second, line = chart.figure["data"]
    assert [(key.name, key.drawn) for key in chart.keys] == [("usual", "block"), ("later deliveries", "solid")]
    assert (first["y"], second["y"], line["y"]) == ([20.0, 25.0, 5.0, 0.0], [20.0, 0.0], [10.0] * 4)
    assert [row[-1] for row in chart.rows] == ["0.0 – 20.0", "–", "5.0 – 25.0", "0.0 – 20.0"]


def test_shares_of_outcomes_add_up_and_leave_out_what_is_under_way() -> None:
    board = series(
        point(0, attempts=9, attempts_accepted=4, attempts_rejected=2, attempts_ambiguous=1, attempts_abandoned=1),
        point(1, attempts=3),
    )
    chart = outcome_shares(board)
    assert [trace["y"] for trace in chart.figure["data"]] == [[50, None], [25, None], [12.5, None], [12.5, None]]
    assert chart.rows[-1][1:] == ["9", "4", "2", "1", "1"]


def test_stacked_bars_fit_under_the_top_of_their_axis() -> None:
    chart = deliveries(series(point(0, delivered=10, bounced=6, complained=4), point(1)))
    assert chart.figure["layout"]["yaxis"]["range"][1] >= 20


def test_latency_has_a_line_for_each_of_the_busiest_accounts_by_its_name() -> None:
    busy, idle = uuid4(), [UUID(int=n) for n in range(5)]
    timed = {busy: {NOON: {6: 19, 7: 1}}, **{one: {NOON + MINUTE: {3: 1}} for one in idle}}
    chart = provider_latency(series(point(0), point(1), accounts={busy: "<b>main"}, attempts=timed))
    assert len(chart.figure["data"]) == 4
    assert chart.figure["data"][0]["name"] == "&lt;b&gt;main", "Plotly reads some HTML in names"
    assert chart.keys[0].name == "<b>main", "the page escapes by itself"
    assert values(chart) == [1.0, None]
    assert overall(timed) == {NOON: {6: 19, 7: 1}, NOON + MINUTE: {3: 5}}


def test_times_are_the_viewers_and_points_lead_on_in_utc() -> None:
    chart = unknown(series(point(0, doubted=1), point(1), zone=ZoneInfo("Asia/Tokyo")))
    assert chart.figure["data"][0]["x"][0] == "2026-11-30 21:00"
    assert chart.figure["data"][0]["customdata"][0] == "2026-11-30T12:00Z"
    assert (chart.header[0], chart.rows[-1][0]) == ("From (Asia/Tokyo)", "30 Nov 21:00")


def test_a_deploy_stands_in_every_chart_as_a_line_that_tells_its_title() -> None:
    deploy = Marker(id=1, at=NOON, kind="deploy", title="shop <4.2>", who=None)
    for chart in charts(series(point(0), point(1), markers=[deploy])):
        (line,) = chart.figure["layout"]["shapes"]
        assert line["x0"] == line["x1"] == "2026-11-30 12:00"
        assert "deploy: shop &lt;4.2&gt;" in [note.get("hovertext") for note in chart.figure["layout"]["annotations"]]
