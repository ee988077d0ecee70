"""How the ledger is reached: one pool, transactions that mean what they say, named statements.

Statements are psycopg's own (prepared where the server itself answers, arrays bound in binary): on the hot path every
row object costs. SQLAlchemy Core composes the reads in which filters combine (``search.py``, ``metrics.py``) and owns
the pool.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, LiteralString, cast

import psycopg
from psycopg import pq
from psycopg.rows import TupleRow
from sqlalchemy import Engine, create_engine
from sqlalchemy.dialects.postgresql import psycopg as dialect

Connection = psycopg.Connection[TupleRow]
Row = tuple[Any, ...]

LOCK_TIMEOUT_MS = 5_000
"""Shorter than the margin of a lease: a transaction that waits for a lock must not outlive its claim (DESIGN §5.9)."""

IDLE_TIMEOUT_MS = 10_000
"""A process that is frozen, or whose machine is gone, within a transaction keeps its locks no longer than this: the
sweep and the claims of all others pass locked rows over."""

STANDBY_LEASE = timedelta(minutes=6)
"""So long after a declared standby was last seen in force no durable transaction is confirmed without it. By then it
would not go on by itself any more, and nothing is sent here until a person has withdrawn the declaration."""

STANDBY_PATIENCE = 5.0
"""Seconds after a commit in which the declared standby must have it."""


class NotCommitted(Exception):
    """A COMMIT was not answered as it must be, so that nobody may act on what it should have stored (DESIGN §5.8)."""


class Database:
    """One PostgreSQL database that holds a ledger. Thread-safe; each transaction takes a connection of the pool."""

    def __init__(self, url: str, *, pool_size: int = 8, application_name: str = "sendonce", ping: bool = True) -> None:
        """``ping``: ask each connection whether it lives before it is used. A loop that tries again does without."""
        self.url = url
        self._application_name = application_name
        self._closed = False
        # The libpq string goes to the driver as it is: multi-host addresses and socket folders stay its business.
        self.engine: Engine = create_engine(
            "postgresql+psycopg://",
            creator=self.connect,
            pool_size=pool_size,
            max_overflow=4,
            pool_pre_ping=ping,
        )

    def connect(self) -> Connection:
        """A new connection outside the pool.

        Behind PgBouncer in transaction mode each transaction may have another session of the server. So nothing that
        the ledger relies on is a setting of the session (each transaction begins with its own), and statements are
        prepared only where the session that answers is the one that was greeted.
        """
        connection = psycopg.connect(
            self.url, application_name=self._application_name, autocommit=True, prepare_threshold=None
        )
        connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
        answering = connection.execute("select pg_backend_pid()").fetchone()
        if answering == (connection.info.backend_pid,):  # a pooler makes up a process of its own
            connection.prepare_threshold = 0
        connection.autocommit = False
        return connection

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Connection]:
        """A transaction: committed at the end, rolled back on an exception.

        With ``durable`` (all writes that something outside is done after) the commit waits for the disk, and for the
        synchronous standby where there is one, whatever the server's default is; where one is declared, it is asked
        whether it has it (``standby.py``).

        Raises :class:`NotCommitted` where the server answered the COMMIT with anything but a plain yes, or the declared
        standby does not have it.
        """
        with self._transaction(DURABLE if durable else BY_INDEX, durable=durable) as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A read-only transaction in which all statements see the same moment."""
        with self._transaction(SNAPSHOT, _SESSION, durable=False) as connection:
            yield connection

    @contextmanager
    def _transaction(self, *beginning: LiteralString, durable: bool) -> Iterator[Connection]:
        pooled = self.engine.raw_connection()
        connection = cast(Connection, pooled.driver_connection)
        notices: list[str] = []

        def note(diagnostic: psycopg.errors.Diagnostic) -> None:
            notices.append(diagnostic.message_primary or "")

        try:
            for opening in beginning:
                connection.execute(opening)
            standby = connection.execute(TO_CONFIRM, [STANDBY_LEASE]).fetchone() if durable else None
            yield connection
            if connection.pgconn.transaction_status == pq.TransactionStatus.INERROR:
                raise NotCommitted("the transaction had failed before")
            connection.add_notice_handler(note)
            try:
                connection.commit()
            finally:
                connection.remove_notice_handler(note)
            if durable and notices:
                # A commit that was cancelled while it waited for a standby still answers success, with a warning.
                raise NotCommitted(notices[0])
            if standby is not None:
                _wait_for_standby(connection, standby[0])
        except BaseException:
            try:
                connection.rollback()
            except psycopg.Error:
                pooled.invalidate()
            raise
        finally:
            if self._closed:
                pooled.invalidate()  # the pool that it came from is gone: nobody else would close it
            pooled.close()

    def close(self) -> None:
        """Close all idle connections; one that is in use is closed after it."""
        self._closed = True
        self.engine.dispose()


