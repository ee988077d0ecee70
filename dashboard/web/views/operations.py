"""What runs: the workers, and the inventory of mailstreams."""

from __future__ import annotations

from flask import Blueprint
from werkzeug.wrappers import Response

from dashboard.ledger.metrics import read_streams, read_workers
from dashboard.ledger.tables import Role
from dashboard.web.permissions import needs
from dashboard.web.show import show
from dashboard.web.state import database, here

blueprint = Blueprint("operations", __name__)


@blueprint.get("/operations")
@needs(Role.OPERATOR)
def page() -> Response:
    """The page; htmx asks for the tables alone."""
    with database().snapshot() as connection:
        workers = read_workers(connection)
        streams = read_streams(connection, here().workspace_id)
    return show("operations", fragment="operations_tables", workers=workers, streams=streams)
