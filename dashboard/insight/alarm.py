"""When a rule fires, and when it is quiet again: two thresholds, and a length of time on both ways.

A value that swings around the threshold changes nothing: it has to stay above it for as long as the rule says before
the rule fires, and at or below the lower threshold for as long before it is quiet. So between two changes there is
never less than that length, whatever the values do.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from dashboard.ledger.tables import AlertState

SHORTEST_CLEARING = timedelta(minutes=1)
"""However fast a rule fires, it is not quiet again before."""

LONGEST_BLINK = timedelta(minutes=2)
"""Where nobody looked for longer than this, nobody knows that a value stayed where it was: the time starts anew."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a rule demands. ``clears_at`` is not above ``threshold``."""

    threshold: float
    clears_at: float
    hold_for: timedelta

    @property
    def clear_for(self) -> timedelta:
        """How long a value has to stay low."""
        return max(self.hold_for, SHORTEST_CLEARING)


@dataclass(frozen=True, slots=True)
class Stand:
    """Where a rule stands, and since when."""

    state: AlertState
    since: datetime


def step(bounds: Bounds, stand: Stand, *, value: float, now: datetime, looked_at: datetime | None) -> Stand:
    """Where the rule stands after this look. ``looked_at``: when it was looked at before, None for never."""
    state, since = stand.state, stand.since
    if looked_at is None or now - looked_at > LONGEST_BLINK:
        since = now
    high, low = value > bounds.threshold, value <= bounds.clears_at
    match state:
        case AlertState.QUIET if high:
            state, since = AlertState.RISING, now
        case AlertState.RISING if not high:
            state, since = AlertState.QUIET, now
        case AlertState.FIRING if low:
            state, since = AlertState.CLEARING, now
        case AlertState.CLEARING if not low:
            state, since = AlertState.FIRING, now
    if state == AlertState.RISING and now - since >= bounds.hold_for:
        return Stand(AlertState.FIRING, now)
    if state == AlertState.CLEARING and now - since >= bounds.clear_for:
        return Stand(AlertState.QUIET, now)
    return Stand(state, since)


def is_open(state: AlertState) -> bool:
    """Whether an alert of the rule stands open."""
    return state in (AlertState.FIRING, AlertState.CLEARING)
