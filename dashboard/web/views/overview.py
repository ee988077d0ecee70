"""How it goes: figures of this moment and charts over a range, live."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum

from flask import Blueprint, jsonify, request
from werkzeug.wrappers import Response

from dashboard.insight.charts import Chart, charts
from dashboard.ledger.metrics import Series, read_gauges, read_series, read_streams
from dashboard.ledger.tables import Role
from dashboard.web import args
from dashboard.web.permissions import needs
from dashboard.web.show import show
from dashboard.web.state import database, here

blueprint = Blueprint("overview", __name__, url_prefix="/overview")


class Range(StrEnum):
    """How far back the charts go."""

    HOUR = "1h"
    DAY = "24h"
    WEEK = "7d"


SPANS = {Range.HOUR: timedelta(hours=1), Range.DAY: timedelta(days=1), Range.WEEK: timedelta(days=7)}


@blueprint.get("")
@needs(Role.SUPPORT)
def page() -> Response:
    """The page; htmx asks for the figures and tables alone, every few seconds."""
    with database().snapshot() as connection:
        gauges = read_gauges(connection, here().workspace_id)
        streams = [stream.name for stream in read_streams(connection, here().workspace_id)]
        series = _series(connection)
    return show(
        "overview",
        fragment="overview_figures",
        gauges=gauges,
        series=series,
        charts=charts(series),
        streams=streams,
        range=_range(),
        ranges=list(Range),
        mailstream=args.text("mailstream"),
        query=request.query_string.decode(),
    )


@blueprint.get("/figures")
@needs(Role.SUPPORT)
def figures() -> Response:
    """The figures of the charts, for Plotly."""
    with database().snapshot() as connection:
        series = _series(connection)
    made: list[Chart] = charts(series)
    answer: Response = jsonify({chart.name: chart.figure for chart in made})
    return answer


def _range() -> Range:
    return args.word("range", Range) or Range.HOUR


def _series(connection: object) -> Series:
    until = (datetime.now(UTC) + timedelta(minutes=1)).replace(second=0, microsecond=0)
    return read_series(
        connection,  # type: ignore[arg-type]
        here().workspace_id,
        until - SPANS[_range()],
        until,
        mailstream=args.text("mailstream"),
    )
