"""Mail that came in: which send it answers, and what is kept of it.

Whoever writes a mail chooses every word of it, and may have copied the name of a message from anywhere. So a reply
finds only sends of the workspace that it came in at, moves none, and is never proof that a provider took one; it raises
the number of what is known about an open one, so that whoever decides about it has seen that it is there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from dashboard.identity import BadAddress, masked
from dashboard.ledger import acceptance
from dashboard.ledger.acceptance import LedgerRow
from dashboard.ledger.database import Connection, run, transposed
from dashboard.ledger.vault import Vault

MOST = 100
"""So many replies of one send are kept: two machines may answer each other for ever."""
SET_ASIDE_FOR = timedelta(days=7)
"""How long it is known of a mail that it answered no send, and why."""
SOONEST, OLDEST = timedelta(minutes=1), timedelta(days=7)
"""A mail that says it was written so long before it came in has that as its time; any other, the time at which it came
in: what it says of itself has whole seconds, by the clock of anybody."""
COUNTED = 10_000
NO_SEND = "it answers no email of this workspace"
FULL = f"the email that it answers has {MOST} replies already"


class Name(NamedTuple):
    """A message that a mail says it answers: by the id of a send, or by a provider's message id."""

    send_id: UUID | None
    message_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Mail:
    """A mail that came in. ``names`` are what it answers by its headers, the likeliest first."""

    message_id: str | None
    sender: str | None
    recipients: Sequence[str]
    names: Sequence[Name]
    written_at: datetime | None
    automatic: bool
    subject: str
    text: str | None


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of some mails. ``answered``: the sends to which one was added that was not known before."""

    answered: list[UUID]
    set_aside: int


@dataclass(frozen=True, slots=True)
class _Match:
    send_id: UUID
    matched_by: str
    full: bool


def keep(
    connection: Connection, vault: Vault, *, workspace_id: UUID, account_id: UUID, mails: Sequence[Mail],
    received_at: datetime,
) -> Kept:  # fmt: skip
    """Keep the mails of one verified request, each once, in the connection's transaction."""
    first = {_digest(mail): mail for mail in reversed(mails)}
    matches = _matches(connection, vault, workspace_id, list(first.values()))
    locked = acceptance.lock_sends(connection, sorted({match.send_id for match in matches.values()}))
    keeps = _keeps_content(connection, workspace_id)
    rows: list[_Row] = []
    for i, (digest, mail) in enumerate(first.items()):
        match = matches.get(i)
        row = _Row(
            workspace_id=workspace_id, account_id=account_id, digest=digest, received_at=received_at,
            at=_time(mail, received_at), automatic=mail.automatic,
        )  # fmt: skip
        if match is None or match.full:
            rows.append(replace(row, reason=NO_SEND if match is None else FULL))
            continue
        row = replace(row, send_id=match.send_id, matched_by=match.matched_by)
        send = locked.ledger[match.send_id]
        if not send.stripped:  # nothing personal may come to a tombstone any more
            row = replace(
                row, own_address=_is_own(vault, mail, send), sender=masked(mail.sender) if mail.sender else None,
                content=_sealed(vault, digest, mail) if keeps else None,
            )  # fmt: skip
        rows.append(row)
    new = _insert(connection, rows)
    answered = sorted(row.send_id for row in rows if row.send_id is not None and row.digest in new)
    open_ones = [send_id for send_id in answered if send_id in locked.open]
    if open_ones:
        run(connection, "raise_evidence", send_id=open_ones)
    return Kept(answered, sum(row.send_id is None for row in rows))


def set_aside(
    connection: Connection, *, workspace_id: UUID, account_id: UUID, content: bytes, reason: str, received_at: datetime
) -> None:
    """Remember that something came in that could not be read, and why; of what it holds nothing is kept."""
    digest = hashlib.sha256(b"unreadable\0" + content).digest()
    said = reason.replace("\0", "").encode(errors="replace").decode()[:500]
    row = _Row(
        workspace_id=workspace_id, account_id=account_id, digest=digest, received_at=received_at, at=received_at,
        automatic=False, reason=said,
    )  # fmt: skip
    _insert(connection, [row])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """A row of ``mail_replies``, under the names of the statement's parameters."""

    workspace_id: UUID
    account_id: UUID
    digest: bytes
    at: datetime
    received_at: datetime
    automatic: bool
    send_id: UUID | None = None
    matched_by: str | None = None
    reason: str | None = None
    own_address: bool | None = None
    sender: str | None = None
    content: bytes | None = None


def _insert(connection: Connection, rows: Sequence[_Row]) -> set[bytes]:
    """Returns the digests of those that were not known."""
    if not rows:
        return set()
    columns = {name: [getattr(row, name) for row in rows] for name in _Row.__slots__}
    return {row[0] for row in run(connection, "insert_mail_replies", **columns).fetchall()}


