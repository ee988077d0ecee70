"""What is known of one send while its schedule is played, beside the ledger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from dashboard.ledger.attempts import Finished, Windows
from dashboard.ledger.work import Claim
from dashboard.worker.dispatch import Lane
from tests.interleaving.faults import Books
from tests.interleaving.schedules import Schedule, Step

HOUR = timedelta(hours=1)
WINDOWS = Windows(submit=HOUR, request=HOUR, margin=HOUR)
"""Long, so that nothing ends while a crowd of sends makes its steps: time passes by schedule only."""
LEASE = HOUR * 3
SETTLING = HOUR * 2
GRACE = HOUR * 8
SETTLED = WINDOWS.submit + WINDOWS.request + SETTLING
"""So long after its start a call has been taken or never will be."""


@dataclass
class Call:
    """A call that a lane handed over, and that has not been made yet."""

    attempt: int
    make: Callable[[], None]
    lane: Lane


@dataclass
class Life:
    """One send."""

    id: UUID
    key: str
    stream: str
    schedule: Schedule
    books: Books
    age: timedelta = timedelta(0)
    asked: int = 0
    told: int = 0
    words: int = 0
    """How often a person had it sent again when no earlier call was under way any more."""
    position: int = 0
    claim: tuple[str, int] | None = None
    """Whose claim is current, and its number."""
    claims: dict[str, Claim] = field(default_factory=dict)
    """What each worker believes to hold."""
    calls: dict[str, Call] = field(default_factory=dict)
    outcomes: dict[str, Finished] = field(default_factory=dict)
    started: dict[int, timedelta] = field(default_factory=dict)
    """At what age each attempt was started."""
    found: list[str] = field(default_factory=list)
    """What broke."""

    def next_steps(self) -> tuple[Step, Step | None] | None:
        """The next step, with the one that begins while its transaction is open. None: the schedule is over."""
        steps, i = self.schedule.steps, self.position
        if i == len(steps):
            return None
        overlapped = steps[i + 1] if self.schedule.overlap == i else None
        self.position += 2 if overlapped else 1
        return steps[i], overlapped

    def grow(self, span: timedelta) -> None:
        """Time passes, as much as ends every lease."""
        self.age += span
        self.claim = None
        if self.books.coming is not None and self.age >= self.started[self.books.coming] + SETTLED:
            self.books.settle()

    def too_late(self, attempt: int) -> bool:
        """The submit deadline of an attempt is over."""
        return self.age >= self.started[attempt] + WINDOWS.submit

    @property
    def may_be_taken(self) -> bool:
        """Some call was not answered and may still be taken, or may still be made."""
        return self.books.coming is not None or any(not self.too_late(call.attempt) for call in self.calls.values())
