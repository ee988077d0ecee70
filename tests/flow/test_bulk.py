"""Much at once, and much in all: nobody waits for each other in a circle, queue tables and workers stay small."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from bench import product
from dashboard.embedded.postgres import EmbeddedPostgres
from dashboard.simulator import Config, Simulator
from tests.conftest import SOAK
from tests.crew import until
from tests.flow.town import Town
from tests.folders import server_folder
from tests.place import Place

SENDS = 200_000 if SOAK else 6_000
WAITING = 5_000 if SOAK else 1_000
"""So many requests wait at most while a stream of them goes through."""

FEED = 500

MEGABYTE = 1 << 20


# ── many at once ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_many_producers_relays_and_workers_on_the_same_keys_never_deadlock(place: Place, tmp_path: Path) -> None:
    keys = [f"order:{number}" for number in range(120)]
    with Simulator(Config()) as simulator:
        town = Town(place, simulator, tmp_path / "workers.log")
        town.stream(policy="release", keys=True)
        for loops in (("relay",), ("relay",), ("relay", "dispatch", "sweep", "reconcile"), ("dispatch", "relay")):
            town.worker(*loops)

        dice = random.Random(1)
        batches = [dice.sample(keys, 40) for _ in range(24)]

        def ask(producer: int) -> None:
            for batch in batches[producer::4]:
                town.enqueue(batch)

        producers = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for producer in producers:
            producer.start()
        for producer in producers:
            producer.join()
        town.wait_for(accepted=len({key for batch in batches for key in batch}))
        assert max(town.copies().values()) == 1
        town.end()
    assert place.one("select deadlocks from pg_stat_database where datname = current_database()") == {"deadlocks": 0}
    assert place.count("sends") + place.count("duplicates") == 24 * 40, "each request is a send or a later one of it"
    assert "loop_failed" not in town.log.read_text()
    assert town.violations() == []


# ── much in all ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def server_as_in_production() -> Iterator[str]:
    """A server that vacuums as every server does; fsync is off, since nothing here survives a power cut."""
    settings = {"fsync": "off", "max_wal_size": "1GB"}
    with server_folder() as folder, EmbeddedPostgres(folder, settings=settings) as server:
        yield server.url("postgres")


@contextmanager
def a_worker(url: str) -> Iterator[subprocess.Popen[bytes]]:
    """A real worker process whose provider accepts at once."""
    environment = {**os.environ, **product.SECRETS, **product.TUNING, "DATABASE_URL": url, "SENDONCE_LOG": "console"}
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.product"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def peak_memory(process: subprocess.Popen[bytes]) -> int:
    """The most bytes that the process ever had in memory."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def drained(connection: psycopg.Connection[tuple[object, ...]]) -> bool:
    left = "select exists (select from sendonce.outbox) or exists (select from sendonce.work)"
    return connection.execute(left).fetchone() == (False,)


def test_a_worker_holds_a_bounded_number_of_sends_whatever_waits(server_as_in_production: str) -> None:
    product.prepare(server_as_in_production, SENDS)
    with (
        a_worker(server_as_in_production) as worker,
        psycopg.connect(server_as_in_production, autocommit=True) as connection,
    ):
        until(lambda: drained(connection), seconds=900, what="the end of the backlog")
        peak = peak_memory(worker)
        states = connection.execute("select state::text, count(*) from sendonce.sends group by 1").fetchall()
    assert states == [("accepted", SENDS)]
    print(f"a backlog of {SENDS} requests: the worker's memory was {peak / MEGABYTE:.0f} MB at most")
    assert peak < 300 * MEGABYTE


def sizes(connection: psycopg.Connection[tuple[object, ...]]) -> dict[str, int]:
    """Bytes of the queue tables, each with its indexes."""
    rows = connection.execute(
        "select t, pg_total_relation_size('sendonce.' || t) from unnest('{outbox,work,dirty}'::text[]) t"
    )
    return {str(name): int(str(size)) for name, size in rows}


def test_queue_tables_stay_small_however_much_goes_through(server_as_in_production: str) -> None:
    url = server_as_in_production
    product.prepare(url, 0)
    peaks: dict[str, int] = {}
    with a_worker(url), psycopg.connect(url, autocommit=True) as connection:
        asked = 0
        while asked < SENDS:
            waiting = connection.execute("select count(*) from sendonce.outbox").fetchone()
            if waiting is not None and waiting[0] > WAITING - FEED:
                time.sleep(0.01)
                continue
            product.feed(connection, range(asked, asked + FEED))
            asked += FEED
            for name, size in sizes(connection).items():
                peaks[name] = max(peaks.get(name, 0), size)
        until(lambda: drained(connection), seconds=300, what="the end of the stream")
        ledger = connection.execute("select pg_total_relation_size('sendonce.sends')").fetchone()
    assert ledger is not None
    told = ", ".join(f"{name} {size / MEGABYTE:.1f} MB" for name, size in peaks.items())
    print(f"{SENDS} sends went through, {WAITING} waiting at most: {told}; the ledger {ledger[0] / MEGABYTE:.0f} MB")
    assert max(peaks.values()) < 64 * MEGABYTE
