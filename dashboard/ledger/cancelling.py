"""Cancelling a send: at once where nothing is under way, else as soon as it is known not to have been taken.

A call that is running cannot be called back. A cancel that meets one is remembered on the work row, and whoever asked
is told that it is too late if the provider takes it: wherever the send would wait for another attempt, it becomes
cancelled instead (DESIGN §5.12).
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from dashboard.ledger import acceptance, audit, holds, moves
from dashboard.ledger.database import Connection
from dashboard.ledger.holds import Decided, Refused
from dashboard.ledger.moves import Target, Who
from dashboard.ledger.trace import workspace_of
from dashboard.ledger.work import Work
from dashboard.lifecycle import By, Decision, Reason, State

NO_SUCH_SEND = "There is no send of this id."


@dataclass(frozen=True, slots=True)
class Cancelled:
    """It is cancelled. An attempt whose outcome is unknown may have left all the same."""

    send_id: UUID


@dataclass(frozen=True, slots=True)
class Remembered:
    """A call is running: too late if it is taken, else it becomes cancelled."""

    send_id: UUID


def cancel_send(
    connection: Connection,
    *,
    workspace_id: UUID,
    send_id: UUID,
    user_id: UUID | None,
    reason: str,
    token_id: UUID | None = None,
) -> Cancelled | Remembered | Refused:
    """Cancel an open send of the workspace, with an audit row, in the connection's transaction. Safe to repeat.

    ``user_id`` is None where a program asks, by its ``token_id``. A held send is decided, as on its page, with all
    that is known by now. One that came too late is in the audit log as well: whoever asks later sees that the person
    was told so.
    """
    if not reason.strip():
        return Refused("Give a reason: it stands beside the cancellation for whoever looks at it later.")
    if workspace_of(connection, send_id) != workspace_id:  # before its rows are locked: others may be at work on them
        return Refused(NO_SUCH_SEND)
    row = acceptance.lock_sends(connection, [send_id]).open.get(send_id)
    if row is None:
        return _too_late(connection, workspace_id, send_id, user_id, token_id, reason)
    if row.state is State.HELD and user_id is not None:
        return _decide(connection, row, user_id, reason)
    running = row.open_attempt is not None
    if running:
        connection.execute(
            "update sendonce.work set cancel_reason = coalesce(cancel_reason, %s),"
            " cancelled_by = coalesce(cancelled_by, %s) where send_id = %s",
            (Reason.CANCELLED_BY_PERSON, user_id, send_id),
        )
    else:
        who = Who(By.API if user_id is None else By.PERSON, user_id=user_id)
        moves.cancel(connection, who, [Target(send_id=send_id, reason=Reason.CANCELLED_BY_PERSON)])
    audit.record(
        connection, audit.Action.CANCEL_SEND, workspace_id=workspace_id, user_id=user_id, token_id=token_id,
        subject=send_id, reason=reason.strip(), detail={"before": row.state.value, "call_running": running},
    )  # fmt: skip
    return Remembered(send_id) if running else Cancelled(send_id)


def _too_late(
    connection: Connection,
    workspace_id: UUID,
    send_id: UUID,
    user_id: UUID | None,
    token_id: UUID | None,
    reason: str,
) -> Refused:
    """The send is settled, or was taken away meanwhile."""
    found = connection.execute("select state::text from sendonce.sends where id = %s", (send_id,)).fetchone()
    if found is None:
        return Refused(NO_SUCH_SEND)
    state = State(found[0])
    if state is not State.CANCELLED:
        audit.record(
            connection, audit.Action.CANCEL_SEND, workspace_id=workspace_id, user_id=user_id, token_id=token_id,
            subject=send_id, reason=reason.strip(), detail={"before": state.value, "too_late": True},
        )  # fmt: skip
    taken = "the provider has taken it" if state is State.ACCEPTED else f"it is {state.value} already"
    return Refused(f"Too late: {taken}.")


def _decide(connection: Connection, row: Work, user_id: UUID, reason: str) -> Cancelled | Refused:
    hold = connection.execute(
        "select id from sendonce.holds where send_id = %s and closed_at is null", (row.send_id,)
    ).fetchone()
    assert hold is not None
    result = holds.decide(
        connection, workspace_id=row.workspace_id, hold_id=hold[0], user_id=user_id, decision=Decision.CANCEL,
        reason=reason, evidence=row.evidence,
    )  # fmt: skip
    return Cancelled(row.send_id) if isinstance(result, Decided) else result
