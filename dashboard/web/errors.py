"""What people see when something is wrong: what it is, and what to do next. Never a traceback."""

from __future__ import annotations

from pathlib import Path
from traceback import extract_tb
from typing import NamedTuple
from uuid import uuid4

import psycopg
from flask import Flask, g, jsonify, render_template, request
from flask_wtf.csrf import CSRFError
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException
from werkzeug.wrappers import Response

from dashboard.ledger.database import NotCommitted
from dashboard.log import Action, log


class Page(NamedTuple):
    """An error page: its heading, what it means, and what to do."""

    heading: str
    meaning: str
    next_step: str


PAGES = {
    400: Page("This request cannot be read", "Something in it is missing or malformed.", "Go back and try again."),
    403: Page(
        "This is not yours to open",
        "Your role in this workspace does not include this page.",
        "Ask an admin of the workspace if you need it.",
    ),
    404: Page(
        "There is nothing here",
        "The link is wrong, or what it pointed to belongs to another workspace.",
        "Search for an address, a key or any id in the box above.",
    ),
    405: Page("This cannot be done here", "The page does not take this kind of request.", "Start from the first page."),
    413: Page("This is too large", "More was sent than the page takes.", "Send less at once."),
    429: Page("Too many tries", "This is slowed down so that nobody can guess passwords.", "Wait a moment."),
    500: Page(
        "Something broke on our side",
        "The fault is noted. No email was sent, repeated or lost by this.",
        "Try again; if it stays, tell whoever runs Sendonce the number above.",
    ),
    503: Page(
        "The ledger cannot be reached",
        "The database does not answer. Nothing is lost: workers go on where they stopped.",
        "Try again in a minute; whoever runs Sendonce should look at the database.",
    ),
}


def install(app: Flask) -> None:
    """Answer every error with its page."""
    app.register_error_handler(HTTPException, _http)
    app.register_error_handler(CSRFError, _forged)
    for unreachable in (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout, NotCommitted):
        app.register_error_handler(unreachable, _unreachable)
    app.register_error_handler(DBAPIError, _unreachable)
    app.register_error_handler(Exception, _broken)


def error_page(status: int, *, meaning: str | None = None, number: str | None = None) -> Response:
    """The page for this status, without asking the database for anything."""
    page = PAGES.get(status) or PAGES[400 if status < 500 else 500]
    if meaning:
        page = page._replace(meaning=meaning)
    if _asks_for_json():
        response: Response = jsonify(status=status, title=page.heading, detail=page.meaning)
        response.content_type = "application/problem+json"
    else:
        response = Response(
            render_template("pages/error.html", status=status, error=page, number=number), content_type="text/html"
        )
    response.status_code = status
    return response


def _http(error: HTTPException) -> Response:
    if isinstance(error.response, Response):
        return error.response
    meaning = error.description if error.description != type(error).description else None
    return error_page(error.code or 500, meaning=meaning)


def _forged(_: CSRFError) -> Response:
    return error_page(400, meaning="The form was open for too long, or came from another site. Nothing was done.")


def _unreachable(error: Exception) -> Response:
    # The text of such an error may quote the address of the database; its kind says enough.
    log.error(Action.DATABASE_UNREACHABLE, error=type(error).__name__)
    g.pop("membership", None)
    response = error_page(503)
    response.headers["Retry-After"] = "30"
    return response


def _broken(error: Exception) -> Response:
    number = uuid4().hex[:8]
    # Values of a failed statement may be personal: where it happened is logged, not what it said.
    frames = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in extract_tb(error.__traceback__)]
    log.error(
        Action.REQUEST_FAILED, number=number, endpoint=request.endpoint, error=type(error).__name__, at=frames[-5:]
    )
    g.pop("membership", None)  # what broke may break the banner as well
    return error_page(500, number=number)


def _asks_for_json() -> bool:
    accepted = request.accept_mimetypes.best_match(["text/html", "application/json"])
    return accepted == "application/json" or request.path.startswith("/api/")
