"""Held sends and what people decide about them (DESIGN §5.14)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from dashboard.ledger import acceptance, audit, moves
from dashboard.ledger.acceptance import Evidence
from dashboard.ledger.database import Connection, Row, database_now, run, statement
from dashboard.ledger.moves import Target, Who
from dashboard.lifecycle import By, Decision, Reason, State


@dataclass(frozen=True, slots=True)
class OpenHold:
    """A held send with what a person needs to decide about it."""

    hold_id: int
    send_id: UUID
    mailstream: str
    key: str
    recipient_id: str
    account_id: UUID
    account: str
    provider: str
    reason: Reason
    waives: list[str]
    """The rules that a decision to resend waives for one attempt."""
    opened_at: datetime
    evidence: int
    """The number of the newest evidence; a decision is refused if more has come since."""
    attempts: int
    first_attempt_at: datetime | None
    ambiguous_since: datetime | None
    settled_after: datetime | None
    """Before this moment an unanswered call may still be running: nobody may release the send."""
    key_protects_until: datetime | None
    """Until when the provider would recognise a repeat by its idempotency key. None: it would not."""
    error_class: str | None
    error_code: str | None
    error: str | None
    phase: str | None
    last_attempt_at: datetime | None
    due_at: datetime
    cancel_remembered: bool
    """Somebody cancelled it while its call was running: released, it would become cancelled (DESIGN §5.12)."""
    second_person: bool
    """Its mailstream has each decision agreed to by a second person."""
    useful_until: datetime | None
    """Undecided by then, it is cancelled: its mailstream wants it no more. None: it waits as long as it takes."""
    together: int
    """How many sends its unanswered call carried in all; alone it is protected by no key then. 0: it was not shared."""

    @property
    def choices(self) -> tuple[Decision, ...]:
        """What may be decided: *mark accepted* only where something may have been accepted, *resend* only where it is
        what happens."""
        resend = () if self.cancel_remembered else (Decision.RESEND,)
        mark = (Decision.MARK_ACCEPTED,) if self.ambiguous_since else ()
        return (*resend, *mark, Decision.CANCEL)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldFilter:
    """Which held sends; all that is given must fit."""

    mailstream: str | None = None
    account: str | None = None
    """The name of the account whose attempt is in doubt, or that would be used."""
    reason: str | None = None
    failure: str | None = None
    """The error class of the last attempt."""


EVERY_HOLD = HoldFilter()


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision was carried out."""

    send_id: UUID
    state: State


@dataclass(frozen=True, slots=True)
class Refused:
    """The decision was not carried out; the reason is for the person who made it."""

    reason: str


def open_holds(
    connection: Connection,
    workspace_id: UUID,
    *,
    filters: HoldFilter = EVERY_HOLD,
    after: tuple[datetime, int] | None = None,
    limit: int = 50,
) -> list[OpenHold]:
    """Held sends, the oldest first; ``after`` is (opened_at, hold_id) of the last one of the page before."""
    return _holds(
        connection.execute(
            statement("read_held"), _bind(workspace_id, filters, after=after, limit=limit), binary=True
        ).fetchall()
    )


def read_holds(connection: Connection, workspace_id: UUID, hold_ids: Collection[int]) -> dict[int, OpenHold]:
    """Those of these holds that are still open in the workspace."""
    bind = _bind(workspace_id, EVERY_HOLD, limit=len(hold_ids), hold_ids=hold_ids)
    rows = connection.execute(statement("read_held"), bind, binary=True).fetchall()
    return {hold.hold_id: hold for hold in _holds(rows)}


def hold_of_send(connection: Connection, workspace_id: UUID, send_id: UUID) -> OpenHold | None:
    """The open hold of a send of the workspace."""
    row = connection.execute(
        "select id from sendonce.holds where send_id = %s and workspace_id = %s and closed_at is null",
        (send_id, workspace_id),
    ).fetchone()
    return read_holds(connection, workspace_id, [row[0]]).get(row[0]) if row else None


def _bind(
    workspace_id: UUID, filters: HoldFilter, *, after: tuple[datetime, int] | None = None, limit: int,
    hold_ids: Collection[int] | None = None,
) -> dict[str, object]:  # fmt: skip
    after_at, after_id = after or (None, None)
    return {
        "workspace_id": workspace_id, "after_at": after_at, "after_id": after_id, "limit": limit, **asdict(filters),
        "hold_ids": None if hold_ids is None else sorted(hold_ids),
    }  # fmt: skip


def _holds(rows: Iterable[Row]) -> list[OpenHold]:
    holds = [OpenHold(**dict(zip(OpenHold.__slots__, row, strict=True))) for row in rows]
    return [replace(hold, reason=Reason(hold.reason)) for hold in holds]


COUNTED = 10_000
"""So many held sends are grouped, those that have waited longest."""
INCIDENTS = 12


@dataclass(frozen=True, slots=True)
class Incident:
    """Held sends with the same trouble at one account. ``failure``: the error class of their last attempts."""

    account: str
    provider: str
    reason: Reason
    failure: str | None
    sends: int
    first_at: datetime
    last_at: datetime
    mailstreams: list[str]


