"""Retention: of a settled send, past the time of its mailstream, only a tombstone stays (DESIGN §3, §5.20).

A tombstone knows that there was a send of this id, how it ended, and by which ids a provider knows it, so that a late
delivery of its key is still a duplicate and a late event still finds it. It holds nothing personal: the address, the
message, the key, the recipient and the trigger are gone, and the fingerprint of the content is a keyed one.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from dashboard.ledger.database import Connection, run, transposed
from dashboard.ledger.vault import Vault

CAP = 100_000
"""So far :func:`count_retained` counts."""


@dataclass(frozen=True, slots=True)
class Retained:
    """How many sends of a mailstream are past its retention, up to :data:`CAP`."""

    mailstream: str
    retain_for: timedelta
    number: int


def strip(connection: Connection, vault: Vault, *, limit: int = 1000) -> int:
    """Strip up to ``limit`` sends past their retention, in the connection's transaction. Returns how many.

    Their rows are locked and looked at again first: what is open, or is being replayed, keeps everything.
    """
    rows = run(connection, "lock_retained", limit=limit).fetchall()
    if not rows:
        return 0
    ids, fingerprints = transposed([(row[0], keyed(vault, row[1])) for row in rows], 2)
    return len(run(connection, "strip_sends", id=ids, fingerprint=fingerprints).fetchall())


def keyed(vault: Vault, fingerprint: bytes) -> bytes:
    """What a tombstone keeps of a fingerprint: nobody without the keys can try contents against it."""
    return vault.keyed_hash(fingerprint.hex())


def count_retained(connection: Connection, workspace_id: UUID) -> list[Retained]:
    """What the next passes of :func:`strip` would take, by mailstream."""
    return [Retained(*row) for row in run(connection, "count_retained", workspace_id=workspace_id, cap=CAP).fetchall()]
