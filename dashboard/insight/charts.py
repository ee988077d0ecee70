"""Series as Plotly figures, each with a table that says the same.

Colours are names of the style sheet's tokens (``var(--accepted)``), so that they are told in one place and follow the
viewer's theme: whoever draws a figure puts the computed values in. Times are those of the viewer's zone. Each point
carries the start of its bucket in UTC as ``customdata``; ``layout.meta`` says how long the bucket is, and by which list
its sends are found, so that a click leads to them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from html import escape, unescape
from typing import Any
from uuid import UUID

from plotly import graph_objects

from dashboard.insight.usual import Band
from dashboard.insight.wording import in_zone
from dashboard.ledger.behind import Behind
from dashboard.ledger.latency import merged, quantile
from dashboard.ledger.markers import Kind, Marker
from dashboard.ledger.metrics import Histograms, Point, Series

Value = float | int | None
Values = Sequence[Value]
Trace = dict[str, Any]

MOST_ACCOUNTS = 4
"""So many accounts have a line of their own, those with the most attempts; more lines nobody tells apart."""

LINES = ("--claimed", "--held", "--suppressed", "--pending")

_Figure: Any = graph_objects.Figure  # type: ignore[attr-defined]  # plotly fills this module when it is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """All that the charts are made of. A histogram that is not there is an empty one."""

    series: Series
    bands: Sequence[Band | None] = ()
    accounts: Mapping[UUID, str] = field(default_factory=dict)
    outbox: Histograms = field(default_factory=dict)
    acceptance: Histograms = field(default_factory=dict)
    attempts: Mapping[UUID, Histograms] = field(default_factory=dict)
    delivery: Histograms = field(default_factory=dict)
    markers: Sequence[Marker] = ()
    zone: tzinfo = UTC

    def values(self, value: Callable[[Point], Value]) -> list[Value]:
        """A figure of each point."""
        return [value(point) for point in self.series.points]

    def quantiles(self, of: Histograms, share: float) -> list[Value]:
        """In seconds, of each bucket; None where nothing was timed."""
        times = [quantile(of.get(start, {}), share) for start in self.series.starts]
        return [None if time is None else round(time / 1000, 3) for time in times]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """What one line, bar or band of a chart is. ``colour``: a token's name; ``drawn``: *solid*, *dot* or *block*."""

    name: str
    colour: str
    drawn: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure as plain JSON data for ``Plotly.react``, and its table twin, newest row first.

    ``keys``: what is drawn; ``starts``: when the bucket of each row begins;
    ``behind``: which list its sends are found by.
    """

    name: str
    title: str
    unit: str
    figure: dict[str, Any]
    keys: list[Key]
    header: list[str]
    rows: list[list[str]]
    starts: list[datetime]
    behind: Behind


def duplicate_claim_rate(board: Board) -> Chart:
    """Later deliveries ÷ all deliveries, in per cent, before the band of the usual."""

    def rate(point: Point) -> Value:
        return None if point.duplicate_rate is None else round(point.duplicate_rate * 100, 2)

    rates = board.values(rate)
    usual = [None if band is None else f"{band.low * 100:.1f} – {band.high * 100:.1f}" for band in _bands(board)]
    line = _line(board, rates, "later deliveries", "--claimed", "%{y:.1f} %")
    return _chart(
        board, "duplicate_claim_rate", "Duplicate-claim rate", "% of deliveries", Behind.DELIVERED_AGAIN,
        [*_band(board), line], ("Later deliveries", board.values(lambda p: p.later_deliveries)),
        ("All deliveries", board.values(lambda p: p.deliveries)), ("Rate in %", rates), ("Usual, in %", usual),
    )  # fmt: skip


def unknown(board: Board) -> Chart:
    """Sends whose outcome is unknown: the most at once; how many became so, where nobody measured that."""
    most, doubted = board.values(lambda p: p.unknown), board.values(lambda p: p.doubted)
    if any(value is not None for value in most):
        trace = _line(board, most, "unknown at once", "--unknown", "%{y}")
    else:
        trace = _bars(board, doubted, "became unknown", "--unknown")
    return _chart(
        board, "unknown", "Unknown submissions", "sends", Behind.DOUBTED, [trace],
        ("Unknown at once", most), ("Became unknown", doubted), ("Held", board.values(lambda p: p.held)),
    )  # fmt: skip


def stale_claims(board: Board) -> Chart:
    """Claims that went past their lease."""
    stale = board.values(lambda p: p.stale_claims)
    bars = _bars(board, stale, "past their lease", "--held")
    return _chart(
        board, "stale_claims", "Stale claims", "claims", Behind.CLAIM_LAPSED, [bars],
        ("Past their lease", stale), ("All claims", board.values(lambda p: p.claims)),
    )  # fmt: skip


def outbox_age(board: Board) -> Chart:
    """The age of the oldest row that could be relayed, and how long requests waited, in seconds."""
    oldest = board.values(lambda p: None if p.outbox_age_seconds is None else round(p.outbox_age_seconds, 1))
    waited, most = board.quantiles(board.outbox, 0.5), board.quantiles(board.outbox, 0.95)
    lines = [_line(board, oldest, "oldest row", "--pending", "%{y} s")]
    if any(value is not None for value in most):
        lines.append(_line(board, most, "95 % waited less", "--claimed", "%{y} s", dash="dot"))
    return _chart(
        board, "outbox_age", "Outbox age", "seconds", Behind.RECORDED, lines,
        ("Oldest row, in seconds", oldest), ("Half waited less than", waited), ("95 % waited less than", most),
    )  # fmt: skip


def intended_against_accepted(board: Board) -> Chart:
    """Sends that were due and meant, and those of them that a provider accepted."""
    intended, accepted = board.values(lambda p: p.intended), board.values(lambda p: p.due_accepted)
    lines = [
        _line(board, intended, "intended", "--ink-soft", "%{y}", dash="dot"),
        _line(board, accepted, "accepted", "--accepted", "%{y}"),
    ]
    return _chart(
        board, "intended_against_accepted", "Intended against accepted", "sends", Behind.NOT_ACCEPTED, lines,
        ("Intended", intended), ("Accepted", accepted), ("Gap", board.values(lambda p: p.gap)),
    )  # fmt: skip


def acceptance_time(board: Board) -> Chart:
    """From when a send was asked for, or due, to the provider's yes."""
    return _times(board, "acceptance_time", "Trigger to accepted", board.acceptance, "--accepted", Behind.TRIED)


