"""Tokens that a provider signs in place of the event: each counts for the one body that it came with first.

Kept in the database, so that all web processes agree, and none forgets it by a restart.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from uuid import UUID

from dashboard.ledger.database import Connection, run


def came_with_this_body(
    connection: Connection, *, account_id: UUID, token: str, body: bytes, good_until: datetime
) -> bool:
    """Whether the token came with no other body before; from now on this one is its own.

    ``good_until``: when its signature ends to count; it may be forgotten then.
    """
    digests = {"token": hashlib.sha256(token.encode()).digest(), "body": hashlib.sha256(body).digest()}
    row = run(connection, "use_signed_token", account_id=account_id, good_until=good_until, **digests).fetchone()
    assert row is not None
    return bool(row[0])
