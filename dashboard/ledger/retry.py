"""When to try again, and when not: pure arithmetic over what is known of a send."""

from __future__ import annotations

import random
from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from dashboard.ledger.tables import Policy

LONGEST_WAIT = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Terms:
    """What a mailstream and its account say about retries and doubt."""

    max_attempts: int
    retry_for: timedelta
    grace: timedelta
    unknown_policy: Policy
    key_window: timedelta | None
    settling_time: timedelta | None
    endpoint: bytes
    """Of the account as it is now."""
    useful_for: timedelta | None = None
    """How long after its due time a held send is of use: then it is cancelled. None: it waits for a person."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential waits with full jitter: the first is up to ``first``, each further one up to twice as long."""

    first: timedelta = timedelta(seconds=10)

    def wait(self, tries: int, at_least: float | None = None) -> timedelta:
        """How long to wait after the ``tries``-th try; never shorter than the provider asked for (seconds)."""
        longest = min(self.first * 2 ** min(max(tries - 1, 0), 30), LONGEST_WAIT)
        wait: timedelta = longest * random.uniform(0.5, 1.0)  # noqa: S311  # jitter, not a secret
        return max(wait, timedelta(seconds=at_least or 0))


def used_up(terms: Terms, *, counted: int, first_attempt_at: datetime | None, next_try: datetime) -> bool:
    """True where the mailstream allows no further attempt at ``next_try``."""
    too_many = counted >= terms.max_attempts
    too_long = first_attempt_at is not None and next_try > first_attempt_at + terms.retry_for
    return too_many or too_long


def release_holds(
    terms: Terms, *, ambiguous_since: datetime, endpoints: Set[bytes], now: datetime, needed: timedelta
) -> bool:
    """Rule G for policies: where all unanswered attempts went, their key is still honoured, long enough.

    ``needed``: how long from now the new attempt may be written (claiming plus the submit window).
    """
    return (
        terms.key_window is not None
        and endpoints == {terms.endpoint}
        and now + needed < ambiguous_since + terms.key_window
    )
