"""``python -m bench.verify``: how long ``sendonce verify`` takes on a large ledger, just filled and then analysed."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from pathlib import Path
from uuid import UUID, uuid4

import psycopg

from bench.mail import key, recipient
from bench.product import prepare
from dashboard.embedded.postgres import EmbeddedPostgres
from dashboard.identity import send_id
from dashboard.ledger.database import Database
from dashboard.ledger.verify import verify

SERVER = {"shared_buffers": "2GB", "max_wal_size": "8GB", "work_mem": "32MB", "fsync": "off"}
"""Filling is not measured, and reading does not sync."""

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

SENDS = """
copy sendonce.sends (id, workspace_id, mailstream, key, recipient_id, address_lookup, fingerprint, outbox_id,
  state, reason, account_id, delivery, delivery_at, source, trigger_type, trigger_id, last_claim, last_attempt,
  asked_at, recorded_at, due_at, settled_at) from stdin
"""
REST = """
insert into sendonce.messages (send_id, address, body) select id, '\\x00', '\\x00' from sendonce.sends;
insert into sendonce.work (send_id, workspace_id, mailstream, mail_class, reason, due_at, claim_at)
select id, workspace_id, mailstream, 'transactional', 'due', due_at, due_at from sendonce.sends where state = 'open';
insert into sendonce.attempts (send_id, n, workspace_id, mailstream, account_id, idempotency_key, worker, claim_number,
  claimed_at, started_at, submit_deadline, request_deadline, finished_at, status, provider_message_id)
select id, 1, workspace_id, mailstream, account_id, id::text, gen_random_uuid(), 1, due_at, due_at,
  due_at + interval '10 seconds', due_at + interval '40 seconds', settled_at,
  case state when 'accepted' then 'accepted' else 'rejected' end::sendonce.attempt_status,
  case state when 'accepted' then 'm-' || id end
from sendonce.sends where state <> 'open';
insert into sendonce.events (workspace_id, account_id, event_id, fact, event_type, occurred_at, received_at,
  send_id, matched_by)
select workspace_id, account_id, 'e-' || id, uuid_send(id), 'delivered', settled_at, settled_at, id, 'send_id'
from sendonce.sends where state = 'accepted';
insert into sendonce.duplicates (send_id, workspace_id, mailstream, outbox_id, source, trigger_id, at, state_met,
  verdict)
select id, workspace_id, mailstream, gen_random_uuid(), 'outbox', trigger_id, due_at, 'accepted', 'duplicate'
from sendonce.sends where hashtext(id::text) % 10 = 0;
insert into sendonce.moves (send_id, workspace_id, at, move, from_state, to_state, made_by, reason,
  claim_number, attempt)
select id, workspace_id, settled_at, 'fail', 'claimed', 'failed', 'worker', 'refused', 1, 1
from sendonce.sends where state = 'failed';
"""


def fill(url: str, count: int) -> None:
    """A ledger of so many sends whose invariants hold: one in 50 failed, one in 100 open, the rest delivered."""
    prepare(url, 0)
    with psycopg.connect(url) as connection:
        ids = connection.execute("select w.id, a.id from sendonce.workspaces w, sendonce.accounts a").fetchone()
        assert ids is not None
        with connection.cursor().copy(SENDS) as copy:
            for row in _sends(count, *ids):
                copy.write_row(row)
        for statement in REST.strip().rstrip(";").split(";\n"):
            connection.execute(statement.encode())


def _sends(count: int, workspace: UUID, account: UUID) -> Iterator[tuple[object, ...]]:
    for number in range(count):
        at = BEGAN + timedelta(seconds=number)
        state = "open" if number % 100 == 1 else "failed" if number % 50 == 0 else "accepted"
        delivered, tried = state == "accepted", state != "open"
        address = blake2b(recipient(number).encode(), digest_size=32).digest()
        yield (
            send_id(workspace, "receipts", key(number)), workspace, "receipts", key(number), f"recipient_{number}",
            address, blake2b(key(number).encode(), digest_size=32).digest(), uuid4(), state,
            "refused" if state == "failed" else "answered" if delivered else None, account if tried else None,
            "delivered" if delivered else None, at if delivered else None, "outbox", "order.shipped",
            f"order_{number}", int(tried), int(tried), at, at, at, at if tried else None,
        )  # fmt: skip


def seconds(url: str) -> float:
    """How long one check of all invariants takes. Raises AssertionError where one does not hold."""
    database = Database(url, pool_size=1)
    began = time.perf_counter()
    with database.snapshot() as connection:
        broken = [finding for finding in verify(connection) if not finding.holds]
    taken = time.perf_counter() - began
    database.close()
    assert broken == [], broken
    return taken


def main() -> None:
    """Fill, measure, analyse, measure."""
    parser = argparse.ArgumentParser(prog="python -m bench.verify", description=__doc__)
    parser.add_argument("--sends", type=int, default=1_000_000)
    sends = parser.parse_args().sends
    with tempfile.TemporaryDirectory(prefix="sendonce-bench-") as folder:
        Path(folder).chmod(0o711)
        with EmbeddedPostgres(folder, settings=SERVER) as server:
            url = server.url("verified")
            fill(url, sends)
            print(f"verify of {sends} sends, just filled: {seconds(url):.0f} s", flush=True)
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute("vacuum analyze")
            print(f"verify of {sends} sends, analysed: {seconds(url):.0f} s", flush=True)


if __name__ == "__main__":
    main()
