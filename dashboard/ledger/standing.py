"""How a send stands, for programs: the state, what may be done about it, and when it will change."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from uuid import UUID

from dashboard.ledger.database import Connection, run
from dashboard.lifecycle import Delivery, Reason, RunBy, State

RetryBy = Literal["replay", "new_key"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """One send, read in one statement."""

    send_id: UUID
    mailstream: str
    key: str
    run_by: RunBy
    state: State
    settled: bool
    reason: str | None
    provider: str | None
    """None before the first attempt."""
    provider_message_id: str | None
    delivery: Delivery | None
    deliveries: int
    first_seen: datetime
    next_try: datetime | None
    """When the next attempt may start; None where none is planned, or where a pause has no end."""
    changes_at: datetime | None
    """When a claim or a doubt ends by itself at the latest. None for other states."""
    now: datetime
    """The database's clock at that moment."""

    @property
    def retry_by(self) -> RetryBy | None:
        """How a failed send may still go out: its own key again, or a corrected send under another key."""
        if self.state is not State.FAILED:
            return None
        return "replay" if self.reason == Reason.ATTEMPTS_USED_UP else "new_key"


def read_standings(connection: Connection, workspace_id: UUID, ids: Iterable[UUID]) -> dict[UUID, Standing]:
    """How these sends of the workspace stand; those that it does not have are left out."""
    rows = run(connection, "read_standings", workspace_id=workspace_id, ids=sorted(set(ids))).fetchall()
    return {
        row[0]: Standing(
            send_id=row[0], mailstream=row[1], key=row[2], run_by=RunBy(row[3]), state=State(row[4]), settled=row[5],
            reason=row[6], provider=row[7], provider_message_id=row[8], delivery=row[9] and Delivery(row[9]),
            deliveries=row[10], first_seen=row[11], next_try=row[12], changes_at=row[13], now=row[14],
        )
        for row in rows
    }  # fmt: skip


def read_standing(connection: Connection, workspace_id: UUID, send_id: UUID) -> Standing | None:
    """How one send stands. None: the workspace has no such send."""
    return read_standings(connection, workspace_id, [send_id]).get(send_id)


def find_by_key(connection: Connection, workspace_id: UUID, key: str, mailstream: str | None = None) -> list[Standing]:
    """The sends of this key, one a mailstream that used it, by the mailstream's name. At most a hundred."""
    rows = connection.execute(
        """
        select id from sendonce.sends
        where workspace_id = %(workspace_id)s and key = %(key)s
          and (%(mailstream)s::text is null or mailstream = %(mailstream)s)
        order by mailstream limit 100
        """,
        {"workspace_id": workspace_id, "key": key, "mailstream": mailstream},
    ).fetchall()
    ids = [row[0] for row in rows]
    standings = read_standings(connection, workspace_id, ids)
    return [standings[i] for i in ids if i in standings]


def known_mailstreams(connection: Connection, workspace_id: UUID, names: Collection[str]) -> set[str]:
    """Those of the names that are mailstreams of the workspace."""
    rows = connection.execute(
        "select name from sendonce.mailstreams where workspace_id = %s and name = any(%s)",
        (workspace_id, sorted(set(names))),
    )
    return {row[0] for row in rows}
