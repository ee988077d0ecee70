"""``/api/v1/held``: what only a person may decide, for programs that act for one."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from flask import Blueprint, Response

from dashboard.insight.odds import odds
from dashboard.ledger import holds, proposals
from dashboard.ledger.alike import read_alike, read_failures
from dashboard.ledger.database import Connection
from dashboard.ledger.holds import Decided, HoldFilter, OpenHold, Refused
from dashboard.ledger.proposals import Pick, Proposal
from dashboard.ledger.requests import BadRequest
from dashboard.ledger.tables import Stage
from dashboard.ledger.trace import workspace_of
from dashboard.lifecycle import Decision
from dashboard.web.api import problems, reading
from dashboard.web.api.problems import Problem
from dashboard.web.api.reading import Operator
from dashboard.web.api.shown import answer, iso
from dashboard.web.permissions import by_token
from dashboard.web.state import database

blueprint = Blueprint("api_held", __name__, url_prefix="/api/v1/held")
problems.install(blueprint)

ROWS = 200
MAX_PICKS = 1_000
WAYS = 10


@blueprint.get("")
@by_token
def listing() -> Response:
    """Held sends that fit the filters, the longest-waiting first."""
    who = reading.operator()
    filters = HoldFilter(**{name: reading.query_text(name) for name in HoldFilter.__slots__})
    with database().snapshot() as connection:
        found = holds.open_holds(
            connection, who.workspace_id, filters=filters, after=reading.cursor("after"), limit=ROWS + 1
        )
    last = found[ROWS - 1] if len(found) > ROWS else None
    return answer(
        {"held": [_hold(hold) for hold in found[:ROWS]], "next": last and f"{iso(last.opened_at)}~{last.hold_id}"}
    )


@blueprint.get("/<string:id>")
@by_token
def one(id: str) -> Response:
    """One held send, with how earlier attempts that failed like it turned out."""
    who, send_id = reading.operator(), reading.send_id(id)
    with database().snapshot() as connection:
        hold = _require(connection, who, send_id)
        alike = _alike(connection, who, [send_id])
    return answer({**_hold(hold), "alike": alike})


@blueprint.post("/<string:id>")
@by_token
def decide(id: str) -> Response:
    """Decide it, or propose the decision where a second person has to agree."""
    who, send_id = reading.operator(), reading.send_id(id)
    raw = reading.members("decision", "reason", "hold", "evidence")
    with database().transaction() as connection:
        if workspace_of(connection, send_id) != who.workspace_id:
            raise _not_held()
        outcome = proposals.decide_or_propose(
            connection, workspace_id=who.workspace_id, send_id=send_id, user_id=who.user_id,
            decision=reading.one_of(raw, "decision", Decision), reason=reading.reason_of(raw),
            hold_id=reading.number_of(raw, "hold"), evidence=reading.number_of(raw, "evidence"),
        )  # fmt: skip
    match outcome:
        case Decided():
            return answer({"id": str(send_id), "state": outcome.state.value})
        case Proposal():
            return answer(_proposal(outcome), 202)
        case Refused():
            raise Problem("refused", outcome.reason, send_id=str(send_id))


@blueprint.post("/proposals")
@by_token
def preview() -> Response:
    """Name the sends that a decision would be about; nothing is decided yet."""
    who = reading.operator()
    raw = reading.members("decision", "filters", "holds", limit=200_000)
    with database().transaction() as connection:
        made = _made(
            proposals.preview(
                connection, workspace_id=who.workspace_id, user_id=who.user_id,
                decision=reading.one_of(raw, "decision", Decision), chosen=_chosen(raw),
            )
        )  # fmt: skip
        alike = _alike(connection, who, proposals.sends_of(connection, made.id))
    return answer({**_proposal(made), "alike": alike}, 201, Location=f"/api/v1/held/proposals/{made.id}")


@blueprint.get("/proposals")
@by_token
def list_proposals() -> Response:
    """The newest that were more than a preview."""
    who = reading.operator()
    with database().snapshot() as connection:
        found = proposals.list_proposals(connection, who.workspace_id, limit=50)
    return answer({"proposals": [_proposal(made) for made in found]})


@blueprint.get("/proposals/<string:id>")
@by_token
def proposal(id: str) -> Response:
    """How far it has come, and what came of each send, in the order of their ids."""
    who, proposal_id = reading.operator(), _id(id)
    after = reading.query_text("after")
    with database().snapshot() as connection:
        found = proposals.read_proposal(connection, who.workspace_id, proposal_id)
        if found is None or (found.stage is Stage.PREVIEW and found.user_id != who.user_id):
            raise Problem("not-found", proposals.NO_SUCH_PROPOSAL)
        progress = proposals.read_progress(connection, proposal_id)
        rows = proposals.read_outcomes(connection, proposal_id, after=_id(after) if after else None, limit=ROWS + 1)
    sends = [
        {
            "id": str(row.send_id), "key": row.key, "mailstream": row.mailstream, "refused": row.refused,
            "decided_at": row.decided_at and iso(row.decided_at),
        }
        for row in rows[:ROWS]
    ]  # fmt: skip
    more = str(rows[ROWS - 1].send_id) if len(rows) > ROWS else None
    return answer({**_proposal(found), "progress": asdict(progress), "outcomes": sends, "next": more})


@blueprint.post("/proposals/<string:id>/propose")
@by_token
def propose(id: str) -> Response:
    """Decide what was previewed."""
    who, reason = reading.operator(), reading.reason()
    with database().transaction() as connection:
        made = proposals.propose(
            connection, workspace_id=who.workspace_id, proposal_id=_id(id), user_id=who.user_id, reason=reason
        )
    return answer(_proposal(_made(made)), 202)


@blueprint.post("/proposals/<string:id>/agree")
@by_token
def agree(id: str) -> Response:
    """Agree, as the second person."""
    who = reading.operator()
    with database().transaction() as connection:
        made = proposals.agree(connection, workspace_id=who.workspace_id, proposal_id=_id(id), user_id=who.user_id)
    return answer(_proposal(_made(made)), 202)


@blueprint.post("/proposals/<string:id>/decline")
@by_token
def decline(id: str) -> Response:
    """Do not agree; one's own is withdrawn."""
    who, reason = reading.operator(), reading.reason()
    with database().transaction() as connection:
        made = proposals.decline(
            connection, workspace_id=who.workspace_id, proposal_id=_id(id), user_id=who.user_id, reason=reason
        )
    return answer(_proposal(_made(made)))


