"""Sweep: take claims back whose leases have run out.

A claim without an attempt goes back to the line. One with an open attempt is in doubt: its worker may have handed the
message over before it stopped. The work row alone decides which of the two it is (DESIGN §5.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.ledger import attempts, moves, work
from dashboard.ledger.database import Connection, database_now
from dashboard.ledger.moves import Target, Who
from dashboard.lifecycle import By, Reason

LAPSES_ALLOWED = 5
"""So many claims of one send may end without an attempt; then workers stop on it, and a person must look."""


@dataclass(frozen=True, slots=True)
class Swept:
    """How many stale claims went where."""

    given_back: int = 0
    doubted: int = 0
    held: int = 0
    cancelled: int = 0


def sweep(connection: Connection, *, limit: int = 500) -> Swept:
    """Take back up to ``limit`` stale claims, in the connection's transaction."""
    lapsed = work.lock_lapsed(connection, limit=limit)
    if not lapsed:
        return Swept()
    who = Who(By.SWEEP)
    running = [row for row in lapsed.values() if row.open_attempt is not None]
    idle = [row for row in lapsed.values() if row.open_attempt is None]
    cancelled = [Target(send_id=row.send_id, reason=row.cancel_reason) for row in idle if row.cancel_reason is not None]
    idle = [row for row in idle if row.cancel_reason is None]
    stuck = [
        Target(send_id=row.send_id, reason=Reason.WORKERS_STOP_ON_IT, waives=_waives(row))
        for row in idle
        if row.lapses + 1 >= LAPSES_ALLOWED
    ]
    back = [
        Target(send_id=row.send_id, reason=Reason.WORKER_STOPPED) for row in idle if row.lapses + 1 < LAPSES_ALLOWED
    ]
    return Swept(
        given_back=len(moves.give_back(connection, who, back, lapses=1)),
        doubted=_doubt(connection, who, running),
        held=len(moves.hold(connection, who, stuck)),
        cancelled=len(moves.cancel(connection, who, cancelled)),
    )


def _waives(row: work.Work) -> tuple[str, ...]:
    return ("ambiguous",) if row.ambiguous else ()


def _doubt(connection: Connection, who: Who, rows: list[work.Work]) -> int:
    """Their workers are gone in the middle of a call: the attempts become ambiguous, the sends unknown."""
    if not rows:
        return 0
    attempts.leave_unanswered(
        connection, who.by, rows, error_class="worker_lost", reason="the worker stopped while the call was running"
    )
    ids = [row.send_id for row in rows]
    terms, doubts = attempts.read_terms(connection, ids), attempts.read_doubts(connection, ids)
    now = database_now(connection)
    targets = [attempts.doubtful(row, terms[row.send_id], doubts[row.send_id], now, Reason.WORKER_LOST) for row in rows]
    return len(moves.doubt(connection, who, targets))
