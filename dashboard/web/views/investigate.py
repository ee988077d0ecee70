"""A complaint, from what the customer says to the answer: the first page, and what an agent works with all day."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from flask import Blueprint, abort, jsonify, request, url_for
from werkzeug.wrappers import Response

from dashboard.insight.case import Answer, Case, Complaint
from dashboard.insight.complaints import investigate, not_looked_into
from dashboard.insight.pasted import message_ids
from dashboard.insight.replies import LANGUAGE, reply
from dashboard.insight.told import case_of, document, facts, sides
from dashboard.insight.when import EXAMPLES, BadTime, read_when
from dashboard.ledger.evidence import Question, read_evidence
from dashboard.ledger.investigations import (
    Filed,
    Investigation,
    read_investigation,
    recent_investigations,
    save_investigation,
)
from dashboard.ledger.lookups import Lookup, recent_lookups
from dashboard.ledger.replies import read_replies
from dashboard.ledger.tables import Role
from dashboard.web import args
from dashboard.web.formats import viewer_zone
from dashboard.web.permissions import needs
from dashboard.web.show import go, show
from dashboard.web.state import database, ground, here, me, vault

blueprint = Blueprint("investigate", __name__)

COMPLAINTS = {
    Complaint.TWICE: "I got it twice",
    Complaint.NEVER: "I never got it",
    Complaint.LATE: "It came late",
    Complaint.UNWANTED: "I did not want it",
}
"""What customers say, in the order in which they say it most."""


@blueprint.get("/")
@needs(Role.SUPPORT)
def home() -> Response:
    """What a customer may complain about, and what one looked into last; ``?again=`` fills in an earlier question."""
    again = args.text("again", limit=64)
    return _form(_read(again).asked if again else None)


@blueprint.post("/investigations")
@needs(Role.SUPPORT)
def ask() -> Response:
    """File a complaint; what was typed reaches no URL."""
    try:
        asked = _asked()
    except ValueError as error:
        return _form(None, trouble=str(error), status=422)
    with database().transaction(durable=False) as connection:
        id = save_investigation(
            connection, vault(), workspace_id=here().workspace_id, user_id=me().id, asked=asked
        )  # fmt: skip
    return go(url_for("investigate.answer", id=id))


@blueprint.get("/investigations/<id>")
@needs(Role.SUPPORT)
def answer(id: str) -> Response:
    """The answer as things stand now: a link that may be passed on, and a page that may be printed."""
    filed = _read(id)
    if filed.asked is None:
        abort(410, "What was asked here can no longer be read: the key it was encrypted with is gone.")
    case, found = _judged(filed.asked)
    wordings = _wordings(found)
    language = args.text("language", limit=20) or LANGUAGE
    if language not in wordings:
        abort(404)
    return show(
        "complaint",
        filed=filed,
        link=f"{ground().settings.public_url}{url_for('investigate.answer', id=id)}",
        case=case,
        answer=found,
        complaints=COMPLAINTS,
        who=Lookup(id, filed.asked.who, filed.at).shown,
        reply=reply(found, case.now, wordings[language]),
        language=language,
        languages=list(wordings),
        facts=facts(case, found),
        keys={trace.send.id: trace.send.key for trace in case.evidence.traces},
        sides=sides(case),
        open=not_looked_into(case.complaint),
    )


@blueprint.get("/investigations/<id>.json")
@needs(Role.SUPPORT)
def facts_as_json(id: str) -> Response:
    """The same for programs."""
    filed = _read(id)
    if filed.asked is None:
        abort(410)
    case, found = _judged(filed.asked)
    told: Response = jsonify(document(case, found, _wordings(found)[LANGUAGE]))
    return told


def _asked() -> Investigation:
    """What the form says. Raises ValueError with what to mend."""
    who = args.posted("who", limit=1_000)
    if not who:
        raise ValueError("Say whom it is about: an address, an order, or whatever else you have in hand.")
    try:
        complaint = Complaint(args.posted("complaint", limit=20))
    except ValueError:
        raise ValueError("Choose what the customer says.") from None
    zone = _zone(args.posted("zone", limit=64))
    when = args.posted("when", limit=100)
    try:
        around = read_when(when, datetime.now(UTC).astimezone(zone))
    except BadTime:
        raise ValueError(f"“When” is not understood. Write it like one of these: {EXAMPLES}.") from None
    since, until = around or (None, None)
    return Investigation(
        who=who, complaint=complaint.value, when=when, since=since, until=until, zone=zone.key,
        message_ids=message_ids(args.posted("headers", limit=100_000)),
    )  # fmt: skip


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name or str(viewer_zone()))
    except (ValueError, OSError, KeyError):
        raise ValueError("This time zone is not known. Write it like Europe/Berlin or America/New_York.") from None


def _form(asked: Investigation | None, *, trouble: str | None = None, status: int = 200) -> Response:
    with database().transaction(durable=False) as connection:
        searched = recent_lookups(connection, vault(), workspace_id=here().workspace_id, user_id=me().id)
        looked_into = recent_investigations(connection, vault(), workspace_id=here().workspace_id, user_id=me().id)
    given = {name: getattr(asked, name) for name in ("who", "complaint", "when", "zone")} if asked else request.form
    return show(
        "investigate",
        status=status,
        complaints=COMPLAINTS,
        given=given,
        trouble=trouble,
        searched=searched,
        looked_into=[(one, Lookup(one.id, one.asked.who if one.asked else None, one.at).shown) for one in looked_into],
    )


def _read(id: str) -> Filed:
    with database().transaction(durable=False) as connection:
        filed = read_investigation(connection, vault(), workspace_id=here().workspace_id, id=id)
    return filed or abort(404)


def _judged(asked: Investigation) -> tuple[Case, Answer]:
    around = (asked.since, asked.until) if asked.since and asked.until else None
    evidence = read_evidence(
        database(),
        vault(),
        workspace_id=here().workspace_id,
        also=[one.workspace_id for one in me().memberships if one.workspace_id != here().workspace_id],
        question=Question(who=asked.who, around=around),
    )
    case = case_of(asked, evidence, evidence.now.astimezone(ZoneInfo(asked.zone)))
    return case, investigate(case)


def _wordings(answer: Answer) -> dict[str, dict[str, str]]:
    """The wordings by the languages in which this answer is worded; ours is one of them in any case."""
    with database().transaction(durable=False) as connection:
        own = read_replies(connection, here().workspace_id)
    worded = {language: by_cause for language, by_cause in own.items() if answer.finding.value in by_cause}
    return {LANGUAGE: {}, **worded}
