"""What is open: claiming it, seeing how it stands, and finding the claims whose workers are gone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from dashboard.ledger.accounts import TROUBLES_TO_PAUSE
from dashboard.ledger.database import Connection, Row, run, transposed
from dashboard.lifecycle import By, MailClass, RunBy, State

BULK_SHARE = 10
"""One in this many places is kept for the bulk classes, so that a flood of urgent mail never starves them."""


class Claim(NamedTuple):
    """One worker's temporary ownership of one send."""

    send_id: UUID
    number: int
    mail_class: MailClass


@dataclass(frozen=True, slots=True)
class Work:
    """A work row as it stood when it was locked."""

    send_id: UUID
    workspace_id: UUID
    mailstream: str
    state: State
    run_by: RunBy
    account_id: UUID | None
    claim_number: int
    claimed_by: UUID | None
    lapses: int
    last_attempt: int
    counted_attempts: int
    first_attempt_at: datetime | None
    open_attempt: int | None
    ambiguous_since: datetime | None
    settled_after: datetime | None
    released_by: By | None
    evidence: int
    cancel_reason: str | None
    cancelled_by: UUID | None
    due_at: datetime
    recorded_at: datetime
    unknown_since: datetime | None
    waived: list[str] | None

    @property
    def ambiguous(self) -> bool:
        """Some attempt may have been taken."""
        return self.ambiguous_since is not None


def claim(connection: Connection, *, worker: UUID, limit: int, lease: timedelta, turn: int = 0) -> list[Claim]:
    """Claim up to ``limit`` sends that are due: urgent classes first, mailstreams in turn, a tenth for bulk."""
    found = run(connection, "read_claimable_streams", troubles=TROUBLES_TO_PAUSE).fetchall()
    streams = [(row[0], row[1], MailClass(row[2]), row[3]) for row in found]
    if not streams:
        return []
    quotas = shares([mail_class for _, _, mail_class, _ in streams], limit, turn)
    # Of an account that was in trouble one is tried first: more would only be claimed to be given back.
    wanted = [(w, m, 1 if troubled else n) for (w, m, _, troubled), n in zip(streams, quotas, strict=True) if n]
    workspaces, names, numbers = transposed(wanted, 3)
    rows = run(
        connection,
        "claim_work",
        workspace_id=workspaces,
        mailstream=names,
        quota=numbers,
        worker=worker,
        lease=lease,
    ).fetchall()
    return [Claim(row[0], row[1], MailClass(row[2])) for row in rows]


def shares(classes: Sequence[MailClass], places: int, turn: int) -> list[int]:
    """How many places each waiting mailstream gets, given their classes in claiming order.

    The most urgent group takes all, its mailstreams in equal parts; where urgent and bulk mail both wait, a tenth
    stays for bulk (over the turns, where ten places are more than there are). ``turn`` counts the rounds, so that the
    odd place goes to each mailstream in turn. Who gets nothing has its time when the group before it is drained.
    """
    groups = [_GROUPS.get(mail_class, "bulk") for mail_class in classes]
    given = [0] * len(classes)
    reserved = 0
    if groups[0] != "bulk" and "bulk" in groups:
        reserved = places * (turn + 1) // BULK_SHARE - places * turn // BULK_SHARE
        _divide(given, groups, "bulk", reserved, turn)
    _divide(given, groups, groups[0], places - reserved, turn)
    return given


_GROUPS = {MailClass.SECURITY: "security", MailClass.TRANSACTIONAL: "transactional"}


def _divide(given: list[int], groups: Sequence[str], group: str, places: int, turn: int) -> None:
    members = [i for i, g in enumerate(groups) if g == group]
    each, more = divmod(places, len(members))
    for position, i in enumerate(members):
        given[i] = each + ((position - turn) % len(members) < more)


def lock(connection: Connection, send_ids: Iterable[UUID]) -> dict[UUID, Work]:
    """Lock the work rows of these sends, in the order of their ids. A settled send is not in the result."""
    rows = run(connection, "lock_work", ids=list(send_ids)).fetchall()
    return {row[0]: _work(row) for row in rows}


def only_lock(connection: Connection, send_ids: Iterable[UUID]) -> None:
    """Lock the work rows of these sends, in the order of their ids, for who reads them in a later statement."""
    connection.execute(
        "select from sendonce.work where send_id = any(%b::uuid[]) order by send_id for update", [list(send_ids)]
    )


def lock_lapsed(connection: Connection, *, limit: int) -> dict[UUID, Work]:
    """Lock claims past their lease, whoever holds them."""
    ids = [row[0] for row in run(connection, "lock_lapsed_claims", limit=limit).fetchall()]
    return lock(connection, ids)


def _work(row: Row) -> Work:
    fields = dict(zip(Work.__slots__, row, strict=True))
    fields["state"] = State(fields["state"])
    fields["run_by"] = RunBy(fields["run_by"])
    fields["released_by"] = By(fields["released_by"]) if fields["released_by"] else None
    return Work(**fields)
