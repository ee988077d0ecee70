"""Suspected duplicate intents: the same content to the same recipient under two keys."""

from __future__ import annotations

from datetime import datetime

from flask import Blueprint, abort, url_for
from werkzeug.wrappers import Response

from dashboard.ledger.suspects import APART, LOOKED_AT, read_suspects
from dashboard.ledger.tables import Role
from dashboard.web import args
from dashboard.web.permissions import needs
from dashboard.web.show import show
from dashboard.web.state import database, here

blueprint = Blueprint("suspects", __name__, url_prefix="/operations/suspects")

ROWS = 50


@blueprint.get("")
@needs(Role.OPERATOR)
def listing() -> Response:
    """The newest pairs."""
    before = _before()
    with database().transaction(durable=False) as connection:
        found = read_suspects(connection, here().workspace_id, before=before, limit=ROWS)
    last = found[-1].later.recorded_at.isoformat() if len(found) == ROWS else None
    return show(
        "suspects", suspects=found, apart=APART, looked_at=LOOKED_AT, first=before is None,
        more=url_for("suspects.listing", before=last) if last else None,
    )  # fmt: skip


def _before() -> datetime | None:
    text = args.text("before")
    try:
        moment = datetime.fromisoformat(text) if text else None
    except ValueError:
        abort(400, "before is a time such as 2026-11-30T12:00:00+00:00.")
    if moment is not None and moment.tzinfo is None:
        abort(400, "before needs its zone, such as 2026-11-30T12:00:00+00:00.")
    return moment
