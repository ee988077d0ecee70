"""Case notes on a send: a ticket's number, a note, or both."""

from __future__ import annotations

from uuid import UUID

from flask import Blueprint, abort, flash, url_for
from werkzeug.wrappers import Response

from dashboard.ledger.access import Refused
from dashboard.ledger.notes import add_note, remove_note
from dashboard.ledger.tables import Role
from dashboard.ledger.trace import workspace_of
from dashboard.web import args
from dashboard.web.permissions import needs
from dashboard.web.show import go
from dashboard.web.state import database, here, me, vault

blueprint = Blueprint("notes", __name__, url_prefix="/sends/<uuid:send_id>/notes")


@blueprint.post("")
@needs(Role.SUPPORT)
def add(send_id: UUID) -> Response:
    """Keep it; what cannot be kept is told on the trace."""
    with database().transaction() as connection:
        if workspace_of(connection, send_id) != here().workspace_id:
            abort(404)
        try:
            add_note(
                connection,
                vault(),
                workspace_id=here().workspace_id,
                send_id=send_id,
                user_id=me().id,
                ticket=args.posted("ticket"),
                text=args.posted("note", limit=10_000),
            )
        except Refused as refused:
            flash(str(refused), "bad")
    return go(url_for("send.trace", send_id=send_id, _anchor="notes"))


@blueprint.post("/<int:note_id>/remove")
@needs(Role.SUPPORT)
def remove(send_id: UUID, note_id: int) -> Response:
    """Take one's own note away."""
    with database().transaction() as connection:
        if not remove_note(
            connection, workspace_id=here().workspace_id, send_id=send_id, note_id=note_id, user_id=me().id
        ):
            abort(404)
    return go(url_for("send.trace", send_id=send_id, _anchor="notes"))
