"""What people and programs did: one row for every button pressed, every reveal, every change of access."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from dashboard.ledger.database import Connection, run


class Action(StrEnum):
    """All that is written down."""

    LOG_IN = "log_in"
    LOG_OUT = "log_out"
    REVEAL_ADDRESS = "reveal_address"
    VIEW_MESSAGE = "view_message"
    VIEW_RAW_EVENT = "view_raw_event"
    EXPORT_SENDS = "export_sends"
    EXPORT_EVIDENCE = "export_evidence"
    ADD_NOTE = "add_note"
    REMOVE_NOTE = "remove_note"
    SAVE_VIEW = "save_view"
    REMOVE_VIEW = "remove_view"
    INVESTIGATE = "investigate"  # a complaint: what was sent to a person, and what became of it
    SET_REPLY = "set_reply"
    HELD_RESEND = "held.resend"  # the three are written by ``holds.decide``
    HELD_MARK_ACCEPTED = "held.mark_accepted"
    HELD_CANCEL = "held.cancel"
    HELD_PROPOSE = "held.propose"  # many at once; each is written down by ``holds.decide`` as well
    HELD_AGREE = "held.agree"
    HELD_DECLINE = "held.decline"
    HELD_WITHDRAW = "held.withdraw"
    CANCEL_SEND = "cancel_send"  # a send that was not held
    REPLAY_SEND = "replay_send"
    REQUEUE_DEAD_LETTER = "dead_letter.requeue"
    DISCARD_DEAD_LETTER = "dead_letter.discard"
    ADD_MARKER = "add_marker"
    ADD_USER = "add_user"
    SET_ROLE = "set_role"
    SET_PASSWORD = "set_password"  # the name of an action
    DISABLE_USER = "disable_user"
    ADD_TOKEN = "add_token"
    REVOKE_TOKEN = "revoke_token"
    ADD_WORKSPACE = "add_workspace"
    SET_WORKSPACE = "set_workspace"
    ADD_ACCOUNT = "add_account"
    SET_ACCOUNT = "set_account"
    ROTATE_WEBHOOK_SECRET = "rotate_webhook_secret"
    PAUSE_ACCOUNT = "pause_account"
    RESUME_ACCOUNT = "resume_account"
    CHECK_ACCOUNT = "check_account"
    DRAIN_WORKER = "drain_worker"
    EXPORT_AUDIT = "export_audit"
    ADD_STREAM = "add_stream"
    SET_STREAM = "set_stream"
    PAUSE_STREAM = "pause_stream"
    RESUME_STREAM = "resume_stream"
    PAUSE_WORKSPACE = "pause_workspace"  # all sending of it
    RESUME_WORKSPACE = "resume_workspace"
    SET_ALERT_RULE = "set_alert_rule"
    REMOVE_ALERT_RULE = "remove_alert_rule"
    ADD_ALERT_CHANNEL = "add_alert_channel"
    REMOVE_ALERT_CHANNEL = "remove_alert_channel"
    TEST_ALERT_CHANNEL = "test_alert_channel"
    SILENCE_ALERTS = "silence_alerts"
    END_SILENCE = "end_silence"
    ADOPT_PLACE = "adopt_place"  # the ledger was moved, and a person answers for it (``place.adopt_place``)
    CARRY_ON = "carry_on"  # by Sendonce itself, after the failover to a declared standby (``standby.py``)
    DECLARE_STANDBY = "declare_standby"
    WITHDRAW_STANDBY = "withdraw_standby"


OF_SENDS = frozenset(
    {Action.REVEAL_ADDRESS, Action.VIEW_MESSAGE, Action.VIEW_RAW_EVENT, Action.CANCEL_SEND, Action.REPLAY_SEND}
    | {Action.EXPORT_EVIDENCE, Action.ADD_NOTE, Action.REMOVE_NOTE}
    | {Action.HELD_RESEND, Action.HELD_MARK_ACCEPTED, Action.HELD_CANCEL}
)
"""Actions whose subject is the id of a send."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the audit log. ``who``: a login, a token's name, or None for the command line and Sendonce itself."""

    id: int
    at: datetime
    who: str | None
    action: str
    subject: str
    reason: str | None
    detail: Mapping[str, Any] | None

    @property
    def is_send(self) -> bool:
        """True where ``subject`` is the id of a send."""
        return self.action in OF_SENDS


def record(
    connection: Connection,
    action: Action,
    *,
    workspace_id: UUID | None,
    user_id: UUID | None = None,
    token_id: UUID | None = None,
    subject: object = "",
    reason: str | None = None,
    detail: Mapping[str, object] | None = None,
) -> None:
    """Write down what somebody did, in the transaction that does it. Never an address, a body or a secret."""
    run(
        connection,
        "write_audit",
        workspace_id=workspace_id,
        user_id=user_id,
        token_id=token_id,
        action=action.value,
        subject=str(subject),
        reason=reason,
        detail=None if detail is None else json.dumps(detail),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """Which entries; all that is given must fit."""

    action: str | None = None
    who: str | None = None
    """A login, or the name of a token."""
    subject: str | None = None
    """A send id, a mailstream, an account, a login, ….: exactly."""
    since: datetime | None = None
    until: datetime | None = None


EVERYTHING = AuditFilter()


def list_entries(
    connection: Connection,
    workspace_id: UUID,
    *,
    filters: AuditFilter = EVERYTHING,
    before: int | None = None,
    limit: int = 50,
) -> list[Entry]:
    """The newest entries of a workspace, and what its people did in no workspace; older than entry ``before``."""
    rows = connection.execute(
        """
        select audit.id, audit.at, coalesce(users.login, api_tokens.name), audit.action, audit.subject,
               audit.reason, audit.detail
        from sendonce.audit
        left join sendonce.users on users.id = audit.user_id
        left join sendonce.api_tokens on api_tokens.id = audit.token_id
        where (
            audit.workspace_id = %(workspace_id)s
            or audit.workspace_id is null and exists (
                select from sendonce.roles join sendonce.users person on person.id = roles.user_id
                where roles.workspace_id = %(workspace_id)s
                  and (person.id = audit.user_id or person.login = audit.subject)
            )
        )
          and (%(action)s::text is null or audit.action = %(action)s)
          and (%(who)s::text is null or coalesce(users.login, api_tokens.name) = %(who)s)
          and (%(subject)s::text is null or audit.subject = %(subject)s)
          and (%(since)s::timestamptz is null or audit.at >= %(since)s)
          and (%(until)s::timestamptz is null or audit.at < %(until)s)
          and (%(before)s::bigint is null or audit.id < %(before)s)
        order by audit.id desc
        limit %(limit)s
        """,
        {"workspace_id": workspace_id, "before": before, "limit": limit, **asdict(filters)},
    )
    return [Entry(*row) for row in rows]
