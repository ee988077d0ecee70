"""The worker process: an identity that is never reused, its loops, its heartbeat, its polite end."""

from __future__ import annotations

import gc
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from dashboard import __version__, steps
from dashboard.ledger import mail_replies, outbox, place, proposals
from dashboard.ledger.attempts import Windows
from dashboard.ledger.database import Database, NotCommitted, database_now
from dashboard.ledger.retention import strip
from dashboard.ledger.retry import Backoff
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import Verdict
from dashboard.log import Action, log
from dashboard.settings import Settings
from dashboard.worker import alert
from dashboard.worker.check import check_one
from dashboard.worker.dispatch import Lane
from dashboard.worker.look_up import Asker
from dashboard.worker.loop import Loop
from dashboard.worker.meters import IN_FLIGHT, RELAYED
from dashboard.worker.notify import Notifier
from dashboard.worker.pool import Pool
from dashboard.worker.reconcile import match_again, reconcile
from dashboard.worker.roll_up import roll_up
from dashboard.worker.submit import Submitter
from dashboard.worker.sweep import sweep
from dashboard.worker.trouble import DATABASE_TROUBLE, LONGEST_PAUSE, named

LOOPS = (
    "relay",
    "dispatch",
    "reconcile",
    "look_up",
    "sweep",
    "decide",
    "roll_up",
    "retain",
    "alert",
    "notify",
    "check",
)
"""What a worker can do; ``--only`` names some of them."""

HEARTBEAT = 5.0
MARGIN = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a worker is. The id is random, so that no other process ever had it or will have it."""

    id: UUID
    name: str

    @classmethod
    def new(cls) -> Identity:
        """An identity for this process: host, pid, and a random part."""
        return cls(uuid4(), f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(3)}")


def spare_the_collector() -> None:
    """Have Python look for circles of garbage less often.

    The rows of a set live for a moment and hold no circles, but there are thousands of them: looked at after every 700
    new ones, as the default has it, they cost a tenth of the worker's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000)


