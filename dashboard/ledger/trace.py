"""Everything the ledger knows about a send, read in one round trip, whatever its number of events.

Several sends take the same statements as one. Call :func:`read_trace` and :func:`read_traces` inside
``Database.snapshot()``: their statements then see one moment. A send and its work row are read by one statement in any
case, so that the state is never told from two moments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, LiteralString, TypeVar
from uuid import UUID

from psycopg import Cursor
from psycopg.rows import class_row, dict_row

from dashboard.ledger.contents import opened
from dashboard.ledger.database import Connection, statement
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import AttemptStatus, By

T = TypeVar("T")

LIMIT = 1_000
"""At most so many duplicates, moves and events are read, half of them the oldest and half the newest; ``Trace.more``
says what is left out between them, and ``rows.py`` reads it page by page."""

COUNTED = 100_000
"""What is left out is counted up to here."""

NEIGHBOURS = 25
"""At most so many neighbours by recipient id, and by address in each workspace, before and after the send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """The ledger row. ``settled_state`` is None while the send is open."""

    id: UUID
    workspace_id: UUID
    mailstream: str
    key: str
    recipient_id: str
    fingerprint: bytes
    outbox_id: UUID | None
    run_by: str
    settled_state: str | None
    reason: str | None
    delivery: str | None
    delivery_at: datetime | None
    taken_at: datetime | None
    source: str
    trigger_type: str
    trigger_id: str
    triggered_at: datetime | None
    last_claim: int
    last_attempt: int
    metadata: Mapping[str, object] | None
    asked_at: datetime
    recorded_at: datetime
    due_at: datetime
    settled_at: datetime | None
    stripped_at: datetime | None
    """Since when it is a tombstone: its key, recipient, trigger and message are gone."""
    has_address: bool
    has_body: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work row of an open send: who may do what, and what happens next."""

    state: str
    reason: str
    due_at: datetime
    claim_at: datetime | None
    check_at: datetime | None
    claim_number: int
    claimed_by: UUID | None
    claimed_at: datetime | None
    lease_until: datetime | None
    lapses: int
    last_attempt: int
    counted_attempts: int
    first_attempt_at: datetime | None
    open_attempt: int | None
    submit_deadline: datetime | None
    request_deadline: datetime | None
    ambiguous_since: datetime | None
    settled_after: datetime | None
    unknown_since: datetime | None
    released_by: str | None
    evidence: int
    cancel_reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """The mailstream as it is configured now, and whether it or its whole workspace is paused."""

    name: str
    title: str
    owner: str
    mail_class: str
    unknown_policy: str
    grace: timedelta
    too_late_after: timedelta | None
    late_policy: str
    max_attempts: int
    retry_for: timedelta
    paused_at: datetime | None
    paused_reason: str | None
    workspace_paused_at: datetime | None
    workspace_paused_reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The provider account of the send: fixed by its first attempt, before that the one of its mailstream.

    ``key_window``: how long it honours our idempotency key, None: it does not. ``paused_until`` is None while
    ``paused_for_good`` (until a person resumes it) and while it is not paused.
    """

    name: str
    provider: str
    key_window: timedelta | None
    settling_time: timedelta | None
    paused_until: datetime | None
    paused_for_good: bool
    paused_reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One provider call. ``duration_ms`` is of the call itself, on the worker's clock.

    ``batch``: the call that it shared, with ``together`` sends in all; None: it went alone.
    """

    n: int
    account: str
    provider: str
    idempotency_key: str | None
    worker: UUID
    claim_number: int
    claimed_at: datetime
    started_at: datetime
    submit_deadline: datetime
    request_deadline: datetime
    finished_at: datetime | None
    status: str
    doubted_at: datetime | None
    duration_ms: int | None
    error_class: str | None
    error_code: str | None
    reason: str | None
    phase: str | None
    request_id: str | None
    provider_message_id: str | None
    settled_by: str | None
    batch: UUID | None = None
    together: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """A later delivery of the key. ``difference``: which fields came with other values, never the values."""

    id: int
    source: str
    trigger_type: str | None
    trigger_id: str | None
    triggered_at: datetime | None
    worker: UUID | None
    at: datetime
    state_met: str
    verdict: str
    difference: list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoricMove:
    """A move off the straight path. ``person`` is the name of its maker."""

    id: int
    at: datetime
    move: str
    from_state: str | None
    to_state: str
    made_by: str
    reason: str
    worker: UUID | None
    person: str | None
    claim_number: int | None
    attempt: int | None
    event_id: int | None
    next_try_at: datetime | None
    detail: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A fact that the provider told. ``repeats``: same id again; ``other_ids``: same fact under another id."""

    id: int
    event_id: str
    event_type: str
    occurred_at: datetime
    received_at: datetime
    provider_message_id: str | None
    attempt: int | None
    bounce_class: str | None
    reason: str | None
    machine: bool | None
    repeats: int
    other_ids: int
    matched_by: str
    has_raw: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class MailReply:
    """A mail that answers this send. ``sender`` is masked; ``own_address``: it names the address that the send went to
    as its sender, None: nobody can tell any more. ``matched_by``: address, which was made for this send and cannot be
    guessed, or message_id, which can be copied."""

    id: int
    at: datetime
    received_at: datetime
    automatic: bool
    own_address: bool | None
    sender: str | None
    matched_by: str
    has_content: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondId:
    """Another message id of the provider for this send: it was accepted more than once."""

    provider_message_id: str
    attempt: int | None
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """A time in which only a person could decide. ``waives``: the rules that a decision to resend waives."""

    id: int
    reason: str
    waives: list[str]
    opened_at: datetime
    closed_at: datetime | None
    closed_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionMade:
    """What a person decided on a hold, and why."""

    id: int
    hold_id: int
    person: str
    decision: str
    reason: str
    before_state: str
    after_state: str
    at: datetime
    approved_by: str | None
    """The second person, where one had to agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelAsked:
    """Somebody asked to cancel it while its call was running, or, ``too_late``, after its end. ``id``: in the audit."""

    id: int
    at: datetime
    person: str | None
    reason: str | None
    too_late: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A process that claimed, tried or met this send."""

    id: UUID
    name: str
    version: str
    started_at: datetime
    heartbeat_at: datetime
    stopped_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuppressionRule:
    """What suppressions say about an address now, in force or lifted. ``stored_at``: since when we know it."""

    scope: str
    mailstream: str
    suppressed: bool
    said_at: datetime
    stored_at: datetime
    source: str
    reason: str | None
    person: str | None
    by_send: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Another send to this recipient (same id, or same address in any workspace asked for) within a day."""

    send_id: UUID
    workspace_id: UUID
    workspace: str
    mailstream: str
    key: str
    state: str
    delivery: str | None
    trigger_type: str
    trigger_id: str
    recorded_at: datetime
    same_content: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class More:
    """How many rows were left out, in the middle, because of :data:`LIMIT`."""

    duplicates: int = 0
    moves: int = 0
    events: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """All there is to know about one send. Lists are oldest first; ``workers`` is by id."""

    send: Send
    work: Work | None
    stream: Stream | None
    account: Account | None
    attempts: list[Attempt]
    duplicates: list[Duplicate]
    moves: list[HistoricMove]
    events: list[Event]
    second_ids: list[SecondId]
    replies: list[MailReply]
    holds: list[Hold]
    decisions: list[DecisionMade]
    cancels: list[CancelAsked]
    workers: dict[UUID, Worker]
    suppressions: list[SuppressionRule]
    neighbours: list[Neighbour]
    more: More

    @property
    def state(self) -> str:
        """A word of ``lifecycle.State``; ``open`` only where a work row is missing, which ``verify`` reports."""
        if self.work is not None:
            return self.work.state
        return self.send.settled_state or "open"

    @property
    def deliveries(self) -> int:
        """How often the key arrived: the first time, and its duplicates."""
        return 1 + len(self.duplicates) + self.more.duplicates

    @property
    def accepted_attempts(self) -> list[Attempt]:
        """The attempts that the provider took, as far as is known."""
        return [attempt for attempt in self.attempts if attempt.status == AttemptStatus.ACCEPTED]

    @property
    def claim_winner(self) -> UUID | None:
        """The worker of the claim that led to acceptance. A person's word alone tells of no claim."""
        winner = self.winning_attempt
        return winner.worker if winner else None

    @property
    def winning_attempt(self) -> Attempt | None:
        """The first attempt that the provider is known to have taken, by its own word."""
        return next(iter(self._proved_attempts), None)

    @property
    def _proved_attempts(self) -> list[Attempt]:
        return [a for a in self.accepted_attempts if a.provider_message_id or a.settled_by != By.PERSON]

    def decision_of(self, move: HistoricMove) -> DecisionMade | None:
        """The decision that a person's move carried out."""
        if move.made_by != By.PERSON:
            return None
        return next((d for d in self.decisions if abs(d.at - move.at) < timedelta(seconds=5)), None)

    @property
    def provider_message_ids(self) -> list[str]:
        """All message ids that the provider gave for this send. More than one: accepted more than once."""
        found = [a.provider_message_id for a in self.accepted_attempts] + [
            s.provider_message_id for s in self.second_ids
        ]
        return list(dict.fromkeys(filter(None, found)))

    @property
    def acceptances(self) -> int:
        """How often a provider took it, as far as is known.

        Each message id is one acceptance. An attempt that brought no id of its own, or the same again, is one more only
        where the account does not recognise a repeat: there two accepted calls are two messages, whatever their names.
        What a person counted as accepted is one at most.
        """
        attempts = len(self._proved_attempts) or min(len(self.accepted_attempts), 1)
        if self.account is not None and self.account.key_window is not None:
            # It recognises a repeat by its key, and what went in a batch had that of the batch.
            attempts = min(attempts, len({attempt.idempotency_key for attempt in self.accepted_attempts}))
        return max(attempts, len(self.provider_message_ids))

    @property
    def first_reply(self) -> MailReply | None:
        """The first mail in which a person answered it from the address that it went to."""
        return next((reply for reply in self.replies if reply.own_address and not reply.automatic), None)

    @property
    def open_hold(self) -> Hold | None:
        """The hold that waits for a decision."""
        return next((hold for hold in self.holds if hold.closed_at is None), None)

    def worker_name(self, worker: UUID | None) -> str:
        """A worker as people know it; the start of its id where its row is gone."""
        if worker is None:
            return ""
        known = self.workers.get(worker)
        return known.name if known else str(worker)[:8]


