"""``python -m bench.finding``: how long finding and tracing a send take on a very large ledger, and by which plans.

Raises AssertionError where a table that grows with the mail is read from end to end. The first time of each is that of
a page that nobody has looked at for a while: not all that it needs is in the server's memory.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

from bench import generated
from bench.plans import pages, scanned
from bench.product import prepare
from dashboard.embedded.postgres import EmbeddedPostgres
from dashboard.ledger import search
from dashboard.ledger.database import Connection, Database, statement
from dashboard.ledger.listing import SendFilter, list_sends
from dashboard.ledger.trace import read_trace
from dashboard.ledger.vault import Vault

SERVER = {"shared_buffers": "1GB", "max_wal_size": "8GB", "maintenance_work_mem": "512MB", "fsync": "off"}
"""Filling is not measured, and reading does not sync."""

KEYS = (("bench", b"benchbenchbenchbenchbenchbench01"),)
VAULT = Vault(KEYS)


def main() -> None:
    """Fill, analyse, look at the plans, measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.finding", description=__doc__)
    parser.add_argument("--sends", type=int, default=10_000_000)
    sends = parser.parse_args().sends
    with tempfile.TemporaryDirectory(prefix="sendonce-bench-") as folder:
        Path(folder).chmod(0o711)
        with EmbeddedPostgres(folder, settings=SERVER) as server:
            url = server.url("found")
            prepare(url, 0)
            database = Database(url, pool_size=1)
            workspace = _fill(database, sends)
            print(f"{sends:,} sends; milliseconds of the first time and the best of five, pages of 8 kB", flush=True)
            with database.transaction(durable=False) as connection:
                _look(connection, workspace)
            database.close()


def _fill(database: Database, sends: int) -> UUID:
    connection = database.connect()
    row = connection.execute("select w.id, a.id from sendonce.workspaces w, sendonce.accounts a").fetchone()
    assert row is not None
    connection.execute("insert into sendonce.users (login, name, password_hash) values ('ada', 'Ada', '-')")
    generated.fill(connection, VAULT, workspace=row[0], account=row[1], sends=sends)
    connection.commit()
    connection.autocommit = True
    connection.execute("vacuum analyze")
    connection.close()
    workspace: UUID = row[0]
    return workspace


def _look(connection: Connection, workspace: UUID) -> None:
    where = {"workspace_id": workspace, "before_at": search.START.at, "before_id": search.START.send_id}
    bound = {**where, "limit": search.HITS, "kinds": search.KINDS}
    for what, text in generated.TYPED.items():
        _tell(
            connection, f"search: {what}", "read_hits", {**search._readings(VAULT, workspace, text), **bound},
            partial(search.search, connection, VAULT, workspace, text),
        )  # fmt: skip
    for what, text in generated.MISTYPED.items():
        _tell(
            connection, f"close to: {what}", "read_close", {**search._closeness(VAULT, text), **bound},
            partial(search.search_close, connection, VAULT, workspace, text),
        )  # fmt: skip
    row = connection.execute("select id from sendonce.sends where key = 'receipt:order_777:v3'").fetchone()
    assert row is not None
    for part in ("send", "attempts", "duplicates", "moves", "events", "neighbours"):
        bind = {
            "workspace_id": workspace, "send_id": row[0], "workspace_ids": [workspace, uuid4()],
            "send_ids": [row[0], uuid4()], "limit": 50, "cap": 100,
        }  # fmt: skip
        assert scanned(connection, statement(f"read_trace_{part}"), bind) == set(), part
    print(f"{'trace':<40} {_measured(lambda: read_trace(connection, workspace, row[0]))}", flush=True)
    print(f"{'list of all':<40} {_measured(lambda: list_sends(connection, workspace, SendFilter()))}", flush=True)


def _tell(connection: Connection, what: str, name: str, bind: dict[str, object], ask: Callable[[], object]) -> None:
    took = _measured(ask)
    assert scanned(connection, statement(name), bind) == set(), what
    print(f"{what:<40} {took} {pages(connection, statement(name), bind):7}", flush=True)


def _measured(ask: Callable[[], object]) -> str:
    times = []
    for _ in range(5):
        began = time.perf_counter()
        ask()
        times.append((time.perf_counter() - began) * 1_000)
    return f"{times[0]:8.1f} {min(times):8.1f}"


if __name__ == "__main__":
    main()
