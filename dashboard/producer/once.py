"""At most one provider call for a key, made by the caller's own code, however often its job is delivered."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import psycopg
from sqlalchemy.exc import SQLAlchemyError

from dashboard.ledger import caller as calls
from dashboard.ledger.attempts import Started, Windows, unconfirmed
from dashboard.ledger.database import Database, NotCommitted
from dashboard.ledger.requests import Request, read_caller_request
from dashboard.ledger.standing import Standing
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import State, Verdict
from dashboard.outcomes import as_finished
from dashboard.producer.asking import NOWHERE, Trigger, trigger_fields
from dashboard.providers import base
from dashboard.settings import Settings, read_settings


class InProgress(Exception):
    """The send is not settled and cannot be sent by this delivery: do not acknowledge the job, deliver it again.

    ``retry_at``: the time from which a new delivery may find something else.
    """

    def __init__(self, send_id: UUID, state: State, reason: str | None, retry_at: datetime) -> None:
        super().__init__(f"send {send_id} is {state} ({reason}); deliver it again after {retry_at.isoformat()}")
        self.send_id = send_id
        self.state = state
        self.reason = reason
        self.retry_at = retry_at


class Mismatch(Exception):
    """The key names another content, first seen at ``first_seen``. This delivery is on record and is never sent."""

    def __init__(self, send_id: UUID, first_seen: datetime | None) -> None:
        since = f" on {first_seen.isoformat()}" if first_seen else ""
        super().__init__(f"this key was used{since} for other content: use a new key (send {send_id})")
        self.send_id = send_id
        self.first_seen = first_seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a send ended. ``replayed``: an earlier delivery brought it there, this one did nothing."""

    send_id: UUID
    state: State
    """Accepted, failed, suppressed or cancelled."""
    reason: str | None
    provider_message_id: str | None
    replayed: bool


class Ledger:
    """A handle for :func:`send_once`, made by :func:`connect`. Thread-safe; close it, or use it in a ``with``."""

    def __init__(self, database: Database, vault: Vault, environment: str | None = None) -> None:
        self.database = database
        self.vault = vault
        self.environment = environment

    def close(self) -> None:
        """Close the connections."""
        self.database.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(url: str | None = None, *, settings: Settings | None = None) -> Ledger:
    """A handle on the ledger of ``settings``, which are read from the environment where they are not given.

    ``url`` takes the place of DATABASE_URL. Opens no connection yet. Raises settings.SettingsError.
    """
    if settings is None:
        settings = read_settings({**os.environ, "DATABASE_URL": url} if url else os.environ)
    elif url:
        settings = replace(settings, database_url=url)
    database = Database(settings.database_url, application_name="sendonce-caller")
    return Ledger(database, Vault(settings.encryption_keys), settings.environment)


def send_once(
    ledger: Ledger,
    *,
    workspace: str = "default",
    mailstream: str,
    key: str,
    recipient_id: str,
    address: str | None = None,
    fingerprint: bytes | str,
    trigger: Trigger,
    submit: Callable[[str], base.Outcome],
    time_limit: timedelta = timedelta(seconds=60),
) -> Outcome:
    """Make one provider call of your own at most once for this key, however often the job is delivered.

    ``submit`` gets the idempotency key to hand to the provider (the send id: also fit as metadata) and returns an
    outcome of ``dashboard.providers.base``; it must not repeat by itself, and must be done within ``time_limit``.
    Whatever exception comes out of it leaves the outcome unknown, because the message may have been taken.
    ``address`` is stored encrypted and checked against suppressions; without it nothing is known to be checked.
    ``fingerprint`` stands for the content: 32 bytes, or any text, which is hashed.

    Returns how the send ended. Raises :class:`InProgress` where it has not ended: the job must not be acknowledged;
    :class:`Mismatch` where the key belongs to other content; ValueError for bad arguments, before anything is stored.
    No transaction of the ledger is open while ``submit`` runs. An error of the database before ``submit`` means that
    it was not called; one after it leaves the send to become unknown, and is raised.
    """
    if time_limit <= timedelta(0):
        raise ValueError("time_limit: must be longer than nothing")
    windows = Windows(request=time_limit)
    caller = uuid4()
    request = _request(
        ledger, workspace, mailstream, key, recipient_id, address, _fingerprint(fingerprint), trigger_fields(trigger)
    )
    # From before the statement is sent: whatever the database takes, the deadline on its clock is not earlier.
    deadline = base.Deadline.after(windows.submit.total_seconds())
    begun = _begin(ledger, request, caller, windows)
    if begun.recorded.verdict is Verdict.MISMATCH:
        raise Mismatch(request.send_id, begun.recorded.first_seen)
    if begun.started is None:
        return _ended(begun.standing, request, replayed=begun.recorded.verdict is not Verdict.WON)
    began = time.monotonic()
    outcome, error = _call(submit, request.send_id, deadline)
    standing = _store(ledger, request, caller, begun.started, outcome, round((time.monotonic() - began) * 1000))
    try:
        return _ended(standing, request, replayed=False)
    except InProgress as in_progress:
        raise in_progress from error


