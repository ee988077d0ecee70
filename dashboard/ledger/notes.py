"""Case notes: what agents keep with a send, and the tickets that it belongs to.

A ticket's number is kept as it is typed and found in any case, with or without the # in front. A note is encrypted:
an agent may write of a person. Both go when the send is stripped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlsplit
from uuid import UUID

from dashboard.identity import holds_address
from dashboard.ledger import audit
from dashboard.ledger.access import Refused
from dashboard.ledger.database import Connection, run
from dashboard.ledger.vault import Unreadable, Vault

MAX_TICKET, MAX_NOTE, MAX_NOTES = 60, 2_000, 200
"""Characters of a ticket's number and of a note; notes of one send."""

PLACE = "{ticket}"
"""Where the number of a ticket stands in the address of the ticket system."""

_TICKET = re.compile(r"\S(?:.*\S)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What somebody kept with a send. ``text`` is None where there is none, or its encryption key is gone."""

    id: int
    user_id: UUID
    person: str
    at: datetime
    ticket: str | None
    text: str | None
    unreadable: bool


def ticket_lookup(text: str) -> str | None:
    """The form in which tickets are compared; None for what cannot be the number of one."""
    plain = text.strip().lstrip("#").strip()
    return plain.casefold() if plain and len(plain) <= MAX_TICKET and plain.isprintable() else None


def add_note(
    connection: Connection, vault: Vault, *, workspace_id: UUID, send_id: UUID, user_id: UUID, ticket: str, text: str
) -> int:
    """Keep a ticket's number, a note, or both with a send. Raises :class:`Refused` with what to do instead."""
    ticket, text = ticket.strip().lstrip("#").strip(), text.strip()
    if not ticket and not text:
        raise Refused("Give the number of a ticket, or write a note.")
    if ticket and (ticket_lookup(ticket) is None or not _TICKET.fullmatch(ticket)):
        raise Refused(f"The number of a ticket has at most {MAX_TICKET} characters, all in one line.")
    if holds_address(ticket):
        raise Refused("The number of a ticket holds no address: it is kept in the open and goes into a link.")
    if len(text) > MAX_NOTE or "\0" in text:
        raise Refused(f"A note has at most {MAX_NOTE} characters.")
    row = run(
        connection, "add_note", workspace_id=workspace_id, send_id=send_id, user_id=user_id, ticket=ticket or None,
        ticket_lookup=ticket_lookup(ticket), note=vault.encrypt(text.encode(), send_id.bytes) if text else None,
        most=MAX_NOTES,
    ).fetchone()  # fmt: skip
    if row is None:
        raise Refused(f"This send has {MAX_NOTES} notes already, or is not kept any more.")
    audit.record(
        connection, audit.Action.ADD_NOTE, workspace_id=workspace_id, user_id=user_id, subject=send_id,
        detail={"ticket": ticket} if ticket else None,
    )  # fmt: skip
    note_id: int = row[0]
    return note_id


def remove_note(connection: Connection, *, workspace_id: UUID, send_id: UUID, note_id: int, user_id: UUID) -> bool:
    """Remove a note: one's own. False where it is not there, or somebody else's."""
    row = connection.execute(
        "delete from sendonce.notes where id = %s and send_id = %s and workspace_id = %s and user_id = %s"
        " returning ticket",
        (note_id, send_id, workspace_id, user_id),
    ).fetchone()
    if row is None:
        return False
    audit.record(
        connection, audit.Action.REMOVE_NOTE, workspace_id=workspace_id, user_id=user_id, subject=send_id,
        detail={"ticket": row[0]} if row[0] else None,
    )  # fmt: skip
    return True


def read_notes(connection: Connection, vault: Vault, *, workspace_id: UUID, send_id: UUID) -> list[Note]:
    """The notes of a send, the oldest first."""
    rows = connection.execute(
        """
        select notes.id, notes.user_id, users.name, notes.at, notes.ticket, notes.note
        from sendonce.notes join sendonce.users on users.id = notes.user_id
        where notes.send_id = %s and notes.workspace_id = %s order by notes.at, notes.id
        """,
        (send_id, workspace_id),
    )
    return [_note(vault, send_id, *row) for row in rows]


def _note(
    vault: Vault, send_id: UUID, note_id: int, user_id: UUID, person: str, at: datetime, ticket: str | None,
    stored: bytes | None,
) -> Note:  # fmt: skip
    try:
        text, unreadable = vault.decrypt(stored, send_id.bytes).decode() if stored else None, False
    except Unreadable:
        text, unreadable = None, True
    return Note(
        id=note_id, user_id=user_id, person=person, at=at, ticket=ticket, text=text, unreadable=unreadable
    )  # fmt: skip


# ── the ticket system ────────────────────────────────────────────────────────────────────────────────────────────────


def check_ticket_url(template: str) -> str:
    """The address of a ticket system, such as ``https://tickets.example.com/issues/{ticket}``. Raises Refused."""
    try:
        parts = urlsplit(template)
        sound = bool(parts.scheme in ("http", "https") and parts.hostname and parts.port != 0)
    except ValueError:
        sound = False
    if not sound or not template.isprintable() or " " in template:
        raise Refused("the address of the ticket system begins with https:// or http://, and has no spaces")
    if template.count(PLACE) != 1 or PLACE in parts.netloc:
        raise Refused(f"the address of the ticket system has {PLACE} once, behind its host: …/issues/{PLACE}")
    if "@" in parts.netloc:
        raise Refused("the address of the ticket system holds no user name or password")
    return template


def ticket_link(template: str | None, ticket: str) -> str | None:
    """Where a ticket is; None where the workspace has told no ticket system."""
    return template.replace(PLACE, quote(ticket, safe="")) if template else None


def set_ticket_url(connection: Connection, workspace_id: UUID, template: str | None) -> None:
    """Tell where the tickets of a workspace are; None: nowhere. Raises :class:`Refused`."""
    connection.execute(
        "update sendonce.workspaces set ticket_url = %s where id = %s",
        (check_ticket_url(template) if template else None, workspace_id),
    )


def read_ticket_url(connection: Connection, workspace_id: UUID) -> str | None:
    """Where the tickets of a workspace are."""
    row = connection.execute("select ticket_url from sendonce.workspaces where id = %s", (workspace_id,)).fetchone()
    return row[0] if row else None