def workspace_of(connection: Connection, send_id: UUID) -> UUID | None:
    """Whose send this is; None where nobody has one of that id."""
    row = connection.execute("select workspace_id from sendonce.sends where id = %s", (send_id,)).fetchone()
    return row[0] if row else None


def read_trace(connection: Connection, workspace_id: UUID, send_id: UUID, *, also: Sequence[UUID] = ()) -> Trace | None:
    """The trace of a send of this workspace; None where it has none of that id.

    ``also``: further workspaces whose sends to the same address count as neighbours.
    """
    bind = {"workspace_id": workspace_id, "workspace_ids": [workspace_id, *also], "send_id": send_id}
    with connection.pipeline():
        traces = _Reading(connection, [workspace_id], [send_id])
        rows = connection.cursor(row_factory=class_row(Neighbour))
        rows.execute(statement("read_trace_neighbours"), {**bind, "limit": NEIGHBOURS}, binary=True)
    found = traces.done().get(send_id)
    return found and replace(found, neighbours=rows.fetchall())


def read_traces(connection: Connection, workspace_ids: Sequence[UUID], send_ids: Sequence[UUID]) -> dict[UUID, Trace]:
    """The traces of those of these sends that these workspaces have, the oldest first; without their neighbours."""
    with connection.pipeline():
        traces = _Reading(connection, workspace_ids, send_ids)
    return traces.done()