def _digest(mail: Mail) -> bytes:
    """What makes it this mail: the id that its writer's program gave it, else all that it says."""
    said = [mail.sender, mail.message_id] if mail.message_id else [
        mail.sender, None, mail.written_at and mail.written_at.isoformat(), mail.subject, mail.text, *mail.recipients
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(said).encode()).digest()


def _matches(connection: Connection, vault: Vault, workspace_id: UUID, mails: Sequence[Mail]) -> dict[int, _Match]:
    """By the place of each mail among these, the send that it answers."""
    named = [
        (i, rank, matched_by, name.send_id, name.message_id, _lookup(vault, mail.sender))
        for i, mail in enumerate(mails)
        for rank, (matched_by, name) in enumerate([*_addressed(vault, mail), *(("message_id", n) for n in mail.names)])
    ]
    if not named:
        return {}
    names = ("i", "rank", "matched_by", "send_id", "message_id", "sender")
    bind = dict(zip(names, transposed(named, len(names)), strict=True))
    rows = run(connection, "match_replies", workspace_id=workspace_id, most=MOST, **bind).fetchall()
    return {row[0]: _Match(*row[1:]) for row in rows}


def _addressed(vault: Vault, mail: Mail) -> Iterator[tuple[str, Name]]:
    for address in mail.recipients:
        if send_id := vault.send_of_reply_address(address):
            yield "address", Name(send_id, None)


def _keeps_content(connection: Connection, workspace_id: UUID) -> bool:
    row = connection.execute("select keep_replies from sendonce.workspaces where id = %s", (workspace_id,)).fetchone()
    return bool(row and row[0])


def _time(mail: Mail, received_at: datetime) -> datetime:
    at = mail.written_at
    return at if at and received_at - OLDEST <= at <= received_at - SOONEST else received_at


def _lookup(vault: Vault, address: str | None) -> bytes | None:
    try:
        return vault.lookup(address) if address else None
    except BadAddress:
        return None


def _is_own(vault: Vault, mail: Mail, send: LedgerRow) -> bool | None:
    """Whether the mail names the address that the send went to as its sender; None where that is not known any more."""
    if send.address_lookup is None:
        return None
    try:
        return send.address_lookup in vault.lookups(mail.sender or "")
    except BadAddress:
        return False


def _sealed(vault: Vault, digest: bytes, mail: Mail) -> bytes:
    said = {"sender": mail.sender, "subject": mail.subject, "text": mail.text}
    return vault.encrypt(json.dumps(said).encode(), digest)


# ── what people see of them ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyContent:
    """What a reply says, decrypted. ``kept`` is False where the workspace does not keep that, or it is gone."""

    at: datetime
    received_at: datetime
    automatic: bool
    own_address: bool | None
    matched_by: str
    masked_sender: str | None
    kept: bool
    sender: str | None = None
    subject: str = ""
    text: str | None = None


def read_content(connection: Connection, vault: Vault, *, send_id: UUID, reply: int) -> ReplyContent | None:
    """One reply of a send: whoever calls this audits it. Raises vault.Unreadable."""
    row = connection.execute(
        """
        select at, received_at, automatic, own_address, matched_by, sender, content, digest
        from sendonce.mail_replies where send_id = %s and id = %s
        """,
        (send_id, reply),
    ).fetchone()
    if row is None:
        return None
    said = json.loads(vault.decrypt(row[6], row[7])) if row[6] is not None else {}
    return ReplyContent(
        at=row[0], received_at=row[1], automatic=row[2], own_address=row[3], matched_by=row[4], masked_sender=row[5],
        kept=row[6] is not None, **said,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SetAside:
    """Mails of an account that answer no send, by why."""

    reason: str
    number: int
    last_at: datetime


def read_set_aside(connection: Connection, account_id: UUID) -> list[SetAside]:
    """What came in at an account lately and answers nothing, of the newest :data:`COUNTED`."""
    rows = run(connection, "count_replies_set_aside", account_id=account_id, cap=COUNTED).fetchall()
    return [SetAside(*row) for row in rows]


def forget(connection: Connection, now: datetime, *, limit: int = 1000) -> int:
    """Let go of what answered no send, :data:`SET_ASIDE_FOR` after it came in. Returns how many."""
    return len(run(connection, "forget_replies", before=now - SET_ASIDE_FOR, limit=limit).fetchall())


def set_keep_replies(connection: Connection, workspace_id: UUID, *, keep: bool) -> None:
    """Whether what replies say is kept from now on. What is kept already stays until retention."""
    connection.execute("update sendonce.workspaces set keep_replies = %s where id = %s", (keep, workspace_id))
