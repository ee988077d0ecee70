"""How it goes: figures of this moment and charts over a range, live."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Any
from uuid import UUID

from flask import Blueprint, abort, flash, jsonify, url_for
from flask import Response as FlaskResponse
from werkzeug.wrappers import Response

from dashboard.insight.charts import Board, charts, overall
from dashboard.insight.rise import Explanation, explain
from dashboard.insight.usual import HISTORY, Rise, rises, usual_bands
from dashboard.ledger.database import Connection
from dashboard.ledger.latency import Measure
from dashboard.ledger.markers import Kind, add_marker, list_markers
from dashboard.ledger.metrics import (
    Series,
    read_account_names,
    read_carriers,
    read_gauges,
    read_hours,
    read_latencies,
    read_series,
    read_streams,
)
from dashboard.ledger.requests import BadRequest
from dashboard.ledger.tables import Role
from dashboard.web import args
from dashboard.web.csv import safe_cell
from dashboard.web.formats import viewer_zone
from dashboard.web.permissions import needs
from dashboard.web.show import go, show
from dashboard.web.state import database, here, me

blueprint = Blueprint("overview", __name__, url_prefix="/overview")


class Range(StrEnum):
    """How far back the charts go."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"
    MONTH = "30d"


SPANS = {
    Range.HOUR: timedelta(hours=1),
    Range.DAY: timedelta(days=1),
    Range.WEEK: timedelta(days=7),
    Range.MONTH: timedelta(days=30),
}

BEFORE = timedelta(days=1)
"""A rise is compared with so much time before it."""


class Zone(StrEnum):
    """In which zone times are told; nothing is the viewer's own."""

    UTC = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A rise of duplicate claims, and who carries it."""

    rise: Rise
    explanation: Explanation


@blueprint.get("")
@needs(Role.SUPPORT)
def page() -> Response:
    """The page; htmx asks for the figures and tables alone, every few seconds."""
    with database().snapshot() as connection:
        gauges = read_gauges(connection, here().workspace_id)
        streams = [stream.name for stream in read_streams(connection, here().workspace_id)]
        board = _board(connection)
        told = _newest_rise(connection, board)
    return show(
        "overview",
        fragment="overview_figures",
        gauges=gauges,
        series=board.series,
        charts=charts(board),
        markers=board.markers,
        told=told,
        streams=streams,
        accounts=list(board.accounts.values()),
        range=_range(),
        ranges=list(Range),
        chosen=_chosen(),
        narrowed={name: value for name, value in _chosen().items() if name in ("mailstream", "account")},
        kinds=list(Kind),
    )


@blueprint.get("/figures")
@needs(Role.SUPPORT)
def figures() -> Response:
    """The figures of the charts, for Plotly."""
    with database().snapshot() as connection:
        board = _board(connection)
    answer: Response = jsonify({chart.name: chart.figure for chart in charts(board)})
    return answer


@blueprint.get("/<name>.csv")
@needs(Role.SUPPORT)
def export(name: str) -> Response:
    """The table of one chart. It holds counts and names of accounts, nothing of any send."""
    with database().snapshot() as connection:
        board = _board(connection)
    chart = next((chart for chart in charts(board) if chart.name == name), None)
    if chart is None:
        abort(404)
    lines = io.StringIO()
    writer = csv.writer(lines)
    writer.writerow(["From (UTC)", *(safe_cell(cell) for cell in chart.header[1:])])
    for start, row in zip(chart.starts, chart.rows, strict=True):
        writer.writerow([f"{start:%Y-%m-%dT%H:%MZ}", *("" if cell == "–" else safe_cell(cell) for cell in row[1:])])
    name = f"{chart.name}-{_range().value}.csv"
    return FlaskResponse(
        lines.getvalue(),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@blueprint.post("/markers")
@needs(Role.OPERATOR)
def mark() -> Response:
    """Mark a moment: now, or so many minutes ago."""
    ago = args.whole(args.posted("ago") or "0", "How long ago it was is a whole number of minutes.")
    try:
        with database().transaction() as connection:
            add_marker(
                connection,
                workspace_id=here().workspace_id,
                kind=args.posted("kind"),
                title=args.posted("title"),
                at=datetime.now(UTC) - timedelta(minutes=min(ago, 1_000_000)) if ago else None,
                user_id=me().id,
            )
    except BadRequest as error:
        flash(f"Nothing was marked: the {error.field} {error.problem}.")
    else:
        flash("It is marked in the charts.")
    return go(url_for("overview.page", **_chosen()))


def _range() -> Range:
    return args.word("range", Range) or Range.HOUR


def _chosen() -> dict[str, Any]:
    """The filters that are set, as they stand in the URL."""
    chosen = {name: args.text(name) for name in ("mailstream", "account", "zone")}
    return {"range": _range().value, **{name: value for name, value in chosen.items() if value}}


def _zone() -> tzinfo:
    return UTC if args.word("zone", Zone) else viewer_zone()


def _series(connection: Connection, account_id: UUID | None) -> Series:
    until = (datetime.now(UTC) + timedelta(minutes=1)).replace(second=0, microsecond=0)
    return read_series(
        connection,
        here().workspace_id,
        until - SPANS[_range()],
        until,
        mailstream=args.text("mailstream"),
        account_id=account_id,
    )


def _board(connection: Connection) -> Board:
    workspace_id, mailstream = here().workspace_id, args.text("mailstream")
    accounts = read_account_names(connection, workspace_id)
    account = next((id for id, name in accounts.items() if name == args.text("account")), None)
    if args.text("account") and account is None:
        abort(400, "There is no such account.")
    series = _series(connection, account)
    first = series.points[0].at
    history = read_hours(connection, workspace_id, first - HISTORY, first, mailstream=mailstream)

    def timed(measure: Measure, *, of: UUID | None = account) -> dict[UUID, Any]:
        return read_latencies(connection, workspace_id, series, measure, account_id=of)

    return Board(
        series=series,
        bands=usual_bands(series.points, series.bucket, history),
        accounts=accounts,
        outbox=overall(timed(Measure.OUTBOX, of=None)),
        acceptance=overall(timed(Measure.ACCEPTANCE)),
        attempts=timed(Measure.ATTEMPT),
        delivery=overall(timed(Measure.DELIVERY)),
        markers=list_markers(connection, workspace_id, first, series.until),
        zone=_zone(),
    )


def _newest_rise(connection: Connection, board: Board) -> Told | None:
    """The last rise of the range, where it can be laid at somebody's door or is known to be nobody's."""
    found = rises(board.series.points, board.series.bucket, board.bands)
    if not found:
        return None
    rise, stream = found[-1], board.series.mailstream
    before = read_carriers(connection, here().workspace_id, rise.since - BEFORE, rise.since, mailstream=stream)
    during = read_carriers(connection, here().workspace_id, rise.since, rise.until, mailstream=stream)
    explanation = explain(before, during)
    return None if explanation is None else Told(rise=rise, explanation=explanation)
