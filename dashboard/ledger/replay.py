"""Replay: a person asks for a failed send again, under its own key, so that pressing three times sends one.

Only what failed may be replayed, and *failed* is proved: every attempt was refused or never written. The send keeps its
id, its message and its account; its claims and attempts are numbered on (DESIGN §5.5, §5.20).
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from dashboard.ledger import acceptance, audit, events
from dashboard.ledger.database import Connection, run
from dashboard.ledger.holds import Refused
from dashboard.lifecycle import Reason, RunBy


@dataclass(frozen=True, slots=True)
class Replayed:
    """It is pending again."""

    send_id: UUID


def replay_send(
    connection: Connection, *, workspace_id: UUID, send_id: UUID, user_id: UUID, reason: str
) -> Replayed | Refused:
    """Make a failed send pending again, with an audit row, in the connection's transaction.

    Evidence that came late is looked at first: a send that was taken after all becomes accepted and is refused. To see
    what would happen, call it in a transaction that is rolled back.
    """
    if not reason.strip():
        return Refused("Give a reason: it stands beside the replay for whoever looks at it later.")
    if send_id not in acceptance.lock_sends(connection, [send_id]).ledger:
        return Refused("There is no send of this id.")
    events.rematch(connection, send_ids=[send_id])
    obstacle = _obstacle(connection, workspace_id, send_id)
    if obstacle:
        return Refused(obstacle)
    if run(connection, "replay_send", send_id=send_id, user_id=user_id).fetchone() is None:
        return Refused("An attempt of this send may have been taken: a replay could send it twice.")
    audit.record(
        connection, audit.Action.REPLAY_SEND, workspace_id=workspace_id, user_id=user_id, subject=send_id,
        reason=reason.strip(),
    )  # fmt: skip
    return Replayed(send_id)


def _obstacle(connection: Connection, workspace_id: UUID, send_id: UUID) -> str | None:
    """Why this locked send cannot be replayed, as a sentence for the person who asks."""
    row = connection.execute(
        """
        select s.state::text, s.reason, s.run_by::text, m.address is not null and m.body is not null
        from sendonce.sends s left join sendonce.messages m on m.send_id = s.id
        where s.id = %s and s.workspace_id = %s
        """,
        (send_id, workspace_id),
    ).fetchone()
    if row is None:
        return "There is no send of this id."
    state, reason, run_by, has_message = row
    if state == "open":
        return "This send is open: it is on its way, or waits for a decision."
    if state != "failed":
        return f"This send is {state}: only a failed one can be replayed."
    if reason == Reason.CANNOT_RENDER:
        return (
            "Its template could not be filled in, and a replay sends the same: ask for a corrected send, by a new key."
        )
    if run_by == RunBy.WORKER and not has_message:
        return "Its message is gone, by the retention of its mailstream: ask for a new send, by a new key."
    return None
