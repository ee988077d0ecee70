"""The company at work: its mail is asked for at a human pace, and its warehouse's queue delivers every job twice."""

from __future__ import annotations

import heapq
import itertools
import math
import random
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime

from dashboard.demo.queue import Warehouse
from dashboard.demo.story import Asked, Happening, Job, happenings
from dashboard.ledger.database import Connection, Database
from dashboard.producer import enqueue

BURST = 300
"""So many emails are asked for at once on the first start, so that every page has something to show."""

AT_ONCE = 50
"""Emails of the burst in one transaction."""

PER_SECOND = 1.0
"""Emails, on average; it swells and ebbs by a half over :data:`TIDE` seconds."""

TIDE = 600.0

REDELIVERED_AFTER = 4.0
"""Seconds after which the warehouse's queue delivers a job again that was not acknowledged."""


class Business:
    """What is asked for, step by step. Restarting goes on with the next email and with the jobs that were left."""

    def __init__(
        self, database: Database, warehouse: Warehouse, *, seed: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._database = database
        self._warehouse = warehouse
        self._seed = seed
        self._clock = clock
        self._dice = random.Random(seed)  # noqa: S311  # only the pace
        self._order = itertools.count()
        self._due: list[tuple[float, int, Happening]] = []
        self._next_at = clock()
        self._hands = ThreadPoolExecutor(4, thread_name_prefix="warehouse")
        self._deliveries: list[tuple[Job, Future[bool]]] = []
        with database.transaction(durable=False) as connection:
            self._next_number = next_number(connection)
            self._take_up_jobs(connection)

    def step(self) -> None:
        """Do what is due now; returns soon."""
        self._collect()
        now = self._clock()
        turns = self._turns(now)
        for number in turns:
            for happening in happenings(self._seed, number):
                self._plan(happening, now + happening.after)
        due = self._take_due(now)
        if not due:
            return
        with self._database.transaction() as connection:
            _use_up(connection, self._next_number)
            for happening in due:
                if isinstance(happening, Asked):
                    _ask(connection, happening)
        for happening in due:
            if isinstance(happening, Job):
                self._deliver(happening)

    def close(self) -> None:
        """Let the warehouse finish what it has in hand."""
        self._hands.shutdown()

    def _plan(self, happening: Happening, at: float) -> None:
        heapq.heappush(self._due, (at, next(self._order), happening))

    def _take_due(self, now: float) -> list[Happening]:
        due = []
        while self._due and self._due[0][0] <= now:
            due.append(heapq.heappop(self._due)[2])
        return due

    def _turns(self, now: float) -> range:
        """The emails whose turn has come."""
        first = self._next_number
        self._next_number += min(AT_ONCE, BURST - first) if first < BURST else int(now >= self._next_at)
        if now >= self._next_at:
            pace = PER_SECOND * (1 + math.sin(now / TIDE * math.tau) / 2)
            self._next_at = now + self._dice.expovariate(pace)
        return range(first, self._next_number)

    # ── the warehouse ────────────────────────────────────────────────────────────────────────────────────────────────

    def _deliver(self, job: Job) -> None:
        """Twice at once, as a queue does that delivers at least once."""
        for _ in range(2):
            self._deliveries.append((job, self._hands.submit(self._warehouse.deliver, job.parcel, job.address)))

    def _collect(self) -> None:
        """Jobs that may be acknowledged are; the others are delivered again."""
        ended = [(job, future) for job, future in self._deliveries if future.done()]
        self._deliveries = [(job, future) for job, future in self._deliveries if not future.done()]
        again = {job for job, future in ended if future.exception() or not future.result()}
        waiting = {job for job, _ in self._deliveries} | {
            happening for _, _, happening in self._due if isinstance(happening, Job)
        }
        for job in again - waiting:
            self._plan(job, self._clock() + REDELIVERED_AFTER)

    def _take_up_jobs(self, connection: Connection) -> None:
        """A queue keeps its jobs: what was not settled when the demo ended is delivered again."""
        parcels = connection.execute(
            "select s.trigger_id from sendonce.work w join sendonce.sends s on s.id = w.send_id"
            " where w.run_by = 'caller' and s.trigger_id ~ '^parcel_[0-9]+$'"
        ).fetchall()
        for (parcel,) in parcels:
            for happening in happenings(self._seed, int(parcel.removeprefix("parcel_"))):
                self._plan(happening, self._clock())


def next_number(connection: Connection) -> int:
    """The number of the email whose turn comes next."""
    row = connection.execute("select value from sendonce.settings where name = 'demo_next_number'").fetchone()
    return int(row[0]) if row else 0


def _use_up(connection: Connection, following: int) -> None:
    connection.execute(
        "insert into sendonce.settings (name, value) values ('demo_next_number', to_jsonb(%s::int))"
        " on conflict (name) do update set value = excluded.value",
        (following,),
    )


def _ask(connection: Connection, asked: Asked) -> None:
    intent = asked.intent
    now = datetime.now(UTC)
    enqueue(
        connection, mailstream=intent.mailstream, key=intent.key, recipient_id=intent.recipient_id,
        address=intent.address, trigger=_trigger(asked, now), message=asked.message,
        not_before=None if asked.not_before is None else now + asked.not_before,
    )  # fmt: skip


def _trigger(asked: Asked, now: datetime) -> dict[str, object]:
    """Each part of the company has a webhook of its own: what comes before the dot names it."""
    type_, id_ = asked.trigger
    return {"type": type_, "id": id_, "at": now, "endpoint": f"/hooks/{type_.partition('.')[0]}"}
