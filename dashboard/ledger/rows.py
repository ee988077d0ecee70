"""The rows of one send that may be any number, page by page: a trace reads only the oldest and the newest of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from psycopg.rows import class_row

from dashboard.ledger.database import Connection, statement
from dashboard.ledger.trace import Duplicate, Event, HistoricMove, More, Trace, Worker


class Rows(StrEnum):
    """The kinds of rows."""

    EVENTS = "events"
    MOVES = "moves"
    DELIVERIES = "deliveries"


_CLASSES: dict[Rows, type[Any]] = {
    Rows.EVENTS: Event, Rows.MOVES: HistoricMove, Rows.DELIVERIES: Duplicate,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Behind:
    """Where a page ended. ``str()`` of it goes into a URL, :meth:`read` takes it back."""

    at: datetime
    id: int

    def __str__(self) -> str:
        return f"{self.at.isoformat()}~{self.id}"

    @classmethod
    def read(cls, text: str) -> Behind:
        """Raises ValueError for what is no place in a list."""
        at, _, row_id = text.partition("~")
        behind = cls(datetime.fromisoformat(at), int(row_id))
        if behind.at.tzinfo is None or not -(2**63) <= behind.id < 2**63:
            raise ValueError("no place in a list")
        return behind


BEGINNING = Behind(datetime.min.replace(tzinfo=UTC), -1)


def read_rows(
    connection: Connection, trace: Trace, kind: Rows, *, after: Behind = BEGINNING, limit: int = 100
) -> tuple[Trace, Behind | None]:
    """This trace with one page of its rows of a kind, and no others; and where the page ends, if more follow."""
    rows = connection.cursor(row_factory=class_row(_CLASSES[kind])).execute(
        statement(f"read_rows_{kind}"),
        {
            "send_id": trace.send.id, "workspace_id": trace.send.workspace_id, "after_at": after.at,
            "after_id": after.id, "limit": limit + 1,
        },
        binary=True,
    ).fetchall()  # fmt: skip
    page = rows[:limit]
    empty: dict[str, Any] = {"duplicates": [], "moves": [], "events": []}
    empty["duplicates" if kind is Rows.DELIVERIES else str(kind)] = page
    behind = Behind(_time(page[-1]), page[-1].id) if len(rows) > limit else None
    return replace(trace, **empty, more=More(), workers=trace.workers | _workers(connection, page)), behind


def _time(row: Event | HistoricMove | Duplicate) -> datetime:
    return row.occurred_at if isinstance(row, Event) else row.at


def _workers(connection: Connection, rows: Sequence[Any]) -> dict[UUID, Worker]:
    ids = {row.worker for row in rows if getattr(row, "worker", None)}
    found = connection.cursor(row_factory=class_row(Worker)).execute(
        "select id, name, version, started_at, heartbeat_at, stopped_at from sendonce.workers where id = any(%s)",
        (list(ids),),
    )
    return {worker.id: worker for worker in found}