def provider_latency(board: Board) -> Chart:
    """How long calls took, the slowest twentieth of them left out, by account."""
    totals = {account: sum(map(_number, found.values())) for account, found in board.attempts.items()}
    most = sorted(totals, key=lambda account: (-totals[account], str(account)))[:MOST_ACCOUNTS]
    columns, traces = [], []
    for account, colour in zip(most, LINES, strict=False):
        name = board.accounts.get(account, "gone account")
        slow = board.quantiles(board.attempts[account], 0.95)
        traces.append(_line(board, slow, name, colour, "%{y} s"))
        columns += [
            (f"{name}: half less than", board.quantiles(board.attempts[account], 0.5)),
            (f"{name}: 95 % less than", slow),
        ]
    return _chart(
        board, "provider_latency", "Provider latency", "seconds, 95 % of calls took less", Behind.TRIED,
        traces or [_line(board, [None] * len(board.series.points), "no calls", "--pending", "%{y} s")],
        *(columns or [("95 % less than", [None] * len(board.series.points))]),
    )  # fmt: skip


OUTCOMES: tuple[tuple[str, str, Callable[[Point], int]], ...] = (
    ("accepted", "--accepted", lambda p: p.attempts_accepted),
    ("refused", "--failed", lambda p: p.attempts_rejected),
    ("never answered", "--unknown", lambda p: p.attempts_ambiguous),
    ("never written", "--cancelled", lambda p: p.attempts_abandoned),
)


def outcome_shares(board: Board) -> Chart:
    """What became of calls to providers, as shares of those that have ended."""

    def share(count: Callable[[Point], int]) -> Callable[[Point], Value]:
        def of(point: Point) -> Value:
            ended = sum(one(point) for _, _, one in OUTCOMES)
            return round(100 * count(point) / ended, 2) if ended else None

        return of

    traces = [_bars(board, board.values(share(count)), name, colour, "%{y:.1f} %") for name, colour, count in OUTCOMES]
    columns = [(name.capitalize(), board.values(count)) for name, _, count in OUTCOMES]
    calls = ("Calls", board.values(lambda p: p.attempts))
    return _chart(
        board, "outcome_shares", "Outcomes of calls", "% of calls", Behind.TRIED, traces, calls, *columns, stacked=100
    )


def deliveries(board: Board) -> Chart:
    """What providers told about delivery."""
    told: tuple[tuple[str, str, Callable[[Point], int]], ...] = (
        ("delivered", "--accepted", lambda p: p.delivered),
        ("bounced", "--failed", lambda p: p.bounced),
        ("complained", "--suppressed", lambda p: p.complained),
    )
    columns = [(name.capitalize(), board.values(count)) for name, _, count in told]
    traces = [_bars(board, board.values(count), name, colour) for name, colour, count in told]
    top = max((p.delivered + p.bounced + p.complained for p in board.series.points), default=0)
    return _chart(board, "deliveries", "Deliveries", "sends", Behind.REPORTED, traces, *columns, stacked=top)


