"""Provider events: stored once, matched to their send, folded into it, in one transaction (DESIGN §5.15 and §5.16).

The fold is a commutative, idempotent merge: any order and any repetition of the same events gives the same send. Events
of no known send are kept in ``unmatched`` and looked at again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from dashboard.identity import BadAddress
from dashboard.ledger import acceptance, suppressions
from dashboard.ledger.acceptance import Evidence, LedgerRow, Locked
from dashboard.ledger.database import Connection, run, transposed
from dashboard.ledger.moves import Who
from dashboard.ledger.recording import mark_dirty
from dashboard.ledger.suppressions import Statement
from dashboard.ledger.tables import SuppressionScope
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import DELIVERY_OF_EVENT, PROVES_ACCEPTANCE, By, EventType, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One event as a provider told it, in the common vocabulary. Empty text stands for an absent event id."""

    event_type: EventType
    event_id: str
    event_day: str = ""
    provider_message_id: str | None = None
    send_id: str | None = None
    attempt: int | None = None
    recipient: str | None = None
    occurred_at: datetime | None = None
    bounce_class: str | None = None
    reason: str | None = None
    machine: bool | None = None
    url: str | None = None
    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class Intake:
    """What became of one request's events."""

    stored: int
    repeated: int
    unmatched: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """A row of ``events`` or ``unmatched``; the order of the fields is the order of the statements' parameters."""

    workspace_id: UUID
    account_id: UUID
    event_id: str
    event_day: str
    recipient: bytes
    fact: bytes
    provider_message_id: str | None
    attempt: int | None
    event_type: EventType
    occurred_at: datetime
    received_at: datetime
    bounce_class: str | None
    reason: str | None
    machine: bool | None
    url: str | None
    raw: bytes | None
    send_id: Any
    """In ``events`` the send's UUID; in ``unmatched`` the id that the provider echoed, None without one."""
    matched_by: str | None


def ingest(
    connection: Connection,
    vault: Vault,
    *,
    workspace_id: UUID,
    account_id: UUID,
    told: Sequence[Told],
    received_at: datetime,
    by: By = By.EVENT,
) -> Intake:
    """Store the events of one verified request and fold them. Answer the provider only after the commit.

    ``by``: who brings them; the reconciler, where the provider did not tell but was asked.
    """
    rows = [_row(vault, workspace_id, account_id, event, received_at) for event in told]
    matches = {
        row[0]: (row[1], row[2])
        for row in run(
            connection,
            "match_events",
            i=list(range(len(rows))), send_id=[row.send_id for row in rows],
            provider_message_id=[row.provider_message_id for row in rows],
            account_id=account_id, workspace_id=workspace_id,
        ).fetchall()
    }  # fmt: skip
    matched = [replace(rows[i], send_id=m[0], matched_by=m[1]) for i, m in sorted(matches.items())]
    # Nobody holds a lock for these, so two requests insert them in one order.
    unmatched = sorted((row for i, row in enumerate(rows) if i not in matches), key=lambda row: row.fact)
    repeated = len(matched) - _store_and_fold(connection, matched, by=by)
    kept = _keep(connection, unmatched)
    return Intake(len(matched) - repeated, repeated + len(unmatched) - kept, kept)


def rematch(
    connection: Connection,
    *,
    send_ids: Sequence[UUID] = (),
    message_ids: Sequence[str] = (),
    after: int | None = None,
    limit: int = 1000,
) -> int:
    """Match kept events again: those of these sends or message ids, or all behind ``after``. Returns how many.

    Their sends are locked before the events are taken: whoever holds a send misses none of its events, and waits for
    nobody who waits for that send.
    """
    found = run(
        connection,
        "find_unmatched",
        send_ids=list(send_ids), message_ids=list(message_ids), after=after, limit=limit,
    ).fetchall()  # fmt: skip
    if not found:
        return 0
    locked = acceptance.lock_sends(connection, sorted({row[1] for row in found}))
    kept, sends, matched_by = transposed(found, 3)
    rows = run(connection, "take_unmatched", id=kept, send_id=sends, matched_by=matched_by).fetchall()
    names = list(_Event.__slots__)
    events = [_Event(**dict(zip(names, row[:-2], strict=True))) for row in rows]
    _store_and_fold(connection, [replace(e, event_type=EventType(e.event_type)) for e in events], locked)
    told_again = [(e.fact, *row[-2:]) for e, row in zip(events, rows, strict=True) if any(row[-2:])]
    if told_again:
        facts, repeats, other_ids = transposed(told_again, 3)
        run(connection, "carry_repeats", fact=facts, repeats=repeats, other_ids=other_ids)
    return len(events)


def _row(vault: Vault, workspace_id: UUID, account_id: UUID, told: Told, received_at: datetime) -> _Event:
    try:
        recipient = vault.lookup(told.recipient) if told.recipient else b""
    except BadAddress:
        recipient = b""
    said = (
        account_id, told.send_id, told.provider_message_id, told.event_type, recipient.hex(),
        told.occurred_at and told.occurred_at.isoformat(), told.url,
    )  # fmt: skip
    fact = hashlib.sha256("\x1f".join("" if part is None else str(part) for part in said).encode()).digest()
    return _Event(
        workspace_id=workspace_id,
        account_id=account_id,
        event_id=told.event_id[:500],
        event_day=told.event_day,
        recipient=recipient,
        fact=fact,
        provider_message_id=told.provider_message_id and told.provider_message_id[:500],
        attempt=told.attempt,
        event_type=told.event_type,
        occurred_at=told.occurred_at or received_at,
        received_at=received_at,
        bounce_class=told.bounce_class,
        reason=told.reason and told.reason[:1000],
        machine=told.machine,
        url=told.url and told.url[:2000],
        raw=vault.encrypt(told.raw, fact) if told.raw else None,
        send_id=_uuid(told.send_id),
        matched_by=None,
    )


