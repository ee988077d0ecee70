"""What a provider literally said, as long as its retention lasts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from dashboard.ledger.database import Connection
from dashboard.ledger.vault import Vault


@dataclass(frozen=True, slots=True)
class RawEvent:
    """An event with its part of the webhook request, decrypted; ``raw`` is None once it is scrubbed."""

    event_id: str
    event_type: str
    occurred_at: datetime
    received_at: datetime
    matched_by: str
    raw: bytes | None


def read_raw_event(connection: Connection, vault: Vault, *, send_id: UUID, event: int) -> RawEvent | None:
    """One event of a send: whoever calls this audits it. Raises vault.Unreadable."""
    row = connection.execute(
        """
        select event_id, event_type, occurred_at, received_at, matched_by, raw, fact
        from sendonce.events where send_id = %s and id = %s
        """,
        (send_id, event),
    ).fetchone()
    if row is None:
        return None
    raw = None if row[5] is None else vault.decrypt(row[5], row[6])
    return RawEvent(row[0], row[1], row[2], row[3], row[4], raw)