def read_incidents(connection: Connection, workspace_id: UUID) -> list[Incident]:
    """What went wrong with the held sends that have waited longest, the greatest group first."""
    rows = run(connection, "read_incidents", workspace_id=workspace_id, counted=COUNTED, limit=INCIDENTS).fetchall()
    return [replace(Incident(*row), reason=Reason(row[2])) for row in rows]


SECOND_PERSON_NEEDED = "This mailstream has each decision agreed to by a second person: propose it."


def decide(
    connection: Connection,
    *,
    workspace_id: UUID,
    hold_id: int,
    user_id: UUID,
    decision: Decision,
    reason: str,
    evidence: int,
    send_id: UUID | None = None,
    approved_by: UUID | None = None,
    proposal_id: UUID | None = None,
) -> Decided | Refused:
    """Carry out what a person decided, if the hold is still open and nothing was heard since they looked.

    ``send_id``: where given, the hold must be of this send, so that nobody decides about another one than they saw.
    ``approved_by``: the second person who agreed; where the mailstream wants one, nothing is decided without.
    ``proposal_id``: the decision about many that this one is part of.

    The decision, the move and the audit row are stored together. Resending waives, for one attempt, exactly the rules
    named on the hold; suppression and later evidence still count.
    """
    if not reason.strip():
        return Refused("Give a reason: it stands beside the decision for whoever looks at it later.")
    found = read_holds(connection, workspace_id, [hold_id]).get(hold_id)
    if found is None:
        return Refused("This send is not held any more: somebody decided already, or evidence settled it.")
    if send_id not in (None, found.send_id):
        return Refused("This decision belongs to another send. Open the page of the send again, then decide.")
    send_id = found.send_id
    acceptance.lock_sends(connection, [send_id])
    held = read_holds(connection, workspace_id, [hold_id]).get(hold_id)  # read again, now that it is locked
    if held is None:
        return Refused("This send is not held any more: somebody decided already, or evidence settled it.")
    if held.evidence != evidence:
        return Refused("Something was heard about this send since you opened the page. Look again, then decide.")
    if held.second_person and approved_by is None:
        return Refused(SECOND_PERSON_NEEDED)
    if decision is Decision.RESEND and held.cancel_remembered:
        return Refused(
            "It was cancelled while its call was running, so it cannot be submitted again. Cancel it here too."
        )
    if decision not in held.choices:
        return Refused("No attempt of this send is in doubt, so that nothing can have been accepted.")
    if decision is Decision.RESEND and held.settled_after and database_now(connection) < held.settled_after:
        return Refused(
            f"The unanswered call may still be running until {held.settled_after:%H:%M:%S} UTC. Wait for that."
        )
    after = _carry_out(connection, held, decision, user_id)
    connection.execute(
        "insert into sendonce.decisions (hold_id, send_id, workspace_id, user_id, decision, reason, evidence, seen,"
        " before_state, after_state, approved_by, proposal_id, at)"
        " values (%s, %s, %s, %s, %s, %s, %s, %s, 'held', %s, %s, %s, clock_timestamp())",
        (
            hold_id, send_id, workspace_id, user_id, decision, reason.strip(), evidence, Jsonb(_seen(held)), after,
            approved_by, proposal_id,
        ),
    )  # fmt: skip
    audit.record(
        connection, _AUDITED[decision], workspace_id=workspace_id, user_id=user_id, subject=send_id,
        reason=reason.strip(),
        detail={"hold": hold_id, "waives": held.waives, "evidence": evidence}
        | ({"proposal": str(proposal_id)} if proposal_id else {}),
    )  # fmt: skip
    return Decided(send_id, after)


_AUDITED = {
    Decision.RESEND: audit.Action.HELD_RESEND,
    Decision.MARK_ACCEPTED: audit.Action.HELD_MARK_ACCEPTED,
    Decision.CANCEL: audit.Action.HELD_CANCEL,
}


def _carry_out(connection: Connection, held: OpenHold, decision: Decision, user_id: UUID) -> State:
    who = Who(By.PERSON, user_id=user_id)
    match decision:
        case Decision.RESEND:
            target = Target(send_id=held.send_id, reason=Reason.RELEASED_BY_PERSON)
            moves.release(connection, who, [target], waived=held.waives)
            return State.PENDING
        case Decision.MARK_ACCEPTED:
            proof = Evidence(held.send_id, held.account_id, None, None, Reason.MARKED_BY_PERSON)
            acceptance.accept_on_evidence(connection, who, [proof])
            return State.ACCEPTED
        case Decision.CANCEL:
            moves.cancel(connection, who, [Target(send_id=held.send_id, reason=Reason.CANCELLED_BY_PERSON)])
            return State.CANCELLED


def _seen(held: OpenHold) -> dict[str, object]:
    """What the page showed, for the record."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else str(value) if isinstance(value, UUID) else value
        for name, value in asdict(held).items()
    }
