"""``/api/v1/sends``: ask for sends, and see what became of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

import psycopg
from flask import Blueprint, Response

from dashboard.insight.folding import Entry
from dashboard.insight.timeline import timeline
from dashboard.ledger.cancelling import Cancelled, Remembered, cancel_send
from dashboard.ledger.holds import Refused
from dashboard.ledger.recording import Recorded
from dashboard.ledger.requests import BadRequest
from dashboard.ledger.standing import Standing, find_by_key, read_standing, read_standings
from dashboard.ledger.trace import read_trace
from dashboard.lifecycle import State, Verdict
from dashboard.web.api import problems, reading
from dashboard.web.api.problems import Problem
from dashboard.web.api.recording import record_lines, record_one
from dashboard.web.api.shown import answer, iso, shown
from dashboard.web.api.waiting import wait_for
from dashboard.web.permissions import by_token
from dashboard.web.state import database

blueprint = Blueprint("api_sends", __name__, url_prefix="/api/v1/sends")
problems.install(blueprint)

REPLAYED = {"Idempotent_Replayed": "true"}


@blueprint.post("")
@by_token
def ask() -> Response:
    """Request one send."""
    workspace_id = reading.token().workspace_id
    seconds = reading.seconds_to_wait()
    recorded = record_one(workspace_id, reading.one_send())
    if recorded.verdict is Verdict.MISMATCH:
        raise _mismatch(recorded)
    standing = _require(wait_for(workspace_id, recorded.send_id, seconds))
    status = _status(recorded, standing)
    headers = {"Location": f"/api/v1/sends/{recorded.send_id}"} if status == 201 else REPLAYED
    return answer(shown(standing), status, **headers)


@blueprint.post("/batch")
@by_token
def ask_for_many() -> Response:
    """Request up to 1,000 sends as JSON lines; the answer has one line for each, in their order."""
    workspace_id = reading.token().workspace_id
    lines = reading.batch_lines()
    results = record_lines(workspace_id, list(_parsed(line for _, line in lines)))
    ids = [result.send_id for result in results if isinstance(result, Recorded)]
    with database().transaction(durable=False) as connection:
        standings = read_standings(connection, workspace_id, ids)
    told = [_told(number, result, standings) for (number, _), result in zip(lines, results, strict=True)]
    return Response("".join(json.dumps(line) + "\n" for line in told), content_type="application/x-ndjson")


@blueprint.get("/<string:id>")
@by_token
def one(id: str) -> Response:
    """How one send stands."""
    workspace_id = reading.token().workspace_id
    return answer(shown(_require(wait_for(workspace_id, reading.send_id(id), reading.seconds_to_wait()))))


@blueprint.get("")
@by_token
def by_key() -> Response:
    """The sends of a key: one a mailstream that used it."""
    workspace_id = reading.token().workspace_id
    key, mailstream = reading.query_text("key", needed=True), reading.query_text("mailstream")
    with database().transaction(durable=False) as connection:
        found = find_by_key(connection, workspace_id, key or "", mailstream)
    return answer({"sends": [shown(standing) for standing in found]})


@blueprint.get("/<string:id>/trace")
@by_token
def trace(id: str) -> Response:
    """Everything that is on record about one send, oldest first."""
    workspace_id = reading.token().workspace_id
    with database().snapshot() as connection:
        found = read_trace(connection, workspace_id, reading.send_id(id))
    if found is None:
        raise Problem("not-found", "The workspace of this token has no send of this id.")
    return answer([_entry(entry) for entry in timeline(found)])


@blueprint.post("/<string:id>/cancel")
@by_token
def cancel(id: str) -> Response:
    """Cancel a send, or have it cancelled unless the call that is running is taken. Safe to repeat."""
    token, send_id, reason = reading.token(), reading.send_id(id), reading.reason()
    try:
        with database().transaction() as connection:
            outcome = cancel_send(
                connection, workspace_id=token.workspace_id, send_id=send_id, user_id=None, token_id=token.id,
                reason=reason,
            )  # fmt: skip
            standing = _require(read_standing(connection, token.workspace_id, send_id))
    except psycopg.errors.LockNotAvailable:
        raise problems.busy("Another transaction holds this send. Repeat the request.") from None
    match outcome:
        case Cancelled():
            return answer({"outcome": "cancelled", "send": shown(standing)})
        case Remembered():
            return answer({"outcome": "remembered", "send": shown(standing)}, 202)
        case Refused() if standing.state is State.CANCELLED:
            return answer({"outcome": "cancelled", "send": shown(standing)}, 200, **REPLAYED)
        case Refused():
            raise Problem("settled", f"It is {standing.state}: there is nothing to cancel.", send_id=str(send_id))


def _parsed(lines: Iterable[bytes]) -> Iterator[object]:
    for line in lines:
        try:
            yield reading.parsed(line)
        except BadRequest as error:
            yield error


def _told(number: int, result: Recorded | Problem, standings: dict[UUID, Standing]) -> dict[str, Any]:
    """One line of the answer to a batch."""
    if isinstance(result, Recorded) and result.verdict is Verdict.MISMATCH:
        result = _mismatch(result)
    if isinstance(result, Problem):
        return {"line": number, "status": result.status, "problem": result.document()}
    standing = _require(standings.get(result.send_id))
    status = _status(result, standing)
    return {"line": number, "status": status, "replayed": status != 201, "send": shown(standing)}


def _status(recorded: Recorded, standing: Standing) -> int:
    if recorded.verdict is Verdict.WON:
        return 201
    return 200 if standing.settled else 202


def _mismatch(recorded: Recorded) -> Problem:
    since = iso(recorded.first_seen) if recorded.first_seen else None
    return Problem(
        "mismatch",
        f"This key was first seen at {since} with other content. It was not sent.",
        send_id=str(recorded.send_id),
        first_seen=since,
    )


def _require(standing: Standing | None) -> Standing:
    if standing is None:
        raise Problem("not-found", "The workspace of this token has no send of this id.")
    return standing


def _entry(entry: Entry) -> dict[str, object]:
    return {
        "at": iso(entry.at),
        "lane": str(entry.lane),
        "what": entry.what,
        "who": entry.who,
        "detail": entry.detail,
        "evidence": entry.evidence,
        "count": entry.count,
    }
