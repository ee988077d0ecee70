"""What could not be understood or taken, kept encrypted with the reason, until a person has looked at it.

A person mends the cause and has a request read again (it goes back into the outbox, under its own uuid), or discards
it with a reason: what it held goes, its row stays, so that nothing that was ever asked for is without a trace.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

import psycopg

from dashboard.ledger import audit
from dashboard.ledger.database import Connection
from dashboard.ledger.holds import Refused
from dashboard.ledger.requests import BadRequest, Request, read_outbox_text
from dashboard.ledger.standing import known_mailstreams
from dashboard.ledger.vault import Unreadable, Vault

REFUSED = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.errors.ProgramLimitExceeded,  # the three of class 54 count as trouble of operation with psycopg
    psycopg.errors.StatementTooComplex,
    psycopg.errors.TooManyArguments,
    UnicodeError,  # the driver's, before the database sees the value
)
"""What becomes of a value that the database will never hold: to try it again helps nobody."""


def refusal(error: Exception) -> str:
    """The reason of a dead letter whose value the database refused."""
    said = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return f"the ledger refused it: {said or type(error).__name__}"


def bury_webhook(
    connection: Connection, vault: Vault, *, workspace_id: UUID, account_id: UUID, payload: bytes, reason: str
) -> None:
    """Keep (part of) an authentic webhook request of an account. It opens with the account's id as its row.

    A provider that was not answered sends it again: the same bytes are one dead letter, whose repeats are counted.
    """
    digest = vault.keyed_hash(hashlib.sha256(payload).hexdigest())
    connection.execute(
        "insert into sendonce.dead_letters as known (workspace_id, account_id, source, reason, payload, digest)"
        " values (%s, %s, 'webhook', %s, %s, %s)"
        " on conflict (account_id, digest) do update set repeats = known.repeats + 1",
        (workspace_id, account_id, _storable(reason), vault.encrypt(payload, account_id.bytes), digest),
    )


def _storable(reason: str) -> str:
    return reason.replace("\0", "").encode(errors="replace").decode()[:500]


# ── what people do about them ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One of them, without what it holds. ``account``: whose webhook it came by; None for a request."""

    id: int
    at: datetime
    source: str
    account: str | None
    reason: str
    repeats: int
    outbox_id: UUID | None
    bytes: int
    discarded_at: datetime | None


@dataclass(frozen=True, slots=True)
class Requeued:
    """It is in the outbox again, and will be this send or a duplicate of it."""

    send_id: UUID


@dataclass(frozen=True, slots=True)
class Discarded:
    """What it held is gone."""

    letter_id: int


_LETTERS: LiteralString = """
    select l.id, l.at, l.source, a.name, l.reason, l.repeats, l.outbox_id, length(l.payload), l.discarded_at
    from sendonce.dead_letters l left join sendonce.accounts a on a.id = l.account_id
    where l.workspace_id = %(workspace_id)s
"""


def list_letters(
    connection: Connection, workspace_id: UUID, *, after: tuple[datetime, int] | None = None, limit: int = 50
) -> list[DeadLetter]:
    """What waits for a person, the oldest first; ``after`` is (at, id) of the last one of the page before."""
    rows = connection.execute(
        _LETTERS + " and l.discarded_at is null and (l.at, l.id) > (coalesce(%(at)s::timestamptz, '-infinity'), %(id)s)"
        " order by l.at, l.id limit %(limit)s",
        {"workspace_id": workspace_id, "at": after and after[0], "id": after[1] if after else 0, "limit": limit},
    )
    return [DeadLetter(*row) for row in rows]


def find_letter(connection: Connection, workspace_id: UUID, letter_id: int) -> DeadLetter | None:
    """One letter of the workspace, discarded or not."""
    row = connection.execute(
        _LETTERS + " and l.id = %(id)s", {"workspace_id": workspace_id, "id": letter_id}
    ).fetchone()
    return DeadLetter(*row) if row else None


NO_SUCH_LETTER = "There is no dead letter of this number."


def requeue(
    connection: Connection, vault: Vault, *, workspace_id: UUID, letter_id: int, user_id: UUID, reason: str
) -> Requeued | Refused:
    """Put a request back into the outbox, with an audit row, in the connection's transaction.

    It is read first: what would only be set aside again is refused with what is still wrong. Part of a webhook cannot
    be queued: its signature was over the whole request, and only the provider can tell it again.
    """
    if not reason.strip():
        return Refused("Give a reason: it stands in the audit log for whoever looks at it later.")
    row = connection.execute(
        "select outbox_id, source, at, payload, discarded_at from sendonce.dead_letters"
        " where id = %s and workspace_id = %s for update",
        (letter_id, workspace_id),
    ).fetchone()
    if row is None:
        return Refused(NO_SUCH_LETTER)
    outbox_id, source, at, payload, discarded_at = row
    if discarded_at is not None:
        return Refused("It was discarded, and what it held is gone.")
    if outbox_id is None:
        return Refused("It is part of a webhook: only the provider can tell it again. Discard it once you know why.")
    try:
        text = vault.decrypt(payload, outbox_id.bytes).decode()
        request = read_outbox_text(text, workspace_id=workspace_id, source=source, asked_at=at, outbox_id=outbox_id)
    except (Unreadable, BadRequest) as error:
        return Refused(f"It would be set aside again: {error}")
    obstacle = _obstacle(connection, request)
    if obstacle:
        return Refused(f"It would be set aside again: {obstacle}")
    connection.execute("delete from sendonce.dead_letters where id = %s", (letter_id,))
    connection.execute(
        "insert into sendonce.outbox (id, send_id, workspace_id, asked_at, source, request)"
        " values (%s, %s, %s, %s, %s, %s::jsonb)",
        (outbox_id, request.send_id, workspace_id, at, source, text),
    )
    audit.record(
        connection, audit.Action.REQUEUE_DEAD_LETTER, workspace_id=workspace_id, user_id=user_id, subject=letter_id,
        reason=reason.strip(), detail={"send": str(request.send_id), "outbox": str(outbox_id)},
    )  # fmt: skip
    return Requeued(request.send_id)


def _obstacle(connection: Connection, request: Request) -> str | None:
    if request.mailstream not in known_mailstreams(connection, request.workspace_id, {request.mailstream}):
        return "mailstream: the workspace has none of this name"
    return None


def discard(
    connection: Connection, *, workspace_id: UUID, letter_id: int, user_id: UUID, reason: str
) -> Discarded | Refused:
    """Let go of what a letter holds, with an audit row. Its row stays, with its uuid and why it was set aside."""
    if not reason.strip():
        return Refused("Give a reason: it stands in the audit log for whoever looks at it later.")
    done = connection.execute(
        "update sendonce.dead_letters set payload = '', discarded_at = now()"
        " where id = %s and workspace_id = %s and discarded_at is null returning reason",
        (letter_id, workspace_id),
    ).fetchone()
    if done is None:
        known = find_letter(connection, workspace_id, letter_id)
        return Refused("It was discarded before." if known else NO_SUCH_LETTER)
    audit.record(
        connection, audit.Action.DISCARD_DEAD_LETTER, workspace_id=workspace_id, user_id=user_id, subject=letter_id,
        reason=reason.strip(), detail={"was": done[0]},
    )  # fmt: skip
    return Discarded(letter_id)
