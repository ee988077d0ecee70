"""What could not be understood or taken, kept encrypted with the reason."""

from __future__ import annotations

from uuid import UUID

from dashboard.ledger.database import Connection
from dashboard.ledger.vault import Vault


def bury_webhook(
    connection: Connection, vault: Vault, *, workspace_id: UUID, account_id: UUID, payload: bytes, reason: str
) -> None:
    """Keep (part of) an authentic webhook request of an account. It opens with the account's id as its row."""
    connection.execute(
        "insert into sendonce.dead_letters (workspace_id, account_id, source, reason, payload)"
        " values (%s, %s, 'webhook', %s, %s)",
        (workspace_id, account_id, reason.replace("\0", "")[:500], vault.encrypt(payload, account_id.bytes)),
    )
