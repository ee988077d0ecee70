"""Saved views: filters of a list under a name, for the whole team."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from flask import Blueprint, abort, flash, request, url_for
from werkzeug.wrappers import Response

from dashboard.ledger.access import Refused
from dashboard.ledger.audit import Action
from dashboard.ledger.tables import Role
from dashboard.ledger.views import Listed, remove_view, save_view
from dashboard.lifecycle import State, Verdict
from dashboard.web import args
from dashboard.web.permissions import may, needs
from dashboard.web.show import go
from dashboard.web.state import database, here, me

blueprint = Blueprint("saved_views", __name__)

PAGES = {Listed.SENDS: "sends.listing", Listed.AUDIT: "audit.log"}
NEEDED = {Listed.SENDS: Role.SUPPORT, Listed.AUDIT: Role.ADMIN}


@blueprint.post("/views/<any(sends, audit):listed>")
@needs(Role.SUPPORT)
def save(listed: str) -> Response:
    """Keep the filters of the page that the form stands on."""
    where = Listed(listed)
    if not may(NEEDED[where]):
        abort(403)
    filters = _filters(where)
    try:
        with database().transaction() as connection:
            save_view(
                connection,
                workspace_id=here().workspace_id,
                user_id=me().id,
                listed=where,
                name=args.posted("name"),
                filters=filters,
            )
    except Refused as refused:
        flash(str(refused), "bad")
    return go(url_for(PAGES[where], **filters))


@blueprint.post("/views/<any(sends, audit):listed>/<uuid:view_id>/remove")
@needs(Role.SUPPORT)
def remove(listed: str, view_id: UUID) -> Response:
    """Take one's own view away; an admin any."""
    with database().transaction() as connection:
        if not remove_view(
            connection,
            workspace_id=here().workspace_id,
            user_id=me().id,
            view_id=view_id,
            any_one=may(Role.ADMIN),
        ):
            abort(404)
    return go(url_for(PAGES[Listed(listed)]))


def _filters(listed: Listed) -> dict[str, Any]:
    """The filters as the list itself reads them, so that nothing else is kept."""
    given = request.form
    match listed:
        case Listed.SENDS:
            found = {
                "mailstream": args.posted("mailstream", limit=500),
                "state": args.one_of("state", given.get("state"), State),
                "verdict": args.one_of("verdict", given.get("verdict"), Verdict),
            }
        case Listed.AUDIT:
            found = {"action": args.one_of("action", given.get("action"), Action)}
    return {name: str(value) for name, value in found.items() if value}
