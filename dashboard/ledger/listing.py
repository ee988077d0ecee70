"""Lists of sends, narrowed by filters: each walks an index, from where the last page ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    Column,
    ColumnElement,
    Select,
    Subquery,
    Table,
    Text,
    cast,
    exists,
    func,
    literal,
    select,
    true,
    tuple_,
)

from dashboard.ledger.behind import Span, sends_behind
from dashboard.ledger.database import Connection, compiled
from dashboard.ledger.tables import duplicates, holds, mailstreams, moves, sends, work
from dashboard.lifecycle import OPEN_STATES, State, Verdict

MOST_DUPLICATES = 99
"""The later deliveries of a listed send are counted up to here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendFilter:
    """What a list of sends is narrowed to. ``verdict`` keeps those that a later delivery with that verdict met."""

    mailstream: str | None = None
    state: State | None = None
    verdict: Verdict | None = None
    behind: Span | None = None
    """Only those behind a point of a chart; the other filters but the mailstream do not count then."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a page ended. ``str()`` of it goes into a URL, :meth:`read` takes it back."""

    at: datetime
    send_id: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat()}~{self.send_id}"

    @classmethod
    def read(cls, text: str) -> Cursor:
        """Raises ValueError for what is no cursor."""
        at, _, send_id = text.partition("~")
        return cls(datetime.fromisoformat(at), UUID(send_id))


