"""Finding sends: by anything an agent may have in hand, and as lists that filters narrow."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
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

from dashboard.identity import MAX_KEY, BadAddress
from dashboard.ledger.behind import Span, sends_behind
from dashboard.ledger.database import Connection, compiled, run
from dashboard.ledger.tables import duplicates, holds, mailstreams, moves, sends, work
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import OPEN_STATES, State, Verdict

HITS = 50
"""At most so many hits of each reading."""

KINDS = 64
"""A key is also found by the start of what follows its kind (``order_84721`` finds ``receipt:order_84721:…``), for at
most so many kinds: the distinct first parts of keys, up to the first colon."""

SHORTEST_PREFIX = 3
"""Characters; a shorter start of a key would find anything."""

LONGEST = 1_000
"""Characters of a searched text that are looked at."""

MOST_DUPLICATES = 99
"""The later deliveries of a listed send are counted up to here."""

_MESSAGE_ID = re.compile(r"(?:message-id:\s*)?<(?P<id>[^<>\s]+)>|message-id:\s*(?P<bare>[^<>\s]+)", re.IGNORECASE)


class Reading(StrEnum):
    """As what the searched text was understood, the most exact first; ``read_hits.sql`` ranks by this order."""

    SEND_ID = "send_id"  # also as a Message-ID of ours: <send id@domain>
    KEY = "key"
    PROVIDER_MESSAGE_ID = "provider_message_id"
    EVENT_ID = "event_id"
    TRIGGER_ID = "trigger_id"
    RECIPIENT_ID = "recipient_id"
    ADDRESS = "address"
    KEY_PREFIX = "key_prefix"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A send that was found. ``state`` is a word of ``lifecycle.State``, as in ``Trace.state``."""

    send_id: UUID
    mailstream: str
    key: str
    state: str
    reading: Reading
    recorded_at: datetime
    recipient_id: str


def search(connection: Connection, vault: Vault, workspace_id: UUID, text: str) -> list[Hit]:
    """The sends that this text may mean: the most exact reading first, within a reading the newest first.

    A send that is found by several readings is there once, with the most exact one. At most :data:`HITS` a reading.
    """
    text = text.replace("\0", "").strip()[:LONGEST]
    if not text:
        return []
    bind = {"workspace_id": workspace_id, "limit": HITS, "kinds": KINDS, **_readings(vault, text)}
    readings = list(Reading)
    return [
        Hit(
            send_id=send_id,
            mailstream=mailstream,
            key=key,
            state=state,
            reading=readings[rank - 1],
            recorded_at=recorded_at,
            recipient_id=recipient_id,
        )
        for send_id, mailstream, key, state, rank, recorded_at, recipient_id in run(connection, "read_hits", **bind)
    ]


def _readings(vault: Vault, text: str) -> dict[str, object]:
    """What to look for, reading by reading; None or an empty list where the text cannot be meant so."""
    message_id = _MESSAGE_ID.fullmatch(text)
    inner = (message_id["id"] or message_id["bare"]) if message_id else text
    local = inner.partition("@")[0]
    try:
        lookups = vault.lookups(text)
    except BadAddress:
        lookups = []
    try:
        send_ids = [UUID(local)]
    except ValueError:
        send_ids = []
    is_key = len(text) <= MAX_KEY and text.isascii() and text.isprintable()
    starts_key = is_key and len(text) >= SHORTEST_PREFIX
    return {
        "text": text,
        "send_ids": send_ids,
        "key": text if is_key else None,
        # Some providers give the whole Message-ID as theirs, some only its local part.
        "message_ids": list({text, inner, f"<{inner}>", local} if message_id else {text}),
        "lookups": lookups,
        "prefix": text if starts_key else None,
        "prefix_end": text[:-1] + chr(ord(text[-1]) + 1) if starts_key else None,
    }


def exact_hit(hits: list[Hit]) -> Hit | None:
    """The one send that was meant, if there is exactly one: a search goes straight to its trace."""
    exact = [hit for hit in hits if hit.reading != Reading.KEY_PREFIX]
    return exact[0] if len(exact) == 1 else None


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
    met a later delivery of some verdict  ``duplicates_by_time``             their last such delivery
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
