"""The explorer can fail: each of five rules, taken out of the product, is missed.

A rule that several places carry is taken out of all of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from uuid import UUID

import pytest

from dashboard.ledger import attempts, database, holds, work
from dashboard.ledger.attempts import Doubt, Started
from dashboard.ledger.database import Connection
from dashboard.ledger.work import Claim
from dashboard.providers.base import Deadline
from dashboard.worker import reconcile
from dashboard.worker.dispatch import Lane
from tests.interleaving.explorer import Explorer
from tests.interleaving.faults import Fault
from tests.interleaving.schedules import ACCIDENTS, Schedule, Verb, interleavings

Mutate = pytest.MonkeyPatch


def rewritten(mutate: Mutate, **changes: Sequence[tuple[str, str]]) -> None:
    """Change the text of statements: each of the given parts must stand in them."""
    original = database.statement

    def statement(name: str) -> str:
        text = original(name)
        for before, after in changes.get(name, ()):
            assert before in text, f"{name} has changed: {before}"
            text = text.replace(before, after)
        return text

    mutate.setattr(database, "statement", statement)


def with_visits(preemptions: int, *visits: Verb) -> list[Schedule]:
    """All orders with just these visits."""
    return [
        schedule
        for schedule in interleavings(preemptions, len(visits))
        if sorted(step.verb for step in schedule.steps if not step.who) == sorted(visits)
    ]


def under(orders: Sequence[Schedule], *faults: tuple[Fault, ...]) -> Iterator[Schedule]:
    """These orders with each of the faults, keys honoured and ignored."""
    for order, fault, keys in itertools.product(orders, faults, (True, False)):
        yield replace(order, faults=fault, keys=keys)


def kinds(broken: Sequence[str]) -> set[str]:
    """What broke, without where."""
    return {text.partition(":")[0] for text in broken}


# ── the rules ────────────────────────────────────────────────────────────────────────────────────────────────────────


def drop_the_claim_fence(mutate: Mutate) -> None:
    """Whoever believes to hold a claim may start and store under it."""
    mine = " and w.claimed_by = %(worker)s::uuid"
    moved = "a.claim_number is null or w.claim_number = a.claim_number and w.claimed_by = %(worker)s::uuid"
    rewritten(
        mutate,
        examine_claims=[(mine, "")],
        start_attempts=[(mine + "\n    and w.claim_number = a.claim_number", "")],
        accept_answered=[(mine + " and w.claim_number = a.claim_number", "")],
        reopen_work=[(moved, "true")],
        set_aside_work=[(moved, "true")],
        settle_work=[(moved, "true")],
    )
    start = attempts.start

    def under_any_claim(
        connection: Connection, worker: UUID, claims: Sequence[Claim], windows: attempts.Windows, *,
        part: attempts.Part | None = None,
    ) -> list[Started]:  # fmt: skip
        held = work.lock(connection, [claim.send_id for claim in claims])
        current = [Claim(c.send_id, held[c.send_id].claim_number, c.mail_class) for c in claims if c.send_id in held]
        return start(connection, worker, current, windows, part=part)

    mutate.setattr(attempts, "start", under_any_claim)


def submit_before_the_attempt_is_committed(mutate: Mutate) -> None:
    """The lane hands its calls over inside the transaction of their write-ahead."""

    def start(self: Lane, claims: Sequence[Claim]) -> None:
        deadline = Deadline.after(self._windows.submit.total_seconds())
        with self._database.transaction() as connection:
            started = attempts.start(connection, self._worker, claims, self._windows)
            self._pool.submit(partial(self._submit, s, deadline) for s in started)

    mutate.setattr(Lane, "_start", start)


def release_without_the_settling_time(mutate: Mutate) -> None:
    """Neither the policy nor a person waits until an unanswered call can no longer be taken."""
    decide, read_holds = reconcile.decide, holds.read_holds
    mutate.setattr(reconcile, "decide", lambda row, *rest: decide(replace(row, settled_after=None), *rest))
    mutate.setattr(
        holds, "read_holds",
        lambda *given: {number: replace(hold, settled_after=None) for number, hold in read_holds(*given).items()},
    )  # fmt: skip


def forget_an_earlier_ambiguous_attempt(mutate: Mutate) -> None:
    """A refusal is taken for the whole truth, whatever became of the attempts before."""
    read_doubts = attempts.read_doubts

    def of_the_newest_only(connection: Connection, ids: Sequence[UUID]) -> dict[UUID, Doubt]:
        rows = connection.execute(
            "select distinct on (send_id) send_id, status::text from sendonce.attempts where send_id = any(%s)"
            " order by send_id, n desc",
            [list(ids)],
        ).fetchall()
        in_doubt = {send for send, status in rows if status in ("submitting", "ambiguous")}
        return {send: doubt for send, doubt in read_doubts(connection, ids).items() if send in in_doubt}

    mutate.setattr(attempts, "read_doubts", of_the_newest_only)


def fold_events_by_overwriting(mutate: Mutate) -> None:
    """The event that came last is believed."""
    better = (
        "  and (s.delivery is null or t.word > s.delivery or t.word = s.delivery and t.at < s.delivery_at)"
    )  # fmt: skip
    rewritten(mutate, fold_delivery=[(better, "")])


# ── are missed ───────────────────────────────────────────────────────────────────────────────────────────────────────

FENCE = [*under(with_visits(2, Verb.SWEEP), (Fault.ACCEPTED,), (Fault.REFUSED_FOR_NOW,))]
AHEAD = [*under([*interleavings(0, 0, ACCIDENTS)], (Fault.ACCEPTED,))]
SETTLING = [*under([*with_visits(0, Verb.EARLY), *with_visits(0, Verb.EARLY, Verb.RESEND)], (Fault.TAKEN_LATE,))]
DOUBT = [
    *under(
        [*with_visits(0, Verb.REST), *with_visits(0, Verb.REST, Verb.RESEND)],
        (Fault.ANSWER_LOST, Fault.REFUSED), (Fault.ANSWER_LOST, Fault.REFUSED_FOR_NOW),
    )
]  # fmt: skip
FOLD = [*under(with_visits(0, Verb.EVENT, Verb.EVENT), (Fault.ACCEPTED,))]


@pytest.mark.parametrize(
    ("rule", "schedules", "broken"),
    [
        (drop_the_claim_fence, FENCE, {"an attempt was started under a claim that had ended"}),
        (
            submit_before_the_attempt_is_committed, AHEAD,
            {
                "a call was handed over before its attempt was on record",
                "it was taken 2 times, and a person asked for 0 repeats",
            },
        ),
        (
            release_without_the_settling_time, SETTLING,
            {
                "attempt 2 was started while an earlier one could still be taken",
                "it was taken 2 times, and a person asked for 0 repeats",
            },
        ),
        (forget_an_earlier_ambiguous_attempt, DOUBT, {"invariant 3", "it is failed, and the provider took it"}),
        (fold_events_by_overwriting, FOLD, {"invariant 6"}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)  # fmt: skip
def test_a_rule_that_is_taken_out_is_missed(
    explorer: Explorer,
    monkeypatch: pytest.MonkeyPatch,
    rule: Callable[[Mutate], None],
    schedules: list[Schedule],
    broken: set[str],
) -> None:
    assert explorer.play(schedules) == [], "as the product is, nothing breaks"
    with monkeypatch.context() as mutate:
        rule(mutate)
        found = explorer.play(schedules)
    assert broken <= kinds(found), found[:20]