@dataclass(frozen=True, slots=True)
class SendRow:
    """A send in a list. ``at`` is the time by which the list is ordered (see :func:`list_sends`)."""

    send_id: UUID
    mailstream: str
    key: str
    recipient_id: str
    state: str
    reason: str | None
    delivery: str | None
    trigger_type: str
    trigger_id: str
    recorded_at: datetime
    at: datetime
    duplicates: int  # later deliveries, counted up to 99


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Rows, and where the next page starts (None: this is the last one)."""

    rows: list[SendRow]
    next: Cursor | None
    oldest_first: bool


def list_sends(
    connection: Connection, workspace_id: UUID, filters: SendFilter, *, after: Cursor | None = None, limit: int = 50
) -> Page:
    """A page of sends. Open states list what has waited longest first; everything else is newest first.

    Each list walks an index from where the last page ended, so that page a thousand costs what the first does:

    ====================================  =================================  ======================
    sends that                            are found by                       in the order of
    ====================================  =================================  ======================
    met a later delivery of some verdict  ``duplicates_by_verdict``          their last such delivery
    are pending                           ``work_claimable``, by mailstream  when they may be claimed
    are claimed                           the whole of ``work``              when they were
    are unknown                           ``work_to_check``                  since when they are
    are held                              ``open_holds``                     since when they are
    failed, were suppressed or cancelled  ``moves_by_end``                   when they did
    are accepted, or any                  ``sends_by_stream``                when they were recorded
    are behind a point of a chart         the span of time of that point     when that happened
    ====================================  =================================  ======================
    """
    text, parameters = compiled(_listing(workspace_id, filters, after, limit + 1))
    rows = [SendRow(*row) for row in connection.execute(text, parameters)]
    more, rows = len(rows) > limit, rows[:limit]
    return Page(
        rows=rows, next=Cursor(rows[-1].at, rows[-1].send_id) if more else None, oldest_first=_oldest_first(filters)
    )


def _oldest_first(filters: SendFilter) -> bool:
    return filters.behind is None and filters.verdict is None and filters.state in OPEN_STATES


def _listing(workspace_id: UUID, filters: SendFilter, after: Cursor | None, limit: int) -> Select[Any]:
    walk = _Walk(after, limit, _oldest_first(filters))
    found = _source(workspace_id, filters, walk).subquery("found")
    return _shown(found).order_by(*walk.order(found.c.at, found.c.send_id)).limit(limit)


@dataclass(frozen=True, slots=True)
class _Walk:
    """How far, from where and in which direction an index is walked."""

    after: Cursor | None
    limit: int
    oldest_first: bool

    def over(
        self, send_id: ColumnElement[Any], at: ColumnElement[Any], *conditions: ColumnElement[bool]
    ) -> Select[Any]:
        """The next ids, each with the time it is ordered by, of the rows that meet the conditions."""
        query = select(send_id.label("send_id"), at.label("at")).where(*conditions)
        if self.after is not None:
            here, there = tuple_(at, send_id), tuple_(literal(self.after.at), literal(self.after.send_id))
            query = query.where(here > there if self.oldest_first else here < there)
        return query.order_by(*self.order(at, send_id)).limit(self.limit)

    def order(self, at: ColumnElement[Any], send_id: ColumnElement[Any]) -> tuple[ColumnElement[Any], ...]:
        """The direction as an ORDER BY."""
        return (at.asc(), send_id.asc()) if self.oldest_first else (at.desc(), send_id.desc())


def _source(workspace_id: UUID, filters: SendFilter, walk: _Walk) -> Select[Any]:
    match filters:
        case SendFilter(behind=Span() as span):
            rows = sends_behind(span, workspace_id, filters.mailstream).subquery("behind")
            return walk.over(rows.c.send_id, rows.c.at)
        case SendFilter(verdict=Verdict()):
            return _met(workspace_id, filters, walk)
        case SendFilter(state=State.CLAIMED):
            in_state = [work.c.state == str(filters.state)]
            return walk.over(work.c.send_id, work.c.claimed_at, *_scope(work, workspace_id, filters), *in_state)
        case SendFilter(state=State.PENDING):
            in_state = [work.c.mail_class == mailstreams.c.mail_class, work.c.state == str(filters.state)]
            return _by_stream(workspace_id, filters, walk, work.c.send_id, work.c.claim_at, *in_state)
        case SendFilter(state=State.UNKNOWN):
            in_state = [work.c.check_at.is_not(None), work.c.state == str(filters.state)]
            return walk.over(work.c.send_id, work.c.unknown_since, *_scope(work, workspace_id, filters), *in_state)
        case SendFilter(state=State.HELD):
            in_state = [holds.c.closed_at.is_(None)]
            return walk.over(holds.c.send_id, holds.c.opened_at, *_scope(holds, workspace_id, filters), *in_state)
        case SendFilter(state=State.FAILED | State.SUPPRESSED | State.CANCELLED):
            return _ended(workspace_id, filters, walk)
        case _:
            in_state = [sends.c.stripped_at.is_(None)]
            in_state += [] if filters.state is None else [sends.c.state == str(filters.state)]
            return _by_stream(workspace_id, filters, walk, sends.c.id, sends.c.recorded_at, *in_state)


def _scope(table: Table, workspace_id: UUID, filters: SendFilter) -> list[ColumnElement[bool]]:
    mine = [table.c.workspace_id == workspace_id]
    return mine if filters.mailstream is None else [*mine, table.c.mailstream == filters.mailstream]


def _by_stream(
    workspace_id: UUID,
    filters: SendFilter,
    walk: _Walk,
    send_id: Column[Any],
    at: Column[Any],
    *in_state: ColumnElement[bool],
) -> Select[Any]:
    """A page of each mailstream: together they hold the page of all of them."""
    of_stream = [send_id.table.c.workspace_id == workspace_id, send_id.table.c.mailstream == mailstreams.c.name]
    near = walk.over(send_id, at, *of_stream, *in_state).correlate(mailstreams).lateral("near")
    wanted = [mailstreams.c.workspace_id == workspace_id]
    if filters.mailstream is not None:
        wanted.append(mailstreams.c.name == filters.mailstream)
    return select(near.c.send_id, near.c.at).select_from(mailstreams.join(near, true())).where(*wanted)


def _met(workspace_id: UUID, filters: SendFilter, walk: _Walk) -> Select[Any]:
    """Sends by the last of their later deliveries that had this verdict."""
    later = duplicates.alias("later")
    conditions = [
        duplicates.c.verdict == str(filters.verdict),
        ~exists().where(
            later.c.send_id == duplicates.c.send_id,
            later.c.verdict == duplicates.c.verdict,
            tuple_(later.c.at, later.c.id) > tuple_(duplicates.c.at, duplicates.c.id),
        ),
    ]
    if filters.state is not None:
        send = select(STATE).select_from(sends.outerjoin(work, work.c.send_id == sends.c.id))
        state = send.where(sends.c.id == duplicates.c.send_id).scalar_subquery()
        conditions.append(state == str(filters.state))
    return walk.over(duplicates.c.send_id, duplicates.c.at, *_scope(duplicates, workspace_id, filters), *conditions)


def _ended(workspace_id: UUID, filters: SendFilter, walk: _Walk) -> Select[Any]:
    """Sends by the move that settled them: the last one, where a send failed, was replayed and failed again."""
    later = moves.alias("later")
    conditions = [
        moves.c.workspace_id == workspace_id,
        moves.c.to_state == str(filters.state),
        ~exists().where(
            later.c.send_id == moves.c.send_id,
            tuple_(later.c.at, later.c.id) > tuple_(moves.c.at, moves.c.id),
        ),
    ]
    if filters.mailstream is not None:
        conditions.append(exists().where(sends.c.id == moves.c.send_id, sends.c.mailstream == filters.mailstream))
    return walk.over(moves.c.send_id, moves.c.at, *conditions)


STATE = func.coalesce(cast(work.c.state, Text), cast(sends.c.state, Text))
"""The state that people see, from one statement (DESIGN §3)."""


def _shown(found: Subquery) -> Select[Any]:
    """What a list shows of the sends that were found."""
    counted = select(duplicates.c.id).where(duplicates.c.send_id == sends.c.id).limit(MOST_DUPLICATES).correlate(sends)
    columns = (
        sends.c.id,
        sends.c.mailstream,
        sends.c.key,
        sends.c.recipient_id,
        STATE,
        func.coalesce(work.c.reason, sends.c.reason),
        cast(sends.c.delivery, Text),
        sends.c.trigger_type,
        sends.c.trigger_id,
        sends.c.recorded_at,
        found.c.at,
        select(func.count()).select_from(counted.subquery()).scalar_subquery(),
    )
    rows = found.join(sends, sends.c.id == found.c.send_id).outerjoin(work, work.c.send_id == sends.c.id)
    return select(*columns).select_from(rows)
