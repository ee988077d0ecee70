"""``/api/v1``: workers, accounts, dead letters, suspected duplicates and the audit log, for programs of operators."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from flask import Blueprint, Response

from dashboard.identity import discreet
from dashboard.insight.checked import document
from dashboard.ledger import dead_letters as letters
from dashboard.ledger import streams, workers
from dashboard.ledger.access import operates_everywhere
from dashboard.ledger.account_checks import ask_for_check, read_check
from dashboard.ledger.accounts import AccountRow, list_accounts, pause_by_person, read_account_errors, resume_by_person
from dashboard.ledger.audit import Action, AuditFilter, list_entries
from dashboard.ledger.database import Connection
from dashboard.ledger.dead_letters import DeadLetter, Requeued
from dashboard.ledger.holds import Refused
from dashboard.ledger.metrics import read_workers
from dashboard.ledger.requests import BadRequest
from dashboard.ledger.suspects import Intent, read_suspects
from dashboard.ledger.tables import Role
from dashboard.web.api import problems, reading
from dashboard.web.api.problems import Problem
from dashboard.web.api.shown import answer, iso
from dashboard.web.permissions import by_token
from dashboard.web.state import database, ground, vault

blueprint = Blueprint("api_operations", __name__, url_prefix="/api/v1")
problems.install(blueprint)

ROWS = 200
NO_SUCH_ACCOUNT = "The workspace of this token has no account of this name."


# ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@blueprint.get("/workers")
@by_token
def list_workers() -> Response:
    """The workers of the last day, those that run first."""
    reading.operator()
    with database().transaction(durable=False) as connection:
        found = read_workers(connection)
    return answer(
        {
            "workers": [
                {
                    "id": str(one.id), "name": one.name, "version": one.version, "loops": one.loops,
                    "state": one.state, "in_flight": one.in_flight, "refused_moves": one.refused_moves,
                    "started_at": iso(one.started_at), "heartbeat_at": iso(one.heartbeat_at),
                    "stopped_at": _time(one.stopped_at),
                }
                for one in found
            ]
        }
    )  # fmt: skip


@blueprint.post("/workers/<string:id>/drain")
@by_token
def drain(id: str) -> Response:
    """Ask a worker to finish what it has in flight, and end."""
    who, reason = reading.operator(), reading.reason()
    try:
        worker_id = UUID(id)
    except ValueError:
        raise Problem("not-found", "This is not the id of a worker.") from None
    with database().transaction() as connection:
        if not operates_everywhere(connection, who.user_id):
            raise Problem("forbidden", workers.FOR_ALL)
        outcome = workers.drain(
            connection, workspace_id=who.workspace_id, worker_id=worker_id, user_id=who.user_id, reason=reason
        )
    if isinstance(outcome, Refused):
        raise Problem("refused", outcome.reason)
    return answer({"id": str(outcome.worker_id), "name": outcome.name, "state": "draining"}, 202)


# ── accounts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@blueprint.get("/accounts")
@by_token
def accounts() -> Response:
    """The accounts of the workspace, with what their attempts met in the last day."""
    who = reading.operator()
    with database().snapshot() as connection:
        found = list_accounts(connection, who.workspace_id)
        errors = read_account_errors(connection, who.workspace_id)
    return answer(
        {
            "accounts": [
                {
                    **_account(one),
                    "errors": [
                        {
                            "status": error.status, "error_class": error.error_class, "error_code": error.error_code,
                            "number": error.number, "last_at": iso(error.last_at),
                        }
                        for error in errors.get(one.id, [])
                    ],
                }
                for one in found
            ]
        }
    )  # fmt: skip


@blueprint.post("/accounts/<string:name>/pause")
@by_token
def pause(name: str) -> Response:
    """Start no attempt on an account until somebody resumes it."""
    who, reason = reading.operator(), reading.reason()
    with database().transaction() as connection:
        done = pause_by_person(connection, workspace_id=who.workspace_id, name=name, reason=reason, user_id=who.user_id)
        return _one_account(name, done, list_accounts(connection, who.workspace_id))


@blueprint.post("/accounts/<string:name>/resume")
@by_token
def resume(name: str) -> Response:
    """End a pause; what waits leaves at once."""
    who, reason = reading.operator(), reading.reason()
    with database().transaction() as connection:
        done = resume_by_person(
            connection, workspace_id=who.workspace_id, name=name, user_id=who.user_id, reason=reason
        )
        return _one_account(name, done, list_accounts(connection, who.workspace_id))


@blueprint.get("/accounts/<string:name>/check")
@by_token
def check(name: str) -> Response:
    """What the last check of an account found."""
    who = reading.operator()
    with database().transaction(durable=False) as connection:
        return answer(_check(connection, who.workspace_id, name))


@blueprint.post("/accounts/<string:name>/check")
@by_token
def check_now(name: str) -> Response:
    """Have a worker check it now; asking again meanwhile changes nothing."""
    who = reading.operator()
    with database().transaction() as connection:
        ask_for_check(connection, workspace_id=who.workspace_id, name=name, user_id=who.user_id)
        return answer(_check(connection, who.workspace_id, name), 202)


def _check(connection: Connection, workspace_id: UUID, name: str) -> dict[str, Any]:
    found = read_check(connection, workspace_id, name)
    if found is None:
        raise Problem("not-found", NO_SUCH_ACCOUNT)
    return document(found, ground().settings.public_url)


def _one_account(name: str, done: bool, found: list[AccountRow]) -> Response:
    if not done:
        raise Problem("not-found", NO_SUCH_ACCOUNT)
    return answer(_account(next(one for one in found if one.name == name)))


def _account(one: AccountRow) -> dict[str, Any]:
    return {
        "name": one.name, "provider": one.provider, "breaker": one.breaker, "troubles": one.troubles,
        "paused": one.paused_for_good or one.paused_until is not None, "paused_until": _time(one.paused_until),
        "paused_reason": one.paused_reason, "rate_per_second": one.rate_per_second,
        "key_window_seconds": one.key_window.total_seconds() if one.key_window else None,
        "mailstreams": one.mailstreams,
    }  # fmt: skip


# ── mailstreams, and all of them ──────────────────────────────────────────────────────────────────────────────────────


@blueprint.post("/mailstreams/<string:name>/pause")
@by_token
def pause_stream(name: str) -> Response:
    """Start no attempt of a mailstream until somebody resumes it."""
    who, reason = reading.operator(), reading.reason()
    with database().transaction() as connection:
        done = streams.pause_by_person(
            connection, workspace_id=who.workspace_id, name=name, reason=reason, user_id=who.user_id
        )
    return _stream(name, done, reason)


@blueprint.post("/mailstreams/<string:name>/resume")
@by_token
def resume_stream(name: str) -> Response:
    """End a pause; what waits leaves at once."""
    who, reason = reading.operator(), reading.reason()
    with database().transaction() as connection:
        done = streams.resume_by_person(
            connection, workspace_id=who.workspace_id, name=name, user_id=who.user_id, reason=reason
        )
    return _stream(name, done, None)


def _stream(name: str, done: bool, paused: str | None) -> Response:
    if not done:
        raise Problem("not-found", "The workspace of this token has no mailstream of this name.")
    return answer(_pause(name, paused))


@blueprint.post("/workspace/pause")
@by_token
def pause_workspace() -> Response:
    """Start no attempt of any mailstream until somebody resumes it."""
    who, reason = reading.operator(), reading.reason()
    with database().transaction() as connection:
        name = streams.pause_workspace(connection, workspace_id=who.workspace_id, reason=reason, user_id=who.user_id)
    return answer(_pause(name, reason))


@blueprint.post("/workspace/resume")
@by_token
def resume_workspace() -> Response:
    """End a pause of all sending; what waits leaves at once."""
    who, reason = reading.operator(), reading.reason()
    with database().transaction() as connection:
        name = streams.resume_workspace(connection, workspace_id=who.workspace_id, reason=reason, user_id=who.user_id)
    return answer(_pause(name, None))


def _pause(name: str, reason: str | None) -> dict[str, Any]:
    return {"name": name, "paused": reason is not None, "paused_reason": reason}


# ── dead letters ─────────────────────────────────────────────────────────────────────────────────────────────────────


@blueprint.get("/dead-letters")
@by_token
def dead_letters() -> Response:
    """What waits for a person, the oldest first. What it holds is never shown."""
    who, after = reading.operator(), reading.cursor("after")
    with database().transaction(durable=False) as connection:
        found = letters.list_letters(connection, who.workspace_id, after=after, limit=ROWS + 1)
    last = found[ROWS - 1] if len(found) > ROWS else None
    return answer(
        {"dead_letters": [_letter(one) for one in found[:ROWS]], "next": last and f"{iso(last.at)}~{last.id}"}
    )


@blueprint.post("/dead-letters/<int:number>/requeue")
@by_token
def requeue(number: int) -> Response:
    """Put a request back into the outbox, where it would be taken now."""
    who, reason = reading.operator(), reading.reason()
    with database().transaction() as connection:
        outcome = letters.requeue(
            connection, vault(), workspace_id=who.workspace_id, letter_id=number, user_id=who.user_id, reason=reason
        )
    match outcome:
        case Requeued():
            return answer({"number": number, "send_id": str(outcome.send_id)})
        case Refused():
            raise _left_alone(outcome)


@blueprint.post("/dead-letters/<int:number>/discard")
@by_token
def discard(number: int) -> Response:
    """Let go of what it holds; that it was there stays on record."""
    who, reason = reading.operator(), reading.reason()
    with database().transaction() as connection:
        outcome = letters.discard(
            connection, workspace_id=who.workspace_id, letter_id=number, user_id=who.user_id, reason=reason
        )
    if isinstance(outcome, Refused):
        raise _left_alone(outcome)
    return answer({"number": number})


def _left_alone(outcome: Refused) -> Problem:
    return Problem("not-found" if outcome.reason == letters.NO_SUCH_LETTER else "refused", outcome.reason)


def _letter(one: DeadLetter) -> dict[str, Any]:
    return {
        "number": one.id, "at": iso(one.at), "source": one.source, "account": one.account,
        "reason": discreet(one.reason),
        "repeats": one.repeats, "outbox_id": str(one.outbox_id) if one.outbox_id else None, "bytes": one.bytes,
    }  # fmt: skip


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@blueprint.get("/suspects")
@by_token
def suspects() -> Response:
    """The same content to the same recipient under two keys: the newest pairs."""
    who, before = reading.operator(), reading.moment("before")
    with database().transaction(durable=False) as connection:
        found = read_suspects(connection, who.workspace_id, before=before, limit=ROWS)
    return answer(
        {
            "suspects": [
                {"why": one.why, "recipient_id": one.recipient_id, "earlier": _intent(one.earlier),
                 "later": _intent(one.later)}
                for one in found
            ],
            "next": iso(found[-1].later.recorded_at) if len(found) == ROWS else None,
        }
    )  # fmt: skip


@blueprint.get("/audit")
@by_token
def audit_log() -> Response:
    """What people and programs did, the newest first. For tokens that act for an admin."""
    who = reading.operator(Role.ADMIN)
    action, before = reading.query_text("action"), reading.query_text("before")
    if action is not None and action not in set(Action):
        raise BadRequest("action", f"must be one of: {', '.join(Action)}")
    if before is not None and not (before.isascii() and before.isdecimal() and len(before) <= 18):
        raise BadRequest("before", "must be the `next` of the answer before")
    filters = AuditFilter(
        action=action, who=reading.query_text("who"), subject=reading.query_text("subject"),
        since=reading.moment("since"), until=reading.moment("until"),
    )  # fmt: skip
    with database().transaction(durable=False) as connection:
        found = list_entries(
            connection, who.workspace_id, filters=filters, before=int(before) if before else None, limit=ROWS
        )
    entries = [
        {
            "id": one.id, "at": iso(one.at), "who": one.who, "action": one.action, "subject": one.subject,
            "reason": one.reason and discreet(one.reason), "detail": one.detail,
        }
        for one in found
    ]  # fmt: skip
    return answer({"entries": entries, "next": str(found[-1].id) if len(found) == ROWS else None})


def _intent(one: Intent) -> dict[str, Any]:
    return {
        "id": str(one.send_id), "mailstream": one.mailstream, "key": one.key, "source": one.source,
        "trigger_type": one.trigger_type, "trigger_id": one.trigger_id, "recorded_at": iso(one.recorded_at),
    }  # fmt: skip


def _time(at: datetime | None) -> str | None:
    return None if at is None else iso(at)
