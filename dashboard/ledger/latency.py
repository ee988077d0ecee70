"""How long things took, as histograms that add up: a count for each step of :data:`BOUNDS`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

BOUNDS = tuple(digit * 10**power for power in range(1, 9) for digit in (1, 2, 5))
"""Upper ends of the steps, in milliseconds: 10, 20, 50, 100 … 500 000 000 (six days). Step 0 holds what took less than
the first; the last step, what took longer than the last."""

LONGEST = 10**9
"""Milliseconds, at which the last step is taken to end."""


class Measure(StrEnum):
    """What is timed; each falls into the minute of what it begins or belongs to."""

    OUTBOX = "outbox"  # from the request's transaction to the ledger, by the minute in which it was recorded
    ACCEPTANCE = "acceptance"  # from when it was asked for, or due, to the provider's yes, by the minute it was due
    ATTEMPT = "attempt"  # one call to the provider, by the minute in which it started
    DELIVERY = "delivery"  # from the provider's yes to the mail server's, by the minute of the latter


def quantile(steps: Mapping[int, int], share: float) -> float | None:
    """The time, in milliseconds, within which this share (0 to 1) was done; None where nothing was timed.

    Within a step the times are taken to lie evenly, so the answer is off by less than the step is wide.
    """
    total = sum(steps.values())
    if total == 0:
        return None
    wanted, seen = share * total, 0
    for step in sorted(steps):
        if seen + steps[step] >= wanted and steps[step]:
            low, high = _ends(step)
            return low + (high - low) * max(wanted - seen, 0) / steps[step]
        seen += steps[step]
    raise AssertionError("the steps hold fewer than their sum")


def merged(many: Sequence[Mapping[int, int]]) -> dict[int, int]:
    """All of them as one."""
    total: dict[int, int] = {}
    for steps in many:
        for step, number in steps.items():
            total[step] = total.get(step, 0) + number
    return total


def _ends(step: int) -> tuple[int, int]:
    low = BOUNDS[step - 1] if step else 0
    return low, BOUNDS[step] if step < len(BOUNDS) else LONGEST
