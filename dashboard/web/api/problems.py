"""What programs are told when something is wrong: RFC 9457 problem documents, each with its page in the docs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from uuid import uuid4

import psycopg
from flask import Blueprint, Response, request
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.exceptions import HTTPException

from dashboard.ledger.database import NotCommitted
from dashboard.ledger.requests import BadRequest
from dashboard.log import Action, log
from dashboard.web.state import ground

RETRY_AFTER = 5
"""Seconds to wait before repeating a request that met trouble of ours; the same key makes the repeat safe."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem, as its page in the docs tells it."""

    status: int
    title: str
    meaning: str
    next_step: str


KINDS: dict[str, Kind] = {
    "bad-request": Kind(
        400,
        "The request cannot be taken",
        "A field is missing, malformed or unknown. `field` names it; nothing was recorded.",
        "Correct the field and send the request again. The key has not been used up.",
    ),
    "unauthorized": Kind(
        401,
        "A valid API token is needed",
        "There is no bearer token, it was revoked, or it acts for somebody who was shut out.",
        "Send `Authorization: Bearer <token>` with a token of the workspace; `sendonce token add` makes one.",
    ),
    "forbidden": Kind(
        403,
        "The token may not do this",
        "What operators do needs a token that acts for a person, who must be an operator of the workspace.",
        "Make one with `sendonce token add NAME --user LOGIN`. What it does stands under that person's name.",
    ),
    "refused": Kind(
        409,
        "It was not done",
        "The ledger refused it, and `detail` says why: somebody was faster, more was heard, or a rule forbids it.",
        "Read what it is about again, then decide anew.",
    ),
    "not-found": Kind(
        404,
        "There is no such send",
        "The workspace of this token has no send of this id.",
        "Check the id, and that the token belongs to the workspace that recorded the send.",
    ),
    "unknown-mailstream": Kind(
        404,
        "There is no such mailstream",
        "The workspace of this token has no mailstream of this name. Nothing was recorded.",
        "Correct the name, or create the mailstream, then send the request again.",
    ),
    "busy": Kind(
        409,
        "The key is being recorded by somebody else",
        "Recording waited for more than 5 seconds for another transaction that holds the same key.",
        "Send the same request again after `Retry-After` seconds. It cannot be recorded twice.",
    ),
    "too-large": Kind(
        413,
        "The request is too large",
        "The body, or the number of its lines, is over the limit.",
        "Send less at once: a batch holds up to 1,000 lines.",
    ),
    "wrong-content-type": Kind(
        415,
        "The body is of another kind",
        "One send is `application/json`, a batch is JSON lines (`application/x-ndjson`).",
        "Set the Content-Type header to what the body is.",
    ),
    "mismatch": Kind(
        422,
        "The key belongs to other content",
        "This key was used before for a message that the recipient would see differently. It is recorded as a mismatch,"
        " and it is not sent. `send_id` and `first_seen` name the send that has the key.",
        "If the first content was right, leave it. If this is another email, give it another key.",
    ),
    "settled": Kind(
        409,
        "The send has come to its end",
        "It was accepted, suppressed or failed before, so there is nothing to cancel.",
        "Read the send: its state says what became of it. What a provider has taken cannot be called back.",
    ),
    "broken": Kind(
        500,
        "Something broke on our side",
        "The fault is noted under `number`.",
        "Send the same request again: its key makes that safe. If it stays, report the number.",
    ),
    "unavailable": Kind(
        503,
        "The ledger cannot be reached",
        "The database does not answer, or did not confirm what it stored.",
        "Send the same request again after `Retry-After` seconds: its key makes that safe.",
    ),
}


class Problem(Exception):
    """Ends a request with a problem document. ``more`` are further members of it."""

    def __init__(self, kind: str, detail: str, *, headers: Mapping[str, str] | None = None, **more: object) -> None:
        super().__init__(detail)
        self.kind = kind
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more

    @property
    def status(self) -> int:
        """The status of the answer."""
        return KINDS[self.kind].status

    def document(self) -> dict[str, object]:
        """The members of the problem document."""
        return {
            "type": f"{ground().settings.public_url}/docs/problems/{self.kind}",
            "title": KINDS[self.kind].title,
            "status": self.status,
            "detail": self.detail,
            **self.more,
        }


def busy(detail: str = "Another transaction is recording this key. Repeat the request.") -> Problem:
    """Somebody else's transaction was waited for too long."""
    return Problem("busy", detail, headers={"Retry-After": "1"})


def unavailable() -> Problem:
    """The database is away."""
    return Problem(
        "unavailable", "The database does not answer. Repeat the request.", headers={"Retry-After": str(RETRY_AFTER)}
    )


def bad_field(error: BadRequest) -> Problem:
    """A field that cannot be taken."""
    return Problem("bad-request", str(error), field=error.field)


def install(blueprint: Blueprint) -> None:
    """Answer every error of the blueprint's views with a problem document."""
    blueprint.register_error_handler(Problem, answer)
    blueprint.register_error_handler(BadRequest, lambda error: answer(bad_field(error)))
    blueprint.register_error_handler(psycopg.errors.LockNotAvailable, lambda _: answer(busy()))
    for away in (psycopg.OperationalError, psycopg.InterfaceError, DBAPIError, PoolTimeout, NotCommitted):
        blueprint.register_error_handler(away, _away)
    blueprint.register_error_handler(HTTPException, _http)
    blueprint.register_error_handler(Exception, _broken)


def answer(problem: Problem) -> Response:
    """The problem as a response."""
    response = Response(json.dumps(problem.document()) + "\n", problem.status, content_type="application/problem+json")
    response.headers.update(problem.headers)
    return response


def _away(error: Exception) -> Response:
    # The text of such an error may quote the address of the database; its kind says enough.
    log.error(Action.DATABASE_UNREACHABLE, error=type(error).__name__)
    return answer(unavailable())


def _http(error: HTTPException) -> Response:
    match error.code:
        case 413:
            return answer(Problem("too-large", "The body is over the limit."))
        case 404:
            return answer(Problem("not-found", "There is nothing at this address."))
        case _:
            return answer(Problem("bad-request", error.description or "The request cannot be read."))


def _broken(error: Exception) -> Response:
    number = uuid4().hex[:8]
    # Values of a failed statement may be personal: where it happened is logged, not what it said.
    frames = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in extract_tb(error.__traceback__)]
    log.error(
        Action.REQUEST_FAILED, number=number, endpoint=request.endpoint, error=type(error).__name__, at=frames[-5:]
    )
    return answer(Problem("broken", "The fault is noted. Nothing is sent twice by repeating.", number=number))
