"""Logging in and out, and choosing the workspace."""

from __future__ import annotations

from flask import Blueprint, abort, request, session, url_for
from werkzeug.wrappers import Response

from dashboard.ledger import audit, sessions
from dashboard.ledger.tables import Role
from dashboard.web import login
from dashboard.web.args import posted
from dashboard.web.permissions import needs, open_to_all
from dashboard.web.show import go, show
from dashboard.web.state import database, me, vault

blueprint = Blueprint("login", __name__)


@blueprint.get("/login")
@open_to_all
def form() -> Response:
    """The form; whoever is logged in goes on."""
    wanted = request.args.get("next", "")
    if login.who():
        return go(login.own_path(wanted))
    return show("login", wanted=wanted)


@blueprint.post("/login")
@open_to_all
def enter() -> Response:
    """Check login and password. A wrong one of either gets the same answer."""
    wanted, name = posted("next"), posted("login", limit=200)
    password = request.form.get("password", "")
    outcome = sessions.log_in(
        database(), vault(), login=name, password=password, client=request.remote_addr or "unknown"
    )
    match outcome:
        case sessions.LoggedIn():
            with database().transaction() as connection:
                audit.record(connection, audit.Action.LOG_IN, workspace_id=None, user_id=outcome.person.id)
            login.begin(outcome)
            return go(login.own_path(wanted))
        case sessions.TooManyTries():
            trouble = f"Too many tries. Wait {outcome.wait_seconds} seconds, then try again."
            response = show("login", wanted=wanted, name=name, trouble=trouble, status=429)
            response.headers["Retry-After"] = str(outcome.wait_seconds)
            return response
        case sessions.NotLoggedIn():
            trouble = "Login or password is wrong."
            return show("login", wanted=wanted, name=name, trouble=trouble, status=401)


@blueprint.post("/logout")
@open_to_all
def leave() -> Response:
    """End the session, here and in the ledger."""
    if somebody := login.who():
        with database().transaction() as connection:
            sessions.close_session(connection, somebody.token)
            audit.record(connection, audit.Action.LOG_OUT, workspace_id=None, user_id=somebody.person.id)
    login.end()
    return go(url_for("login.form"))


@blueprint.post("/workspace")
@needs(Role.SUPPORT)
def choose_workspace() -> Response:
    """Work in another workspace of one's own."""
    name = posted("workspace")
    if name not in [one.workspace for one in me().memberships]:
        abort(404)
    session["workspace"] = name
    return go(url_for("investigate.home"))
