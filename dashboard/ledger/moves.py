"""The moves of the state machine, each one set-based statement; one send is a set of one.

Which states a move may start from comes from ``lifecycle``; nothing else writes a state. Each statement locks its rows
in the order of their ids, is fenced by state and, for a worker's own claim, by claim number *and* worker, writes its
history beside the change, and returns what it moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from dashboard import lifecycle
from dashboard.ledger.database import Connection, run
from dashboard.lifecycle import By, Move, State

FOREVER = datetime.max.replace(tzinfo=UTC)
"""A held send waits for a person; ``set_aside_work`` names an end where its mailstream cancels what is late."""


@dataclass(frozen=True, slots=True)
class Who:
    """Who makes a move. Where a target names a claim number, that claim must be this ``worker``'s own."""

    by: By
    worker: UUID | None = None
    user_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One send that is asked to move, and with what."""

    send_id: UUID
    reason: str
    claim_number: int | None = None
    """Where given, only the claim of this number and worker may make the move."""
    at: datetime | None = None
    """When it may be claimed again (to pending), or is looked at next (to unknown, held)."""
    uncounted: bool = False
    """The last attempt does not count against the send: the trouble was the account's."""
    ambiguous_since: datetime | None = None
    settled_after: datetime | None = None
    waives: tuple[str, ...] = ()
    event_id: int | None = None


def give_back(connection: Connection, who: Who, targets: Sequence[Target], *, lapses: int = 0) -> set[UUID]:
    """Claimed → pending: no attempt was made, or the one made is proved never written."""
    return _reopen(connection, lifecycle.GIVE_BACK, who, targets, lapses=lapses)


def retry_later(connection: Connection, who: Who, targets: Sequence[Target], *, proved: bool = False) -> set[UUID]:
    """Claimed → pending after a definite refusal, or unknown → pending where that refusal settles the last doubt."""
    return _reopen(connection, lifecycle.RETRY_LATER, who, targets, proved=proved)


def release(
    connection: Connection, who: Who, targets: Sequence[Target], *, waived: Sequence[str] = (), proved: bool = False
) -> set[UUID]:
    """Unknown or held → pending: one further attempt is allowed, by policy or a person, or nothing is in doubt."""
    return _reopen(
        connection, lifecycle.RELEASE, who, targets,
        released_by=None if proved else who.by, waived=list(waived) or None, proved=proved,
    )  # fmt: skip


def doubt(connection: Connection, who: Who, targets: Sequence[Target]) -> set[UUID]:
    """Claimed → unknown: an attempt may have been taken."""
    return _set_aside(connection, lifecycle.DOUBT, State.UNKNOWN, who, targets)


def hold(connection: Connection, who: Who, targets: Sequence[Target]) -> set[UUID]:
    """Pending, claimed or unknown → held: a person decides."""
    return _set_aside(connection, lifecycle.HOLD, State.HELD, who, targets)


def accept(connection: Connection, who: Who, targets: Sequence[Target]) -> set[UUID]:
    """Any open state → accepted, on evidence. (A failed send has no work row: see ``acceptance``.)"""
    return _settle(connection, lifecycle.ACCEPT, State.ACCEPTED, who, targets)


def fail(connection: Connection, who: Who, targets: Sequence[Target]) -> set[UUID]:
    """Claimed, unknown or held → failed: every attempt was refused or never written."""
    return _settle(connection, lifecycle.FAIL, State.FAILED, who, targets)


def suppress(connection: Connection, who: Who, targets: Sequence[Target]) -> set[UUID]:
    """Pending or claimed → suppressed."""
    return _settle(connection, lifecycle.SUPPRESS, State.SUPPRESSED, who, targets)


def cancel(connection: Connection, who: Who, targets: Sequence[Target]) -> set[UUID]:
    """Any open state without an open attempt → cancelled."""
    return _settle(connection, lifecycle.CANCEL, State.CANCELLED, who, targets)


def _reopen(
    connection: Connection,
    move: Move,
    who: Who,
    targets: Sequence[Target],
    *,
    lapses: int = 0,
    released_by: By | None = None,
    waived: list[str] | None = None,
    proved: bool = False,
) -> set[UUID]:
    if not targets:
        return set()
    return _moved(
        connection, "reopen_work", move, who, targets,
        claim_at=[t.at for t in targets], uncounted=[int(t.uncounted) for t in targets], lapses=lapses,
        released_by=released_by and str(released_by), waived=waived, proved=proved,
    )  # fmt: skip


def _set_aside(connection: Connection, move: Move, to: State, who: Who, targets: Sequence[Target]) -> set[UUID]:
    if not targets:
        return set()
    return _moved(
        connection, "set_aside_work", move, who, targets,
        to_state=str(to), check_at=[t.at or FOREVER for t in targets],
        ambiguous_since=[t.ambiguous_since for t in targets], settled_after=[t.settled_after for t in targets],
        waives=[",".join(t.waives) for t in targets],
    )  # fmt: skip


def _settle(connection: Connection, move: Move, to: State, who: Who, targets: Sequence[Target]) -> set[UUID]:
    if not targets:
        return set()
    return _moved(
        connection, "settle_work", move, who, targets, to_state=str(to), event_id=[t.event_id for t in targets]
    )


def _moved(
    connection: Connection, statement: str, move: Move, who: Who, targets: Sequence[Target], **parameters: object
) -> set[UUID]:
    rows = run(
        connection,
        statement,
        send_id=[t.send_id for t in targets],
        claim_number=[t.claim_number for t in targets],
        reason=[str(t.reason) for t in targets],
        move=move.name,
        made_by=str(who.by),
        worker=who.worker,
        from_states=[str(state) for state in move.from_states if state is not None],
        **({} if statement == "set_aside_work" else {"user_id": who.user_id}),
        **parameters,
    ).fetchall()
    return {row[0] for row in rows}
