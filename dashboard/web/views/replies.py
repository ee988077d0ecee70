"""How this workspace words its replies to complaints: one for each cause, in any language."""

from __future__ import annotations

from flask import Blueprint, abort, flash, request, url_for
from werkzeug.wrappers import Response

from dashboard.insight.case import Finding
from dashboard.insight.replies import LANGUAGE, PLACEHOLDERS, REPLIES, BadReply, check_reply
from dashboard.ledger.replies import forget_reply, read_replies, save_reply
from dashboard.ledger.tables import Role
from dashboard.web import args
from dashboard.web.permissions import needs
from dashboard.web.show import go, show
from dashboard.web.state import database, here, me

blueprint = Blueprint("replies", __name__, url_prefix="/replies")


@blueprint.get("")
@needs(Role.OPERATOR)
def page() -> Response:
    """All causes with their wordings."""
    with database().transaction(durable=False) as connection:
        wordings = read_replies(connection, here().workspace_id)
    language = args.text("language", limit=20) or LANGUAGE
    return show(
        "replies",
        findings=list(Finding),
        ours=REPLIES,
        own=wordings.get(language, {}),
        language=language,
        languages=sorted({LANGUAGE, language, *wordings}),
    )


@blueprint.get("/<finding>")
@needs(Role.OPERATOR)
def one(finding: str) -> Response:
    """The wording of one cause, to change it."""
    return _page(_finding(finding), args.text("language", limit=20) or LANGUAGE)


@blueprint.post("/<finding>")
@needs(Role.OPERATOR)
def change(finding: str) -> Response:
    """Keep a wording, or go back to ours."""
    cause, language, text = _finding(finding), args.posted("language", limit=20), args.posted("text", limit=10_000)
    try:
        with database().transaction() as connection:
            who = {"workspace_id": here().workspace_id, "user_id": me().id}
            if "forget" in request.form:
                forget_reply(connection, **who, cause=cause.value, language=language)
            else:
                save_reply(connection, **who, cause=cause.value, language=language, text=check_reply(text))
    except BadReply as error:
        return _page(cause, language, trouble=str(error), text=text, status=422)
    except ValueError:
        return _page(
            cause, language, trouble="Write the language as en, de or pt-BR.", text=text, status=422
        )  # fmt: skip
    flash("Agents see the wording that comes with Sendonce again." if "forget" in request.form else "It is kept.")
    return go(url_for("replies.page", language=language))


def _finding(name: str) -> Finding:
    try:
        return Finding(name)
    except ValueError:
        abort(404)


def _page(
    finding: Finding, language: str, *, trouble: str | None = None, text: str | None = None, status: int = 200
) -> Response:
    with database().transaction(durable=False) as connection:
        own = read_replies(connection, here().workspace_id).get(language, {}).get(finding.value)
    return show(
        "reply",
        status=status,
        finding=finding,
        language=language,
        own=own,
        ours=REPLIES[finding],
        text=text if text is not None else own or (REPLIES[finding] if language == LANGUAGE else ""),
        placeholders=PLACEHOLDERS,
        trouble=trouble,
    )
