"""All rows of one kind that a send has, page by page, where its trace folds them or leaves most of them out."""

from __future__ import annotations

from uuid import UUID

from flask import Blueprint, abort, url_for
from werkzeug.wrappers import Response

from dashboard.insight.timeline import single_entries
from dashboard.ledger.rows import BEGINNING, Behind, Rows, read_rows
from dashboard.ledger.tables import Role
from dashboard.ledger.trace import read_trace
from dashboard.web import args
from dashboard.web.marks import raw_events
from dashboard.web.permissions import needs
from dashboard.web.show import show
from dashboard.web.state import database, here

blueprint = Blueprint("rows", __name__)


@blueprint.get("/sends/<uuid:send_id>/rows/<any(events, moves, deliveries):kind>")
@needs(Role.SUPPORT)
def listing(send_id: UUID, kind: str) -> Response:
    """A page of them, the oldest first."""
    after = _after()
    with database().snapshot() as connection:
        trace = read_trace(connection, here().workspace_id, send_id)
        if trace is None:
            abort(404)
        page, behind = read_rows(connection, trace, Rows(kind), after=after)
    more = url_for("rows.listing", send_id=send_id, kind=kind, after=str(behind)) if behind else None
    return show(
        "rows",
        trace=page,
        kind=kind,
        entries=single_entries(page),
        raws=raw_events(page),
        more=more,
        first=after == BEGINNING,
    )


def _after() -> Behind:
    text = args.text("after")
    if text is None:
        return BEGINNING
    try:
        return Behind.read(text)
    except ValueError:
        abort(400, "This link to the next page is damaged: start from the first page.")
