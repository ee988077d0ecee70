"""A committed ledger to work in: a workspace, an account, mailstreams, and ways to look at what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from psycopg.rows import dict_row

from dashboard.ledger import attempts, work
from dashboard.ledger.accounts import save_account
from dashboard.ledger.attempts import Finished, Kind, Started, Windows
from dashboard.ledger.database import Database
from dashboard.ledger.retry import Backoff
from dashboard.ledger.tables import metadata
from dashboard.ledger.vault import Vault

KEYS = (("k1", b"k" * 32),)
WEBHOOK_SECRET = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"


def emptying(*kept: str) -> str:
    """One statement that empties all tables but these; at its end all foreign keys are checked at once."""
    tables = [table for table in metadata.sorted_tables if table.name not in kept]
    return f"with {', '.join(f'{table.name}_gone as (delete from {table.fullname})' for table in tables)} select"


EMPTY = emptying()


@dataclass
class Place:
    """The workspace ``default`` with the mailstreams ``receipts`` (transactional) and ``news`` (campaign)."""

    database: Database
    vault: Vault = field(default_factory=lambda: Vault(KEYS))
    name: str = "default"
    key_window: timedelta | None = timedelta(hours=24)
    workspace: UUID = field(init=False)
    account: UUID = field(init=False)

    def __post_init__(self) -> None:
        self.workspace = self.one("insert into sendonce.workspaces (name) values (%s) returning id", self.name)["id"]
        with self.database.transaction() as connection:
            self.account = save_account(
                connection, self.vault, workspace_id=self.workspace, name="main", provider="resend", settings={},
                secrets={"webhook_secret": WEBHOOK_SECRET}, endpoint="here", key_window=self.key_window,
            )  # fmt: skip
        self.stream("receipts", "transactional")
        self.stream("news", "campaign")

    def stream(self, name: str, mail_class: str, **columns: Any) -> None:
        """One more mailstream."""
        values = {
            "workspace_id": self.workspace, "name": name, "mail_class": mail_class, "account_id": self.account,
            "unknown_policy": "hold", "grace": timedelta(minutes=30), "max_attempts": 20,
            "retry_for": timedelta(days=3), **columns,
        }  # fmt: skip
        names, binds = ", ".join(values), ", ".join(f"%({name})s" for name in values)
        self.run(f"insert into sendonce.mailstreams ({names}) values ({binds})", **values)

    def run(self, query: str, *given: object, **named: object) -> None:
        """Run and commit a statement."""
        with self.database.transaction() as connection:
            connection.execute(query, named or given)

    def all(self, query: str, *given: object) -> list[dict[str, Any]]:
        """The rows of a query, which may change something."""
        with self.database.transaction() as connection, connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(query, given).fetchall()

    def one(self, query: str, *given: object) -> dict[str, Any]:
        """The only row of a query."""
        (row,) = self.all(query, *given)
        return row

    def count(self, table: str) -> int:
        """How many rows a table has."""
        number: int = self.one(f"select count(*) as n from sendonce.{table}")["n"]
        return number

    def time_passes(self, span: timedelta) -> None:
        """Move every open send into the past, so that its leases, waits and grace periods are over by then."""
        self.run(
            """
            update sendonce.work set claim_at = claim_at - %(by)s, check_at = case when isfinite(check_at)
              and check_at < '9999-01-01' then check_at - %(by)s else check_at end, lease_until = lease_until - %(by)s,
              claimed_at = claimed_at - %(by)s, submit_deadline = submit_deadline - %(by)s,
              request_deadline = request_deadline - %(by)s, due_at = due_at - %(by)s,
              settled_after = settled_after - %(by)s, unknown_since = unknown_since - %(by)s
            """,
            by=span,
        )

    def send_all(self, message_id: str = "49a3") -> None:
        """What a worker does where the provider says yes to everything."""
        self._call_all("accepted", message_id)

    def fail_all(self, kind: Kind = "refused") -> None:
        """What a worker does where the provider refuses everything."""
        self._call_all(kind)

    def _call_all(self, kind: Kind, message_id: str | None = None) -> None:
        worker = uuid4()
        with self.database.transaction() as connection:
            claims = work.claim(connection, worker=worker, limit=100, lease=timedelta(minutes=1))
            started = attempts.start(connection, worker, claims, Windows())
        finished = [outcome_of(one, kind, message_id) for one in started]
        with self.database.transaction() as connection:
            attempts.finish(connection, worker, finished, backoff=Backoff(), breaker=timedelta(seconds=30))


def outcome_of(started: Started, kind: Kind, message_id: str | None = None, **more: Any) -> Finished:
    """What one call came to."""
    return Finished(
        send_id=started.send_id, n=started.n, claim_number=started.claim_number, account_id=started.account_id,
        kind=kind, provider_message_id=message_id, **more,
    )  # fmt: skip