# ── reading and showing ──────────────────────────────────────────────────────────────────────────────────────────────


def _require(connection: Connection, who: Operator, send_id: UUID) -> OpenHold:
    hold = holds.hold_of_send(connection, who.workspace_id, send_id)
    if hold is None:
        raise _not_held()
    return hold


def _not_held() -> Problem:
    return Problem("not-found", "The workspace of this token holds no send of this id.")


def _made(outcome: Proposal | Refused) -> Proposal:
    if isinstance(outcome, Proposal):
        return outcome
    if outcome.reason == proposals.NO_SUCH_PROPOSAL:
        raise Problem("not-found", outcome.reason)
    raise Problem("refused", outcome.reason)


def _chosen(raw: dict[str, Any]) -> HoldFilter | list[Pick]:
    if ("filters" in raw) == ("holds" in raw):
        raise BadRequest("filters", "or holds is needed: all that fit, or those that are named")
    if "filters" in raw:
        given = raw["filters"]
        if not isinstance(given, dict) or given.keys() - set(HoldFilter.__slots__):
            raise BadRequest("filters", f"must be an object of any of: {', '.join(HoldFilter.__slots__)}")
        if not all(isinstance(value, str) and value and "\0" not in value for value in given.values()):
            raise BadRequest("filters", "each must be text")
        return HoldFilter(**given)
    named = raw["holds"]
    if not isinstance(named, list) or not 0 < len(named) <= MAX_PICKS:
        raise BadRequest("holds", f"must be a list of 1 to {MAX_PICKS}")
    if not all(isinstance(one, dict) and one.keys() == {"hold", "evidence"} for one in named):
        raise BadRequest("holds", 'must have the form {"hold": …, "evidence": …}, as they were listed')
    return [Pick(reading.number_of(one, "hold"), reading.number_of(one, "evidence")) for one in named]


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Problem("not-found", proposals.NO_SUCH_PROPOSAL) from None


def _alike(connection: Connection, who: Operator, sends: list[UUID]) -> list[dict[str, Any]]:
    return [
        {**asdict(failure), "sends": number, "odds": (told := odds(read_alike(connection, who.workspace_id, failure)))
         and asdict(told)}
        for failure, number in read_failures(connection, sends)[:WAYS]
    ]  # fmt: skip


def _time(at: datetime | None) -> str | None:
    return None if at is None else iso(at)


def _hold(hold: OpenHold) -> dict[str, Any]:
    return {
        "id": str(hold.send_id), "hold": hold.hold_id, "evidence": hold.evidence, "mailstream": hold.mailstream,
        "key": hold.key, "account": hold.account, "provider": hold.provider, "reason": str(hold.reason),
        "held_since": iso(hold.opened_at), "attempts": hold.attempts, "together": hold.together,
        "failure": hold.error_class,
        "phase": hold.phase, "last_attempt_at": _time(hold.last_attempt_at),
        "may_still_run_until": _time(hold.settled_after), "key_protects_until": _time(hold.key_protects_until),
        "useful_until": _time(hold.useful_until), "waives": hold.waives, "second_person": hold.second_person,
        "choices": [str(choice) for choice in hold.choices],
    }  # fmt: skip


def _proposal(made: Proposal) -> dict[str, Any]:
    return {
        "id": str(made.id), "stage": str(made.stage), "decision": str(made.decision), "filters": made.filters,
        "sends": made.sends, "left_out": made.left_out, "mailstreams": made.mailstreams, "person": made.person,
        "reason": made.reason, "second_person": made.second_person, "answered_by": made.answered_by,
        "answer": made.answer, "proposed_at": _time(made.proposed_at), "expires_at": iso(made.expires_at),
        "ended_at": _time(made.ended_at),
    }  # fmt: skip