class Worker:
    """The loops of one process on one ledger."""

    def __init__(self, settings: Settings, *, only: Sequence[str] = LOOPS) -> None:
        self.identity = Identity.new()
        self._settings = settings
        self._only = tuple(only)
        self._database = Database(
            settings.database_url,
            pool_size=settings.lanes + len(LOOPS) + 2,
            application_name="sendonce worker",
            ping=False,
        )
        self._vault = Vault(settings.encryption_keys)
        self._stopping = threading.Event()
        self._work_there = threading.Event()
        self._submitter = Submitter(self._database, self._vault, request_timeout=settings.request_timeout_seconds)
        self._asker = Asker(self._database, self._vault, self._submitter)
        self._notifier = Notifier(self._database, self._vault, settings)
        self._pool = Pool(settings.in_flight, name="submit")
        self._lanes: list[Lane] = []
        self._loops: list[Loop] = []
        self._sending_allowed = False

    def run(self) -> None:
        """Work until :meth:`stop` is called; then finish what is in flight and give the rest back.

        A database that is away is waited for, also before the start.
        """
        spare_the_collector()
        if not self._arrive():
            return
        log.info(Action.WORKER_STARTED, worker=self.identity.name, loops=list(self._only))
        threads = self._threads()
        for thread in threads:
            thread.start()
        while not self._stopping.wait(HEARTBEAT):
            self._beat()
        log.info(Action.WORKER_STOPPING, worker=self.identity.name, in_flight=self._in_flight())
        self._work_there.set()
        for thread in threads:
            while thread.is_alive():  # it goes on beating until the last call has ended
                thread.join(HEARTBEAT)
                self._beat()
        self._pool.close()
        self._submitter.close()
        self._deregister()
        self._database.close()
        log.info(Action.WORKER_STOPPED, worker=self.identity.name)

    def stop(self) -> None:
        """Ask the worker to end. Returns at once."""
        self._stopping.set()
        self._work_there.set()

    # ── the loops ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _threads(self) -> list[threading.Thread]:
        s = self._settings
        threads: list[threading.Thread] = []
        steps: dict[str, tuple[Callable[[], bool], float]] = {
            "relay": (self._relay, s.poll_seconds),
            "reconcile": (self._reconcile, max(s.poll_seconds, s.lease_seconds / 30)),
            "look_up": (self._asker.ask_one, max(s.poll_seconds, s.lease_seconds / 12)),
            "sweep": (self._sweep, max(s.poll_seconds, s.lease_seconds / 6)),
            "decide": (self._decide, max(s.poll_seconds, 0.5)),
            "roll_up": (self._roll_up, max(s.poll_seconds, 2.0)),
            "retain": (self._retain, 60.0),
            "alert": (self._alert, s.alert_seconds),
            "notify": (self._notifier.tell_one, max(s.poll_seconds, 1.0)),
            "check": (self._check, max(s.poll_seconds, 2.0)),
        }
        for name, (step, wait) in steps.items():
            if name in self._only:
                loop = Loop(name, step, wait=wait, stopping=self._stopping)
                self._loops.append(loop)
                threads.append(loop)
        if "dispatch" in self._only:
            self._lanes = [self._lane(i) for i in range(s.lanes)]
            threads += self._lanes
        return threads

    def _lane(self, number: int) -> Lane:
        s = self._settings
        return Lane(
            self._database,
            self.identity.id,
            self._submitter,
            self._pool,
            places=max(s.in_flight // s.lanes, 1),
            set_size=s.set_size,
            lease=timedelta(seconds=s.lease_seconds),
            windows=Windows(
                submit=timedelta(seconds=s.submit_window_seconds),
                request=timedelta(seconds=s.request_timeout_seconds),
                margin=min(MARGIN, timedelta(seconds=s.lease_seconds / 4)),
            ),
            backoff=Backoff(timedelta(seconds=s.retry_seconds)),
            breaker=timedelta(seconds=s.retry_seconds),
            poll=s.poll_seconds,
            wake=self._work_there,
            stopping=self._stopping,
            may_send=self._may_send,
            unsure=self._forget_place,
            at_home=lambda connection: place.is_home(connection, s.environment),
            name=f"dispatch-{number}",
        )

    def _relay(self) -> bool:
        with self._database.transaction() as connection:
            relayed = outbox.relay(connection, self._vault, limit=self._settings.relay_batch, worker=self.identity.id)
        for met in relayed.met if steps.on() else ():
            step = steps.Step.RECORDED if met.verdict is Verdict.WON else steps.Step.DELIVERED_AGAIN
            steps.tell(step, met.send_id, source="outbox", verdict=str(met.verdict), worker=self.identity.name)
        for verdict, number in (("won", relayed.won), ("later", relayed.later), ("dead_letter", relayed.dead)):
            RELAYED.labels(verdict).inc(number)
        if relayed.won:
            self._work_there.set()
        return relayed.won + relayed.later + relayed.dead > 0

    def _sweep(self) -> bool:
        with self._database.transaction() as connection:
            swept = sweep(connection)
        return swept.given_back + swept.doubted + swept.held + swept.cancelled > 0

    def _reconcile(self) -> bool:
        with self._database.transaction() as connection:
            match_again(connection, after=0)
        with self._database.transaction() as connection:
            done = reconcile(connection, submit_window=timedelta(seconds=self._settings.submit_window_seconds))
        if done.released:
            self._work_there.set()
        return done.released + done.held + done.cancelled + done.failed > 0

    def _decide(self) -> bool:
        """Carry out what people decided about many held sends at once."""
        with self._database.transaction() as connection:
            decided = proposals.carry_out(connection)
        with self._database.transaction() as connection:
            ended = proposals.expire(connection)
        if decided:
            self._work_there.set()
        return decided + ended > 0

    def _roll_up(self) -> bool:
        began = time.monotonic()
        with self._database.transaction(durable=False) as connection:
            roll_up(connection)
        # The minute that is being filled changes all the time: under load, making it again must not be the load.
        self._stopping.wait(min(20 * (time.monotonic() - began), 30.0))
        return False

    def _alert(self) -> bool:
        with self._database.transaction(durable=False) as connection:
            alert.look(connection, every=timedelta(seconds=self._settings.alert_seconds))
        return False

    def _retain(self) -> bool:
        with self._database.transaction() as connection:
            forgotten = mail_replies.forget(connection, database_now(connection))
            return strip(connection, self._vault) + forgotten > 0

    def _check(self) -> bool:
        return check_one(self._database, self._vault, self._settings)

    # ── being known ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _arrive(self) -> bool:
        """Be known, and look at the place. False where it is told to stop before the database could be reached."""
        tries = 0
        while not self._stopping.is_set():
            try:
                self._register()
                self._check_place()
            except (psycopg.OperationalError, NotCommitted) as error:
                log.warning(Action.DATABASE_UNREACHABLE, worker=self.identity.name, error=named(error))
                self._stopping.wait(min(0.1 * 2.0**tries, LONGEST_PAUSE))
                tries = min(tries + 1, 10)
            else:
                return True
        return False

    def _register(self) -> None:
        with self._database.transaction() as connection:
            connection.execute(
                "insert into sendonce.workers (id, name, version, loops) values (%s, %s, %s, %s)"
                " on conflict do nothing",  # it is known already where the answer to an earlier commit was lost
                (self.identity.id, self.identity.name, __version__, list(self._only)),
            )

    def _beat(self) -> None:
        try:
            self._check_place()
            with self._database.transaction(durable=False) as connection:
                row = connection.execute(
                    "update sendonce.workers set heartbeat_at = now(), in_flight = %s, loop_ages = %s where id = %s"
                    " returning drain_asked_at is not null",
                    (self._in_flight(), Jsonb(self._loop_ages()), self.identity.id),
                ).fetchone()
            if row == (True,):  # somebody pressed the button: end as politely as for a signal
                self.stop()
        except DATABASE_TROUBLE:
            self._forget_place()
            log.warning(Action.DATABASE_UNREACHABLE, worker=self.identity.name)

    def _check_place(self) -> None:
        """Send only where the ledger knows it is at home (DESIGN §5.22)."""
        with self._database.transaction(durable=False) as connection:  # what is lost is seen again with the next look
            allowed = place.may_send(connection, self._settings.environment)
        if self._sending_allowed and not allowed:
            log.error(Action.SENDING_OFF, worker=self.identity.name)
        self._sending_allowed = allowed

    def _may_send(self) -> bool:
        if not self._sending_allowed:
            self._check_place()
        return self._sending_allowed

    def _forget_place(self) -> None:
        """After any trouble with the database it may be another one: nothing starts before the place is looked at."""
        self._sending_allowed = False

    def _deregister(self) -> None:
        try:
            with self._database.transaction() as connection:
                connection.execute(
                    "update sendonce.workers set stopped_at = now(), heartbeat_at = now(), in_flight = 0 where id = %s",
                    (self.identity.id,),
                )
        except DATABASE_TROUBLE:
            log.warning(Action.DATABASE_UNREACHABLE, worker=self.identity.name)

    def _in_flight(self) -> int:
        number = sum(lane.in_flight for lane in self._lanes)
        IN_FLIGHT.set(number)
        return number

    def _loop_ages(self) -> dict[str, float]:
        """For how many seconds each loop has not gone round without an error. Of lanes, the one that went last."""
        now = time.monotonic()
        ages = {loop.name: round(now - loop.went_round_at, 1) for loop in self._loops}
        if self._lanes:
            ages["dispatch"] = round(now - max(lane.went_round_at for lane in self._lanes), 1)
        return ages
