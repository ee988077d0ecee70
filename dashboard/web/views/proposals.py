"""Decisions about many held sends: the preview, the reason, the second person, and what came of each send."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

from flask import Blueprint, abort, flash, request, url_for
from werkzeug.wrappers import Response

from dashboard.insight.odds import odds
from dashboard.ledger import proposals
from dashboard.ledger.alike import read_alike, read_failures
from dashboard.ledger.holds import HoldFilter, Refused
from dashboard.ledger.proposals import Pick, Proposal
from dashboard.ledger.tables import Role, Stage
from dashboard.lifecycle import Decision
from dashboard.web import args
from dashboard.web.permissions import needs
from dashboard.web.show import go, show
from dashboard.web.state import database, here, me

blueprint = Blueprint("proposals", __name__, url_prefix="/held/proposals")

ROWS = 100
WAYS = 6
"""So many ways of failing are shown with their odds."""


@blueprint.get("")
@needs(Role.OPERATOR)
def listing() -> Response:
    """The newest, with what came of them."""
    with database().snapshot() as connection:
        found = proposals.list_proposals(connection, here().workspace_id, limit=50)
    return show("proposals", proposals=found)


@blueprint.post("")
@needs(Role.OPERATOR)
def preview() -> Response:
    """Name the sends that were picked, or all that fit the filters; nothing is decided yet."""
    try:
        decision = Decision(args.posted("decision"))
    except ValueError:
        return _back("Choose what is to become of them.")
    picks = [_pick(text) for text in request.form.getlist("pick")[:ROWS]]
    if args.posted("which") == "picked" and not picks:
        return _back("Select the sends first.")
    chosen = _filters() if args.posted("which") == "all" else picks
    with database().transaction() as connection:
        made = proposals.preview(
            connection, workspace_id=here().workspace_id, user_id=me().id, decision=decision, chosen=chosen
        )
    match made:
        case Refused():
            return _back(made.reason)
        case Proposal():
            return go(url_for("proposals.one", proposal_id=made.id))


@blueprint.get("/<uuid:proposal_id>")
@needs(Role.OPERATOR)
def one(proposal_id: UUID) -> Response:
    """How far it has come, and what one may do about it."""
    return _page(proposal_id)


@blueprint.post("/<uuid:proposal_id>")
@needs(Role.OPERATOR)
def answer(proposal_id: UUID) -> Response:
    """Decide a preview, or, as the second person, agree or decline."""
    given: dict[str, Any] = {"workspace_id": here().workspace_id, "proposal_id": proposal_id, "user_id": me().id}
    with database().transaction() as connection:
        match args.posted("act"):
            case "propose":
                outcome = proposals.propose(connection, reason=args.posted("reason"), **given)
            case "agree":
                outcome = proposals.agree(connection, **given)
            case "decline":
                outcome = proposals.decline(connection, reason=args.posted("reason"), **given)
            case _:
                abort(400, "This form is damaged: open the page again, then decide.")
    if isinstance(outcome, Refused):
        return _page(proposal_id, trouble=outcome.reason, status=409)
    return go(url_for("proposals.one", proposal_id=proposal_id))


def _page(proposal_id: UUID, *, trouble: str | None = None, status: int = 200) -> Response:
    refused, after = request.args.get("only") == "refused", _after()
    with database().snapshot() as connection:
        found = proposals.read_proposal(connection, here().workspace_id, proposal_id)
        if found is None or (found.stage is Stage.PREVIEW and found.user_id != me().id):
            abort(404)
        progress = proposals.read_progress(connection, proposal_id)
        rows = proposals.read_outcomes(connection, proposal_id, refused=refused, after=after, limit=ROWS + 1)
        undecided = found.stage in (Stage.PREVIEW, Stage.WAITING)
        failures = read_failures(connection, proposals.sends_of(connection, proposal_id)) if undecided else []
        alike = [
            (failure, number, odds(read_alike(connection, here().workspace_id, failure)))
            for failure, number in failures[:WAYS]
        ]
    more: dict[str, Any] = {"only": "refused"} if refused else {}
    return show(
        "proposal",
        fragment="proposal_state",
        status=status,
        proposal=found,
        mine=found.user_id == me().id,
        progress=progress,
        rows=rows[:ROWS],
        more=url_for("proposals.one", proposal_id=proposal_id, after=rows[ROWS - 1].send_id, **more)
        if len(rows) > ROWS
        else None,
        only_refused=refused,
        alike=alike,
        ways=len(failures),
        Stage=Stage,
        Decision=Decision,
        trouble=trouble,
        reason=request.form.get("reason", ""),
    )


def _back(trouble: str) -> Response:
    flash(trouble)
    filters = _filters()
    return go(url_for("held.queue", **{name: getattr(filters, name) for name in filters.__slots__}))


def _filters() -> HoldFilter:
    given = {name: args.posted(name, limit=500) or None for name in HoldFilter.__slots__}
    return HoldFilter(**given)


def _pick(text: str) -> Pick:
    if not re.fullmatch(r"[0-9]{1,18}~[0-9]{1,9}", text):
        abort(400, "This form is damaged: open the page again, then decide.")
    hold_id, _, evidence = text.partition("~")
    return Pick(int(hold_id), int(evidence))


def _after() -> UUID | None:
    text = args.text("after")
    try:
        return UUID(text) if text else None
    except ValueError:
        abort(400, "This link to the next page is damaged: start from the first page.")
