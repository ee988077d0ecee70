"""Saved views: the filters of a list under a name, shared by the team of a workspace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from psycopg.types.json import Jsonb

from dashboard.ledger import audit
from dashboard.ledger.access import Refused
from dashboard.ledger.database import Connection, run

MAX_NAME, MAX_VIEWS = 60, 50
"""Characters of a name; views of one list."""


class Listed(StrEnum):
    """The lists whose filters can be kept."""

    SENDS = "sends"
    AUDIT = "audit"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Filters as they stand in the URL of their list. ``person`` made it."""

    id: UUID
    name: str
    filters: Mapping[str, str]
    user_id: UUID
    person: str


def list_views(connection: Connection, workspace_id: UUID, listed: Listed) -> list[View]:
    """The views of a list, by name."""
    rows = connection.execute(
        """
        select views.id, views.name, views.filters, views.user_id, users.name
        from sendonce.views join sendonce.users on users.id = views.user_id
        where views.workspace_id = %s and views.list = %s order by lower(views.name), views.name
        """,
        (workspace_id, listed.value),
    )
    return [View(id=row[0], name=row[1], filters=row[2], user_id=row[3], person=row[4]) for row in rows]


def save_view(
    connection: Connection, *, workspace_id: UUID, user_id: UUID, listed: Listed, name: str, filters: Mapping[str, str]
) -> None:
    """Keep filters under a new name. Raises :class:`Refused` with what to do instead.

    The filters are those that the list itself could read: closed sets of words, and names of mailstreams.
    """
    name = " ".join(name.split())
    if not 1 <= len(name) <= MAX_NAME or not name.isprintable():
        raise Refused(f"A view needs a name of at most {MAX_NAME} characters.")
    if not filters:
        raise Refused("Choose a filter first: a view without one is the whole list.")
    made = run(
        connection, "save_view", workspace_id=workspace_id, user_id=user_id, list=listed.value, name=name,
        filters=Jsonb(dict(filters)), most=MAX_VIEWS,
    ).fetchone()  # fmt: skip
    if made is None:
        raise Refused(
            f"There is a view called {name} already, or there are {MAX_VIEWS}: take another name or remove one."
        )
    audit.record(
        connection, audit.Action.SAVE_VIEW, workspace_id=workspace_id, user_id=user_id, subject=name,
        detail={"list": listed.value, **filters},
    )  # fmt: skip


def remove_view(connection: Connection, *, workspace_id: UUID, user_id: UUID, view_id: UUID, any_one: bool) -> bool:
    """Remove a view: one's own, or with ``any_one`` also a colleague's. False where there is none to be removed."""
    row = connection.execute(
        "delete from sendonce.views where id = %s and workspace_id = %s and (user_id = %s or %s) returning name",
        (view_id, workspace_id, user_id, any_one),
    ).fetchone()
    if row is None:
        return False
    audit.record(connection, audit.Action.REMOVE_VIEW, workspace_id=workspace_id, user_id=user_id, subject=row[0])
    return True
