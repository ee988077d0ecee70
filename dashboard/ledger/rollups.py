"""Roll-ups: figures of each minute and hour, so that charts never count the ledger (DESIGN §5.21).

Of each mailstream, account and source there are counts (``rollups``), histograms of how long things took
(``latencies``), and who carried the deliveries (``carriers``). Whatever changes a minute marks it in its own
transaction (a row of ``dirty``). Here marks are taken, and their minutes are counted anew and replaced; then their
hours are summed up from the minutes:

* A count sees every change whose mark it took: change and mark were committed together, and the count is a later
  statement with a newer snapshot. A change that commits meanwhile leaves a mark of its own.
* One roll-up runs at a time. Two at once could write in the other order than they read, and leave the older figures.
* Nothing is counted that retention takes away, so a minute may be counted again however old it is, and everything may
  be counted again at any time (:func:`mark_all`). Only what was *measured* at its moment, the outbox age and the number
  of unknown sends, stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from uuid import UUID

from dashboard.ledger.database import Connection, run, transposed
from dashboard.ledger.latency import BOUNDS
from dashboard.ledger.tables import NO_ACCOUNT

LOCK = 7_311_050_102
"""Advisory lock of the one transaction that rolls up."""

MINUTES = 120
"""So many different minutes are counted by one statement, lest a long backlog makes a long transaction of it."""

Bucket = tuple[UUID, str, datetime]
"""Workspace, mailstream, and the beginning of a minute or an hour."""


def roll_up(connection: Connection, *, limit: int) -> int:
    """Take up to ``limit`` marks and make their roll-ups again, in the connection's transaction.

    Returns how many marks were taken: 0 where there is none, or where another roll-up is running.
    """
    if not _alone(connection):
        return 0
    marks = run(connection, "take_dirty", limit=limit).fetchall()
    minutes = set(marks)
    for some in _portions(minutes):
        bind = _columns(some, "minute")
        run(connection, "delete_rollups", **bind)
        run(connection, "insert_rollups", nobody=NO_ACCOUNT, **bind)
        run(connection, "insert_latencies", nobody=NO_ACCOUNT, bounds=[float(bound) for bound in BOUNDS], **bind)
        run(connection, "insert_carriers", **bind)
    hours = {(workspace, stream, minute.replace(minute=0)) for workspace, stream, minute in minutes}
    for some in _portions(hours):
        bind = _columns(some, "hour")
        run(connection, "delete_rollup_hours", **bind)
        run(connection, "insert_rollup_hours", **bind)
    return len(marks)


def mark_all(connection: Connection) -> int:
    """Have everything counted again from the ledger, by whichever roll-up comes next. Reads the ledger whole.

    Returns the number of the last mark: when no mark up to it is left, everything has been counted.
    """
    run(connection, "mark_all")
    row = connection.execute("select coalesce(max(id), 0) from sendonce.dirty").fetchone()
    assert row is not None
    return int(row[0])


def count_marks(connection: Connection, up_to: int) -> int:
    """How many marks up to this number wait to be taken."""
    row = connection.execute("select count(*) from sendonce.dirty where id <= %s", [up_to]).fetchone()
    assert row is not None
    return int(row[0])


def measure(connection: Connection) -> None:
    """Keep the outbox age and the number of unknown sends of this minute and hour, in rows without a mailstream.

    Does nothing while a roll-up runs elsewhere: that one measures.
    """
    if _alone(connection):
        run(connection, "measure_workspaces")


def _portions(buckets: set[Bucket]) -> Iterator[list[Bucket]]:
    times = sorted({at for _, _, at in buckets})
    for start in range(0, len(times), MINUTES):
        some = set(times[start : start + MINUTES])
        yield [bucket for bucket in buckets if bucket[2] in some]


def _columns(buckets: Sequence[Bucket], time: str) -> dict[str, list[object]]:
    workspaces, streams, times = transposed(list(buckets), 3)
    return {"workspace_id": workspaces, "mailstream": streams, time: times}


def _alone(connection: Connection) -> bool:
    """True where this transaction holds the lock, or could take it."""
    row = connection.execute("select pg_try_advisory_xact_lock(%s)", [LOCK]).fetchone()
    assert row is not None
    return bool(row[0])
