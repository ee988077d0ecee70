"""Sends that a provider could be asked about: in doubt, with their call over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from dashboard.ledger.database import Connection, run


@dataclass(frozen=True, slots=True)
class Unanswered:
    """One such send, and where its first unanswered call went."""

    send_id: UUID
    workspace_id: UUID
    account_id: UUID
    endpoint: bytes
    since: datetime
    address: bytes
    """Encrypted under the send id."""


def read_unanswered(connection: Connection, *, providers: Sequence[str], after: UUID, limit: int) -> list[Unanswered]:
    """Those of accounts of these providers, in the order of their ids, behind ``after``."""
    rows = run(connection, "read_unanswered", providers=list(providers), after=after, limit=limit).fetchall()
    return [Unanswered(*row) for row in rows]
