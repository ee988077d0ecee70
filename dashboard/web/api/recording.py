"""Recording what the API is asked for: one send, or the lines of a batch of which none spoils another."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import psycopg
from flask import request as http

from dashboard import steps
from dashboard.ledger.database import Connection, database_now
from dashboard.ledger.dead_letters import REFUSED
from dashboard.ledger.recording import Recorded, record
from dashboard.ledger.requests import BadRequest, Request, read_request
from dashboard.ledger.standing import known_mailstreams
from dashboard.lifecycle import Verdict
from dashboard.web.api.problems import Problem, bad_field, busy
from dashboard.web.meters import ASKED
from dashboard.web.state import database, vault

PATIENCE = 20.0
"""Seconds for a whole batch, of which some line waits for another transaction."""


def read(connection: Connection, workspace_id: UUID, raws: Sequence[object]) -> list[Request | Problem]:
    """Check requests. In the place of one that cannot be taken is its problem; so is a BadRequest given as one."""
    now = database_now(connection)
    read_so_far = [_read(raw, workspace_id, now) for raw in raws]
    names = {request.mailstream for request in read_so_far if isinstance(request, Request)}
    known = known_mailstreams(connection, workspace_id, names)
    return [
        _unknown() if isinstance(request, Request) and request.mailstream not in known else request
        for request in read_so_far
    ]


def _told(recorded: Recorded) -> None:
    """Count it, and tell that it was asked for."""
    ASKED.labels(str(recorded.verdict)).inc()
    step = steps.Step.RECORDED if recorded.verdict is Verdict.WON else steps.Step.DELIVERED_AGAIN
    caller = http.headers.get("traceparent")
    steps.tell(step, recorded.send_id, source="api", verdict=str(recorded.verdict), caller=caller)


def _read(raw: object, workspace_id: UUID, now: datetime) -> Request | Problem:
    try:
        if isinstance(raw, BadRequest):
            raise raw
        if isinstance(raw, dict) and raw.get("workspace") is not None:
            raise BadRequest("workspace", "is given by the token: leave it out")
        return read_request(raw, workspace_id=workspace_id, source="api", asked_at=now)
    except BadRequest as error:
        return bad_field(error)


def _unknown() -> Problem:
    return Problem("unknown-mailstream", "There is no such mailstream in the workspace of this token.")


def _refused() -> Problem:
    """Not trouble of ours: the same request would come again for ever."""
    return Problem("bad-request", "The ledger cannot hold a value of this request.")


def record_one(workspace_id: UUID, raw: object) -> Recorded:
    """Record one request in a transaction of its own; committed when this returns. Raises :class:`Problem`."""
    while True:
        try:
            with database().transaction() as connection:
                request = read(connection, workspace_id, [raw])[0]
                if isinstance(request, Problem):
                    raise request
                recorded = record(connection, vault(), [request])[0]
        except REFUSED:
            raise _refused() from None
        if not recorded.gone:
            _told(recorded)
            return recorded


def record_lines(workspace_id: UUID, raws: Sequence[object]) -> list[Recorded | Problem]:
    """Record requests; in the place of one that cannot be is its problem. Committed when this returns.

    All in one transaction; where that fails because of one of them, each in its own. An error of another kind is
    raised; what is recorded by then is a duplicate when the batch is sent again.
    """
    with database().transaction(durable=False) as connection:
        checked = dict(enumerate(read(connection, workspace_id, raws)))
    problems = {i: problem for i, problem in checked.items() if isinstance(problem, Problem)}
    recorded = _record_together({i: request for i, request in checked.items() if isinstance(request, Request)})
    for result in recorded.values():
        if isinstance(result, Recorded):
            _told(result)
    return [problems.get(i) or recorded[i] for i in range(len(raws))]


def _record_together(requests: dict[int, Request]) -> dict[int, Recorded | Problem]:
    if not requests:
        return {}
    try:
        with database().transaction() as connection:
            recorded = record(connection, vault(), list(requests.values()))
    except (psycopg.errors.LockNotAvailable, *REFUSED):
        return _record_apart(requests)
    met = dict(zip(requests, recorded, strict=True))
    gone = {i: requests[i] for i, result in met.items() if result.gone}
    return {**met, **(_record_apart(gone) if gone else {})}


def _record_apart(requests: dict[int, Request]) -> dict[int, Recorded | Problem]:
    end = time.monotonic() + PATIENCE
    results: dict[int, Recorded | Problem] = {}
    for i, request in requests.items():
        patience = max(1, min(500, int((end - time.monotonic()) * 1000)))
        try:
            with database().transaction() as connection:
                connection.execute("select set_config('lock_timeout', %s, true)", (f"{patience}ms",))
                met = record(connection, vault(), [request])[0]
            results[i] = busy() if met.gone else met
        except psycopg.errors.LockNotAvailable:
            results[i] = busy()
        except REFUSED:
            results[i] = _refused()
    return results
