"""What runs: the workers, and the inventory of mailstreams."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from flask import Blueprint, abort, flash, url_for
from werkzeug.wrappers import Response

from dashboard.ledger.access import operates_everywhere
from dashboard.ledger.holds import Refused
from dashboard.ledger.metrics import read_streams, read_workers
from dashboard.ledger.streams import pause_by_person, pause_workspace, read_pause, resume_by_person, resume_workspace
from dashboard.ledger.tables import Role
from dashboard.ledger.workers import FOR_ALL, Asked
from dashboard.ledger.workers import drain as ask_to_drain
from dashboard.web import args
from dashboard.web.pausing import pause, resume
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
        may_drain = operates_everywhere(connection, me().id)
        stopped = read_pause(connection, here().workspace_id)
    return show(
        "operations", fragment="operations_tables", workers=workers, streams=streams, may_drain=may_drain,
        stopped=stopped,
    )  # fmt: skip


@blueprint.post("/operations/workers/<uuid:worker_id>/drain")
@needs(Role.OPERATOR)
def drain(worker_id: UUID) -> Response:
    """Ask a worker to finish what it has in flight, and end."""
    with database().transaction() as connection:
        if not operates_everywhere(connection, me().id):
            abort(403, FOR_ALL)
        outcome = ask_to_drain(
            connection, workspace_id=here().workspace_id, worker_id=worker_id, user_id=me().id,
            reason=args.posted("reason"),
        )  # fmt: skip
    match outcome:
        case Asked():
            flash(f"{outcome.name} finishes what it has in flight, and ends.")
        case Refused():
            flash(outcome.reason)
    return go(url_for("operations.page"))


@blueprint.post("/operations/mailstreams/<string:name>/pause")
@needs(Role.OPERATOR)
def pause_stream(name: str) -> Response:
    """Start no attempt of it until somebody resumes it."""
    return pause(partial(pause_by_person, name=name), name, back=url_for("operations.page"))


@blueprint.post("/operations/mailstreams/<string:name>/resume")
@needs(Role.OPERATOR)
def resume_stream(name: str) -> Response:
    """End a pause; what waits leaves at once."""
    return resume(partial(resume_by_person, name=name), name, back=url_for("operations.page"))


@blueprint.post("/operations/sending/pause")
@needs(Role.OPERATOR)
def pause_sending() -> Response:
    """Start no attempt of any mailstream until somebody resumes it."""
    return pause(pause_workspace, "All sending", back=url_for("operations.page"))


@blueprint.post("/operations/sending/resume")
@needs(Role.OPERATOR)
def resume_sending() -> Response:
    """End that pause; what waits leaves at once."""
    return resume(resume_workspace, "All sending", back=url_for("operations.page"))
