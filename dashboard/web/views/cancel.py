"""Cancelling a send: what it will do, why somebody wants it, and what it did."""

from __future__ import annotations

from uuid import UUID

from flask import Blueprint, abort, flash, request, url_for
from werkzeug.wrappers import Response

from dashboard.insight.cancelling import what_a_cancel_does
from dashboard.insight.verdict import verdict
from dashboard.ledger.cancelling import Cancelled, Remembered, cancel_send
from dashboard.ledger.database import database_now
from dashboard.ledger.holds import Refused
from dashboard.ledger.tables import Role
from dashboard.ledger.trace import read_trace
from dashboard.web import args
from dashboard.web.formats import viewer_zone
from dashboard.web.permissions import needs
from dashboard.web.show import go, show
from dashboard.web.state import database, here, me

blueprint = Blueprint("cancel", __name__, url_prefix="/sends/<uuid:send_id>/cancel")

DONE = "It is cancelled and will not be submitted again."
REMEMBERED = "A call is running. If it is taken, the cancel comes too late; if not, the send becomes cancelled."


@blueprint.get("")
@needs(Role.OPERATOR)
def form(send_id: UUID) -> Response:
    """What cancelling would do now, and the form."""
    return _page(send_id)


@blueprint.post("")
@needs(Role.OPERATOR)
def carry_out(send_id: UUID) -> Response:
    """Cancel it, or have it remembered; what meanwhile came to its end is told."""
    with database().transaction() as connection:
        found = read_trace(connection, here().workspace_id, send_id)
        if found is None:
            abort(404)
        if found.open_hold is not None:  # its evidence is on another page
            return go(url_for("held.one", send_id=send_id))
        outcome = cancel_send(
            connection,
            workspace_id=here().workspace_id,
            send_id=send_id,
            user_id=me().id,
            reason=args.posted("reason"),
        )
    match outcome:
        case Cancelled():
            flash(DONE)
        case Remembered():
            flash(REMEMBERED)
        case Refused():
            return _page(send_id, trouble=outcome.reason, status=409)
    return go(url_for("send.trace", send_id=send_id))


def _page(send_id: UUID, *, trouble: str | None = None, status: int = 200) -> Response:
    with database().snapshot() as connection:
        trace = read_trace(connection, here().workspace_id, send_id)
        if trace is None:
            abort(404)
        now = database_now(connection).astimezone(viewer_zone())
    if trace.open_hold is not None:
        return go(url_for("held.one", send_id=send_id))
    return show(
        "cancel",
        status=status,
        trace=trace,
        verdict=verdict(trace, now),
        consequence=what_a_cancel_does(trace, now) if trace.work else None,
        trouble=trouble,
        reason=request.form.get("reason", ""),
    )
