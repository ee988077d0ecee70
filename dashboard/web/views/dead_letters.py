"""Dead letters: what could not be taken, queued again once mended, or let go of. What they hold is never shown."""

from __future__ import annotations

from datetime import datetime

from flask import Blueprint, abort, flash, url_for
from werkzeug.wrappers import Response

from dashboard.ledger import dead_letters as letters
from dashboard.ledger.dead_letters import Discarded, Requeued
from dashboard.ledger.holds import Refused
from dashboard.ledger.tables import Role
from dashboard.web import args
from dashboard.web.permissions import needs
from dashboard.web.show import go, show
from dashboard.web.state import database, here, me, vault

blueprint = Blueprint("dead_letters", __name__, url_prefix="/operations/dead-letters")

ROWS = 50


@blueprint.get("")
@needs(Role.OPERATOR)
def listing() -> Response:
    """What waits for a person, the oldest first."""
    after = _after()
    with database().snapshot() as connection:
        found = letters.list_letters(connection, here().workspace_id, after=after, limit=ROWS + 1)
    shown = found[:ROWS]
    last = f"{shown[-1].at.isoformat()}~{shown[-1].id}" if len(found) > ROWS else None
    more = url_for("dead_letters.listing", after=last) if last else None
    return show("dead_letters", letters=shown, more=more, first=after is None)


@blueprint.post("/<int:number>/requeue")
@needs(Role.OPERATOR)
def requeue(number: int) -> Response:
    """Put a request back into the outbox, where it would be taken now."""
    with database().transaction() as connection:
        outcome = letters.requeue(
            connection, vault(), workspace_id=here().workspace_id, letter_id=number, user_id=me().id,
            reason=args.posted("reason"),
        )  # fmt: skip
    match outcome:
        case Requeued():
            flash(f"Dead letter {number} is queued again, as send {outcome.send_id}.")
        case Refused():
            _left_alone(number, outcome)
    return go(url_for("dead_letters.listing"))


@blueprint.post("/<int:number>/discard")
@needs(Role.OPERATOR)
def discard(number: int) -> Response:
    """Let go of what it holds; that it was there stays on record."""
    with database().transaction() as connection:
        outcome = letters.discard(
            connection, workspace_id=here().workspace_id, letter_id=number, user_id=me().id,
            reason=args.posted("reason"),
        )  # fmt: skip
    match outcome:
        case Discarded():
            flash(f"Dead letter {number} is discarded.")
        case Refused():
            _left_alone(number, outcome)
    return go(url_for("dead_letters.listing"))


def _left_alone(number: int, outcome: Refused) -> None:
    if outcome.reason == letters.NO_SUCH_LETTER:
        abort(404)
    flash(f"Dead letter {number} is left alone. {outcome.reason}")


def _after() -> tuple[datetime, int] | None:
    text = args.text("after")
    if text is None:
        return None
    damaged = "This link to the next page is damaged: start from the first page."
    at, _, number = text.partition("~")
    try:
        moment = datetime.fromisoformat(at)
    except ValueError:
        abort(400, damaged)
    if moment.tzinfo is None:
        abort(400, damaged)
    return moment, args.whole(number, damaged)
