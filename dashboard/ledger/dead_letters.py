"""What could not be understood or taken, kept encrypted with the reason."""

from __future__ import annotations

import hashlib
from uuid import UUID

import psycopg

from dashboard.ledger.database import Connection
from dashboard.ledger.vault import Vault

REFUSED = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.errors.ProgramLimitExceeded,  # the three of class 54 count as trouble of operation with psycopg
    psycopg.errors.StatementTooComplex,
    psycopg.errors.TooManyArguments,
    UnicodeError,  # the driver's, before the database sees the value
)
"""What becomes of a value that the database will never hold: to try it again helps nobody."""


def refusal(error: Exception) -> str:
    """The reason of a dead letter whose value the database refused."""
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return f"the ledger refused it: {said or type(error).__name__}"


def bury_webhook(
    connection: Connection, vault: Vault, *, workspace_id: UUID, account_id: UUID, payload: bytes, reason: str
) -> None:
    """Keep (part of) an authentic webhook request of an account. It opens with the account's id as its row.

    A provider that was not answered sends it again: the same bytes are one dead letter, whose repeats are counted.
    """
    digest = vault.keyed_hash(hashlib.sha256(payload).hexdigest())
    connection.execute(
        "insert into sendonce.dead_letters as known (workspace_id, account_id, source, reason, payload, digest)"
        " values (%s, %s, 'webhook', %s, %s, %s)"
        " on conflict (account_id, digest) do update set repeats = known.repeats + 1",
        (workspace_id, account_id, _storable(reason), vault.encrypt(payload, account_id.bytes), digest),
    )


def _storable(reason: str) -> str:
    return reason.replace("\0", "").encode(errors="replace").decode()[:500]