_SESSION = (
    f"select set_config('lock_timeout', '{LOCK_TIMEOUT_MS}', true), set_config('TimeZone', 'UTC', true),"
    " set_config('plan_cache_mode', 'force_generic_plan', true)"
)
"""What elsewhere would be settings of the session, for one transaction."""

BY_INDEX = _SESSION + (
    f", set_config('idle_in_transaction_session_timeout', '{IDLE_TIMEOUT_MS}', true)"
    ", set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true),"
    " set_config('enable_mergejoin', 'off', true)"
)
"""A statement here takes some hundred ids to their rows. Planned while a table was still small, and kept, it would read
the whole table once for each of them when it has grown."""

SNAPSHOT = "set transaction isolation level repeatable read, read only"

DURABLE = BY_INDEX + (
    ", case when current_setting('synchronous_commit') in ('off', 'local', 'remote_write')"
    " then set_config('synchronous_commit', 'on', true) end"
)

TO_CONFIRM = """
select value ->> 'name' from sendonce.settings
where name = 'standby' and value ->> 'name' <> current_setting('cluster_name') and changed_at + %s > now()
  and not exists (select from sendonce.settings where name = 'sending_off')
"""
"""The standby that must have what is committed: the one that is declared and may carry on without a person. None on a
ledger that has moved: on that standby itself when it is promoted, or on a restored copy."""


def _wait_for_standby(connection: Connection, name: str) -> None:
    """Return when this standby has what is committed so far on its disk. Raises :class:`NotCommitted`."""
    connection.autocommit = True
    try:
        (here,) = connection.execute("select pg_current_wal_flush_lsn()").fetchone() or (None,)
        until = time.monotonic() + STANDBY_PATIENCE
        while (
            connection.execute(
                "select from pg_stat_replication where application_name = %s and flush_lsn >= %s::pg_lsn", (name, here)
            ).rowcount
            != 1
        ):
            if time.monotonic() > until:
                raise NotCommitted("the declared standby does not have it")
            time.sleep(0.001)
    finally:
        if not connection.closed:
            connection.autocommit = False


def run(connection: Connection, name: str, /, **parameters: object) -> psycopg.Cursor[TupleRow]:
    """Run the statement of ``ledger/sql/<name>.sql``. Results come in binary."""
    return connection.execute(statement(name), parameters, binary=True)


@functools.cache
def statement(name: str) -> str:
    """The text of ``ledger/sql/<name>.sql`` without its comments (psycopg would bind a % in them)."""
    lines = (Path(__file__).parent / "sql" / f"{name}.sql").read_text().splitlines()
    return "\n".join(line for line in lines if not line.lstrip().startswith("--"))


def statement_names() -> list[str]:
    """The names of all statements."""
    return sorted(path.stem for path in (Path(__file__).parent / "sql").glob("*.sql"))


def transposed(rows: Sequence[Sequence[object]], width: int) -> list[list[object]]:
    """Rows as columns, to be bound as one array each. No rows give ``width`` empty columns."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


def database_now(connection: Connection) -> datetime:
    """The time of the database's clock at which this transaction began."""
    row = connection.execute("select now()").fetchone()
    assert row is not None
    now: datetime = row[0]
    return now


_DIALECT: Any = dialect.dialect  # it has no types
_DIALECT = _DIALECT()


def compiled(query: Any) -> tuple[str, Mapping[str, object]]:
    """A SQLAlchemy Core query as text and parameters for a psycopg connection."""
    result = query.compile(dialect=_DIALECT, compile_kwargs={"render_postcompile": True})
    return str(result), result.params


def migrate(url: str, revision: str = "head") -> None:
    """Bring the database to the newest schema. Safe to repeat, and to run twice at once."""
    # Only here: a worker starts without it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[1] / "migrations"))
    config.attributes["url"] = url
    command.upgrade(config, revision)


def wait_until_reachable(url: str, *, seconds: float) -> None:
    """Wait for a database that is starting. Raises the last connection error when it does not come in time."""
    end = time.monotonic() + seconds
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
