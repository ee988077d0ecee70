"""What people searched for: encrypted, behind an opaque link, so that no address stands in a URL, log or history."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from dashboard.identity import discreet
from dashboard.ledger.database import Connection, Row, run
from dashboard.ledger.vault import Unreadable, Vault


@dataclass(frozen=True, slots=True)
class Lookup:
    """One search. ``text`` is None once its encryption key is gone."""

    id: str
    text: str | None
    at: datetime

    @property
    def shown(self) -> str:
        """The text as it may stand on a screen: every address in it is masked."""
        return "no longer readable" if self.text is None else discreet(self.text)


def save_lookup(connection: Connection, vault: Vault, *, workspace_id: UUID, user_id: UUID, text: str) -> str:
    """File a search; the opaque id of its link."""
    lookup_id = secrets.token_urlsafe(16)
    query = vault.encrypt(text.encode(), lookup_id.encode())
    run(connection, "save_lookup", id=lookup_id, workspace_id=workspace_id, user_id=user_id, query=query)
    return lookup_id


def read_lookup(connection: Connection, vault: Vault, *, workspace_id: UUID, lookup_id: str) -> Lookup | None:
    """A search of this workspace: colleagues may pass links on."""
    if not lookup_id.isprintable():
        return None
    row = connection.execute(
        "select id, query, at from sendonce.lookups where id = %s and workspace_id = %s", (lookup_id, workspace_id)
    ).fetchone()
    return _opened(vault, row) if row else None


def recent_lookups(
    connection: Connection, vault: Vault, *, workspace_id: UUID, user_id: UUID, limit: int = 8
) -> list[Lookup]:
    """What this person searched for, the newest first, each text once."""
    rows = connection.execute(
        "select id, query, at from sendonce.lookups where user_id = %s and workspace_id = %s order by at desc limit %s",
        (user_id, workspace_id, limit * 4),
    )
    newest: dict[str | None, Lookup] = {}
    for row in rows:
        lookup = _opened(vault, row)
        newest.setdefault(lookup.text, lookup)
    return list(newest.values())[:limit]


def _opened(vault: Vault, row: Row) -> Lookup:
    lookup_id, query, at = row
    try:
        return Lookup(lookup_id, vault.decrypt(query, lookup_id.encode()).decode(), at)
    except Unreadable:
        return Lookup(lookup_id, None, at)