def delivery_time(board: Board) -> Chart:
    """From the provider's yes to the receiving mail server's."""
    return _times(board, "delivery_time", "Accepted to delivered", board.delivery, "--claimed", Behind.REPORTED)


CHARTS = (
    duplicate_claim_rate, unknown, stale_claims, outbox_age, intended_against_accepted, acceptance_time,
    provider_latency, outcome_shares, deliveries, delivery_time,
)  # fmt: skip
"""All charts of the overview, in their order."""


def charts(board: Board) -> list[Chart]:
    """Each of them."""
    return [make(board) for make in CHARTS]


def overall(histograms: Mapping[UUID, Histograms]) -> Histograms:
    """Those of all accounts as one."""
    found: dict[datetime, list[dict[int, int]]] = {}
    for one in histograms.values():
        for at, steps in one.items():
            found.setdefault(at, []).append(steps)
    return {at: merged(many) for at, many in found.items()}


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _number(steps: Mapping[int, int]) -> int:
    return sum(steps.values())


def _times(board: Board, name: str, title: str, of: Histograms, colour: str, behind: Behind) -> Chart:
    half, most = board.quantiles(of, 0.5), board.quantiles(of, 0.95)
    lines = [
        _line(board, most, "95 % took less", colour, "%{y} s"),
        _line(board, half, "half took less", "--ink-soft", "%{y} s", dash="dot"),
    ]
    return _chart(
        board, name, title, "seconds", behind, lines, ("Half less than", half), ("95 % less than", most),
        ("Timed", [_number(of.get(start, {})) for start in board.series.starts]),
    )  # fmt: skip


def _line(board: Board, values: Values, name: str, colour: str, hover: str, *, dash: str = "solid") -> Trace:
    """A line with holes where there is no value, and dots where a value stands alone between holes."""
    known = [False, *(y is not None for y in values), False]
    alone = [
        here and not before and not after for before, here, after in zip(known, known[1:], known[2:], strict=False)
    ]
    return {
        **_data(board, values, name, hover),
        "type": "scatter",
        "mode": "lines+markers",
        "connectgaps": False,
        "line": {"color": f"var({colour})", "width": 2, "dash": dash},
        "marker": {"color": f"var({colour})", "size": [6 if lonely else 0 for lonely in alone]},
    }


def _bars(board: Board, values: Values, name: str, colour: str, hover: str = "%{y}") -> Trace:
    return {**_data(board, values, name, hover), "type": "bar", "marker": {"color": f"var({colour})"}}


def _data(board: Board, values: Values, name: str, hover: str) -> Trace:
    return {
        "x": [_stamp(board, point.at) for point in board.series.points],
        "y": list(values),
        "name": escape(name),
        "customdata": [f"{point.at:%Y-%m-%dT%H:%MZ}" for point in board.series.points],
        "hovertemplate": f"{hover} {escape(name)}<extra></extra>",
    }


def _bands(board: Board) -> Sequence[Band | None]:
    return board.bands or [None] * len(board.series.points)


def _band(board: Board) -> list[Trace]:
    """The band of the usual, as a surface for each stretch in which it is known."""
    traces: list[Trace] = []
    stretch: list[tuple[str, Band]] = []
    for start, band in [*zip(board.series.starts, _bands(board), strict=True), (None, None)]:
        if start is not None and band is not None:
            stretch.append((_stamp(board, start), band))
        elif stretch:
            traces.append(_surface(stretch))
            stretch = []
    return traces


def _surface(stretch: Sequence[tuple[str, Band]]) -> Trace:
    there = [(x, round(band.high * 100, 2)) for x, band in stretch]
    back = [(x, round(band.low * 100, 2)) for x, band in reversed(stretch)]
    return {
        "x": [x for x, _ in (*there, *back)],
        "y": [y for _, y in (*there, *back)],
        "type": "scatter",
        "mode": "lines",
        "line": {"width": 0, "color": "var(--band)"},
        "fill": "toself",
        "fillcolor": "var(--band)",
        "hoverinfo": "skip",
        "name": "usual",
        "meta": "band",
    }


def _stamp(board: Board, at: datetime) -> str:
    """A time as Plotly reads it: without a zone, but in the viewer's."""
    return f"{in_zone(at, board.zone):%Y-%m-%d %H:%M}"


