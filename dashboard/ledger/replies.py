"""How a workspace words its replies to complaints, cause by cause and language by language."""

from __future__ import annotations

import re
from uuid import UUID

from dashboard.ledger import audit
from dashboard.ledger.database import Connection

LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
"""The form of a language tag such as ``de`` or ``pt-BR`` (RFC 5646, without its rarities)."""


def read_replies(connection: Connection, workspace_id: UUID) -> dict[str, dict[str, str]]:
    """All wordings of a workspace: by language, then by cause."""
    rows = connection.execute(
        "select language, cause, text from sendonce.replies where workspace_id = %s order by language, cause",
        (workspace_id,),
    )
    found: dict[str, dict[str, str]] = {}
    for language, cause, text in rows:
        found.setdefault(language, {})[cause] = text
    return found


def save_reply(
    connection: Connection, *, workspace_id: UUID, user_id: UUID, cause: str, language: str, text: str
) -> None:
    """Word a reply, with an audit row, in the connection's transaction. Raises ValueError for what is no language."""
    if not LANGUAGE.fullmatch(language):
        raise ValueError("a language is a tag such as en, de or pt-BR")
    connection.execute(
        "insert into sendonce.replies (workspace_id, cause, language, text, user_id) values (%s, %s, %s, %s, %s)"
        " on conflict (workspace_id, cause, language) do update"
        " set text = excluded.text, user_id = excluded.user_id, changed_at = now()",
        (workspace_id, cause, language, text, user_id),
    )
    _note(connection, workspace_id, user_id, cause, language)


def forget_reply(connection: Connection, *, workspace_id: UUID, user_id: UUID, cause: str, language: str) -> None:
    """Go back to the wording that comes with Sendonce, with an audit row, in the connection's transaction."""
    connection.execute(
        "delete from sendonce.replies where workspace_id = %s and cause = %s and language = %s",
        (workspace_id, cause, language),
    )
    _note(connection, workspace_id, user_id, cause, language, taken_back=True)


def _note(
    connection: Connection, workspace_id: UUID, user_id: UUID, cause: str, language: str, **detail: object
) -> None:
    audit.record(
        connection, audit.Action.SET_REPLY, workspace_id=workspace_id, user_id=user_id, subject=cause,
        detail={"language": language, **detail},
    )  # fmt: skip
