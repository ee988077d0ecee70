"""Dispatch lanes that a test goes round with by hand, on the simulator's real sockets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import uuid4

from dashboard.ledger.accounts import save_account
from dashboard.ledger.attempts import Windows
from dashboard.ledger.database import Database
from dashboard.ledger.place import is_home
from dashboard.ledger.retry import Backoff
from dashboard.ledger.vault import Vault
from dashboard.simulator import Simulator
from dashboard.worker.dispatch import Lane
from dashboard.worker.pool import Pool
from dashboard.worker.submit import Submitter
from tests.place import WEBHOOK_SECRET, Place


def point_at(place: Place, simulator: Simulator, *, keys: bool = True) -> None:
    """Let the account ``main`` send through the simulator."""
    with place.database.transaction() as connection:
        save_account(
            connection, place.vault, workspace_id=place.workspace, name="main", provider="resend",
            settings={"base_url": simulator.http_url, "honours_keys": "true" if keys else "false"},
            secrets={"api_key": "re_test", "webhook_secret": WEBHOOK_SECRET},
            endpoint=simulator.http_url, key_window=timedelta(hours=24) if keys else None,
        )  # fmt: skip


@contextmanager
def a_lane(
    place: Place,
    *,
    places: int = 4,
    threads: int | None = None,
    windows: Windows | None = None,
    vault: Vault | None = None,
    backoff: Backoff | None = None,
) -> Iterator[Lane]:
    """A lane of a worker of its own; the test calls ``go_round``. ``vault``: the keys that it has, if not all."""
    database = Database(place.database.url, pool_size=3)
    worker = uuid4()
    place.run("insert into sendonce.workers (id, name, version, loops) values (%s, 'lane', '0', '{dispatch}')", worker)
    submitter = Submitter(database, vault or place.vault, request_timeout=10.0)
    pool = Pool(threads or places, name="submit")
    yield Lane(
        database, worker, submitter, pool, places=places, set_size=places, lease=timedelta(minutes=1),
        windows=windows or Windows(), backoff=backoff or Backoff(timedelta(microseconds=1)),
        breaker=timedelta(seconds=1),
        poll=0.01, wake=threading.Event(), stopping=threading.Event(), may_send=lambda: True, unsure=lambda: None,
        at_home=lambda connection: is_home(connection, "production"),
    )  # fmt: skip
    pool.close()
    submitter.close()
    database.close()
