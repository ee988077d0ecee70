"""``POST /api/v1/investigations``: what a complaint comes from."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from flask import Blueprint, Response

from dashboard.insight.case import Complaint
from dashboard.insight.complaints import investigate
from dashboard.insight.pasted import message_ids
from dashboard.insight.replies import LANGUAGE
from dashboard.insight.told import case_of, document
from dashboard.insight.when import BadTime, read_when
from dashboard.ledger import audit
from dashboard.ledger.database import database_now
from dashboard.ledger.evidence import Question, read_evidence
from dashboard.ledger.investigations import Investigation
from dashboard.ledger.replies import read_replies
from dashboard.ledger.requests import BadRequest
from dashboard.web.api import problems, reading
from dashboard.web.api.shown import answer
from dashboard.web.permissions import by_token
from dashboard.web.state import database, vault

blueprint = Blueprint("api_investigations", __name__, url_prefix="/api/v1/investigations")
problems.install(blueprint)

FIELDS = ("who", "complaint", "when", "zone", "headers")


@blueprint.post("")
@by_token
def judge() -> Response:
    """Judge a complaint. It is a look at what was sent to a person, and so stands in the audit log."""
    token, given = reading.token(), reading.fields(FIELDS)
    with database().transaction() as connection:
        asked, now = _asked(given, database_now(connection))
        wordings = read_replies(connection, token.workspace_id).get(LANGUAGE, {})
        audit.record(
            connection, audit.Action.INVESTIGATE, workspace_id=token.workspace_id, token_id=token.id,
            detail={"complaint": asked.complaint},
        )  # fmt: skip
    around = (asked.since, asked.until) if asked.since and asked.until else None
    evidence = read_evidence(
        database(), vault(), workspace_id=token.workspace_id, question=Question(who=asked.who, around=around)
    )
    case = case_of(asked, evidence, evidence.now.astimezone(now.tzinfo))
    return answer(document(case, investigate(case), wordings))


def _asked(given: dict[str, str], now: datetime) -> tuple[Investigation, datetime]:
    """What the body says, and the time in the customer's zone. Raises BadRequest."""
    who = given.get("who", "").strip()
    if not who or len(who) > 1_000:
        raise BadRequest("who", "is needed: an address, an order or any id, of at most 1000 characters")
    if given.get("complaint") not in {one.value for one in Complaint}:
        raise BadRequest("complaint", f"must be one of: {', '.join(Complaint)}")
    try:
        now = now.astimezone(ZoneInfo(given.get("zone") or "UTC"))
    except (ValueError, OSError, KeyError):
        raise BadRequest("zone", "is not a time zone such as Europe/Berlin") from None
    try:
        around = read_when(given.get("when", ""), now)
    except BadTime as error:
        raise BadRequest("when", str(error)) from None
    since, until = around or (None, None)
    ids = message_ids(given.get("headers", ""))
    return Investigation(who=who, complaint=given["complaint"], since=since, until=until, message_ids=ids), now
