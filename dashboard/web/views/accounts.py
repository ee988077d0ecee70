"""Providers: how each account does, what its attempts met lately, and stopping and resuming it."""

from __future__ import annotations

from flask import Blueprint, abort, flash, url_for
from werkzeug.wrappers import Response

from dashboard.ledger.accounts import list_accounts, pause_by_person, read_account_errors, resume_by_person
from dashboard.ledger.database import database_now
from dashboard.ledger.tables import Role
from dashboard.providers import PROVIDERS
from dashboard.web import args
from dashboard.web.permissions import needs
from dashboard.web.show import go, show
from dashboard.web.state import database, here, me

blueprint = Blueprint("accounts", __name__, url_prefix="/operations/accounts")


@blueprint.get("")
@needs(Role.OPERATOR)
def listing() -> Response:
    """All accounts of the workspace; htmx asks for them alone."""
    with database().snapshot() as connection:
        accounts = list_accounts(connection, here().workspace_id)
        errors = read_account_errors(connection, here().workspace_id)
        now = database_now(connection)
    offers = {one.name: one.capabilities({}) for one in PROVIDERS}
    return show("accounts", fragment="accounts_rows", accounts=accounts, errors=errors, offers=offers, now=now)


@blueprint.post("/<string:name>/pause")
@needs(Role.OPERATOR)
def pause(name: str) -> Response:
    """Start no attempt on it until somebody resumes it."""
    reason = args.posted("reason")
    if not reason:
        flash("Give a reason: it stands in every trace that waits for it.")
        return go(url_for("accounts.listing"))
    with database().transaction() as connection:
        if not pause_by_person(connection, workspace_id=here().workspace_id, name=name, reason=reason, user_id=me().id):
            abort(404)
    flash(f"{name} is paused. What is under way runs to its end.")
    return go(url_for("accounts.listing"))


@blueprint.post("/<string:name>/resume")
@needs(Role.OPERATOR)
def resume(name: str) -> Response:
    """End a pause; what waits leaves at once."""
    with database().transaction() as connection:
        if not resume_by_person(
            connection, workspace_id=here().workspace_id, name=name, user_id=me().id,
            reason=args.posted("reason") or None,
        ):  # fmt: skip
            abort(404)
    flash(f"{name} is active.")
    return go(url_for("accounts.listing"))
