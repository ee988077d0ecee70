"""Which role a page needs. Every view declares it; one that does not is refused, and a test walks the URL map."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

from flask import Flask, abort, current_app, g, request, session
from werkzeug.wrappers import Response

from dashboard.ledger.access import Membership, Person, includes
from dashboard.ledger.tables import Right, Role
from dashboard.ledger.trace import workspace_of
from dashboard.web.login import ask_to_log_in, who
from dashboard.web.state import database

View = TypeVar("View", bound=Callable[..., Any])


class Open(StrEnum):
    """Views that no role is asked for."""

    TO_ALL = "to_all"
    BY_TOKEN = "by_token"  # checks the bearer token of a program by itself


Permission = Role | Open


def needs(role: Role, right: Right | None = None) -> Callable[[View], View]:
    """Declares that a view needs this role, or a higher one, in the workspace, and perhaps a right beside it."""

    def declare(view: View) -> View:
        view.right = right  # type: ignore[attr-defined]
        return _declares(role)(view)

    return declare


def open_to_all(view: View) -> View:
    """Declares that a view is for everybody, logged in or not."""
    return _declares(Open.TO_ALL)(view)


def by_token(view: View) -> View:
    """Declares that a view checks the caller's token, or signature, itself."""
    return _declares(Open.BY_TOKEN)(view)


def permission_of(app: Flask, endpoint: str) -> Permission | None:
    """What the view behind this endpoint declares."""
    return getattr(app.view_functions[endpoint], "permission", None)


def right_of(app: Flask, endpoint: str) -> Right | None:
    """The right that the view behind this endpoint needs beside its role."""
    return getattr(app.view_functions[endpoint], "right", None)


def may(what: Role | Right) -> bool:
    """True where whoever asks has this role, or a higher one, or this right, here. For templates: nothing unusable is
    shown."""
    return _grants(g.get("membership"), what)


def may_at_home(role: Role) -> bool:
    """The same in the workspace that they chose to work in, where that is another one."""
    return _grants(g.get("home"), role)


def _grants(membership: Membership | None, what: Role | Right) -> bool:
    if membership is None:
        return False
    return includes(membership.role, what) if isinstance(what, Role) else membership.has(what)


def install(app: Flask) -> None:
    """Check every request before its view runs."""
    _declares(Open.TO_ALL)(app.view_functions["static"])
    app.before_request(_guard)


def _declares(permission: Permission) -> Callable[[View], View]:
    def declare(view: View) -> View:
        view.permission = permission  # type: ignore[attr-defined]
        return view

    return declare


def _guard() -> Response | None:
    if request.endpoint is None:
        if somebody := who():  # no such page, but its answer shows where one may go
            enter(somebody.person)
        return None
    permission = permission_of(current_app, request.endpoint)
    if permission is None:
        raise RuntimeError(f"{request.endpoint} declares no permission")
    if isinstance(permission, Open):
        return None
    somebody = who()
    if somebody is None:
        return ask_to_log_in()
    enter(somebody.person)
    _follow(somebody.person)
    right = right_of(current_app, request.endpoint)
    if not may(permission) or (right is not None and not may(right)):
        abort(403)
    return None


def enter(person: Person) -> None:
    """Put whose request this is, and the workspace they chose, where the views find it."""
    g.person = person
    chosen = session.get("workspace")
    # Until they choose: where they may do most.
    highest = max(person.memberships, key=lambda one: list(Role).index(one.role), default=None)
    g.home = g.membership = next((one for one in person.memberships if one.workspace == chosen), highest)


def _follow(person: Person) -> None:
    """A link to a send is answered in the send's own workspace, where one has a role there; one's choice stays."""
    send_id = (request.view_args or {}).get("send_id")
    if send_id is None or len(person.memberships) < 2:
        return
    with database().transaction(durable=False) as connection:
        workspace_id = workspace_of(connection, send_id)
    g.membership = next((one for one in person.memberships if one.workspace_id == workspace_id), g.home)
