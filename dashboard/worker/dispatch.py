"""Dispatch: claim, start, submit, store what came of it.

A *lane* is one thread that goes round: it stores the outcomes that have come in, then fills the places that became
free. Each step is a transaction of its own over a whole set, so that a crash leaves one of few, well-known situations:

* after the claim: the lease runs out, the sweep gives the sends back;
* after the start: the attempts are on record, the sweep calls them in doubt;
* after the call, before the outcome is stored: the same, and the provider's events or its key settle it.

The calls themselves run in the worker's pool of fixed size. A lane never starts more attempts than it has places, so
that a kill leaves in doubt only what was really in flight (DESIGN §5.2). It never holds more than its places in memory.
A call that several sends share takes a place for each of them.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from functools import partial
from uuid import UUID

from dashboard.ledger import attempts, moves, work
from dashboard.ledger.attempts import Finished, Started, Windows
from dashboard.ledger.database import Connection, Database, NotCommitted
from dashboard.ledger.moves import Target, Who
from dashboard.ledger.retry import Backoff
from dashboard.ledger.work import Claim
from dashboard.lifecycle import By, Reason
from dashboard.log import Action, log
from dashboard.providers.base import Deadline
from dashboard.worker.meters import ERRORS, REFUSED
from dashboard.worker.pool import Pool
from dashboard.worker.submit import Submitter
from dashboard.worker.trouble import DATABASE_TROUBLE, named, wait_out

TRIES_AT_THE_END = 6
"""How often a stopping worker tries to store its last outcomes while the database is away."""

LINGER = 0.005
"""Seconds a lane waits for more outcomes after the first: a few milliseconds make large sets of small ones."""


class Lane(threading.Thread):
    """One round-going thread with its share of the worker's places."""

    def __init__(
        self,
        database: Database,
        worker: UUID,
        submitter: Submitter,
        pool: Pool,
        *,
        places: int,
        set_size: int,
        lease: timedelta,
        windows: Windows,
        backoff: Backoff,
        breaker: timedelta,
        poll: float,
        wake: threading.Event,
        stopping: threading.Event,
        may_send: Callable[[], bool],
        unsure: Callable[[], None],
        at_home: Callable[[Connection], bool],
        name: str = "dispatch",
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._database = database
        self._worker = worker
        self._submitter = submitter
        self._pool = pool
        self._places = places
        self._set_size = min(set_size, places)
        self._lease = lease
        self._windows = windows
        self._backoff = backoff
        self._breaker = breaker
        self._poll = poll
        self._wake = wake
        self._stopping = stopping
        self._may_send = may_send
        self._unsure = unsure
        self._at_home = at_home
        self._done: queue.SimpleQueue[Finished] = queue.SimpleQueue()
        self._outcomes: list[Finished] = []
        self._claims: list[Claim] = []
        self._doubtful: list[Claim] = []
        self._turn = 0
        self.in_flight = 0
        self.went_round_at = time.monotonic()

    def run(self) -> None:
        """Go round until asked to stop; then finish what is in flight and give the rest back."""
        trouble = 0
        while not (self._stopping.is_set() and self.in_flight == 0 and not self._outcomes):
            try:
                idle = not self.go_round()
                trouble = 0
                self.went_round_at = time.monotonic()
            except Exception as error:
                trouble += 1
                self._unsure()
                ERRORS.labels("dispatch").inc()
                wait_out(self.name, error, trouble)
                if self._stopping.is_set() and trouble > TRIES_AT_THE_END:
                    break  # what could not be stored is in doubt: the sweep will say so
                continue
            if idle and not self._stopping.is_set():
                self._wake.wait(self._poll)
                self._wake.clear()
        self._give_back_the_rest()

    def go_round(self) -> bool:
        """Store what came in, fill what is free. Returns whether there was anything to do."""
        stored = self._store_outcomes()
        if self._stopping.is_set() or not self._may_send():
            return stored
        free = self._places - self.in_flight - len(self._outcomes)
        # A set is refilled when half of the places are free: many small sets would cost a commit each.
        started = self._fill(free) if free * 2 >= self._places else False
        return stored or started or self.in_flight > 0

    # ── outcomes ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _store_outcomes(self) -> bool:
        self._collect()
        if not self._outcomes:
            return False
        with self._database.transaction() as connection:
            settled = attempts.finish(
                connection, self._worker, self._outcomes, backoff=self._backoff, breaker=self._breaker
            )
        # Only now: a set whose commit failed, or whose answer was lost, is stored again, which changes nothing twice.
        self._outcomes = []
        for account_id in settled.paused:
            log.warning(Action.PROVIDER_PAUSED, account=str(account_id))
        if settled.late:
            self._count_refused(settled.late)
        return True

    def _collect(self) -> None:
        """Take the outcomes that are there; wait a moment for the first where nothing else can be done."""
        wait = 0.0 if self._outcomes or not self.in_flight else 0.05
        until = time.monotonic() + wait
        while self.in_flight:
            try:
                self._outcomes.append(self._done.get(timeout=max(until - time.monotonic(), 0.0)))
            except queue.Empty:
                return
            self.in_flight -= 1
            if len(self._outcomes) == 1:
                until = time.monotonic() + LINGER
            if len(self._outcomes) >= self._set_size:
                return

    def _count_refused(self, number: int) -> None:
        REFUSED.inc(number)
        with self._database.transaction(durable=False) as connection:
            connection.execute(
                "update sendonce.workers set refused_moves = refused_moves + %s where id = %s", (number, self._worker)
            )

    # ── claims and attempts ──────────────────────────────────────────────────────────────────────────────────────────

    def _fill(self, free: int) -> bool:
        if not self._claims:
            self._return_doubtful()
            self._claims = self._claim(min(free, self._set_size))
        if not self._claims:
            return False
        self._start(self._claims)
        self._claims = []
        return True

    def _claim(self, limit: int) -> list[Claim]:
        self._turn += 1
        claims: list[Claim] = []
        try:
            with self._database.transaction(durable=False) as connection:
                claims = work.claim(connection, worker=self._worker, limit=limit, lease=self._lease, turn=self._turn)
        except DATABASE_TROUBLE:
            # Nobody knows whether these are ours. If not, another lane may claim them under the same numbers.
            self._doubtful += claims
            raise
        return claims

    def _return_doubtful(self) -> None:
        """Give back what may have been claimed. Where another lane has it by now, that lane starts nothing under it."""
        if self._doubtful:
            self._give_back(self._doubtful)
            self._doubtful = []

    def _start(self, claims: Sequence[Claim]) -> None:
        """Write the attempts ahead and hand them to the pool."""
        # From before the statement is sent: whatever the database takes, the deadline on its clock is not earlier.
        deadline = Deadline.after(self._windows.submit.total_seconds())
        started: list[Started] = []
        try:
            with self._database.transaction() as connection:
                if not self._at_home(connection):  # another loop, or a pooler, came by a connection to another server
                    raise NotCommitted("the ledger is not at home here")
                started = attempts.start(connection, self._worker, claims, self._windows, part=self._submitter.part)
        except DATABASE_TROUBLE:
            # Nobody knows whether these attempts are on record; that they were never written, we know. The claims are
            # kept, and started in the next round if they still hold: after that was stored, since an attempt that
            # is not on record has the number of the next one.
            self._outcomes += map(attempts.unconfirmed, started)
            raise
        self.in_flight += len(started)
        calls = [partial(self._submit, s, deadline) for s in started if s.batch is None]
        calls += [partial(self._submit_batch, members, deadline) for members in _shared(started)]
        self._pool.submit(calls)

    def _submit(self, started: Started, deadline: Deadline) -> None:
        self._done.put(self._submitter.submit(started, deadline))

    def _submit_batch(self, members: Sequence[Started], deadline: Deadline) -> None:
        for finished in self._submitter.submit_batch(members, deadline):
            self._done.put(finished)

    def _give_back_the_rest(self) -> None:
        try:
            self._give_back(self._claims + self._doubtful)
        except DATABASE_TROUBLE as error:
            log.warning(Action.LOOP_FAILED, loop=self.name, error=named(error))  # the sweep will do it

    def _give_back(self, claims: Sequence[Claim]) -> None:
        if not claims:
            return
        targets = [Target(send_id=c.send_id, reason=Reason.WORKER_STOPPED, claim_number=c.number) for c in claims]
        with self._database.transaction() as connection:
            moves.give_back(connection, Who(By.WORKER, worker=self._worker), targets)


def _shared(started: Sequence[Started]) -> Iterable[list[Started]]:
    """The members of each call that several share."""
    calls: dict[UUID, list[Started]] = {}
    for one in started:
        if one.batch is not None:
            calls.setdefault(one.batch, []).append(one)
    return calls.values()
