"""Providers: how each account does, what its attempts met lately, whether it is set up; stopping and resuming it."""

from __future__ import annotations

from functools import partial

from flask import Blueprint, abort, url_for
from werkzeug.wrappers import Response

from dashboard.insight.checked import address_to_paste, replies_address_to_paste
from dashboard.ledger.account_checks import ask_for_check, read_check, read_checks
from dashboard.ledger.accounts import list_accounts, pause_by_person, read_account_errors, resume_by_person
from dashboard.ledger.database import database_now
from dashboard.ledger.tables import Role
from dashboard.providers import PROVIDERS
from dashboard.web import pausing
from dashboard.web.permissions import needs
from dashboard.web.show import go, show
from dashboard.web.state import database, ground, here, me

blueprint = Blueprint("accounts", __name__, url_prefix="/operations/accounts")


@blueprint.get("")
@needs(Role.OPERATOR)
def listing() -> Response:
    """All accounts of the workspace; htmx asks for them alone."""
    with database().snapshot() as connection:
        accounts = list_accounts(connection, here().workspace_id)
        errors = read_account_errors(connection, here().workspace_id)
        checks = read_checks(connection, here().workspace_id)
        now = database_now(connection)
    offers = {one.name: one.capabilities({}) for one in PROVIDERS}
    return show(
        "accounts", fragment="accounts_rows", accounts=accounts, errors=errors, checks=checks, offers=offers, now=now
    )


@blueprint.get("/<string:name>/check")
@needs(Role.OPERATOR)
def check(name: str) -> Response:
    """What the last check of an account found; htmx asks for that alone."""
    with database().snapshot() as connection:
        found = read_check(connection, here().workspace_id, name)
        now = database_now(connection)
    if found is None:
        abort(404)
    public_url = ground().settings.public_url
    return show(
        "account_check", fragment="account_check_findings", check=found, now=now,
        address=address_to_paste(found, public_url), replies_address=replies_address_to_paste(found, public_url),
    )  # fmt: skip


@blueprint.post("/<string:name>/check")
@needs(Role.OPERATOR)
def check_now(name: str) -> Response:
    """Have a worker check it now; asking again meanwhile changes nothing."""
    with database().transaction() as connection:
        if not ask_for_check(connection, workspace_id=here().workspace_id, name=name, user_id=me().id):
            abort(404)
    return go(url_for("accounts.check", name=name))


@blueprint.post("/<string:name>/pause")
@needs(Role.OPERATOR)
def pause(name: str) -> Response:
    """Start no attempt on it until somebody resumes it."""
    return pausing.pause(partial(pause_by_person, name=name), name, back=url_for("accounts.listing"))


@blueprint.post("/<string:name>/resume")
@needs(Role.OPERATOR)
def resume(name: str) -> Response:
    """End a pause; what waits leaves at once."""
    return pausing.resume(partial(resume_by_person, name=name), name, back=url_for("accounts.listing"))
