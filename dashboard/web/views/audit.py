"""What people and programs did."""

from __future__ import annotations

from flask import Blueprint, url_for
from werkzeug.wrappers import Response

from dashboard.ledger.audit import Action, list_entries
from dashboard.ledger.tables import Role
from dashboard.ledger.views import Listed, list_views
from dashboard.web import args
from dashboard.web.permissions import needs
from dashboard.web.show import show
from dashboard.web.state import database, here

blueprint = Blueprint("audit", __name__)

ROWS = 50


@blueprint.get("/audit")
@needs(Role.ADMIN)
def log() -> Response:
    """A page of the log, newest first."""
    action = args.word("action", Action)
    with database().transaction(durable=False) as connection:
        entries = list_entries(
            connection,
            here().workspace_id,
            action=action.value if action else None,
            before=args.number("before"),
            limit=ROWS,
        )
        views = list_views(connection, here().workspace_id, Listed.AUDIT)
    older = url_for("audit.log", before=entries[-1].id, action=action) if len(entries) == ROWS else None
    return show(
        "audit",
        fragment="audit_rows",
        entries=entries,
        action=action,
        actions=list(Action),
        more=older,
        views=views,
        chosen={"action": action.value} if action else {},
    )