def _uuid(text: str | None) -> UUID | None:
    try:
        return UUID(text) if text else None
    except ValueError:
        return None


# ── storing and folding ──────────────────────────────────────────────────────────────────────────────────────────────


def _store_and_fold(
    connection: Connection, events: Sequence[_Event], locked: Locked | None = None, *, by: By = By.EVENT
) -> int:
    """Lock the sends, unless the caller has, store what is new, fold that. Returns how many were new."""
    if not events:
        return 0
    locked = locked or acceptance.lock_sends(connection, sorted({e.send_id for e in events}))
    kept = [_bare(event) if locked.ledger[event.send_id].stripped else event for event in events]
    stored = {row[1]: row[0] for row in run(connection, "insert_events", **_columns(kept)).fetchall()}
    new = [event for event in _first_of_each(events) if event.fact in stored]
    if len(new) < len(events):
        told_again = {id(event) for event in _repeats(events, new)}
        again = [bare for event, bare in zip(events, kept, strict=True) if id(event) in told_again]
        _count_repeats(connection, "count_repeats_in_events", again)
    _fold(connection, new, stored, locked, by=by)
    return len(new)


def _bare(event: _Event) -> _Event:
    """An event of a tombstone, stored as retention left the others: ``strip_sends.sql``."""
    return replace(event, recipient=event.send_id.bytes, raw=None, reason=None, url=None)


def _first_of_each(events: Sequence[_Event]) -> list[_Event]:
    seen: dict[bytes, _Event] = {}
    for event in events:
        seen.setdefault(event.fact, event)
    return list(seen.values())


def _repeats(events: Sequence[_Event], new: Sequence[_Event]) -> list[_Event]:
    fresh = {id(event) for event in new}
    return [event for event in events if id(event) not in fresh]


def _keep(connection: Connection, events: Sequence[_Event]) -> int:
    """Keep events of no known send. Returns how many were not kept before."""
    if not events:
        return 0
    columns = _columns(events)
    del columns["matched_by"]
    stored = {row[1] for row in run(connection, "insert_unmatched", **columns).fetchall()}
    new = [event for event in _first_of_each(events) if event.fact in stored]
    if len(new) < len(events):
        _count_repeats(connection, "count_repeats_in_unmatched", _repeats(events, new))
    return len(new)


def _columns(events: Sequence[_Event]) -> dict[str, list[object]]:
    names = list(_Event.__slots__)
    rows = [[getattr(event, name) for name in names] for event in events]
    columns = dict(zip(names, transposed(rows, len(names)), strict=True))
    columns["event_type"] = [str(word) for word in columns["event_type"]]
    return columns


def _count_repeats(connection: Connection, statement: str, events: Sequence[_Event]) -> None:
    columns = _columns(events)
    names = ("account_id", "event_id", "event_day", "recipient", "fact")
    run(connection, statement, **{name: columns[name] for name in names})


def _fold(
    connection: Connection, events: Sequence[_Event], stored: dict[bytes, int], locked: Locked, *, by: By
) -> None:
    if not events:
        return
    proofs = [
        Evidence(e.send_id, e.account_id, e.provider_message_id, e.attempt, Reason.EVENT, stored[e.fact])
        for e in events
        if e.send_id and e.event_type in PROVES_ACCEPTANCE
    ]
    if proofs:
        acceptance.accept_on_evidence(connection, Who(by), proofs, locked)
    rest = [e.send_id for e in events if e.event_type not in PROVES_ACCEPTANCE]
    if rest:
        run(connection, "raise_evidence", send_id=rest)
    words = [(e.send_id, str(w), e.occurred_at) for e in events if (w := DELIVERY_OF_EVENT.get(e.event_type))]
    if words:
        ids, delivery, times = transposed(words, 3)
        run(connection, "fold_delivery", send_id=ids, word=delivery, at=times)
    rows = locked.ledger
    suppressions.say(connection, [s for e in events if (s := _statement(e, rows[e.send_id])) is not None])
    happened = [(e.workspace_id, rows[e.send_id].mailstream, min(e.occurred_at, e.received_at)) for e in events]
    mark_dirty(connection, happened)


def _statement(event: _Event, send: LedgerRow) -> Statement | None:
    """What an event says about its recipient: the provider's own word for who that is, else whom we sent it to."""
    scope = suppressions.reach(event.event_type, event.bounce_class)
    address = event.recipient or send.address_lookup
    if scope is None or not address:
        return None
    return Statement(
        workspace_id=event.workspace_id, address_lookup=address, scope=scope,
        mailstream=send.mailstream if scope is SuppressionScope.STREAM else "",
        suppressed=event.event_type is not EventType.RESUBSCRIBED, said_at=event.occurred_at,
        source=str(event.event_type), account_id=event.account_id, event_id=event.event_id, send_id=event.send_id,
        reason=event.reason,
    )  # fmt: skip
