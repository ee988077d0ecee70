"""Sendonce at the same work: a real worker process, the whole ledger with every rule, a provider that does nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from uuid import UUID

import psycopg

from bench.mail import SUBJECT, TEXT, asked, key, recipient, variables
from dashboard import providers
from dashboard.identity import send_id
from dashboard.ledger.accounts import save_account
from dashboard.ledger.database import Connection, Database, migrate
from dashboard.ledger.streams import save_stream
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import MailClass
from dashboard.providers.base import (
    Accepted,
    Capabilities,
    Channel,
    Outcome,
    Outgoing,
    Setting,
    Settings,
    Webhook,
    WebhookRequest,
)
from dashboard.providers.results import SendResult

SECRETS = {
    "SENDONCE_SECRET_KEY": "b" * 32,
    "SENDONCE_ENCRYPTION_KEYS": "bench:" + "YmVuY2hiZW5jaGJlbmNoYmVuY2hiZW5jaGJlbmNoMDE=",
    "SENDONCE_ENVIRONMENT": "bench",
}
TUNING = {
    "SENDONCE_IN_FLIGHT": "2000",
    "SENDONCE_SET_SIZE": "1000",
    "SENDONCE_RELAY_BATCH": "1000",
}


class Nothing:
    """A provider that accepts at once and does nothing."""

    name = "nothing"
    title = "Nothing"
    settings: tuple[Setting, ...] = ()

    def capabilities(self, settings: Settings) -> Capabilities:
        """It can do nothing at all."""
        return Capabilities()

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Itself."""
        return self

    def submit(self, outgoing: Outgoing) -> Outcome:
        """Yes."""
        return Accepted(f"message-{outgoing.send_id}")

    def close(self) -> None:
        """Nothing to close."""

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """It tells nothing."""
        return Webhook()

    def classify(self, result: SendResult) -> Outcome:
        """Yes."""
        return Accepted(None)


def prepare(url: str, count: int) -> None:
    """A migrated ledger with all requests in the outbox."""
    migrate(url)
    database = Database(url)
    vault = Vault([("bench", b"benchbenchbenchbenchbenchbench01")])
    with database.transaction() as connection:
        row = connection.execute("insert into sendonce.workspaces (name) values ('default') returning id").fetchone()
        assert row is not None
        workspace_id: UUID = row[0]
        account_id = save_account(
            connection,
            vault,
            workspace_id=workspace_id,
            name="nothing",
            provider="nothing",
            settings={},
            secrets={},
            endpoint="nowhere",
        )
        save_stream(
            connection, workspace_id=workspace_id, name="receipts", mail_class=MailClass.TRANSACTIONAL,
            account_id=account_id,
        )  # fmt: skip
        feed(connection, asked(count))
    database.close()


def feed(connection: Connection, numbers: Iterable[int]) -> None:
    """Ask for the mails of these numbers, in the connection's transaction."""
    row = connection.execute("select id from sendonce.workspaces").fetchone()
    assert row is not None
    with connection.cursor().copy("copy sendonce.outbox (send_id, workspace_id, request) from stdin") as copy:
        for number in numbers:
            copy.write_row((send_id(row[0], "receipts", key(number)), row[0], json.dumps(request(number))))


def request(number: int) -> dict[str, object]:
    """One request, as a producer's ``enqueue`` writes it."""
    return {
        "workspace": "default", "mailstream": "receipts", "key": key(number),
        "recipient": {"id": f"recipient_{number}", "address": recipient(number)},
        "trigger": {"type": "order.shipped", "id": f"order_{number}"},
        "message": {
            "from": "Shop <shop@shop.example>", "subject": SUBJECT, "text": TEXT, "variables": variables(number),
        },
    }  # fmt: skip


def drain(url: str, count: int) -> float:
    """Start one worker process and wait until all is accepted; seconds from its being ready to the last outcome."""
    environment = {**os.environ, **SECRETS, **TUNING, "DATABASE_URL": url, "SENDONCE_LOG": "console"}
    profile = ["-X", "importtime"] if os.environ.get("BENCH_IMPORTS") else []
    worker = subprocess.Popen([sys.executable, *profile, "-m", "bench.product"], env=environment)
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            _wait(connection, "select exists (select from sendonce.workers)")
            began = time.perf_counter()
            _wait(
                connection,
                "select not exists (select from sendonce.outbox) and not exists (select from sendonce.work)",
            )
            seconds = time.perf_counter() - began
            row = connection.execute("select count(*) from sendonce.sends where state = 'accepted'").fetchone()
            assert row == (count,), f"{row} of {count} were accepted"
            return seconds
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait()


def _wait(connection: psycopg.Connection[tuple[object, ...]], question: str) -> None:
    while connection.execute(question.encode()).fetchone() != (True,):
        time.sleep(0.02)


def main() -> None:
    """The worker process of the measurement."""
    from dashboard.log import configure
    from dashboard.settings import read_settings
    from dashboard.worker.process import Worker

    providers.PROVIDERS = (*providers.PROVIDERS, Nothing())
    configure("console")
    worker = Worker(read_settings(os.environ))
    signal.signal(signal.SIGTERM, lambda *_: worker.stop())
    worker.run()


if __name__ == "__main__":
    main()
