"""Series as Plotly figures, each with a table that says the same.

Colours are names of the style sheet's tokens (``var(--accepted)``), so that they are told in one place and follow the
viewer's theme: whoever draws a figure puts the computed values in. Times are UTC. Each point carries the start of its
bucket as ``customdata``, and ``layout.meta.bucket_seconds`` says how long it is, so that a click leads to its rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from plotly import graph_objects

from dashboard.ledger.metrics import Point, Series

Value = float | int | None
Trace = dict[str, Any]

_Figure: Any = graph_objects.Figure  # type: ignore[attr-defined]  # plotly fills this module when it is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure as plain JSON data for ``Plotly.react``, and its table twin, newest row first."""

    name: str
    title: str
    unit: str
    figure: dict[str, Any]
    header: list[str]
    rows: list[list[str]]


def duplicate_claim_rate(series: Series) -> Chart:
    """Later deliveries ÷ all deliveries, in per cent."""

    def rate(point: Point) -> Value:
        return None if point.duplicate_rate is None else round(point.duplicate_rate * 100, 2)

    line = _line(series, rate, "later deliveries", "--claimed", "%{y:.1f} %")
    return _chart(
        series, "duplicate_claim_rate", "Duplicate-claim rate", "% of deliveries", [line],
        ("Later deliveries", lambda p: p.later_deliveries), ("All deliveries", lambda p: p.deliveries),
        ("Rate in %", rate),
    )  # fmt: skip


def unknown(series: Series) -> Chart:
    """Sends whose outcome is unknown: the most at once; how many became so, where nobody measured that."""
    if any(point.unknown is not None for point in series.points):
        trace = _line(series, lambda point: point.unknown, "unknown at once", "--unknown", "%{y}")
    else:
        trace = _bars(series, lambda point: point.doubted, "became unknown", "--unknown")
    return _chart(
        series, "unknown", "Unknown submissions", "sends", [trace],
        ("Unknown at once", lambda p: p.unknown), ("Became unknown", lambda p: p.doubted),
    )  # fmt: skip


def stale_claims(series: Series) -> Chart:
    """Claims that went past their lease."""
    bars = _bars(series, lambda point: point.stale_claims, "past their lease", "--held")
    return _chart(
        series, "stale_claims", "Stale claims", "claims", [bars], ("Past their lease", lambda p: p.stale_claims)
    )


def outbox_age(series: Series) -> Chart:
    """The age of the oldest row that could be relayed, in seconds."""
    line = _line(series, lambda point: point.outbox_age_seconds, "oldest row", "--pending", "%{y} s")
    return _chart(
        series,
        "outbox_age",
        "Outbox age",
        "seconds",
        [line],
        ("Oldest row, in seconds", lambda p: p.outbox_age_seconds),
    )


def intended_against_accepted(series: Series) -> Chart:
    """Sends that were due and meant, and those of them that a provider accepted."""
    accepted = _line(series, lambda point: point.due_accepted, "accepted", "--accepted", "%{y}")
    intended = _line(series, lambda point: point.intended, "intended", "--ink-soft", "%{y}", dash="dot")
    return _chart(
        series, "intended_against_accepted", "Intended against accepted", "sends", [intended, accepted],
        ("Intended", lambda p: p.intended), ("Accepted", lambda p: p.due_accepted), ("Gap", lambda p: p.gap),
    )  # fmt: skip


def charts(series: Series) -> list[Chart]:
    """All charts of the overview, in their order."""
    makers = (duplicate_claim_rate, unknown, stale_claims, outbox_age, intended_against_accepted)
    return [make(series) for make in makers]


def _line(
    series: Series, value: Callable[[Point], Value], name: str, colour: str, hover: str, *, dash: str = "solid"
) -> Trace:
    """A line with holes where there is no value, and dots where a value stands alone between holes."""
    values = [value(point) for point in series.points]
    known = [False, *(y is not None for y in values), False]
    alone = [
        here and not before and not after for before, here, after in zip(known, known[1:], known[2:], strict=False)
    ]
    return {
        **_data(series, values, name, hover),
        "type": "scatter",
        "mode": "lines+markers",
        "connectgaps": False,
        "line": {"color": f"var({colour})", "width": 2, "dash": dash},
        "marker": {"color": f"var({colour})", "size": [6 if lonely else 0 for lonely in alone]},
    }


