"""Roll-ups: figures of each mailstream and minute, so that charts never count the ledger (DESIGN §5.21).

Whatever changes a minute marks it in its own transaction (a row of ``dirty``). Here marks are taken, and their minutes
are counted anew and replaced:

* A count sees every change whose mark it took: change and mark were committed together, and the count is a later
  statement with a newer snapshot. A change that commits meanwhile leaves a mark of its own.
* One roll-up runs at a time. Two at once could write in the other order than they read, and leave the older figures.
"""

from __future__ import annotations

from dashboard.ledger.database import Connection, run, transposed

LOCK = 7_311_050_102
"""Advisory lock of the one transaction that rolls up."""

MINUTES = 120
"""So many different minutes are counted by one statement, lest a long backlog makes a long transaction of it."""


def roll_up(connection: Connection, *, limit: int) -> int:
    """Take up to ``limit`` marks and make their roll-ups again, in the connection's transaction.

    Returns how many marks were taken: 0 where there is none, or where another roll-up is running.
    """
    if not _alone(connection):
        return 0
    marks = run(connection, "take_dirty", limit=limit).fetchall()
    buckets = sorted(set(marks), key=lambda bucket: (bucket[2], bucket[0], bucket[1]))
    minutes = sorted({minute for _, _, minute in buckets})
    for start in range(0, len(minutes), MINUTES):
        some = set(minutes[start : start + MINUTES])
        workspaces, streams, times = transposed([bucket for bucket in buckets if bucket[2] in some], 3)
        bind = {"workspace_id": workspaces, "mailstream": streams, "minute": times}
        run(connection, "delete_rollups", **bind)
        run(connection, "insert_rollups", **bind)
    return len(marks)


def measure(connection: Connection) -> None:
    """Keep the outbox age and the number of unknown sends of this minute, in rows without a mailstream.

    Does nothing while a roll-up runs elsewhere: that one measures.
    """
    if _alone(connection):
        run(connection, "measure_workspaces")


def _alone(connection: Connection) -> bool:
    """True where this transaction holds the lock, or could take it."""
    row = connection.execute("select pg_try_advisory_xact_lock(%s)", [LOCK]).fetchone()
    assert row is not None
    return bool(row[0])
