"""How PostgreSQL would answer a query on a large ledger, and how much of it that really reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dashboard.ledger.database import Connection

HOT = {"sends", "work", "attempts", "events", "duplicates", "moves", "messages", "notes"}

MOST_PAGES = 2_500
"""Pages of the database, 8 kB each, that a search may look at: it is the same for a million sends."""


def scanned(connection: Connection, query: str, bind: Mapping[str, Any], *, more: tuple[str, ...] = ()) -> set[str]:
    """The hot tables, and of ``more``, that the plan of a query reads from end to end."""
    row = connection.execute("explain (format json) " + query, bind).fetchone()  # type: ignore[call-overload]
    read = {node["Relation Name"] for node in _nodes(row[0][0]["Plan"]) if node["Node Type"] == "Seq Scan"}
    return read & {*HOT, *more}


def pages(connection: Connection, query: str, bind: Mapping[str, Any]) -> int:
    """How many pages it really looks at."""
    row = connection.execute(
        "explain (analyze, buffers, timing off, format json) " + query,  # type: ignore[call-overload]
        bind,
    ).fetchone()
    plan = row[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)