def _chart(
    board: Board,
    name: str,
    title: str,
    unit: str,
    behind: Behind,
    traces: list[Trace],
    *columns: tuple[str, Sequence[object]],
    stacked: float | None = None,
) -> Chart:
    """``stacked``: bars stand on each other, so high together."""
    starts = list(reversed(board.series.starts))
    cells = [["–" if value is None else str(value) for value in reversed(values)] for _, values in columns]
    rows = [[f"{in_zone(at, board.zone):%d %b %H:%M}", *(cell[i] for cell in cells)] for i, at in enumerate(starts)]
    layout = _layout(board, traces, behind, stacked)
    figure = _Figure({"data": traces, "layout": layout})  # refuses what Plotly would not draw
    plain: dict[str, Any] = json.loads(figure.to_json())
    header = [f"From ({_zone(board)})", *(heading for heading, _ in columns)]
    return Chart(
        name=name, title=title, unit=unit, figure=plain, keys=_keys(traces), header=header, rows=rows, starts=starts,
        behind=behind,
    )  # fmt: skip


def _keys(traces: Sequence[Trace]) -> list[Key]:
    """Each thing that is drawn, once. They stand above the chart and not in it, where a line would run through them."""
    keys = {trace["name"]: Key(name=unescape(trace["name"]), **_look(trace)) for trace in traces}
    return list(keys.values())


def _look(trace: Trace) -> dict[str, str]:
    if "fillcolor" in trace:
        return {"colour": trace["fillcolor"], "drawn": "block"}
    if trace["type"] == "bar":
        return {"colour": trace["marker"]["color"], "drawn": "block"}
    return {"colour": trace["line"]["color"], "drawn": trace["line"]["dash"]}


def _zone(board: Board) -> str:
    return "UTC" if board.zone is UTC else str(board.zone)


def _layout(board: Board, traces: Sequence[Trace], behind: Behind, stacked: float | None) -> dict[str, Any]:
    """Quiet axes and an honest zero."""
    series, named = board.series, [trace for trace in traces if trace.get("meta") != "band"]
    top = (
        stacked if stacked is not None else max((y for trace in traces for y in trace["y"] if y is not None), default=0)
    )
    axis = {"gridcolor": "var(--line)", "linecolor": "var(--line-strong)", "zeroline": False, "fixedrange": True}
    ends = [_stamp(board, series.points[0].at), _stamp(board, series.points[-1].at + series.bucket)]
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
        "margin": {"l": 40, "r": 16, "t": 20 if board.markers else 8, "b": 36},
        "showlegend": False,
        "hovermode": "x unified",
        "barmode": "stack",
        "bargap": 0.1,
        "meta": {"bucket_seconds": int(series.bucket.total_seconds()), "behind": str(behind)},
        "xaxis": {
            **axis,
            "type": "date",
            "range": ends,
            "showgrid": False,
            "nticks": 6,
            "tickformatstops": TICKS,
            "hoverformat": "%-d %b %H:%M" + (" UTC" if board.zone is UTC else ""),
        },
        "yaxis": {
            **axis,
            "range": [0, top * (1.0 if stacked == 100 else 1.15) or 1],
            "nticks": 5,
            "automargin": True,
            # Without this, counts of one or two would get ticks at fractions of a send.
            **({"dtick": 1} if top <= 4 and all(isinstance(y, int | None) for t in named for y in t["y"]) else {}),
        },
        "shapes": [_moment(board, marker) for marker in board.markers],
        "annotations": [_flag(board, marker) for marker in board.markers],
    }


TICKS = [
    {"dtickrange": [None, 86_399_999], "value": "%H:%M\n%-d %b"},  # milliseconds; the day stands where it changes
    {"dtickrange": [86_400_000, None], "value": "%-d %b"},
]
"""Times below the charts, written as the pages write them."""

MARKS = {Kind.DEPLOY: ("\N{BLACK DIAMOND}", "--accent"), Kind.INCIDENT: ("\N{BLACK UP-POINTING TRIANGLE}", "--failed")}


def _moment(board: Board, marker: Marker) -> dict[str, Any]:
    x = _stamp(board, marker.at)
    line = {"color": f"var({MARKS[Kind(marker.kind)][1]})", "width": 1, "dash": "dot"}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "paper", "layer": "above", "line": line}


def _flag(board: Board, marker: Marker) -> dict[str, Any]:
    text, colour = MARKS[Kind(marker.kind)]
    return {
        "x": _stamp(board, marker.at),
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "text": text,
        "hovertext": escape(f"{marker.kind}: {marker.title}"),
        "showarrow": False,
        "font": {"color": f"var({colour})"},
    }
