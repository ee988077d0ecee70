"""Held sends: what only a person may decide, the evidence for it, and the decision."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from uuid import UUID

from flask import Blueprint, abort, flash, request, url_for
from werkzeug.wrappers import Response

from dashboard.insight.judging import tells_events
from dashboard.insight.odds import odds
from dashboard.insight.verdict import verdict
from dashboard.ledger.alike import read_alike, read_failures
from dashboard.ledger.database import database_now
from dashboard.ledger.holds import Decided, HoldFilter, OpenHold, Refused, open_holds, read_holds, read_incidents
from dashboard.ledger.proposals import MOST, Proposal, decide_or_propose, list_proposals
from dashboard.ledger.tables import Role
from dashboard.ledger.trace import read_trace
from dashboard.lifecycle import Decision, Reason
from dashboard.providers import PROVIDERS
from dashboard.web import args
from dashboard.web.formats import viewer_zone
from dashboard.web.permissions import needs
from dashboard.web.show import go, show, wants_fragment
from dashboard.web.state import database, here, me

blueprint = Blueprint("held", __name__, url_prefix="/held")

ROWS = 50
DAMAGED_FORM = "This form is damaged: open the page again, then decide."
DAMAGED_LINK = "This link to the next page is damaged: start from the first page."
DONE = {
    Decision.RESEND: "It will be submitted again as soon as a worker is free.",
    Decision.MARK_ACCEPTED: "It counts as accepted and will not be submitted again.",
    Decision.CANCEL: "It is cancelled and will not be submitted again.",
}


@blueprint.get("")
@needs(Role.OPERATOR)
def queue() -> Response:
    """What waits for a decision, the longest-waiting first; htmx asks for the rows alone."""
    after, filters = _cursor(), read_filters()
    workspace_id = here().workspace_id
    with database().snapshot() as connection:
        holds = open_holds(connection, workspace_id, filters=filters, after=after, limit=ROWS + 1)
        now = database_now(connection)
        incidents = [] if wants_fragment() else read_incidents(connection, workspace_id)
        under_way = (
            [] if wants_fragment() else [one for one in list_proposals(connection, workspace_id) if one.under_way]
        )
    shown = holds[:ROWS]
    chosen = {name: value for name, value in asdict(filters).items() if value}
    last = f"{shown[-1].opened_at.isoformat()}~{shown[-1].hold_id}" if len(holds) > ROWS else None
    more = url_for("held.queue", after=last, **chosen) if last else None
    return show(
        "held",
        fragment="held_rows",
        holds=shown,
        now=now,
        more=more,
        first=after is None,
        chosen=chosen,
        incidents=incidents,
        under_way=under_way,
        Decision=Decision,
        most=MOST,
    )


def read_filters() -> HoldFilter:
    """The filters of the URL."""
    reason = args.word("reason", Reason)
    return HoldFilter(
        mailstream=args.text("mailstream"), account=args.text("account"), reason=reason and reason.value,
        failure=args.text("failure"),
    )  # fmt: skip


@blueprint.get("/<uuid:send_id>")
@needs(Role.OPERATOR)
def one(send_id: UUID) -> Response:
    """The evidence about one held send, and what may be decided."""
    return _page(send_id)


@blueprint.post("/<uuid:send_id>")
@needs(Role.OPERATOR)
def settle(send_id: UUID) -> Response:
    """Carry out a decision. Of two people at once the second is told."""
    try:
        decision = Decision(args.posted("decision"))
    except ValueError:
        return _page(send_id, trouble="Choose what is to become of it.", status=422)
    hold_id, evidence = (args.whole(args.posted(name, limit=18), DAMAGED_FORM) for name in ("hold_id", "evidence"))
    with database().transaction() as connection:
        outcome = decide_or_propose(
            connection,
            workspace_id=here().workspace_id,
            send_id=send_id,
            hold_id=hold_id,
            user_id=me().id,
            decision=decision,
            reason=args.posted("reason"),
            evidence=evidence,
        )
    match outcome:
        case Decided():
            flash(DONE[decision])
            return go(url_for("send.trace", send_id=outcome.send_id))
        case Proposal():
            return go(url_for("proposals.one", proposal_id=outcome.id))
        case Refused():
            return _page(send_id, trouble=outcome.reason, status=409)


def _page(send_id: UUID, *, trouble: str | None = None, status: int = 200) -> Response:
    with database().snapshot() as connection:
        trace = read_trace(connection, here().workspace_id, send_id)
        if trace is None:
            abort(404)
        hold: OpenHold | None = None
        if trace.open_hold is not None:
            hold_id = trace.open_hold.id
            hold = read_holds(connection, here().workspace_id, [hold_id]).get(hold_id)
        now = database_now(connection)
        failures = read_failures(connection, [send_id]) if hold else []
        alike = [(failure, odds(read_alike(connection, here().workspace_id, failure))) for failure, _ in failures]
    return show(
        "held_one",
        status=status,
        trace=trace,
        tells_events=tells_events(trace),
        hold=hold,
        alike=alike,
        offers=next((one.capabilities({}) for one in PROVIDERS if hold and one.name == hold.provider), None),
        verdict=verdict(trace, now.astimezone(viewer_zone())),
        now=now,
        trouble=trouble,
        newer=[near for near in trace.neighbours if near.recorded_at > trace.send.recorded_at],
        Decision=Decision,
        chosen=request.form.get("decision"),
        reason=request.form.get("reason", ""),
    )


def _cursor() -> tuple[datetime, int] | None:
    text = args.text("after")
    if text is None:
        return None
    at, _, hold_id = text.partition("~")
    try:
        opened_at = datetime.fromisoformat(at)
    except ValueError:
        abort(400, DAMAGED_LINK)
    if opened_at.tzinfo is None:
        abort(400, DAMAGED_LINK)
    return opened_at, args.whole(hold_id, DAMAGED_LINK)
