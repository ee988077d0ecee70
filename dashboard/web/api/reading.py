"""Reading what a program sends: its token, its body, its key, how long it will wait."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar
from uuid import UUID

from flask import request
from werkzeug.datastructures import Authorization

from dashboard.ledger import access
from dashboard.ledger.access import ApiToken
from dashboard.ledger.requests import BadRequest, storable
from dashboard.ledger.tables import Role
from dashboard.web.api.problems import Problem
from dashboard.web.bodies import raw_body
from dashboard.web.state import database

MAX_BODY = 10_000_000
"""Bytes of one send."""
MAX_BATCH_BODY = 30_000_000
MAX_LINES = 1_000
MAX_REASON = 2_000
"""Characters, as on the pages."""
MAX_REASON_BODY = 20_000
MAX_FIELDS_BODY = 200_000
LONGEST_WAIT = 30.0
"""Seconds of ``?wait=``."""

JSON_LINES = ("application/x-ndjson", "application/jsonl", "application/json-lines", "application/x-jsonlines")


@dataclass(frozen=True, slots=True)
class Operator:
    """For whom a program decides, and in which workspace."""

    workspace_id: UUID
    user_id: UUID


Word = TypeVar("Word", bound=StrEnum)

_QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"(?:\s*;.*)?')


def token() -> ApiToken:
    """Whose request this is. Raises a 401 that says how to do better."""
    given: Authorization | None = request.authorization
    if given is None or given.type != "bearer" or not given.token:
        raise _unauthorized("Send a bearer token.", 'Bearer realm="sendonce"')
    with database().transaction(durable=False) as connection:
        found = access.read_token(connection, given.token)
    if found is None:
        raise _unauthorized(
            "This token is not known, was revoked, or acts for somebody who was shut out.",
            'Bearer realm="sendonce", error="invalid_token"',
        )
    return found


def operator(needed: Role = Role.OPERATOR) -> Operator:
    """Whose request this is, where the token acts for somebody of this role in its workspace. Raises 401, else 403."""
    found = token()
    with database().transaction(durable=False) as connection:
        person = access.read_person(connection, found.user_id) if found.user_id else None
    roles = person.memberships if person else ()
    if not any(one.workspace_id == found.workspace_id and access.includes(one.role, needed) for one in roles):
        raise Problem("forbidden", "This token acts for nobody who may do this.")
    assert found.user_id is not None
    return Operator(found.workspace_id, found.user_id)


def _unauthorized(detail: str, challenge: str) -> Problem:
    return Problem("unauthorized", detail, headers={"WWW-Authenticate": challenge})


def one_send() -> dict[str, Any]:
    """The body as one request for a send, with the key of the header put in."""
    mimetype = request.mimetype
    if mimetype != "application/json" and not (mimetype.startswith("application/") and mimetype.endswith("+json")):
        raise Problem("wrong-content-type", "Send the request as application/json.")
    raw = parsed(raw_body(MAX_BODY))
    if not isinstance(raw, dict):
        raise BadRequest("request", "must be a JSON object")
    header = key_header()
    if header is not None:
        if raw.get("key") not in (None, header):
            raise BadRequest("key", "differs from the Idempotency-Key header; give one of them, or the same in both")
        raw["key"] = header
    return raw


def reason() -> str:
    """The body as ``{"reason": "…"}``: why somebody does it. It is kept for people to read."""
    return reason_of(members("reason"))


def members(*names: str, limit: int = MAX_REASON_BODY) -> dict[str, Any]:
    """The body as a JSON object with no other members than these."""
    if request.mimetype != "application/json":
        raise Problem("wrong-content-type", "Send the body as application/json.")
    raw = parsed(raw_body(limit))
    if not isinstance(raw, dict) or raw.keys() - set(names):
        wanted = ", ".join(f'"{name}": …' for name in names)
        raise BadRequest("request", f"must be a JSON object with no more members than these: {{{wanted}}}")
    return raw


def reason_of(raw: dict[str, Any]) -> str:
    """The member ``reason``."""
    given = raw.get("reason")
    if not isinstance(given, str) or not given.strip() or len(given) > MAX_REASON:
        raise BadRequest("reason", f"is needed, as text of at most {MAX_REASON} characters")
    if not storable(given):
        raise BadRequest("reason", "holds a character that cannot be stored")
    return given.strip()


def one_of(raw: dict[str, Any], name: str, kind: type[Word]) -> Word:
    """A member that is one of a closed set of words."""
    try:
        return kind(str(raw.get(name)))
    except ValueError:
        raise BadRequest(name, f"must be one of: {', '.join(kind)}") from None


def number_of(raw: dict[str, Any], name: str) -> int:
    """A member that is a whole number of the size of an id."""
    given = raw.get(name)
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given < 2**63:
        raise BadRequest(name, "must be a whole number")
    return given


def fields(names: Sequence[str]) -> dict[str, str]:
    """The body as an object of texts, of which none has another name than these; what is null is left out."""
    if request.mimetype != "application/json":
        raise Problem("wrong-content-type", "Send the request as application/json.")
    raw = parsed(raw_body(MAX_FIELDS_BODY))
    if not isinstance(raw, dict):
        raise BadRequest("request", "must be a JSON object")
    for name, value in raw.items():
        if name not in names:
            raise BadRequest(name, f"is not known here; there are {', '.join(names)}")
        if value is not None and (not isinstance(value, str) or not storable(value)):
            raise BadRequest(name, "must be text that can be stored")
    return {name: value for name, value in raw.items() if value is not None}


def batch_lines() -> list[tuple[int, bytes]]:
    """The lines of a batch with their numbers, counted from 1; blank lines are passed over."""
    if request.mimetype not in JSON_LINES:
        raise Problem("wrong-content-type", f"Send the batch as JSON lines, {JSON_LINES[0]}.")
    if key_header() is not None:
        raise BadRequest("Idempotency-Key", "stands for one send: in a batch each line has its own key")
    lines = raw_body(MAX_BATCH_BODY).split(b"\n")
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    if not numbered:
        raise BadRequest("request", "the batch has no lines")
    if len(numbered) > MAX_LINES:
        raise Problem("too-large", f"The batch has {len(numbered)} lines; at most {MAX_LINES} are taken.")
    return numbered


def parsed(body: bytes) -> object:
    """The JSON value of a body. Raises BadRequest for what is none, without repeating it."""
    try:
        return json.loads(body, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise BadRequest("request", f"is not JSON: {error.msg} at character {error.pos}") from None
    except UnicodeDecodeError:
        raise BadRequest("request", "is not UTF-8 text") from None
    except (ValueError, RecursionError):
        raise BadRequest("request", "holds a number, or a depth, that cannot be read") from None


def _refuse_constant(_: str) -> None:
    raise ValueError


def key_header() -> str | None:
    """The Idempotency-Key, quoted as the IETF draft writes it, or bare."""
    value = request.headers.get("Idempotency-Key")
    if value is None:
        return None
    value = value.strip()
    if not value.startswith('"'):
        return value
    quoted = _QUOTED.fullmatch(value)
    if quoted is None:
        raise BadRequest("Idempotency-Key", "begins with a quote but is not a quoted string of printable ASCII")
    return re.sub(r'\\(["\\])', r"\1", quoted[1])


def seconds_to_wait() -> float:
    """``?wait=S``, at most 30; nothing means not at all."""
    given = request.args.get("wait")
    if given is None:
        return 0.0
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,6})?", given) or float(given) > LONGEST_WAIT:
        raise BadRequest("wait", f"must be a number of seconds from 0 to {LONGEST_WAIT:.0f}")
    return float(given)


def query_text(name: str, *, needed: bool = False) -> str | None:
    """A parameter of the query."""
    value = request.args.get(name)
    if not value:
        if needed:
            raise BadRequest(name, "is needed in the query")
        return None
    if len(value) > 512 or "\0" in value:
        raise BadRequest(name, "is too long or contains a NUL character")
    return value


def moment(name: str) -> datetime | None:
    """A parameter of the query that is a time with its zone."""
    text = query_text(name)
    try:
        found = datetime.fromisoformat(text.replace(" ", "+")) if text else None  # a plus sign in a query is a space
    except ValueError:
        found = None
    if text and (found is None or found.tzinfo is None):
        raise BadRequest(name, "must be a time with its zone, such as 2026-11-30T12:00:00Z")
    return found


def cursor(name: str) -> tuple[datetime, int] | None:
    """Where the page before ended: the `next` of its answer."""
    text = query_text(name)
    if text is None:
        return None
    at, _, number = text.partition("~")
    try:
        found = datetime.fromisoformat(at)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or not (number.isascii() and number.isdecimal() and len(number) <= 18):
        raise BadRequest(name, "must be the `next` of the answer before")
    return found, int(number)


def send_id(text: str) -> UUID:
    """An id in a path. Raises a 404 for what cannot be one."""
    try:
        return UUID(text)
    except ValueError:
        raise Problem("not-found", "This is not the id of a send.") from None
