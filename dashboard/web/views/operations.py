"""What runs: the workers, and the inventory of mailstreams."""

from __future__ import annotations

from uuid import UUID

from flask import Blueprint, flash, url_for
from werkzeug.wrappers import Response

from dashboard.ledger.metrics import read_streams, read_workers
from dashboard.ledger.tables import Role
from dashboard.ledger.workers import Asked
from dashboard.ledger.workers import drain as ask_to_drain
from dashboard.web import args
from dashboard.web.permissions import needs
from dashboard.web.show import go, show
from dashboard.web.state import database, here, me

blueprint = Blueprint("operations", __name__)


@blueprint.get("/operations")
@needs(Role.OPERATOR)
def page() -> Response:
    """The page; htmx asks for the tables alone."""
    with database().snapshot() as connection:
        workers = read_workers(connection)
        streams = read_streams(connection, here().workspace_id)
    return show("operations", fragment="operations_tables", workers=workers, streams=streams)


@blueprint.post("/operations/workers/<uuid:worker_id>/drain")
@needs(Role.OPERATOR)
def drain(worker_id: UUID) -> Response:
    """Ask a worker to finish what it has in flight, and end."""
    with database().transaction() as connection:
        outcome = ask_to_drain(
            connection, workspace_id=here().workspace_id, worker_id=worker_id, user_id=me().id,
            reason=args.posted("reason"),
        )  # fmt: skip
    match outcome:
        case Asked():
            flash(f"{outcome.name} finishes what it has in flight, and ends.")
        case _:
            flash(outcome.reason)
    return go(url_for("operations.page"))
