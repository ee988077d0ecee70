"""How often attempts that failed in one way turned out taken, with how far that number can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

from dashboard.ledger.alike import Alike

Z = 1.959964
"""For 95 %, of the normal distribution."""


@dataclass(frozen=True, slots=True)
class Odds:
    """``taken`` of ``cases`` turned out taken. The true share lies between ``low`` and ``high`` (95 %)."""

    taken: int
    cases: int
    untold: int
    """Further attempts that failed so, and of which nothing was ever heard."""
    low: float
    high: float
    timed: int = 0
    """So many cases count as not taken by nothing but the time at which the provider first told of the message, after
    the next attempt. Where it tells late, the share is too low."""


def odds(alike: Alike) -> Odds | None:
    """The odds by the cases that evidence settled. None: there is no such case."""
    if not alike.resolved:
        return None
    low, high = wilson(alike.taken, alike.resolved)
    return Odds(alike.taken, alike.resolved, alike.all - alike.resolved, low, high, alike.timed)


def wilson(hits: int, cases: int) -> tuple[float, float]:
    """The 95 % interval of a share by Wilson's score (1927), which holds for few cases and shares near 0 or 1 too.

    Raises ValueError where there are no cases, or more hits than cases.
    """
    if not 0 <= hits <= cases or not cases:
        raise ValueError("hits must lie between 0 and the cases, and there must be one")
    share, squared = hits / cases, Z * Z
    middle = (share + squared / (2 * cases)) / (1 + squared / cases)
    half = Z * sqrt(share * (1 - share) / cases + squared / (4 * cases * cases)) / (1 + squared / cases)
    return max(0.0, middle - half), min(1.0, middle + half)