class _Reading:
    """The statements of some traces, under way: they are sent when it is made, and read when it is done."""

    def __init__(self, connection: Connection, workspace_ids: Sequence[UUID], send_ids: Sequence[UUID]) -> None:
        self._connection = connection
        self._bind = {
            "workspace_ids": list(workspace_ids), "send_ids": list(send_ids), "limit": LIMIT, "cap": COUNTED,
        }  # fmt: skip
        self._facts = self._ask("send")
        self._stream = self._of_send(Stream, "stream")
        self._account = self._of_send(Account, "account")
        self._attempts = self._of_send(Attempt, "attempts")
        self._duplicates = self._of_send(Duplicate, "duplicates")
        self._moves = self._of_send(HistoricMove, "moves")
        self._events = self._of_send(Event, "events")
        self._second_ids = self._of_send(SecondId, "second_ids")
        self._replies = self._of_send(MailReply, "replies")
        self._holds = self._of_send(Hold, "holds")
        self._decisions = self._of_send(DecisionMade, "decisions")
        self._cancels = self._of_send(CancelAsked, "cancels")
        self._suppressions = self._of_send(SuppressionRule, "suppressions")
        self._workers = self._ask("workers")

    def done(self) -> dict[UUID, Trace]:
        """The traces by send id."""
        workers = {row["id"]: Worker(**row) for row in self._workers}
        stream, account, attempts = self._stream(), self._account(), self._attempts()
        duplicates, moves, events, second_ids = self._duplicates(), self._moves(), self._events(), self._second_ids()
        replies = self._replies()
        holds, decisions, cancels = self._holds(), self._decisions(), self._cancels()
        suppressions = self._suppressions()
        found = {}
        for row in self._facts:
            work, count = _prefixed(row, "work_"), _prefixed(row, "count_")
            send = Send(**row)
            found[send.id] = Trace(
                send=send,
                work=Work(**work) if work["state"] is not None else None,
                stream=next(iter(stream.get(send.id, ())), None),
                account=next(iter(account.get(send.id, ())), None),
                attempts=attempts.get(send.id, []),
                duplicates=duplicates.get(send.id, []),
                moves=moves.get(send.id, []),
                events=events.get(send.id, []),
                second_ids=second_ids.get(send.id, []),
                replies=replies.get(send.id, []),
                holds=holds.get(send.id, []),
                decisions=decisions.get(send.id, []),
                cancels=cancels.get(send.id, []),
                workers=workers,
                suppressions=suppressions.get(send.id, []),
                neighbours=[],
                more=More(**{name: max(0, counted - LIMIT) for name, counted in count.items()}),
            )
        return found

    def _ask(self, part: str) -> Cursor[dict[str, Any]]:
        rows = self._connection.cursor(row_factory=dict_row)
        return rows.execute(statement(f"read_trace_{part}"), self._bind, binary=True)

    def _of_send(self, kind: type[T], part: str) -> Callable[[], dict[UUID, list[T]]]:
        """Ask for rows of this kind; the answer gives those of each send, in their order."""
        rows = self._ask(part)

        def by_send() -> dict[UUID, list[T]]:
            found: dict[UUID, list[T]] = {}
            for row in rows:
                found.setdefault(row.pop("send_id"), []).append(kind(**row))
            return found

        return by_send


