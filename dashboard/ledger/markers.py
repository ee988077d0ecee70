"""Markers: what happened at a moment, drawn into the charts beside what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from psycopg.rows import class_row

from dashboard.identity import holds_address
from dashboard.ledger import audit
from dashboard.ledger.database import Connection, database_now
from dashboard.ledger.requests import BadRequest, storable

LONGEST_TITLE = 200
"""Characters."""

AHEAD = timedelta(days=1)
"""A marker may lie so far ahead: clocks differ, and deploys are announced."""

MOST = 200
"""So many markers of a range are shown, the newest."""


class Kind(StrEnum):
    """What kind of moment it was."""

    DEPLOY = "deploy"
    INCIDENT = "incident"


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """One moment. ``who``: a login, a token's name, or None for the command line."""

    id: int
    at: datetime
    kind: str
    title: str
    who: str | None


def add_marker(
    connection: Connection,
    *,
    workspace_id: UUID,
    kind: object,
    title: object,
    at: datetime | None = None,
    user_id: UUID | None = None,
    token_id: UUID | None = None,
) -> int:
    """Mark a moment, now where none is given, and write it to the audit log. Returns its number.

    Raises :class:`BadRequest` for a field that cannot be taken.
    """
    if kind not in list(Kind):
        raise BadRequest("kind", f"is one of: {', '.join(Kind)}")
    if not isinstance(title, str) or not title.strip():
        raise BadRequest("title", "is needed: say what was deployed, or what went wrong")
    title = " ".join(title.split())
    if len(title) > LONGEST_TITLE or not storable(title):
        raise BadRequest("title", f"has more than {LONGEST_TITLE} characters, or one that cannot be stored")
    if holds_address(title):
        raise BadRequest("title", "contains an email address; leave it out, markers are kept and shown")
    now = database_now(connection)
    if at is not None and at > now + AHEAD:
        raise BadRequest("at", "lies more than a day ahead")
    row = connection.execute(
        "insert into sendonce.markers (workspace_id, at, kind, title, user_id, token_id)"
        " values (%s, %s, %s, %s, %s, %s) returning id",
        (workspace_id, at or now, str(kind), title, user_id, token_id),
    ).fetchone()
    assert row is not None
    number = int(row[0])
    audit.record(
        connection, audit.Action.ADD_MARKER, workspace_id=workspace_id, user_id=user_id, token_id=token_id,
        subject=number, detail={"kind": str(kind), "title": title},
    )  # fmt: skip
    return number


def list_markers(connection: Connection, workspace_id: UUID, since: datetime, until: datetime) -> list[Marker]:
    """The markers of ``since`` ≤ time < ``until``, newest first, at most :data:`MOST`."""
    rows = connection.cursor(row_factory=class_row(Marker)).execute(
        "select m.id, m.at, m.kind, m.title, coalesce(u.login, t.name) as who from sendonce.markers m"
        " left join sendonce.users u on u.id = m.user_id left join sendonce.api_tokens t on t.id = m.token_id"
        " where m.workspace_id = %s and m.at >= %s and m.at < %s order by m.at desc, m.id desc limit %s",
        (workspace_id, since, until, MOST),
    )
    return rows.fetchall()
