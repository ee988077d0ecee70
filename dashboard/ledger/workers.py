"""Asking a worker to finish what it has in flight, and end."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from dashboard.ledger import audit
from dashboard.ledger.database import Connection
from dashboard.ledger.holds import Refused

FOR_ALL = "A worker sends for all workspaces: whoever drains one is an operator in each of them."
"""Why somebody may not."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The worker is asked; it obeys with its next heartbeat."""

    worker_id: UUID
    name: str


def drain(
    connection: Connection, *, workspace_id: UUID, worker_id: UUID, user_id: UUID, reason: str
) -> Asked | Refused:
    """Ask a worker to finish what is in flight, give the rest back and end, with an audit row. Safe to repeat.

    It works for all workspaces of the ledger: pages and API let only those ask who are operators in each of them
    (``access.operates_everywhere``). Whoever started it (a supervisor, an orchestrator) may start another.
    """
    if not reason.strip():
        return Refused("Give a reason: it stands in the audit log for whoever looks at it later.")
    row = connection.execute(
        "update sendonce.workers set drain_asked_at = coalesce(drain_asked_at, now())"
        " where id = %s and stopped_at is null returning name",
        (worker_id,),
    ).fetchone()
    if row is None:
        return Refused("No worker of this id is running.")
    audit.record(
        connection, audit.Action.DRAIN_WORKER, workspace_id=workspace_id, user_id=user_id, subject=row[0],
        reason=reason.strip(),
    )  # fmt: skip
    return Asked(worker_id, row[0])
