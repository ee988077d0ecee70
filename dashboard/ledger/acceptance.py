"""What follows from proof that a provider took a send: evidence wins everywhere (DESIGN §5.5).

Whatever the ledger believed before (pending, claimed, unknown, held, even failed), the send is accepted, its work row
goes, so that no claim of it holds any longer, and its attempts are closed: the one that the evidence names keeps the
provider's message id. A send that was suppressed or cancelled stays so and is marked *taken*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from dashboard.ledger import moves, work
from dashboard.ledger.database import Connection, run
from dashboard.ledger.moves import Target, Who
from dashboard.ledger.work import Work
from dashboard.lifecycle import AttemptStatus, Reason

UNSETTLED = (AttemptStatus.SUBMITTING, AttemptStatus.AMBIGUOUS)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Proof of one acceptance. The attempt number is known where it travels with the message."""

    send_id: UUID
    account_id: UUID | None
    provider_message_id: str | None
    attempt: int | None
    reason: Reason
    event_id: int | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt as far as closing it is concerned."""

    n: int
    account_id: UUID
    status: AttemptStatus
    provider_message_id: str | None


@dataclass(frozen=True, slots=True)
class Closing:
    """What one piece of evidence does to the attempts of its send."""

    accepted: int | None = None
    """This attempt is the one that was taken."""
    names: int | None = None
    """This attempt, accepted already, had no message id yet."""
    second_id: str | None = None
    """The provider holds this send under another id as well: it was accepted more than once."""


class _Replayed(Exception):
    """A send was reopened between the locks on its work row and on itself."""


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """A locked row of ``sends``. ``state`` is ``open`` until it is settled."""

    state: str
    mailstream: str
    address_lookup: bytes | None
    stripped: bool
    """A tombstone: nothing personal may come to it any more."""


@dataclass(frozen=True, slots=True)
class Locked:
    """Sends whose rows this transaction holds: the work rows of those that are open, the ledger rows of all."""

    open: dict[UUID, Work]
    ledger: dict[UUID, LedgerRow]


def lock_sends(connection: Connection, ids: Sequence[UUID]) -> Locked:
    """Lock work rows, then ledger rows, each in the order of their ids.

    A send that is open although no work row of it was found was replayed in between: then the locks are let go and
    taken again.
    """
    while True:
        try:
            with connection.transaction():
                open_sends = work.lock(connection, ids)
                ledger = {row[0]: LedgerRow(*row[1:]) for row in run(connection, "lock_sends", ids=ids).fetchall()}
                if any(row.state == "open" and send_id not in open_sends for send_id, row in ledger.items()):
                    raise _Replayed
                return Locked(open_sends, ledger)
        except _Replayed:
            continue


def accept_on_evidence(
    connection: Connection, who: Who, evidence: Sequence[Evidence], locked: Locked | None = None
) -> set[UUID]:
    """Accept the sends that evidence proves taken. Returns those that were not accepted before. Safe to repeat.

    ``locked``: where the caller has locked them already.
    """
    ids = sorted({e.send_id for e in evidence})
    locked = locked or lock_sends(connection, ids)
    states = {i: row.state for i, row in locked.ledger.items()}
    first = {e.send_id: e for e in reversed(evidence)}
    targets = [Target(send_id=i, reason=first[i].reason, event_id=first[i].event_id) for i in ids]
    moved = moves.accept(connection, who, [t for t in targets if t.send_id in locked.open])
    failed = [t for t in targets if states.get(t.send_id) == "failed"]
    if failed:
        run(
            connection,
            "accept_failed",
            send_id=[t.send_id for t in failed], reason=[str(t.reason) for t in failed],
            event_id=[t.event_id for t in failed], made_by=str(who.by), worker=who.worker, user_id=who.user_id,
        )  # fmt: skip
    stopped = [i for i in ids if states.get(i) in ("suppressed", "cancelled")]
    if stopped:
        run(connection, "mark_taken", ids=stopped)
    _close_attempts(connection, who, evidence)
    return moved | {t.send_id for t in failed}


def _close_attempts(connection: Connection, who: Who, evidence: Sequence[Evidence]) -> None:
    attempts: dict[UUID, list[Attempt]] = {}
    for row in run(connection, "read_attempts", ids=sorted({e.send_id for e in evidence})).fetchall():
        attempts.setdefault(row[0], []).append(Attempt(row[1], row[2], AttemptStatus(row[3]), row[7]))
    taken, named, second, doubted = [], [], [], []
    for e in evidence:
        own = attempts.get(e.send_id, [])
        closing = close(own, e)
        if closing.accepted is not None:
            taken.append((e.send_id, closing.accepted, e.provider_message_id))
        if closing.names is not None:
            named.append((e.send_id, closing.names, e.provider_message_id))
        if closing.second_id is not None:
            second.append((e.send_id, e.account_id, closing.second_id, e.attempt))
        attempts[e.send_id] = [_after(a, closing, e) for a in own]
        doubted += [(e.send_id, a.n) for a in attempts[e.send_id] if a.status is AttemptStatus.SUBMITTING]
    if not (taken or named or second or doubted):
        return
    run(
        connection,
        "close_attempts",
        send_id=[t[0] for t in taken + named], n=[t[1] for t in taken + named],
        provider_message_id=[t[2] for t in taken + named],
        doubted_id=[d[0] for d in doubted], doubted_n=[d[1] for d in doubted], settled_by=str(who.by),
        second_send=[s[0] for s in second], second_account=[s[1] for s in second],
        second_id=[s[2] for s in second], second_attempt=[s[3] for s in second],
    )  # fmt: skip


def close(attempts: Sequence[Attempt], evidence: Evidence) -> Closing:
    """Which attempt the evidence is about: by message id, by attempt number, else the first one in doubt.

    Several in doubt without a number happen only where the provider honours our key, and there the first one that it
    took answers for all.
    """
    message_id = evidence.provider_message_id
    if message_id is not None and any(a.provider_message_id == message_id for a in attempts):
        known = next(a for a in attempts if a.provider_message_id == message_id)
        return Closing(accepted=known.n if known.status in UNSETTLED else None)
    unsettled = [a for a in attempts if a.status in UNSETTLED]
    numbered = next((a for a in attempts if a.n == evidence.attempt), None)
    if numbered is not None and numbered.status in UNSETTLED:
        return Closing(accepted=numbered.n)
    accepted = [a for a in attempts if a.status is AttemptStatus.ACCEPTED]
    if not accepted and unsettled and numbered is None:
        return Closing(accepted=unsettled[0].n)
    if message_id is None:
        return Closing()
    nameless = next((a for a in accepted if a.provider_message_id is None and numbered in (None, a)), None)
    if nameless is not None:
        return Closing(names=nameless.n)
    if accepted or numbered is not None or not unsettled:
        return Closing(second_id=message_id)
    return Closing(accepted=unsettled[0].n)


def _after(attempt: Attempt, closing: Closing, evidence: Evidence) -> Attempt:
    if attempt.n == closing.accepted:
        message_id = attempt.provider_message_id or evidence.provider_message_id
        return Attempt(attempt.n, attempt.account_id, AttemptStatus.ACCEPTED, message_id)
    if attempt.n == closing.names:
        return Attempt(attempt.n, attempt.account_id, attempt.status, evidence.provider_message_id)
    return attempt
