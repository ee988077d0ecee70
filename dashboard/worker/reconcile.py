"""Reconcile: settle what is unknown by evidence, and after its grace period by policy.

Evidence that came with an event is folded when the event is stored; here the events that could not be matched then are
matched again, and unknown sends whose time has come meet the policy of their mailstream. So do held ones that nobody
wants any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from dashboard.ledger import attempts, events, moves, work
from dashboard.ledger.attempts import Doubt
from dashboard.ledger.database import Connection, database_now, run
from dashboard.ledger.moves import FOREVER, Target, Who
from dashboard.ledger.retry import Terms, release_holds, used_up
from dashboard.ledger.tables import Policy
from dashboard.ledger.work import Work
from dashboard.lifecycle import By, Reason, State

CLAIMING = timedelta(minutes=1)
"""A release is given only if the key outlives the time that a free worker may take to claim and write it."""


@dataclass(frozen=True, slots=True)
class Reconciled:
    """How many unknown sends went where."""

    released: int = 0
    held: int = 0
    cancelled: int = 0
    failed: int = 0
    waiting: int = 0


def match_again(connection: Connection, *, after: int, limit: int = 1000) -> int:
    """Match kept events of sends that are known by now. Returns how many matched."""
    return events.rematch(connection, after=after, limit=limit)


def reconcile(connection: Connection, *, submit_window: timedelta, limit: int = 200) -> Reconciled:
    """Decide up to ``limit`` unknown and held sends that are due for it, in the connection's transaction."""
    ids = [row[0] for row in run(connection, "lock_due_checks", limit=limit).fetchall()]
    if not ids:
        return Reconciled()
    locked = work.lock(connection, sorted(ids))
    terms, doubts = attempts.read_terms(connection, ids), attempts.read_doubts(connection, ids)
    now = database_now(connection)
    ends: dict[str, list[Target]] = {"prove": [], "release": [], "hold": [], "cancel": [], "fail": [], "wait": []}
    for row in locked.values():
        end, target = decide(row, terms[row.send_id], doubts.get(row.send_id), now, submit_window)
        ends[end].append(target)
    who = Who(By.RECONCILE)
    for target in ends["wait"]:
        connection.execute("update sendonce.work set check_at = %s where send_id = %s", (target.at, target.send_id))
    return Reconciled(
        released=len(moves.release(connection, who, ends["prove"], proved=True))
        + len(moves.release(connection, who, ends["release"])),
        held=len(moves.hold(connection, who, ends["hold"])),
        cancelled=len(moves.cancel(connection, who, ends["cancel"])),
        failed=len(moves.fail(connection, who, ends["fail"])),
        waiting=len(ends["wait"]),
    )


def decide(row: Work, terms: Terms, doubt: Doubt | None, now: datetime, submit_window: timedelta) -> tuple[str, Target]:
    """What becomes of one send now: prove, release, hold, cancel, fail, or wait until a later time.

    A held one waits for a person. Where its mailstream cancels what is late, it is cancelled once it is; time never
    releases it (DESIGN §5.14).
    """

    def target(reason: Reason | str, at: datetime | None = None, waives: tuple[str, ...] = ()) -> Target:
        return Target(send_id=row.send_id, reason=reason, at=at, waives=waives)

    if row.state is State.HELD:
        useful_until = FOREVER if terms.useful_for is None else row.due_at + terms.useful_for
        return "cancel" if now > useful_until else "wait", target(Reason.LATE, useful_until)
    exhausted = used_up(terms, counted=row.counted_attempts, first_attempt_at=row.first_attempt_at, next_try=now)
    if row.cancel_reason is not None and doubt is None:
        return "cancel", target(row.cancel_reason)
    if doubt is None:
        # Every attempt turned out refused or never written: nothing speaks against another one.
        return ("fail", target(Reason.ATTEMPTS_USED_UP)) if exhausted else ("prove", target(Reason.PROVED_NOT_TAKEN))
    may_act_at = max(row.settled_after or now, (row.unknown_since or now) + terms.grace)
    if now < may_act_at:
        return "wait", target(Reason.NO_ANSWER, may_act_at)
    if row.cancel_reason is not None:
        return "cancel", target(row.cancel_reason)
    if terms.unknown_policy is Policy.CANCEL:
        return "cancel", target(Reason.STILL_UNKNOWN)
    if terms.unknown_policy is Policy.HOLD or exhausted:
        reason = Reason.ATTEMPTS_USED_UP if exhausted else Reason.UNCONFIRMED
        return "hold", target(reason, waives=("ambiguous",))
    holds = doubt.keyed and release_holds(
        terms, ambiguous_since=row.ambiguous_since or now, endpoints=doubt.endpoints, now=now,
        needed=submit_window + CLAIMING,
    )  # fmt: skip
    if holds:
        return "release", target(Reason.RELEASED_BY_KEY, now)
    return "hold", target(Reason.WENT_IN_A_BATCH if doubt.in_a_batch else Reason.UNCONFIRMED, waives=("ambiguous",))
