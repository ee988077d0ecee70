"""What fired, who was told, and when nobody is to be told.

A *notice* is one thing to tell on one channel. Notices are made in sets, in the transaction that sees that an alert is
not told yet, and each is made once. Sending one is: take it (which puts its next try off, so that no other worker has
it meanwhile), call, store what came of it. A worker that dies in between has it sent again, with the same id, by which
a receiver knows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.rows import class_row

from dashboard.ledger import audit
from dashboard.ledger.database import Connection, run, statement
from dashboard.ledger.measures import Measure
from dashboard.ledger.refused import Refused
from dashboard.ledger.tables import ChannelKind, NoticeKind, Severity

WAITS = tuple(timedelta(seconds=seconds) for seconds in (5, 30, 120, 600, 1800, 3600, 7200, 14_400, 28_800))
"""After each failed try; a day in all, then the notice is given up, which is shown."""

TAKEN_FOR = timedelta(minutes=2)
"""Longer than any call takes: a notice that was taken so long ago was lost with its worker."""

LONGEST_SILENCE = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRow:
    """One time that a rule fired. ``worst``: the highest value of it. ``notices``: what came of telling it."""

    id: int
    rule: str
    measure: Measure
    mailstream: str
    severity: Severity
    threshold: float
    opened_at: datetime
    value: float
    worst: float
    closed_at: datetime | None
    told_at: datetime | None
    silenced: bool
    delivered: int
    waiting: int
    given_up: int
    last_error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeToSend:
    """A notice that this worker has taken. ``target`` is encrypted for ``channel_id``."""

    id: int
    tries: int
    made_at: datetime
    kind: NoticeKind
    channel_id: UUID
    channel_kind: ChannelKind
    target: bytes
    workspace: str
    alert_id: int | None
    rule: str | None
    measure: Measure | None
    mailstream: str | None
    severity: Severity | None
    threshold: float | None
    value: float | None
    opened_at: datetime | None
    closed_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """While it lasts, nobody is told. Empty ``rule`` or ``mailstream``: whichever."""

    id: int
    rule: str
    mailstream: str
    made_at: datetime
    until: datetime
    reason: str
    who: str | None


def list_alerts(
    connection: Connection, workspace_id: UUID, *, before: int | None = None, open_only: bool = False, limit: int = 50
) -> list[AlertRow]:
    """The newest alerts, and whether each is silenced now; those older than alert ``before``."""
    rows = connection.cursor(row_factory=class_row(AlertRow))
    bind = {"workspace_id": workspace_id, "before": before, "open_only": open_only, "limit": limit}
    return rows.execute(statement("read_alerts"), bind, binary=True).fetchall()


def with_news(connection: Connection) -> list[UUID]:
    """The workspaces that have alerts of which nobody was told, or was told that they are over."""
    rows = connection.execute(
        """
        select workspace_id from sendonce.alerts where told_at is null and closed_at is null
        union
        select workspace_id from sendonce.alerts
        where told_at is not null and closed_at is not null and cleared_told_at is null
        order by workspace_id
        """
    )
    return [row[0] for row in rows]


def make_notices(connection: Connection, workspace_id: UUID) -> int:
    """Make the notices of alerts that are not told yet, unless silenced, and of told ones that are over. Their number.

    What was over before anybody was told is not told at all.
    """
    made = run(connection, "make_alert_notices", workspace_id=workspace_id).rowcount
    return made + run(connection, "make_cleared_notices", workspace_id=workspace_id).rowcount


def take_notices(connection: Connection, *, limit: int) -> list[NoticeToSend]:
    """Take notices that are due; no other worker has them for :data:`TAKEN_FOR`.

    A try counts when it is taken, so that a notice at which workers end is given up in the end, as any other.
    """
    rows = connection.cursor(row_factory=class_row(NoticeToSend))
    bind = {"limit": limit, "taken_for": TAKEN_FOR, "most": len(WAITS) + 1}
    return rows.execute(statement("take_alert_notices"), bind, binary=True).fetchall()


def notice_sent(connection: Connection, notice_id: int) -> None:
    """It arrived."""
    connection.execute(
        "update sendonce.alert_notices set delivered_at = now(), next_try_at = null, last_error = null,"
        " gave_up_at = null where id = %s",
        (notice_id,),
    )


def notice_failed(connection: Connection, notice: NoticeToSend, *, error: str, for_good: bool) -> None:
    """It did not arrive: try again later, or give it up, where that is no use or it was tried often enough.

    ``error``: in our own words, never what the other side answered.
    """
    last = for_good or notice.tries > len(WAITS)
    wait = None if last else WAITS[notice.tries - 1]
    connection.execute(
        "update sendonce.alert_notices set next_try_at = now() + %(wait)s, last_error = %(error)s,"
        " gave_up_at = case when %(last)s then now() end where id = %(id)s and delivered_at is null",
        {"id": notice.id, "wait": wait, "error": error[:200], "last": last},
    )


# ── silences ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def silence(
    connection: Connection, *, workspace_id: UUID, rule: str, mailstream: str, lasts: timedelta, reason: str,
    user_id: UUID | None, token_id: UUID | None = None,
) -> int:  # fmt: skip
    """Tell nobody for a while. Returns the silence's number. Raises :class:`Refused`."""
    if not reason.strip():
        raise Refused("say why: whoever wonders later should not have to ask")
    if not timedelta(minutes=1) <= lasts <= LONGEST_SILENCE:
        raise Refused("a silence lasts from a minute to 30 days")
    known = connection.execute(
        """
        select
          %(rule)s = '' or exists (select from sendonce.alert_rules where workspace_id = %(id)s and name = %(rule)s),
          %(stream)s = '' or exists (select from sendonce.mailstreams where workspace_id = %(id)s and name = %(stream)s)
        """,
        {"id": workspace_id, "rule": rule, "stream": mailstream},
    ).fetchone()
    assert known is not None
    for what, name, there in (("rule", rule, known[0]), ("mailstream", mailstream, known[1])):
        if not there:
            raise Refused(f"there is no {what} {name!r}; leave it out to silence all of them")
    row = connection.execute(
        "insert into sendonce.alert_silences (workspace_id, rule, mailstream, until, reason, user_id, token_id)"
        " values (%s, %s, %s, now() + %s, %s, %s, %s) returning id",
        (workspace_id, rule, mailstream, lasts, reason.strip(), user_id, token_id),
    ).fetchone()
    assert row is not None
    number: int = row[0]
    audit.record(
        connection, audit.Action.SILENCE_ALERTS, workspace_id=workspace_id, user_id=user_id, token_id=token_id,
        subject=rule or "all rules", reason=reason.strip(),
        detail={"silence": number, "mailstream": mailstream or "all", "minutes": round(lasts.total_seconds() / 60)},
    )  # fmt: skip
    return number


