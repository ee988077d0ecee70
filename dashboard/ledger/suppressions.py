"""Who must not get mail: the fold of what providers and people said, each by its own time (DESIGN §5.17)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from uuid import UUID

from dashboard.ledger.database import Connection, run, transposed
from dashboard.ledger.tables import SuppressionScope
from dashboard.lifecycle import EventType


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """Somebody said that a recipient is (or is no longer) to be left alone."""

    workspace_id: UUID
    address_lookup: bytes
    scope: SuppressionScope
    mailstream: str = ""
    suppressed: bool = True
    said_at: datetime
    source: str
    account_id: UUID | None = None
    event_id: str | None = None
    send_id: UUID | None = None
    user_id: UUID | None = None
    reason: str | None = None


def reach(event_type: EventType, bounce_class: str | None) -> SuppressionScope | None:
    """How far an event's word about its recipient goes. None: soft bounces, blocks and "suppressed" say nothing new."""
    match event_type:
        case EventType.BOUNCED if bounce_class == "hard":
            return SuppressionScope.EVERYTHING
        case EventType.COMPLAINED:
            return SuppressionScope.BULK
        case EventType.UNSUBSCRIBED | EventType.RESUBSCRIBED:
            return SuppressionScope.STREAM
        case _:
            return None


def say(connection: Connection, statements: Sequence[Statement]) -> None:
    """Fold statements in. Any order and any repetition gives the same."""
    if not statements:
        return
    rows = [astuple(statement) for statement in statements]
    names = list(Statement.__slots__)
    columns = dict(zip(names, transposed(rows, len(names)), strict=True))
    columns["scope"] = [str(scope) for scope in columns["scope"]]
    run(connection, "fold_suppressions", **columns)
