"""Suspected duplicate intents: what a recipient was meant to get twice, under two keys.

A key is the promise that one email is one row. Two triggers that each make a key of their own for the same email break
it without anybody noticing: same recipient, same content, shortly after each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from dashboard.identity import discreet
from dashboard.ledger.database import Connection, Row, run
from dashboard.ledger.moves import FOREVER

LOOKED_AT = 500
"""So many of the newest sends of each mailstream are looked at."""
APART = timedelta(days=1)
"""Two sends further apart than this count as two occasions."""


@dataclass(frozen=True, slots=True)
class Intent:
    """One of the two."""

    send_id: UUID
    mailstream: str
    key: str
    trigger_type: str
    trigger_id: str
    source: str
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class Suspect:
    """Two sends of the same content to the same recipient under different keys. An address as an id is masked."""

    recipient_id: str
    later: Intent
    earlier: Intent

    @property
    def why(self) -> str:
        """What the two have in common, and where to look."""
        if self.later.mailstream != self.earlier.mailstream:
            return "two mailstreams send the same"
        if (self.later.trigger_type, self.later.trigger_id) == (self.earlier.trigger_type, self.earlier.trigger_id):
            return "one trigger made two keys"
        if self.later.trigger_type != self.earlier.trigger_type:
            return "two kinds of trigger ask for the same"
        return "two triggers of one kind"


def read_suspects(
    connection: Connection, workspace_id: UUID, *, before: datetime | None = None, limit: int = 50
) -> list[Suspect]:
    """The newest of them, among the newest sends of each mailstream that were recorded ``before`` a moment."""
    rows = run(
        connection, "read_suspects", workspace_id=workspace_id, before=before or FOREVER, apart=APART,
        looked_at=LOOKED_AT, limit=limit,
    ).fetchall()  # fmt: skip
    return [Suspect(discreet(row[7]), _intent(row[:7]), _intent(row[8:])) for row in rows]


def _intent(row: Row) -> Intent:
    found = Intent(*row)
    return replace(found, trigger_id=discreet(found.trigger_id))
