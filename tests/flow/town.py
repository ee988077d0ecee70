"""A whole installation on real sockets: worker processes that may be killed, a provider, and the web in between."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from psycopg.types.json import Jsonb

from dashboard.identity import send_id
from dashboard.ledger.accounts import save_account
from dashboard.settings import Settings
from dashboard.simulator import Simulator
from dashboard.web import create_app
from tests.crew import until, violations
from tests.lanes import point_at
from tests.place import KEYS, WEBHOOK_SECRET, Place
from tests.serving import served

SECRET = "a secret of the tests, of no use to anybody"
SENDONCE = ("-m", "dashboard.cli")
TUNING = {"SENDONCE_RETRY_SECONDS": "0.05", "SENDONCE_POLL_SECONDS": "0.1"}
HASTE = {
    "SENDONCE_LEASE_SECONDS": "2",
    "SENDONCE_SUBMIT_WINDOW_SECONDS": "1",
    "SENDONCE_REQUEST_TIMEOUT_SECONDS": "1",
}
"""Calls time out, and claims of the dead are taken over, within seconds. Everybody else waits as long as is usual."""


@dataclass
class Town:
    """One installation. ``log`` is what its workers say."""

    place: Place
    simulator: Simulator
    log: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    # ── who is there ─────────────────────────────────────────────────────────────────────────────────────────────

    def worker(
        self, *only: str, hasty: bool = False, url: str | None = None, program: Sequence[str] = SENDONCE, **more: str
    ) -> subprocess.Popen[bytes]:
        """Start ``sendonce worker``; a hasty one does not wait long for an answer.

        ``url``: how it reaches the database. ``program``: what starts it, with ``more`` variables in its environment.
        """
        environment = os.environ | TUNING | (HASTE if hasty else {}) | more | {
            "DATABASE_URL": url or self.place.database.url,
            "SENDONCE_SECRET_KEY": SECRET,
            "SENDONCE_ENCRYPTION_KEYS": ",".join(f"{name}:{base64.b64encode(key).decode()}" for name, key in KEYS),
        }  # fmt: skip
        options = ["--only", ",".join(only)] if only else []
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, *program, "worker", *options],
                env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        self.workers.append(process)
        return process

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        """As the kernel does when memory runs out."""
        process.send_signal(signal.SIGKILL)
        process.wait()

    def end(self) -> None:
        """Every worker ends, politely if it still lives; one that is frozen is woken for it."""
        for process in self.workers:
            process.terminate()
            process.send_signal(signal.SIGCONT)
        for process in self.workers:
            process.wait(30)

    # ── what they do ─────────────────────────────────────────────────────────────────────────────────────────────

    def stream(self, *, policy: str, keys: bool, provider: str = "resend") -> None:
        """Let receipts have this policy, on an account that honours keys or not."""
        point_at(self.place, self.simulator, keys=keys)
        account = self.place.account
        if provider == "smtp":
            with self.place.database.transaction() as connection:
                account = save_account(
                    connection, self.place.vault, workspace_id=self.place.workspace, name="smtp", provider="smtp",
                    settings={"host": "127.0.0.1", "port": str(self.simulator.smtp_port), "security": "none"},
                    secrets={}, endpoint="smtp",
                )  # fmt: skip
        self.place.run(
            "update sendonce.mailstreams set unknown_policy = %s, account_id = %s, grace = %s where name = 'receipts'",
            policy, account, timedelta(milliseconds=100),
        )  # fmt: skip

    def enqueue(self, keys: Sequence[str], *, to: str = "ada+{}@example.test") -> list[UUID]:
        """The business asks, in one transaction; ``to`` gets what stands behind the colon of the key."""
        with self.place.database.transaction() as connection:
            for key in keys:
                address = to.format(key.rpartition(":")[2])
                request = {
                    "mailstream": "receipts", "key": key,
                    "recipient": {"id": f"whoever placed {key}", "address": address},
                    "trigger": {"type": "order.paid", "id": key},
                    "message": {"from": "shop@example.test", "subject": "Your receipt", "text": f"Thank you for {key}"},
                }  # fmt: skip
                connection.execute("select sendonce.enqueue(%s)", [Jsonb(request)])
        return [send_id(self.place.workspace, "receipts", key) for key in keys]

    # ── what came of it ──────────────────────────────────────────────────────────────────────────────────────────

    def states(self) -> dict[str, int]:
        """How many sends are where, and how many requests still wait."""
        rows = self.place.all(
            "select coalesce(w.state::text, s.state::text) as state, count(*) as n from sendonce.sends s"
            " left join sendonce.work w on w.send_id = s.id group by 1"
            " union all select 'asked', count(*) from sendonce.outbox having count(*) > 0"
        )
        return {row["state"]: row["n"] for row in rows}

    def wait_for(self, **states: int) -> None:
        """Until all that was asked for is where it should be."""
        try:
            until(lambda: self.states() == states, seconds=60)
        except AssertionError:
            raise AssertionError(f"{self.states()} instead of {states}\n{self.log.read_text()[-3000:]}") from None

    def copies(self) -> dict[str, int]:
        """How often the provider took each send, by its own books."""
        taken: dict[str, int] = {}
        for row in self.simulator.books:
            taken[str(row.send_id)] = taken.get(str(row.send_id), 0) + 1
        return taken

    def violations(self) -> list[str]:
        """What ``sendonce verify`` finds."""
        return violations(self.place)

    @contextmanager
    def web(self) -> Iterator[str]:
        """The web on a socket; the provider's events go there."""
        settings = Settings(database_url=self.place.database.url, secret_key=SECRET, encryption_keys=KEYS)
        app = create_app(settings, self.place.database, self.place.vault)
        with served(app) as root:
            url = f"{root}/webhooks/{self.place.account}"
            self.simulator.configure(webhooks={"url": url, "secret": WEBHOOK_SECRET, "delay_ms": 1.0})
            try:
                yield url
            finally:
                self.simulator.configure(webhooks={"url": None})


@contextmanager
def a_town(place: Place, simulator: Simulator, log: Path) -> Iterator[Town]:
    """A town whose workers have ended when the block ends, and whose invariants hold then."""
    town = Town(place, simulator, log)
    yield town
    town.end()
    assert town.violations() == []
