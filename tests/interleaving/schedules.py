"""Which schedules there are: every order of steps of two workers over one send, with what the world does beside them.

A worker's life is a straight line of steps, each a transaction or a call. The world's visits (a lease runs out, an
event arrives, a person decides) are lives of one step. A *pre-emption* interrupts a life that could have gone on; to go
on with somebody else at the end of a life costs nothing. Nothing here knows a database: it is plain combinatorics, and
a test compares the numbers with formulas.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from tests.interleaving.faults import Fault


class Verb(StrEnum):
    """What somebody does in one step."""

    RELAY = "relay"  # the business asks (once more), and a worker moves that into the ledger
    CLAIM = "claim"
    START = "start"
    START_DIES = "start_dies"  # the worker is killed before the write-ahead is committed
    START_UNDONE = "start_undone"  # the connection breaks, and the write-ahead is not on record
    START_UNANSWERED = "start_unanswered"  # the connection breaks, and the write-ahead is on record
    SUBMIT = "submit"
    STORE = "store"
    STORE_UNDONE = "store_undone"
    STORE_UNANSWERED = "store_unanswered"
    SWEEP = "sweep"  # leases run out, and the sweep goes round
    REST = "rest"  # so much time passes that every call, settling time and grace period is over; sweep and reconcile
    EARLY = "early"  # the reconciler looks when the grace period is over, and the settling time is not
    EVENT = "event"  # the provider tells of what it took, if it did
    RESEND = "resend"  # a person who looks at the held send has it sent again
    CANCEL = "cancel"  # a person or a program cancels it
    REPLAY = "replay"  # a person asks for the failed send again
    RETAIN = "retain"  # the retention of what is settled ends, and only a tombstone stays


LIFE = (Verb.RELAY, Verb.CLAIM, Verb.START, Verb.SUBMIT, Verb.STORE)
"""A worker's life over one send."""

ACCIDENTS: tuple[tuple[Verb, ...], ...] = (
    *(LIFE[:survived] for survived in range(len(LIFE))),  # killed between two steps
    (Verb.RELAY, Verb.CLAIM, Verb.START_DIES),
    (Verb.RELAY, Verb.CLAIM, Verb.START_UNDONE, Verb.STORE, Verb.START, Verb.SUBMIT, Verb.STORE),
    (Verb.RELAY, Verb.CLAIM, Verb.START_UNANSWERED, Verb.STORE, Verb.START, Verb.SUBMIT, Verb.STORE),
    (*LIFE[:4], Verb.STORE_UNDONE, Verb.STORE),
    (*LIFE[:4], Verb.STORE_UNANSWERED, Verb.STORE),
)
"""The lives of a worker that is killed, or whose connection breaks in the middle of a commit."""

VISITS = (Verb.SWEEP, Verb.REST, Verb.EARLY, Verb.EVENT, Verb.RESEND, Verb.CANCEL, Verb.REPLAY, Verb.RETAIN)

OVERLAPPING = frozenset(Verb) - {
    Verb.SUBMIT, Verb.START_DIES, Verb.START_UNDONE, Verb.START_UNANSWERED, Verb.STORE_UNDONE, Verb.STORE_UNANSWERED,
}  # fmt: skip
"""Steps that are one whole transaction, which can be held open while somebody else begins."""


@dataclass(frozen=True, slots=True, order=True)
class Step:
    """Who does what: worker ``A`` or ``B``, or the world, whose name is empty."""

    who: str
    verb: Verb

    def __str__(self) -> str:
        return f"{self.who}.{self.verb}" if self.who else str(self.verb)


@dataclass(frozen=True, slots=True)
class Schedule:
    """One order of steps, and what the provider does with the first calls."""

    steps: tuple[Step, ...]
    faults: tuple[Fault, ...] = ()
    """Of the first call, the second, …; every further one is accepted."""
    keys: bool = True
    """The provider honours idempotency keys."""
    lanes: bool = False
    """The two workers are lanes of one process, with one identity."""
    overlap: int | None = None
    """The transaction of this step is held open until the next step has ended, or waits for it."""

    def __str__(self) -> str:
        order = " ".join(f"{step}{'+' if i == self.overlap else ''}" for i, step in enumerate(self.steps))
        keys = "keys honoured" if self.keys else "keys ignored"
        return f"{order} / {' '.join(self.faults)} / {keys}, {'two lanes' if self.lanes else 'two processes'}"

    @classmethod
    def read(cls, text: str) -> Schedule:
        """A schedule from its text, as a failure prints it."""
        order, faults, rest = (part.strip() for part in text.split("/"))
        words = order.split()
        overlaps = [i for i, word in enumerate(words) if word.endswith("+")]
        steps = []
        for word in words:
            who, _, verb = word.removesuffix("+").rpartition(".")
            steps.append(Step(who, Verb(verb)))
        return cls(
            tuple(steps), tuple(Fault(word) for word in faults.split()), keys="honoured" in rest, lanes="lanes" in rest,
            overlap=overlaps[0] if overlaps else None,
        )  # fmt: skip


def orders(lives: Sequence[tuple[Step, ...]], preemptions: int) -> Iterator[tuple[Step, ...]]:
    """Every order of the steps of these lives with at most so many pre-emptions."""
    yield from _continued(lives, (0,) * len(lives), None, preemptions)