def _fingerprint(given: bytes | str) -> bytes:
    if isinstance(given, bytes) and len(given) == 32:
        return given
    if isinstance(given, str) and given:
        return hashlib.sha256(given.encode(errors="surrogatepass")).digest()
    raise ValueError("fingerprint: must be 32 bytes, or text that stands for the content")


def _request(
    ledger: Ledger, workspace: str, mailstream: str, key: str, recipient_id: str, address: str | None,
    fingerprint: bytes, trigger: dict[str, str | None],
) -> Request:  # fmt: skip
    raw = {
        "mailstream": mailstream,
        "key": key,
        "recipient": {"id": recipient_id, "address": address},
        "trigger": trigger,
    }
    now = datetime.now(UTC)
    read_caller_request(raw, workspace_id=NOWHERE, fingerprint=fingerprint, asked_at=now)
    with ledger.database.transaction(durable=False) as connection:
        workspace_id, known = calls.find_stream(connection, workspace, mailstream)
    if workspace_id is None or not known:
        raise ValueError(f"mailstream: there is no {mailstream!r} in the workspace {workspace!r}")
    return read_caller_request(raw, workspace_id=workspace_id, fingerprint=fingerprint, asked_at=now)


def _begin(ledger: Ledger, request: Request, caller: UUID, windows: Windows) -> calls.Begun:
    """Record the delivery and write the attempt ahead; what this returns is committed."""
    while True:
        begun = None
        try:
            with ledger.database.transaction() as connection:
                begun = calls.begin(
                    connection, ledger.vault, request,
                    caller=caller, windows=windows, environment=ledger.environment,
                )  # fmt: skip
        except psycopg.errors.LockNotAvailable as error:
            soon = datetime.now(UTC) + timedelta(seconds=5)
            raise InProgress(request.send_id, State.PENDING, "busy", soon) from error
        except Exception:
            if begun is not None and begun.started is not None:
                _withdraw(ledger, request, caller, begun.started)
            raise
        if not begun.recorded.gone:
            return begun


def _withdraw(ledger: Ledger, request: Request, caller: UUID, started: Started) -> None:
    """Nobody knows whether this attempt is on record; that it was never written, we know. Else the sweep finds it."""
    finished = unconfirmed(started)
    with suppress(Exception), ledger.database.transaction() as connection:
        calls.conclude(connection, request.workspace_id, caller=caller, finished=finished)


def _call(
    submit: Callable[[str], base.Outcome], send_id: UUID, deadline: base.Deadline
) -> tuple[base.Outcome, Exception | None]:
    if deadline.passed:
        return base.NeverWritten("the submit deadline was over before the call"), None
    try:
        outcome: object = submit(str(send_id))
    except Exception as error:  # where in the call it happened nobody knows
        return base.Ambiguous(error_class=type(error).__name__, reason="submit raised an exception"), error
    if not isinstance(outcome, base.Outcome):
        given = type(outcome).__name__
        return base.Ambiguous(error_class="no_outcome", reason=f"submit returned {given}, not an outcome"), None
    return outcome, None


STORE_TRIES = 6
"""So often an outcome is stored before it is given up, over some fifteen seconds."""


def _store(
    ledger: Ledger, request: Request, caller: UUID, started: Started, outcome: base.Outcome, duration_ms: int
) -> Standing | None:
    finished = as_finished(started, outcome, duration_ms)
    tries = 0
    while True:
        tries += 1
        try:
            with ledger.database.transaction() as connection:
                return calls.conclude(connection, request.workspace_id, caller=caller, finished=finished)
        except (psycopg.Error, SQLAlchemyError, NotCommitted):
            if tries == STORE_TRIES:
                raise
            time.sleep(0.25 * 2**tries)


SOONEST, LATEST = timedelta(seconds=1), timedelta(hours=1)
"""Bounds of ``retry_at``, from now: for a held send nobody knows when it will be decided."""


def _ended(standing: Standing | None, request: Request, *, replayed: bool) -> Outcome:
    """The outcome of a settled send. Raises :class:`InProgress` for any other."""
    if standing is None:
        raise InProgress(request.send_id, State.PENDING, None, datetime.now(UTC) + SOONEST)
    if standing.settled:
        return Outcome(
            send_id=standing.send_id, state=standing.state, reason=standing.reason,
            provider_message_id=standing.provider_message_id, replayed=replayed,
        )  # fmt: skip
    wanted = standing.next_try or standing.changes_at or standing.now + LATEST
    retry_at = min(max(wanted, standing.now + SOONEST), standing.now + LATEST)
    raise InProgress(standing.send_id, standing.state, standing.reason, retry_at)
