"""The evidence about one send in one file, for a ticket: no address, no body, and nothing is fetched by opening it."""

from __future__ import annotations

import json
from datetime import datetime
from uuid import UUID

from flask import Blueprint, abort, make_response, render_template
from werkzeug.wrappers import Response

from dashboard.identity import discreet
from dashboard.insight.folding import Entry
from dashboard.insight.verdict import Verdict, verdict
from dashboard.ledger import audit
from dashboard.ledger.database import database_now
from dashboard.ledger.tables import Role
from dashboard.ledger.trace import Trace, read_trace
from dashboard.web.formats import iso, viewer_zone
from dashboard.web.marks import line
from dashboard.web.permissions import needs
from dashboard.web.state import database, here, me

blueprint = Blueprint("evidence", __name__)

POLICY = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""Its few rules of style are in the file itself, since it is read where Sendonce is not."""


@blueprint.get("/sends/<uuid:send_id>/evidence.html")
@needs(Role.SUPPORT)
def pack(send_id: UUID) -> Response:
    """The file; who took it is written down."""
    with database().transaction() as connection:
        trace = read_trace(connection, here().workspace_id, send_id)
        if trace is None:
            abort(404)
        now = database_now(connection)
        audit.record(
            connection,
            audit.Action.EXPORT_EVIDENCE,
            workspace_id=here().workspace_id,
            user_id=me().id,
            subject=send_id,
        )
    judged = verdict(trace, now.astimezone(viewer_zone()))
    facts = json.dumps(_facts(trace, judged, now), indent=1, ensure_ascii=True)
    page = render_template(
        "files/evidence.html",
        trace=trace,
        verdict=judged,
        marks=line(trace, now).marks,
        now=now,
        # A closing tag in a fact must not end the block that it stands in.
        facts=facts.replace("<", "\\u003c"),
    )
    response = make_response(page)
    response.headers["Content-Disposition"] = f'attachment; filename="evidence-{send_id}.html"'
    response.headers["Content-Security-Policy"] = POLICY
    return response


def _facts(trace: Trace, judged: Verdict, now: datetime) -> dict[str, object]:
    """The same for programs."""
    send = trace.send
    return {
        "send_id": str(send.id),
        "mailstream": send.mailstream,
        "key": send.key,
        "recipient_id": discreet(send.recipient_id),
        "trigger": {"type": send.trigger_type, "id": discreet(send.trigger_id)},
        "state": trace.state,
        "delivery": send.delivery,
        "provider_message_ids": trace.provider_message_ids,
        "deliveries": trace.deliveries,
        "verdict": {
            "sentence": judged.sentence,
            "cause": judged.cause.value,
            "sureness": judged.sureness.value,
            "proof": judged.proof,
        },
        "as_of": iso(now),
        "timeline": [_told(mark.entry) for mark in line(trace, now).marks],
    }


def _told(entry: Entry) -> dict[str, object]:
    told: dict[str, object] = {
        "at": iso(entry.at),
        "lane": entry.lane.value,
        "what": entry.what,
        "who": entry.who,
        "detail": entry.detail,
        "evidence": entry.evidence,
        "count": entry.count,
    }
    if entry.folded:
        told["folded"] = [_told(one) for one in entry.folded]
    return told