def end_silence(
    connection: Connection, silence_id: int, *, workspace_id: UUID, user_id: UUID | None, token_id: UUID | None = None
) -> None:
    """Tell people again from now on. Raises :class:`Refused`."""
    ended = connection.execute(
        "update sendonce.alert_silences set until = now() where id = %s and workspace_id = %s and until > now()",
        (silence_id, workspace_id),
    )
    if ended.rowcount == 0:
        raise Refused(f"there is no silence {silence_id} that still lasts")
    audit.record(
        connection, audit.Action.END_SILENCE, workspace_id=workspace_id, user_id=user_id, token_id=token_id,
        subject=silence_id,
    )  # fmt: skip


def list_silences(connection: Connection, workspace_id: UUID) -> list[Silence]:
    """Those that last, the first to end first."""
    rows = connection.cursor(row_factory=class_row(Silence)).execute(
        """
        select s.id, s.rule, s.mailstream, s.made_at, s.until, s.reason, coalesce(u.login, t.name) as who
        from sendonce.alert_silences s
        left join sendonce.users u on u.id = s.user_id left join sendonce.api_tokens t on t.id = s.token_id
        where s.workspace_id = %s and s.until > now() order by s.until, s.id limit 200
        """,
        (workspace_id,),
    )
    return rows.fetchall()


def count_firing(connection: Connection, workspace_ids: Sequence[UUID]) -> dict[tuple[UUID, str, Severity], int]:
    """How many alerts are open, by workspace, rule and severity."""
    rows = connection.execute(
        "select workspace_id, rule, severity::text, count(*) from sendonce.alerts"
        " where closed_at is null and workspace_id = any(%s) group by 1, 2, 3",
        (list(workspace_ids),),
    )
    return {(row[0], row[1], Severity(row[2])): row[3] for row in rows}