def _bars(series: Series, value: Callable[[Point], Value], name: str, colour: str) -> Trace:
    values = [value(point) for point in series.points]
    return {**_data(series, values, name, "%{y}"), "type": "bar", "marker": {"color": f"var({colour})"}}


def _data(series: Series, values: Sequence[Value], name: str, hover: str) -> Trace:
    return {
        "x": [_stamp(point.at) for point in series.points],
        "y": list(values),
        "name": name,
        "customdata": [f"{point.at:%Y-%m-%dT%H:%MZ}" for point in series.points],
        "hovertemplate": f"{hover} {name}<extra></extra>",
    }


def _stamp(at: datetime) -> str:
    """A time as Plotly reads it: without a zone."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def _chart(
    series: Series,
    name: str,
    title: str,
    unit: str,
    traces: list[Trace],
    *columns: tuple[str, Callable[[Point], Value]],
) -> Chart:
    rows = [
        [f"{point.at:%d %b %H:%M}", *("–" if value(point) is None else str(value(point)) for _, value in columns)]
        for point in reversed(series.points)
    ]
    figure = _Figure({"data": traces, "layout": _layout(series, traces)})  # refuses what Plotly would not draw
    plain: dict[str, Any] = json.loads(figure.to_json())
    header = ["From (UTC)", *(heading for heading, _ in columns)]
    return Chart(name=name, title=title, unit=unit, figure=plain, header=header, rows=rows)


def _layout(series: Series, traces: Sequence[Trace]) -> dict[str, Any]:
    """Quiet axes, an honest zero, and each line's name at its end instead of a legend."""
    top = max((y for trace in traces for y in trace["y"] if y is not None), default=0)
    axis = {"gridcolor": "var(--line)", "linecolor": "var(--line-strong)", "zeroline": False, "fixedrange": True}
    ends = [_stamp(series.points[0].at), _stamp(series.points[-1].at + series.bucket)]
    return {
        "template": "none",
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "var(--face)", "size": 12, "color": "var(--ink-soft)"},
        "hoverlabel": {
            "bgcolor": "var(--surface)",
            "bordercolor": "var(--line-strong)",
            "font": {"color": "var(--ink)"},
        },
        "margin": {"l": 40, "r": 16, "t": 24, "b": 32},
        "showlegend": False,
        "hovermode": "x unified",
        "bargap": 0.1,
        "meta": {"bucket_seconds": int(series.bucket.total_seconds())},
        "xaxis": {
            **axis,
            "type": "date",
            "range": ends,
            "showgrid": False,
            "nticks": 6,
            "hoverformat": "%d %b %H:%M UTC",
        },
        "yaxis": {
            **axis,
            "range": [0, top * 1.15 or 1],
            "nticks": 5,
            "automargin": True,
            # Without this, counts of one or two would get ticks at fractions of a send.
            **({"dtick": 1} if top <= 4 else {}),
        },
        "annotations": _names(traces) if len(traces) > 1 else [],
    }


def _names(traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """The names of the lines at their last points: above the upper one, below the lower one."""
    ends = []
    for trace in traces:
        known = [(x, y) for x, y in zip(trace["x"], trace["y"], strict=True) if y is not None]
        ends += [(y, x, trace) for x, y in known[-1:]]
    ends.sort(key=lambda end: end[0])
    return [
        {
            "x": x,
            "y": y,
            "text": trace["name"],
            "showarrow": False,
            "xanchor": "right",
            "yanchor": "top" if i == 0 else "bottom",
            "font": {"color": trace["line"]["color"]},
        }
        for i, (y, x, trace) in enumerate(ends)
    ]
