"""``sendonce demo --headless``: a run that must prove something.

N intended emails go through outbox, workers, a simulator with faults, and webhooks; workers are killed on the way. When
nothing moves any more, every invariant is checked on the ledger, and the ledger is compared with the simulator's own
books, which are the truth about what a provider took.
"""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from dashboard.demo.children import Child, stop
from dashboard.demo.company import Company, Intent, intents, set_up
from dashboard.demo.judge import Summary, judge
from dashboard.demo.queue import Warehouse
from dashboard.demo.stage import Books, Stage, free_port
from dashboard.identity import send_id
from dashboard.ledger.accounts import read_account
from dashboard.ledger.database import Database
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import MailClass
from dashboard.producer import enqueue
from dashboard.producer.once import Ledger

TUNING = {
    "SENDONCE_LEASE_SECONDS": "4",
    "SENDONCE_SUBMIT_WINDOW_SECONDS": "2",
    "SENDONCE_REQUEST_TIMEOUT_SECONDS": "3",
    "SENDONCE_RETRY_SECONDS": "0.3",
    "SENDONCE_POLL_SECONDS": "0.05",
    "SENDONCE_IN_FLIGHT": "60",
}
GRACE = timedelta(seconds=4)
"""Leases and grace periods are shortened together; their order stays: window and time-out < lease < grace."""

FAULTS = {
    "http": {
        "accept_then_timeout": 0.004, "reset_after": 0.01, "reset_before": 0.005, "http_500_taken": 0.01,
        "http_500_not_taken": 0.005, "http_429": 0.001, "slow": 0.01, "garbage": 0.004,
    },
    "smtp": {
        "accept_then_timeout": 0.004, "drop_after_dot_taken": 0.01, "drop_after_dot_not_taken": 0.006,
        "reply_451": 0.01, "reply_421": 0.006, "slow": 0.01, "garbage": 0.004,
    },
    "fates": {"bounce": 0.02, "complain": 0.005, "delay": 0.02, "quiet": 0.02},
    "slow_ms": 300.0,
}  # fmt: skip
WEBHOOKS = {
    "delay_ms": 200.0,
    "repeat": 0.1,
    "other_id": 0.03,
    "out_of_order": 0.2,
    "overtake": 0.05,
    "time_scale": 0.02,
}

JOBS = 50
"""One in this many emails is the warehouse's own: a queue job, delivered twice."""

STANDSTILL = 60.0
"""Seconds without any change after which the run is over, whatever is still unresolved."""


@dataclass(frozen=True, slots=True)
class Run:
    """What is asked of a run."""

    sends: int
    workers: int
    kill: int
    seed: int
    keys_honoured: bool


def play(run: Run, folder: Path, say: Callable[[str], None]) -> Summary:
    """Play one run in ``folder`` and judge it. Raises StageError when a part does not come up."""
    began = time.monotonic()
    http_port, smtp_port = free_port(), free_port()
    with Stage(folder, tuning=TUNING) as stage:
        database = Database(stage.settings.database_url, pool_size=6, application_name="sendonce demo")
        vault = Vault(stage.settings.encryption_keys)
        try:
            with database.transaction() as connection:
                company = set_up(
                    connection, vault,
                    http_url=f"http://127.0.0.1:{http_port}", smtp_port=smtp_port, keys_honoured=run.keys_honoured,
                    graces=dict.fromkeys(MailClass, GRACE), password=None,
                )  # fmt: skip
            books = _start_parts(stage, run, company, http_port, smtp_port)
            cast = _Cast(stage, run)
            wanted = list(intents(run.seed, 0, run.sends))
            jobs = [wanted[i] for i in range(0, len(wanted), JOBS)]
            posted = [intent for i, intent in enumerate(wanted) if i % JOBS]
            asking = threading.Thread(target=_ask, args=(database, posted), name="business")
            shipping = threading.Thread(target=_ship, args=(database, vault, company, jobs), name="warehouse")
            for thread in (asking, shipping):
                thread.start()
            cast.kill_on_the_way(database, len(posted), say)
            for thread in (asking, shipping):
                thread.join()
            say("everything is asked for; waiting until nothing moves any more")
            _wait_for_rest(database, books)
            cast.stop_all()
            summary = judge(database, books, _expected(company, posted, jobs))
            summary.workers_killed = cast.killed
        finally:
            database.close()
    summary.seconds = round(time.monotonic() - began, 1)
    return summary


def _start_parts(stage: Stage, run: Run, company: Company, http_port: int, smtp_port: int) -> Books:
    webhooks = {
        **WEBHOOKS, "url": f"{stage.url}/webhooks/{company.accounts['resend']}", "secret": company.webhook_secret
    }  # fmt: skip
    simulator = stage.start_simulator(
        http_port=http_port, smtp_port=smtp_port, seed=run.seed, keys_honoured=run.keys_honoured,
        behaviour={**FAULTS, "webhooks": webhooks},
    )  # fmt: skip
    web = stage.start("web", "web", "--port", str(stage.port))
    stage.wait_for("simulator", f"http://127.0.0.1:{http_port}/_control/idle", simulator)
    stage.wait_for("web", f"{stage.url}/healthz", web)
    return Books(f"http://127.0.0.1:{http_port}")


