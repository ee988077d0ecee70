"""The first page: one box that takes anything an agent has in hand."""

from __future__ import annotations

from flask import Blueprint
from werkzeug.wrappers import Response

from dashboard.ledger.lookups import recent_lookups
from dashboard.ledger.tables import Role
from dashboard.web.permissions import needs
from dashboard.web.show import show
from dashboard.web.state import database, here, me, vault

blueprint = Blueprint("investigate", __name__)


@blueprint.get("/")
@needs(Role.SUPPORT)
def home() -> Response:
    """What the box takes, and what one looked up last."""
    with database().transaction(durable=False) as connection:
        recent = recent_lookups(connection, vault(), workspace_id=here().workspace_id, user_id=me().id)
    return show("investigate", recent=recent)
