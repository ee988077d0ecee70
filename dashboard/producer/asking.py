"""Ask for a send inside one's own transaction, over whatever connection one has."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from dashboard.ledger.requests import MAX_REQUEST, BadRequest, read_request

Trigger = tuple[str, str] | tuple[str, str, datetime | str] | Mapping[str, Any]
"""``(type, id)``, ``(type, id, time)``, or a mapping of the fields ``type``, ``id``, ``at`` and ``endpoint``."""
"""What asked for the send: its type, its id, and perhaps when it happened."""

NOWHERE = UUID(int=0)
"""Stands for the workspace while a request is checked: only the database knows its id."""


def enqueue(
    connection: Any,
    *,
    workspace: str = "default",
    mailstream: str,
    key: str,
    recipient_id: str,
    address: str,
    recipient_name: str | None = None,
    trigger: Trigger,
    message: Mapping[str, Any],
    not_before: datetime | str | None = None,
    metadata: Mapping[str, str] | None = None,
) -> UUID:
    """Ask for a send inside your own transaction: it is asked for if, and only if, you commit. Returns the send id.

    ``connection``: a psycopg connection, a SQLAlchemy Connection or Session, a Django connection, or any DB-API
    connection or cursor whose parameters are written ``%s`` (paramstyle *format* or *pyformat*). Nothing is committed
    here. Asking again for the same key is safe: it is recorded as a duplicate, and never sent twice.

    Raises ValueError for a request that breaks a rule, before the database is touched. A workspace or mailstream that
    does not exist is the database's to refuse: that is your driver's own error, and ends your transaction.
    """
    raw = {
        "workspace": workspace,
        "mailstream": mailstream,
        "key": key,
        "recipient": {"id": recipient_id, "address": address, "name": recipient_name},
        "trigger": trigger_fields(trigger),
        "message": dict(message),
        "not_before": _iso(not_before),
        "metadata": None if metadata is None else dict(metadata),
    }
    if not workspace:
        raise ValueError("workspace: is needed, as text")
    read_request(raw, workspace_id=NOWHERE, source="outbox", asked_at=datetime.now(UTC))
    request = json.dumps(raw, ensure_ascii=False)
    size = len(request.encode())
    if size > MAX_REQUEST:
        raise BadRequest("request", f"has {size} bytes; at most {MAX_REQUEST} are taken: put a link into the message")
    return UUID(str(_ask(connection, request)))


def trigger_fields(trigger: Trigger) -> dict[str, str | None]:
    """The trigger as a request has it. Raises ValueError for a tuple that has not two or three parts."""
    if isinstance(trigger, Mapping):
        return {name: _iso(value) for name, value in trigger.items()}
    try:
        type_, id_, *at = trigger
    except (TypeError, ValueError):
        raise ValueError("trigger: must be (type, id) or (type, id, time)") from None
    if len(at) > 1:
        raise ValueError("trigger: must be (type, id) or (type, id, time)")
    return {"type": type_, "id": id_, "at": _iso(at[0]) if at else None}


def _iso(at: datetime | str | None) -> str | None:
    return at.isoformat() if isinstance(at, datetime) else at


_ASK = "select sendonce.enqueue(cast(%s as jsonb))"


def _ask(connection: Any, request: str) -> object:
    """Run the SQL function on whatever the caller has."""
    if callable(getattr(connection, "connection", None)) and hasattr(connection, "get_bind"):
        connection = connection.connection()  # a SQLAlchemy Session
    if inspect.iscoroutinefunction(getattr(connection, "execute", None)):
        raise TypeError("this connection is asynchronous: call sendonce.enqueue(jsonb) in the way of its driver")
    if hasattr(connection, "exec_driver_sql"):
        return connection.exec_driver_sql(_ASK, (request,)).scalar_one()
    if not hasattr(connection, "cursor"):
        return _first(connection, request)
    with closing(connection.cursor()) as cursor:
        return _first(cursor, request)


def _first(cursor: Any, request: str) -> object:
    cursor.execute(_ASK, (request,))
    row = cursor.fetchone()
    return next(iter(row.values())) if isinstance(row, Mapping) else row[0]
