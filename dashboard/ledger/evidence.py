"""All that the ledger knows about a complaint, read by the same few statements however much there is of it.

That is: the sends that are meant, what else went to the same people around the time, what was asked for and never
became a send, and what providers told about these people without naming a send of ours. What follows from it is judged
in ``insight/``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.rows import class_row, dict_row

from dashboard.identity import BadAddress, normal_address
from dashboard.ledger.database import Connection, Database, database_now, run, statement
from dashboard.ledger.search import SHORTEST_PREFIX, Hit, Reading, search, search_close
from dashboard.ledger.trace import SuppressionRule, Trace, read_traces
from dashboard.ledger.vault import Unreadable, Vault

MARGIN = timedelta(days=1)
"""People are wrong about times: so far before and after the one that is named, sends are looked at."""

SENDS = 25
"""At most so many sends are looked at, those nearest to the time."""

WALK = 200
"""Of each person so many sends are looked at for what was alive around the time."""

OUTBOX = 10_001
"""So many requests of the outbox are looked at."""

ROWS = 50
"""Of everything else at most so many rows are read."""

PEOPLE = (Reading.RECIPIENT_ID, Reading.ADDRESS)
"""Readings that name a person, and with them all that went to that person around the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Who complains, by anything that search takes; from when to when it is said to have happened (None: not said)."""

    who: str
    around: tuple[datetime, datetime] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingRequest:
    """A request in the outbox that no worker has relayed yet."""

    id: UUID
    send_id: UUID
    asked_at: datetime
    source: str
    mailstream: str | None
    key: str | None
    trigger_type: str | None
    trigger_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRequest:
    """A request that could not be read, and names what was searched for. ``reason`` says what is wrong with it."""

    id: int
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stray:
    """What a provider told about this person without naming a send of ours."""

    id: int
    workspace_id: UUID
    account: str
    provider: str
    event_type: str
    occurred_at: datetime
    received_at: datetime
    provider_message_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a complaint is judged by. Traces are those nearest to the time first, the named ones before the others.

    ``by_person``: it is a person that is named, so that all sends to them around the time are meant. ``close``: what
    is like the text, where nothing goes by it. ``cut``: there is
    more than was looked at, so that nothing may be concluded from something not being there. ``unfinished``: a
    transaction is open that may have asked for it, since ``unfinished_since`` where the database shows that.
    ``sealed``: there are requests around then that could neither be read nor decrypted. ``known_since``: what was asked
    for before may have been forgotten.
    """

    question: Question
    now: datetime
    home: UUID
    workspaces: dict[UUID, str]
    by_person: bool
    readings: tuple[Reading, ...]
    close: list[Hit]
    named: list[Trace]
    beside: list[Trace]
    waiting: list[WaitingRequest]
    unreadable: list[UnreadableRequest]
    strays: list[Stray]
    suppressions: list[SuppressionRule]
    unfinished: bool
    unfinished_since: datetime | None
    sealed: bool
    cut: bool
    known_since: datetime
    lookups: dict[UUID, bytes | None]

    def same_person(self, one: Trace, other: Trace) -> bool:
        """Whether two sends went to one person: to one recipient of one workspace, or to one address."""
        if one.send.workspace_id == other.send.workspace_id and one.send.recipient_id == other.send.recipient_id:
            return True
        address = self.lookups[one.send.id]
        return address is not None and address == self.lookups[other.send.id]

    def of_the_time(self, trace: Trace) -> bool:
        """Whether a send was under way in the time that is asked about, or asked for again then; True where no time is
        asked about."""
        around = self.question.around
        if around is None or _alive(trace, around):
            return True
        return any(request.send_id == trace.send.id for request in self.waiting)

    @property
    def traces(self) -> list[Trace]:
        """All that was looked at."""
        return [*self.named, *self.beside]

    @property
    def around(self) -> tuple[datetime, datetime] | None:
        """The time that is asked about, or else that of the newest send that is named."""
        newest = max((trace.send.recorded_at for trace in self.named), default=None)
        return self.question.around or (None if newest is None else (newest, newest))


