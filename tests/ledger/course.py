"""A committed ledger that the real functions work on, one step a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from psycopg.types.json import Jsonb

from dashboard.ledger import attempts, events, holds, outbox, work
from dashboard.ledger.attempts import Windows
from dashboard.ledger.database import Connection, Database, run, transposed
from dashboard.ledger.events import Told
from dashboard.ledger.retry import Backoff
from dashboard.lifecycle import Decision, EventType
from dashboard.worker.reconcile import reconcile
from dashboard.worker.sweep import sweep
from tests.factories import Factory, at, insert
from tests.place import outcome_of

WINDOWS = Windows()
BACKOFF = Backoff(timedelta(seconds=1))


class Ledger:
    """A committed ledger, worked on by the real functions, each step in a transaction of its own."""

    def __init__(self, database: Database) -> None:
        self.database = database
        with database.transaction() as connection:
            self.made = Factory(connection, unknown_policy="release", grace=timedelta(microseconds=1))
        self.vault, self.worker = self.made.vault, self.made.worker
        self.asked = 0

    @contextmanager
    def step(self) -> Iterator[Connection]:
        with self.database.transaction() as connection:
            yield connection

    def ask(
        self,
        key: str,
        *,
        address: str = "ada@example.com",
        subject: str = "Your receipt",
        mailstream: str = "receipts",
        source: str = "outbox",
        **trigger: str,
    ) -> None:
        """Write an outbox row, and relay it."""
        self.asked += 1
        request = {
            "mailstream": mailstream,
            "key": key,
            "recipient": {"id": "recipient_1", "address": address},
            "trigger": {"type": "order.paid", "id": f"evt_{self.asked}", **trigger},
            "message": {"from": "shop@example.com", "subject": subject, "text": "Thank you"},
        }
        with self.step() as connection:
            name = connection.execute(
                "select name from sendonce.workspaces where id = %s", [self.made.workspace]
            ).fetchone()
            assert name is not None
            connection.execute("select sendonce.enqueue(%s)", [Jsonb(request | {"workspace": name[0]})])
            connection.execute("update sendonce.outbox set source = %s", [source])
        with self.step() as connection:
            outbox.relay(connection, self.vault, limit=100, worker=self.worker)

    def add_stream(self, name: str) -> UUID:
        """One more mailstream, with an account of its own. Returns the account."""
        with self.step() as connection:
            account: UUID = insert(
                connection, "accounts", id=uuid4(), workspace_id=self.made.workspace, name=name, provider="postmark"
            )
            connection.execute(
                "insert into sendonce.mailstreams (workspace_id, name, mail_class, account_id, unknown_policy, grace,"
                " max_attempts, retry_for)"
                " select workspace_id, %s, mail_class, %s, 'hold', grace, max_attempts, retry_for"
                " from sendonce.mailstreams where workspace_id = %s and name = %s",
                [name, account, self.made.workspace, self.made.mailstream],
            )
        return account

    def claim(self) -> list[work.Claim]:
        """Claim all that is pending."""
        with self.step() as connection:
            connection.execute("update sendonce.work set claim_at = now() where state = 'pending'")
            return work.claim(connection, worker=self.worker, limit=1000, lease=timedelta(minutes=1))

    def start(self) -> list[attempts.Started]:
        """Claim all that is pending and start what may start."""
        claims = self.claim()
        with self.step() as connection:
            return attempts.start(connection, self.worker, claims, WINDOWS)

    def finish(self, started: attempts.Started, kind: attempts.Kind, message_id: str | None = None) -> None:
        outcome = outcome_of(started, kind, message_id, error_code=None if kind == "accepted" else "500")
        with self.step() as connection:
            attempts.finish(connection, self.worker, [outcome], backoff=BACKOFF, breaker=timedelta(seconds=1))

    def hear(self, send_id: UUID, word: EventType, **facts: Any) -> None:
        """The provider tells something, twice in one request."""
        facts = {"event_id": uuid4().hex, "occurred_at": at(self.asked)} | facts
        told = Told(event_type=word, send_id=str(send_id), **facts)
        with self.step() as connection:
            events.ingest(
                connection,
                self.vault,
                workspace_id=self.made.workspace,
                account_id=self.made.account,
                told=[told, told],
                received_at=now_of(connection),
            )

    def reconcile(self) -> None:
        """As after the grace period and the last moment of every call."""
        with self.step() as connection:
            connection.execute(
                "update sendonce.work set check_at = now(), settled_after = now() - interval '1 second',"
                " unknown_since = now() - interval '1 second' where state = 'unknown'"
            )
        with self.step() as connection:
            reconcile(connection, submit_window=WINDOWS.submit)

    def wait_for_a_waiter(self) -> None:
        """Until somebody waits for a lock of this database."""
        waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        while True:
            with self.step() as connection:
                if connection.execute(waiting).rowcount:
                    return

    def sweep(self) -> None:
        """As after the end of every lease."""
        with self.step() as connection:
            connection.execute(
                "update sendonce.work set lease_until = now() - interval '1 second',"
                " submit_deadline = submit_deadline - interval '1 hour',"
                " request_deadline = request_deadline - interval '1 hour' where state = 'claimed'"
            )
        with self.step() as connection:
            sweep(connection)

    def decide(self, decision: Decision) -> None:
        with self.step() as connection:
            connection.execute("update sendonce.work set settled_after = null where state = 'held'")
            for hold in holds.open_holds(connection, self.made.workspace):
                result = holds.decide(
                    connection, workspace_id=self.made.workspace, hold_id=hold.hold_id, user_id=self.made.person,
                    decision=decision, reason="the customer asked", evidence=hold.evidence,
                )  # fmt: skip
                assert isinstance(result, holds.Decided), result

    def key(self, send_id: UUID) -> str:
        with self.step() as connection:
            row = connection.execute("select key from sendonce.sends where id = %s", [send_id]).fetchone()
        assert row is not None
        key: str = row[0]
        return key

    def age(self, minutes: int) -> None:
        """Let so many minutes pass: what is stored becomes so much older, marks and roll-ups too. Claims stay fresh."""
        gone = timedelta(minutes=minutes)
        far = timedelta(days=365_000)  # there and back, so that no minute meets another one on its way
        with self.step() as connection:
            for table, columns in _TIMES.items():
                for step in (far, gone - far):
                    moved = ", ".join(f"{column} = {column} - %(step)s" for column in columns)
                    connection.execute(f"update sendonce.{table} set {moved}", {"step": step})  # type: ignore[call-overload]
            _sum_up_hours(connection)


def _sum_up_hours(connection: Connection) -> None:
    """The minutes have moved, and with them lie in other hours."""
    connection.execute("delete from sendonce.rollup_hours where mailstream <> ''")
    connection.execute("delete from sendonce.latency_hours")
    hours = connection.execute(
        "select distinct workspace_id, mailstream, date_trunc('hour', minute) from sendonce.rollups"
        " where mailstream <> ''"
    ).fetchall()
    if hours:
        workspaces, streams, times = transposed(hours, 3)
        run(connection, "insert_rollup_hours", workspace_id=workspaces, mailstream=streams, hour=times)


_TIMES = {
    "sends": ("asked_at", "recorded_at", "due_at", "settled_at"),
    "work": ("recorded_at", "due_at"),
    "duplicates": ("at",),
    "attempts": ("claimed_at", "started_at", "submit_deadline", "request_deadline", "finished_at", "doubted_at"),
    "events": ("received_at", "occurred_at"),
    "moves": ("at",),
    "rollups": ("minute",),
    "latencies": ("minute",),
    "carriers": ("minute",),
    "dirty": ("minute",),
}


def now_of(connection: Connection) -> datetime:
    """The database's clock."""
    row = connection.execute("select clock_timestamp()").fetchone()
    assert row is not None
    moment: datetime = row[0]
    return moment
