"""``python -m bench``: floor and Sendonce in turn, on one server, in one run; only their ratio means anything."""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import psycopg

from bench import floor, product
from dashboard.embedded.postgres import EmbeddedPostgres

SERVER = {
    "shared_buffers": "2GB", "max_wal_size": "8GB", "min_wal_size": "2GB", "checkpoint_timeout": "15min",
    "effective_cache_size": "12GB", "maintenance_work_mem": "1GB", "work_mem": "32MB", "max_connections": "300",
    "random_page_cost": "1.1", "fsync": "on", "synchronous_commit": "on",
}  # fmt: skip


def main() -> None:
    """Measure and print one table."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--sends", type=int, default=250_000)
    parser.add_argument("--repetitions", type=int, default=3)
    arguments = parser.parse_args()
    contestants: dict[str, ModuleType] = {"floor": floor, "sendonce": product}
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    with tempfile.TemporaryDirectory(prefix="sendonce-bench-") as folder:
        Path(folder).chmod(0o711)
        with EmbeddedPostgres(folder, settings=SERVER) as server:
            for repetition in range(arguments.repetitions):
                for name, contestant in contestants.items():
                    seconds = measure(server, f"{name}_{repetition}", contestant, arguments.sends)
                    rates[name].append(arguments.sends / seconds)
                    print(f"{name:10} {rates[name][-1]:9.0f} sends a second", flush=True)
    ratios = [ours / theirs for ours, theirs in zip(rates["sendonce"], rates["floor"], strict=True)]
    print(f"outbox to accepted, no-op provider, 1 worker process, {arguments.sends} sends, 10 % asked for twice")
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"sendonce / floor, median of {len(ratios)}: {statistics.median(ratios):.2f}  ({each})")


def measure(server: EmbeddedPostgres, name: str, contestant: ModuleType, sends: int) -> float:
    """Seconds that one contestant takes in a fresh database after a checkpoint."""
    url = server.url(name)
    prepare: Callable[[str, int], None] = contestant.prepare
    drain: Callable[[str, int], float] = contestant.drain
    prepare(url, sends)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("vacuum analyze")
        connection.execute("checkpoint")
    seconds = drain(url, sends)
    with psycopg.connect(server.url("postgres"), autocommit=True) as connection:
        connection.execute(f'drop database "{name}" with (force)'.encode())
    return seconds


main()
