"""How PostgreSQL would answer a query on a large ledger, and how much of it that really reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Ran:
    """A statement as a session ran it. ``read``: the tables of its plan; ``scanned``: those from end to end."""

    statement: str
    read: frozenset[str]
    scanned: frozenset[str]


def ran(connection: Connection) -> list[Ran]:
    """Every statement that this session has run with parameters or without, by the plan that it has kept for it.

    Nothing has to be told of them: psycopg has the server prepare each, the server lists what it has prepared, and the
    plans are generic in every transaction of the ledger, so that the values do not matter.
    """
    known = connection.execute(
        "select name, statement, cardinality(parameter_types) from pg_prepared_statements where not from_sql",
        prepare=False,
    ).fetchall()
    return [_ran(connection, name, statement, parameters) for name, statement, parameters in known]


def _ran(connection: Connection, name: str, statement: str, parameters: int) -> Ran:
    values = f"({', '.join(['null'] * parameters)})" if parameters else ""
    explained = f'explain (format json) execute "{name}"{values}'
    (told,) = connection.execute(explained, prepare=False).fetchone() or ([],)  # type: ignore[call-overload]
    plans = [query["Plan"] for query in told if isinstance(query, dict)]  # what has none, such as BEGIN, reads nothing
    nodes = [node for plan in plans for node in _nodes(plan) if "Relation Name" in node]
    return Ran(
        statement,
        frozenset(node["Relation Name"] for node in nodes),
        frozenset(node["Relation Name"] for node in nodes if node["Node Type"] == "Seq Scan"),
    )


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)