def _continued(
    lives: Sequence[tuple[Step, ...]], done: tuple[int, ...], running: int | None, preemptions: int
) -> Iterator[tuple[Step, ...]]:
    if all(n == len(life) for n, life in zip(done, lives, strict=True)):
        yield ()
        return
    interrupted = running is not None and done[running] < len(lives[running])
    for i, life in enumerate(lives):
        if done[i] == len(life) or (interrupted and i != running and not preemptions):
            continue
        left = preemptions - (interrupted and i != running)
        after = (*done[:i], done[i] + 1, *done[i + 1 :])
        for rest in _continued(lives, after, i, left):
            yield (life[done[i]], *rest)


def of_worker(name: str, verbs: Sequence[Verb]) -> tuple[Step, ...]:
    """A worker's life."""
    return tuple(Step(name, verb) for verb in verbs)


def interleavings(preemptions: int, visits: int, accidents: Sequence[tuple[Verb, ...]] = ()) -> Iterator[Schedule]:
    """Two workers and exactly so many visits. Worker A has the accident, where there is one, and else goes first.

    (Two workers differ in nothing but their names, so the other half would be the same again.)
    """
    for chosen in itertools.combinations_with_replacement(VISITS, visits):
        world = [(Step("", verb),) for verb in chosen]
        for life in accidents or (LIFE,):
            lives = [of_worker("A", life), of_worker("B", LIFE), *world]
            # Equal visits differ in nothing either.
            for order in dict.fromkeys(orders(lives, preemptions)):
                if accidents or next(step.who for step in order if step.who) == "A":
                    yield Schedule(order)


def overlapping(schedule: Schedule) -> Iterator[Schedule]:
    """The same steps, each pair of neighbours in turn with their transactions open at once."""
    for i, (step, following) in enumerate(itertools.pairwise(schedule.steps)):
        if step.who != following.who and {step.verb, following.verb} <= OVERLAPPING:
            yield replace(schedule, overlap=i)


# ── what is explored ─────────────────────────────────────────────────────────────────────────────────────────────────

SINGLE = tuple((fault,) for fault in Fault)
DOUBLE = tuple((first, second) for first in (Fault.ANSWER_LOST, Fault.TAKEN_LATE, Fault.NOT_TAKEN) for second in Fault)
"""A call in doubt, and what becomes of its repeat."""


@dataclass(frozen=True, slots=True)
class Family:
    """Schedules of one kind."""

    name: str
    preemptions: int
    visits: tuple[int, ...]
    accidents: bool = False
    overlaps: bool = False
    faults: tuple[tuple[Fault, ...], ...] = SINGLE
    lanes: tuple[bool, ...] = (False,)
    dealt: int | None = None
    """Not every order with every fault, but so many of them for each order in turn."""

    @functools.cache  # noqa: B019  # there are a dozen families
    def orders(self) -> list[Schedule]:
        """Every order of steps, without faults."""
        lives = ACCIDENTS if self.accidents else ()
        found = [s for visits in self.visits for s in interleavings(self.preemptions, visits, lives)]
        return [o for s in found for o in overlapping(s)] if self.overlaps else found

    def members(self, part: int = 0, parts: int = 1) -> Iterator[Schedule]:
        """Every schedule, or every ``parts``-th order from ``part``."""
        kinds = self._kinds()
        each = self.dealt or len(kinds)
        for i, order in enumerate(self.orders()):
            if i % parts == part:
                for j in range(i * each, (i + 1) * each):
                    faults, keys, lanes = kinds[j % len(kinds)]
                    yield replace(order, faults=faults, keys=keys, lanes=lanes)

    def _kinds(self) -> list[tuple[tuple[Fault, ...], bool, bool]]:
        return list(itertools.product(self.faults, (True, False), self.lanes))

    def __len__(self) -> int:
        return len(self.orders()) * (self.dealt or len(self._kinds()))


BOTH = (False, True)
QUICK = (
    Family("one pre-emption, an accident", 1, (0,), accidents=True, dealt=9),
    Family("one pre-emption, a visit", 1, (0, 1), dealt=9),
    Family("one pre-emption, an accident and a visit", 1, (1,), accidents=True, lanes=BOTH, dealt=1),
    Family("one pre-emption, an overlap", 1, (0, 1), overlaps=True, lanes=BOTH, dealt=1),
    Family("a doubt and its repeat", 1, (1,), faults=DOUBLE, dealt=1),
)
"""``make test``: all orders with one pre-emption; of the eighteen faults, keys honoured or not, each order has nine in
turn, in the larger families one."""

THOROUGH = (
    Family("two pre-emptions, a visit", 2, (0, 1)),
    Family("two pre-emptions, an accident, a visit", 2, (0, 1), accidents=True),
    Family("two pre-emptions, an accident, a visit, two lanes", 2, (0, 1), accidents=True, lanes=(True,), dealt=1),
    Family("two pre-emptions, an overlap, a visit", 2, (0, 1), overlaps=True, lanes=BOTH),
    Family("one pre-emption, two visits", 1, (2,)),
    Family("two pre-emptions, two visits", 2, (2,), lanes=BOTH, dealt=1),
    Family("one pre-emption, an overlap, two visits", 1, (2,), overlaps=True, lanes=BOTH, dealt=1),
    Family("no pre-emption, an accident, two visits", 0, (2,), accidents=True, dealt=1),
    Family("a doubt and its repeat", 2, (0, 1), faults=DOUBLE, lanes=BOTH),
    Family("a doubt and its repeat, two visits", 0, (2,), faults=DOUBLE),
)
"""``make soak``: all at two pre-emptions with an accident and a visit; of what is larger, one fault an order."""
