"""The provider's clock beside ours: where the two contradict each other, that is told and not mended. Pure.

Some providers tell whole seconds only: such an event may seem to come up to a second before what caused it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from dashboard.ledger.trace import Attempt, Event, Trace

SECOND = timedelta(seconds=1)
NONE = timedelta(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skew:
    """By how much at least the provider's clock runs behind ours, and ahead of it; zero where nothing shows that."""

    behind: timedelta = NONE
    ahead: timedelta = NONE


def skew_of(trace: Trace, event: Event) -> Skew:
    """That this event happened before the attempt began that it tells of, or after we had heard of it."""
    began = _began(trace, event)
    early = NONE if began is None else began - event.occurred_at - _grain(event)
    return Skew(behind=max(early, NONE), ahead=max(event.occurred_at - event.received_at, NONE))


def skew(trace: Trace) -> Skew:
    """What all its events show."""
    shown = [skew_of(trace, event) for event in trace.events]
    return Skew(
        behind=max((one.behind for one in shown), default=NONE), ahead=max((one.ahead for one in shown), default=NONE)
    )


def placed_at(trace: Trace, event: Event) -> datetime | None:
    """When an event that tells whole seconds stands in the order: not before the attempt of the same second."""
    began = _began(trace, event)
    if began is None or not NONE < began - event.occurred_at < _grain(event):
        return None
    return began


def _began(trace: Trace, event: Event) -> datetime | None:
    """When the attempt began that the event tells of; the earliest that it may be."""
    return min((attempt.started_at for attempt in _attempts(trace, event)), default=None)


def _attempts(trace: Trace, event: Event) -> Iterable[Attempt]:
    if event.attempt is not None:
        return [attempt for attempt in trace.attempts if attempt.n == event.attempt]
    named = [
        attempt
        for attempt in trace.attempts
        if event.provider_message_id and attempt.provider_message_id == event.provider_message_id
    ]
    return named or trace.attempts


def _grain(event: Event) -> timedelta:
    """How exactly the provider tells the time of this event."""
    return SECOND if event.occurred_at.microsecond == 0 else NONE