def read_evidence(
    database: Database, vault: Vault, *, workspace_id: UUID, also: Sequence[UUID] = (), question: Question
) -> Evidence:
    """Read it, as of now. ``also``: further workspaces in which the same addresses are looked for.

    Open transactions are looked for first: what they had asked for is in the snapshot that follows, unless they are
    open still.
    """
    with database.transaction(durable=False) as connection:
        unfinished, unfinished_since = run(connection, "read_unfinished_requests").fetchone() or (True, None)
    with database.snapshot() as connection:
        hits = _named(search(connection, vault, workspace_id, question.who))
        close = [] if hits else search_close(connection, vault, workspace_id, question.who)
        return _read(
            connection, vault, [workspace_id, *also], question, hits, close,
            unfinished=unfinished, unfinished_since=unfinished_since,
        )  # fmt: skip


def _named(hits: list[Hit]) -> list[Hit]:
    """What the text names: all exact hits, or else what begins with it."""
    return [hit for hit in hits if hit.reading != Reading.KEY_PREFIX] or hits


@dataclass(frozen=True, slots=True)
class _Sends:
    """The sends that are meant and those beside them, the nearest first, with what their people are known by."""

    by_person: bool
    named: list[Trace]
    beside: list[Trace]
    lookups: dict[UUID, bytes | None]
    cut: bool


def _sends(
    connection: Connection, workspace_ids: list[UUID], question: Question, hits: list[Hit], lookups: list[bytes],
    waiting: list[WaitingRequest],
) -> _Sends:  # fmt: skip
    by_person = _by_person(hits)
    again = {request.send_id for request in waiting}
    since, until = question.around or (None, None)
    rows = run(
        connection,
        "read_evidence_sends",
        workspace_id=workspace_ids[0], workspace_ids=workspace_ids, lookups=lookups,
        named=_known_by(hits), waiting=list(again),
        since=since, until=until, margin=MARGIN, walk=WALK, limit=SENDS,
    ).fetchall()  # fmt: skip
    traces = read_traces(connection, workspace_ids, [row[0] for row in rows])
    of_the_time = _of_the_time(traces, workspace_ids[0], question.around, again)
    meant = of_the_time if by_person else {row[0] for row in rows if row[4]}
    return _Sends(
        by_person=by_person,
        named=[traces[row[0]] for row in rows if row[0] in meant],
        beside=[
            traces[row[0]]
            for row in rows
            # What else went to a person whom the question names is not of that time.
            if row[0] not in meant and not (by_person and row[1] == workspace_ids[0])
        ],
        lookups={row[0]: row[3] for row in rows},
        cut=bool(rows) and rows[0][5],
    )


def _read(
    connection: Connection, vault: Vault, workspace_ids: list[UUID], question: Question, hits: list[Hit],
    close: list[Hit], *, unfinished: bool, unfinished_since: datetime | None,
) -> Evidence:  # fmt: skip
    who = question.who.strip()
    lookups = _lookups(vault, who)
    waiting, more = _waiting(connection, workspace_ids[0], question, hits, normal_address(who) if lookups else None)
    sends = _sends(connection, workspace_ids, question, hits, lookups, waiting)
    newest = max((trace.send.recorded_at for trace in sends.named), default=None)
    since, until = question.around or (newest, newest)
    asked_since, asked_until = question.around or (None, None)
    bind = {
        "workspace_id": workspace_ids[0], "workspace_ids": workspace_ids, "since": since, "until": until,
        "margin": MARGIN, "limit": ROWS,
        "lookups": list({*lookups, *filter(None, sends.lookups.values())}),
    }  # fmt: skip
    with connection.pipeline():
        unreadable = run(connection, "read_evidence_unreadable", **{**bind, "since": asked_since, "until": asked_until})
        strays = connection.cursor(row_factory=class_row(Stray)).execute(
            statement("read_evidence_strays"), bind, binary=True
        )
        suppressions = connection.cursor(row_factory=class_row(SuppressionRule)).execute(
            statement("read_evidence_suppressions"), bind, binary=True
        )
        horizon = run(connection, "read_evidence_horizon", **bind)
        titles = run(connection, "read_evidence_workspaces", **bind)
    letters = [(row, _opened(vault, row)) for row in unreadable.fetchall()]
    return Evidence(
        question=question,
        now=database_now(connection),
        home=workspace_ids[0],
        workspaces=dict(titles.fetchall()),
        by_person=sends.by_person,
        readings=tuple(dict.fromkeys(hit.reading for hit in hits)),
        close=close,
        named=sends.named,
        beside=sends.beside,
        waiting=waiting,
        unreadable=[
            UnreadableRequest(id=row[0], at=row[2], reason=row[4])
            for row, payload in letters
            if payload is not None and _names(payload, who)
        ],
        strays=strays.fetchall(),
        suppressions=suppressions.fetchall(),
        unfinished=unfinished,
        unfinished_since=unfinished_since,
        sealed=len(letters) >= ROWS or any(payload is None for _, payload in letters),
        cut=sends.cut or more,
        known_since=horizon.fetchall()[0][0],
        lookups=sends.lookups,
    )


