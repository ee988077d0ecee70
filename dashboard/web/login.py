"""Who asks: sessions of the ledger behind flask-login.

The cookie is Flask's signed one and holds the random token of a session row, so that logging out, a new password or
being shut out ends it at once. Logging in empties the cookie first: a token from before is never carried over.
"""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import quote, urlsplit

from flask import Flask, request, session, url_for
from flask_login import LoginManager, UserMixin, current_user, login_user, logout_user
from werkzeug.wrappers import Response

from dashboard.ledger import sessions
from dashboard.ledger.access import Person
from dashboard.settings import Settings
from dashboard.web.show import go, wants_fragment
from dashboard.web.state import database


class LoggedIn(UserMixin):
    """What flask-login keeps: the person, and the token that opened the session."""

    def __init__(self, person: Person, token: str) -> None:
        self.person = person
        self.token = token

    def get_id(self) -> str:
        """What goes into the cookie."""
        return self.token


def install(app: Flask, settings: Settings) -> None:
    """Set up sessions and their cookie."""
    address = urlsplit(settings.public_url)
    on_this_machine = address.scheme == "http" and address.hostname in ("localhost", "127.0.0.1", "::1")
    app.config.update(
        SECRET_KEY=settings.secret_key,
        SESSION_COOKIE_NAME="sendonce" if on_this_machine else "__Host-sendonce",
        SESSION_COOKIE_SECURE=not on_this_machine,
        SESSION_COOKIE_HTTPONLY=True,
        SESSION_COOKIE_SAMESITE="Lax",
    )
    # Not in the templates: an error page must not ask the database who is there.
    manager = LoginManager(app, add_context_processor=False)  # type: ignore[no-untyped-call]
    # The session row decides; a fingerprint of the browser only throws people out when their address changes.
    app.config["SESSION_PROTECTION"] = None
    manager.user_loader(_load)  # type: ignore[no-untyped-call]


def who() -> LoggedIn | None:
    """Whoever asks, if they are logged in."""
    user = cast(Any, current_user)
    return cast(LoggedIn, user) if user.is_authenticated else None


def ask_to_log_in() -> Response:
    """To the log-in, and back to the page that was wanted."""
    wanted = request.full_path.rstrip("?") if request.method == "GET" and not wants_fragment() else ""
    path = url_for("login.form")
    return go(f"{path}?next={quote(wanted)}" if wanted not in ("", "/") else path)


def begin(logged_in: sessions.LoggedIn) -> None:
    """Start the session in the browser."""
    session.clear()
    login_user(LoggedIn(logged_in.person, logged_in.token))  # type: ignore[no-untyped-call]


def end() -> None:
    """Forget the session in the browser."""
    logout_user()  # type: ignore[no-untyped-call]
    session.clear()


def own_path(target: str | None) -> str:
    """``target`` where it is a path of this app, else the first page: nobody is sent elsewhere after logging in."""
    if target and target.startswith("/") and not target.startswith(("//", "/\\")) and target.isprintable():
        parts = urlsplit(target)
        if not parts.scheme and not parts.netloc and "\\" not in target:
            return target
    return url_for("investigate.home")


def _load(token: str) -> LoggedIn | None:
    with database().transaction(durable=False) as connection:
        person = sessions.read_session(connection, token)
    return LoggedIn(person, token) if person else None
