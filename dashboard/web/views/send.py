"""The trace of one send: what became of it, how sure that is, and every row that proves it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from flask import Blueprint, abort
from flask import Response as FlaskResponse
from werkzeug.wrappers import Response

from dashboard.identity import masked
from dashboard.insight.clocks import skew
from dashboard.insight.verdict import verdict
from dashboard.ledger import audit
from dashboard.ledger.database import Connection, database_now
from dashboard.ledger.mail_replies import read_content
from dashboard.ledger.notes import read_notes, read_ticket_url, ticket_link
from dashboard.ledger.raw_events import read_raw_event
from dashboard.ledger.search import Reading
from dashboard.ledger.tables import Right, Role
from dashboard.ledger.trace import Trace, read_address, read_message, read_trace
from dashboard.ledger.vault import Unreadable
from dashboard.web import args
from dashboard.web.formats import viewer_zone
from dashboard.web.headers import MESSAGE_POLICY
from dashboard.web.marks import line
from dashboard.web.permissions import needs
from dashboard.web.show import show
from dashboard.web.state import database, here, me, vault

blueprint = Blueprint("send", __name__, url_prefix="/sends/<uuid:send_id>")

Read = TypeVar("Read")


@blueprint.get("")
@needs(Role.SUPPORT)
def trace(send_id: UUID) -> Response:
    """The page; htmx asks for its moving part alone while the send is open."""
    return _page(send_id)


@blueprint.post("/address")
@needs(Role.SUPPORT, Right.REVEAL)
def reveal(send_id: UUID) -> Response:
    """Show the whole address, and write down who saw it."""
    with database().transaction() as connection:
        _require(connection, send_id)
        address = _opened(lambda: read_address(connection, vault(), send_id))
        _note(connection, audit.Action.REVEAL_ADDRESS, send_id)
    return _page(send_id, fragment="send_address", address=address, revealed=True)


@blueprint.get("/message")
@needs(Role.SUPPORT, Right.MESSAGES)
def message(send_id: UUID) -> Response:
    """What the recipient saw; who looked at it is written down."""
    with database().transaction() as connection:
        found = _require(connection, send_id)
        preview = _opened(lambda: read_message(connection, vault(), send_id))
        _note(connection, audit.Action.VIEW_MESSAGE, send_id)
    return show("message", trace=found, preview=preview)


@blueprint.get("/message.html")
@needs(Role.SUPPORT, Right.MESSAGES)
def message_html(send_id: UUID) -> Response:
    """The HTML part alone, for the frame of the page above: it runs nothing and fetches nothing."""
    with database().transaction() as connection:
        _require(connection, send_id)
        preview = _opened(lambda: read_message(connection, vault(), send_id))
        if preview is None or preview.html is None:
            abort(404)
        _note(connection, audit.Action.VIEW_MESSAGE, send_id)
    return FlaskResponse(
        preview.html, content_type="text/html; charset=utf-8", headers={"Content-Security-Policy": MESSAGE_POLICY}
    )


@blueprint.get("/events/<int:event>")
@needs(Role.OPERATOR, Right.REVEAL)
def raw_event(send_id: UUID, event: int) -> Response:
    """What the provider literally said; who looked at it is written down."""
    with database().transaction() as connection:
        _require(connection, send_id)
        found = _opened(lambda: read_raw_event(connection, vault(), send_id=send_id, event=event))
        if found is None:
            abort(404)
        _note(connection, audit.Action.VIEW_RAW_EVENT, send_id)
    raw = None if found.raw is None else found.raw.decode(errors="replace")
    return show("raw_event", event=found, raw=raw, send_id=send_id)


@blueprint.get("/replies/<int:reply>")
@needs(Role.SUPPORT, Right.MESSAGES)
def reply(send_id: UUID, reply: int) -> Response:
    """What somebody answered, where that is kept; who looked at it is written down."""
    with database().transaction() as connection:
        _require(connection, send_id)
        content = _opened(lambda: read_content(connection, vault(), send_id=send_id, reply=reply))
        if content is None:
            abort(404)
        _note(connection, audit.Action.VIEW_REPLY, send_id)
    return show("mail_reply", reply=content, send_id=send_id)


def _page(send_id: UUID, *, fragment: str = "send_trace", **more: Any) -> Response:
    with database().snapshot() as connection:
        found = _require(connection, send_id)
        now = database_now(connection)
        address = _opened(lambda: read_address(connection, vault(), send_id))
        notes = read_notes(connection, vault(), workspace_id=found.send.workspace_id, send_id=send_id)
        tickets = read_ticket_url(connection, found.send.workspace_id)
    judged = verdict(found, now.astimezone(viewer_zone()))
    drawn = line(found, now)
    return show(
        "send",
        fragment=fragment,
        trace=found,
        verdict=judged,
        proof=[row for row in judged.proof if row in drawn.places],
        line=drawn,
        clocks=skew(found),
        notes=[(note, ticket_link(tickets, note.ticket) if note.ticket else None) for note in notes],
        now=now,
        reading=args.word("by", Reading),
        hidden_address=masked(address) if address else None,
        **more,
    )


def _require(connection: Connection, send_id: UUID) -> Trace:
    """The send, with its neighbours in all workspaces that one may see."""
    also = [one.workspace_id for one in me().memberships if one.workspace_id != here().workspace_id]
    found = read_trace(connection, here().workspace_id, send_id, also=also)
    if found is None:
        abort(404)
    return found


def _opened(read: Callable[[], Read | None]) -> Read | None:
    try:
        return read()
    except Unreadable:
        return None  # its key is gone, which is how it is forgotten


def _note(connection: Connection, action: audit.Action, send_id: UUID) -> None:
    audit.record(connection, action, workspace_id=here().workspace_id, user_id=me().id, subject=send_id)