def _by_person(hits: list[Hit]) -> bool:
    return bool(hits) and all(hit.reading in PEOPLE for hit in hits)


def _known_by(hits: list[Hit]) -> list[UUID]:
    """The sends that are named; of a person one, which is enough to know them by."""
    return [hit.send_id for hit in hits[: 1 if _by_person(hits) else None]]


def _waiting(
    connection: Connection, workspace_id: UUID, question: Question, hits: list[Hit], address: str | None
) -> tuple[list[WaitingRequest], bool]:
    """The requests that wait in the outbox and may be meant, and whether there are more than were looked at."""
    rows = connection.cursor(row_factory=dict_row).execute(
        statement("read_evidence_outbox"),
        {
            "workspace_id": workspace_id, "walk": OUTBOX, "limit": ROWS, "named": _known_by(hits),
            "text": question.who.strip(), "address": address, "shortest": SHORTEST_PREFIX,
        },
        binary=True,
    ).fetchall()  # fmt: skip
    meant = [row for row in rows[:-1] if _meant(row, address) and _in_time(row["asked_at"], question.around)]
    whole = [row for row in meant if row["whole"]]
    exact = whole or any(hit.reading != Reading.KEY_PREFIX for hit in hits)
    return [_request(row) for row in (whole if exact else meant)], rows[-1]["more"]


def _in_time(time: datetime, around: tuple[datetime, datetime] | None) -> bool:
    return around is None or around[0] - MARGIN <= time <= around[1] + MARGIN


def _lookups(vault: Vault, text: str) -> list[bytes]:
    try:
        return vault.lookups(text)
    except BadAddress:
        return []


def _of_the_time(
    traces: dict[UUID, Trace], home: UUID, around: tuple[datetime, datetime] | None, again: set[UUID]
) -> set[UUID]:
    """Of what went to a person: what was under way or asked for again around the time, or else around the newest."""
    own = [trace for trace in traces.values() if trace.send.workspace_id == home]
    newest = max((trace.send.recorded_at for trace in own), default=None)
    if newest is None:
        return set()
    return {trace.send.id for trace in own if trace.send.id in again or _alive(trace, around or (newest, newest))}


def _alive(trace: Trace, around: tuple[datetime, datetime]) -> bool:
    """Whether a send was under way around the time or asked for again then, or is open still."""
    if any(around[0] - MARGIN <= duplicate.at <= around[1] + MARGIN for duplicate in trace.duplicates):
        return True
    send = trace.send
    times = [time for time in (send.recorded_at, send.due_at, send.settled_at, send.delivery_at) if time]
    first, last = min(times), max(times)
    return (send.settled_at is None or last >= around[0] - MARGIN) and first <= around[1] + MARGIN


def _meant(row: dict[str, object], address: object) -> bool:
    """False for an address that the database could not compare and that is another one."""
    given = str(row["address"] or "")
    if address is None or given.isascii():
        return True
    try:
        return normal_address(given) == address
    except BadAddress:
        return False


def _request(row: dict[str, object]) -> WaitingRequest:
    return WaitingRequest(**{name: row[name] for name in WaitingRequest.__slots__})  # type: ignore[arg-type]


def _opened(vault: Vault, row: tuple[object, ...]) -> str | None:
    """The text of a request that could not be read; None where its key is gone."""
    outbox_id, payload = row[1], row[5]
    assert isinstance(outbox_id, UUID)
    assert isinstance(payload, bytes)
    try:
        return vault.decrypt(payload, outbox_id.bytes).decode(errors="replace")
    except Unreadable:
        return None


def _names(payload: str, who: str) -> bool:
    """Whether a request, however damaged, holds this text."""
    text = who.casefold()
    forms = {text, json.dumps(text)[1:-1]}
    return any(form and form in payload.casefold() for form in forms)
