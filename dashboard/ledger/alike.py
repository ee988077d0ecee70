"""What became of attempts that failed as one did: the ledger's own odds that it was taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from dashboard.ledger.database import Connection, run

SCANNED = 2_000
"""So many of the newest attempts in doubt are looked through, for each account of the provider."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A way in which an attempt may fail without telling whether it was taken."""

    provider: str
    error_class: str | None
    phase: str | None


@dataclass(frozen=True, slots=True)
class Alike:
    """How the earlier attempts that failed in the same way turned out."""

    taken: int
    """The provider told of it, or of the message before the next attempt, or the worker's late answer was yes."""
    resolved: int
    """These, and those that were refused, never written, or of which the provider told only after the next attempt."""
    all: int
    """The rest was never told of. What a person only believed counts as neither."""
    timed: int = 0
    """Of those not taken: so many by nothing but the time of the provider's first word, which may have come late."""


def read_alike(connection: Connection, workspace_id: UUID, failure: Failure) -> Alike:
    """Count the workspace's newest attempts in doubt that failed in this way, at all its accounts of the provider.

    An attempt that has just been left in doubt is among them, as one that nothing was told of.
    """
    row = run(
        connection, "read_alike", workspace_id=workspace_id, provider=failure.provider,
        error_class=failure.error_class, phase=failure.phase, scanned=SCANNED,
    ).fetchone()  # fmt: skip
    assert row is not None
    return Alike(*row)


def read_failures(connection: Connection, send_ids: Sequence[UUID]) -> list[tuple[Failure, int]]:
    """How the newest attempts in doubt of these sends failed, the most frequent way first, with how many did so."""
    rows = run(connection, "read_failures", ids=list(send_ids)).fetchall()
    return [(Failure(*row[:3]), row[3]) for row in rows]
