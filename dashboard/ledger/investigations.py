"""What people asked about complaints: encrypted, behind an opaque link that is judged anew whenever it is opened."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from dashboard.ledger import audit
from dashboard.ledger.database import Connection, Row
from dashboard.ledger.vault import Unreadable, Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class Investigation:
    """What was asked: who complains, what they say, when it was (as somebody wrote it, and what that meant), in which
    zone, and the Message-IDs of the headers that were pasted."""

    who: str
    complaint: str
    when: str = ""
    since: datetime | None = None
    until: datetime | None = None
    zone: str = "UTC"
    message_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Filed:
    """An investigation behind its link. ``asked`` is None once its encryption key is gone."""

    id: str
    asked: Investigation | None
    at: datetime


def save_investigation(
    connection: Connection, vault: Vault, *, workspace_id: UUID, user_id: UUID, asked: Investigation
) -> str:
    """File what somebody asks, with an audit row: it is a look at what was sent to a person. The id of its link."""
    id = secrets.token_urlsafe(16)
    question = {
        "who": asked.who, "complaint": asked.complaint, "when": asked.when, "zone": asked.zone,
        "since": asked.since and asked.since.isoformat(), "until": asked.until and asked.until.isoformat(),
        "message_ids": asked.message_ids,
    }  # fmt: skip
    connection.execute(
        "insert into sendonce.investigations (id, workspace_id, user_id, question) values (%s, %s, %s, %s)",
        (id, workspace_id, user_id, vault.encrypt(json.dumps(question).encode(), id.encode())),
    )
    audit.record(
        connection, audit.Action.INVESTIGATE, workspace_id=workspace_id, user_id=user_id, subject=id,
        detail={"complaint": asked.complaint},
    )  # fmt: skip
    return id


def read_investigation(connection: Connection, vault: Vault, *, workspace_id: UUID, id: str) -> Filed | None:
    """An investigation of this workspace: colleagues may pass links on."""
    if not id.isprintable():
        return None
    row = connection.execute(
        "select id, question, at from sendonce.investigations where id = %s and workspace_id = %s", (id, workspace_id)
    ).fetchone()
    return _filed(vault, row) if row else None


def recent_investigations(
    connection: Connection, vault: Vault, *, workspace_id: UUID, user_id: UUID, limit: int = 8
) -> list[Filed]:
    """What this person asked last, the newest first."""
    rows = connection.execute(
        "select id, question, at from sendonce.investigations where user_id = %s and workspace_id = %s"
        " order by at desc limit %s",
        (user_id, workspace_id, limit),
    )
    return [_filed(vault, row) for row in rows]


def _filed(vault: Vault, row: Row) -> Filed:
    id, question, at = row
    try:
        return Filed(id, _opened(vault.decrypt(question, id.encode())), at)
    except Unreadable:
        return Filed(id, None, at)


def _opened(question: bytes) -> Investigation:
    stored = json.loads(question)
    times = {name: stored[name] and datetime.fromisoformat(stored[name]) for name in ("since", "until")}
    return Investigation(**{**stored, **times, "message_ids": tuple(stored["message_ids"])})