class _Cast:
    """The workers, some of which do not live to see the end."""

    def __init__(self, stage: Stage, run: Run) -> None:
        self._stage = stage
        self._run = run
        self._dice = random.Random(f"kill/{run.seed}")  # noqa: S311  # a story, not a secret
        self._workers = [self._start() for _ in range(run.workers)]
        self.killed = 0

    def _start(self) -> Child:
        return self._stage.start("worker", "worker")

    def kill_on_the_way(self, database: Database, total: int, say: Callable[[str], None]) -> None:
        """Kill one worker at each of so many points of the way, where it has calls in flight, and start another."""
        for k in range(self._run.kill):
            self._wait_for_progress(database, total * (k + 1) // (self._run.kill + 2))
            victim = self._dice.randrange(len(self._workers))
            self._workers[victim].send_signal(signal.SIGKILL)
            self._workers[victim].wait()
            self._workers[victim] = self._start()
            self.killed += 1
            say(f"killed worker {victim + 1} of {len(self._workers)} ({k + 1} of {self._run.kill})")

    def _wait_for_progress(self, database: Database, attempted: int) -> None:
        until = time.monotonic() + STANDSTILL
        while time.monotonic() < until:
            with database.transaction(durable=False) as connection:
                row = connection.execute(
                    "select (select count(*) from sendonce.attempts) >= %s,"
                    " exists (select from sendonce.attempts where status = 'submitting')",
                    (attempted,),
                ).fetchone()
            if row == (True, True):
                return
            time.sleep(0.02)

    def stop_all(self) -> None:
        """End the workers politely."""
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            stop(worker)


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────

ASKED_AT_ONCE = 50


def _ask(database: Database, wanted: Sequence[Intent]) -> None:
    """The business: first triggers in transactions of some, the overlapping ones a little behind."""
    late: list[tuple[Intent, tuple[str, str]]] = []
    for start in range(0, len(wanted), ASKED_AT_ONCE):
        batch = wanted[start : start + ASKED_AT_ONCE]
        asked = [(intent, intent.triggers[0]) for intent in batch] + late
        late = [(intent, trigger) for intent in batch for trigger in intent.triggers[1:]]
        _enqueue(database, asked)
    _enqueue(database, late)


def _enqueue(database: Database, asked: Sequence[tuple[Intent, tuple[str, str]]]) -> None:
    with database.transaction() as connection:
        for intent, trigger in asked:
            enqueue(
                connection, mailstream=intent.mailstream, key=intent.key, recipient_id=intent.recipient_id,
                address=intent.address, trigger=trigger, message=intent.message,
            )  # fmt: skip


def _parcel(intent: Intent) -> str:
    return f"parcel_{intent.recipient_id}"


def _ship(database: Database, vault: Vault, company: Company, jobs: Sequence[Intent]) -> None:
    """The warehouse: every job is delivered twice at once, and again until it may be acknowledged."""
    with database.transaction(durable=False) as connection:
        account = read_account(connection, vault, company.accounts["resend"])
    assert account is not None
    warehouse = Warehouse(Ledger(database, vault), account.settings)
    for intent in jobs:
        threads = [threading.Thread(target=warehouse.deliver, args=(_parcel(intent), intent.address)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    left = list(jobs)
    until = time.monotonic() + 3 * STANDSTILL
    while left and time.monotonic() < until:
        time.sleep(0.5)
        left = [intent for intent in left if not warehouse.deliver(_parcel(intent), intent.address)]
        with database.transaction(durable=False) as connection:
            # What is held waits for a person, and its job with it.
            held = {row[0] for row in connection.execute("select send_id from sendonce.work where state = 'held'")}
        left = [intent for intent in left if _job_id(company, intent) not in held]
    warehouse.close()


def _wait_for_rest(database: Database, books: Books) -> None:
    """Wait until the outbox is empty, all that is open is held, and no webhook is under way."""
    before: object = None
    until = time.monotonic() + STANDSTILL
    while time.monotonic() < until:
        with database.transaction(durable=False) as connection:
            now = connection.execute(
                "select (select count(*) from sendonce.outbox), (select count(*) from sendonce.dirty),"
                " (select count(*) from sendonce.work where state <> 'held'), (select count(*) from sendonce.events),"
                " (select count(*) from sendonce.work)"
            ).fetchone()
        assert now is not None
        if now[:3] == (0, 0, 0) and books.wait_idle(5) and now == before:
            return
        if now != before:
            before, until = now, time.monotonic() + STANDSTILL
        time.sleep(0.3)


def _expected(company: Company, posted: Sequence[Intent], jobs: Sequence[Intent]) -> set[UUID]:
    """The ids of all that was asked for: anyone can compute them from the same facts as the ledger."""
    return {send_id(company.workspace_id, i.mailstream, i.key) for i in posted} | {_job_id(company, i) for i in jobs}


def _job_id(company: Company, intent: Intent) -> UUID:
    return send_id(company.workspace_id, "shipping-notice", f"shipped:{_parcel(intent)}")