def _prefixed(row: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Take the columns of that prefix out of a row."""
    return {name.removeprefix(prefix): row.pop(name) for name in list(row) if name.startswith(prefix)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePreview:
    """The frozen message, decrypted."""

    sender: str
    reply_to: str | None
    subject: str
    text: str | None
    html: str | None
    headers: Mapping[str, str]


def read_address(connection: Connection, vault: Vault, send_id: UUID) -> str | None:
    """The address of a send, decrypted: whoever calls this audits it. None once it is scrubbed. Raises Unreadable."""
    stored = _stored(connection, "select address from sendonce.messages where send_id = %s::uuid", send_id)
    return None if stored is None else vault.decrypt(stored, send_id.bytes).decode()


def read_message(connection: Connection, vault: Vault, send_id: UUID) -> MessagePreview | None:
    """The message of a send, decrypted: whoever calls this audits it. None once scrubbed. Raises Unreadable."""
    stored = _stored(connection, "select body from sendonce.messages where send_id = %s::uuid", send_id)
    if stored is None:
        return None
    content = opened(vault, send_id, stored)
    return MessagePreview(
        sender=content["from"],
        reply_to=content["reply_to"],
        subject=content["subject"],
        text=content["text"],
        html=content["html"],
        headers=content["headers"],
    )


def _stored(connection: Connection, query: LiteralString, send_id: UUID) -> bytes | None:
    row = connection.execute(query, (send_id,), binary=True).fetchone()
    return None if row is None else row[0]
