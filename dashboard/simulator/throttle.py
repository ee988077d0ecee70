"""The rate limit of the account: so many calls in each second, told in the headers of every answer."""

from __future__ import annotations

from dashboard.simulator.config import Config
from dashboard.simulator.dialect import Limits

UNLIMITED = 10_000
"""What the headers promise where no limit is set."""


class Throttle:
    """Counts the calls of the current second."""

    def __init__(self) -> None:
        self._second = 0
        self._calls = 0

    def take(self, config: Config, messages: int, now: float) -> Limits:
        """Count one call; ``messages`` were taken before it."""
        if int(now) != self._second:
            self._second, self._calls = int(now), 0
        self._calls += 1
        limit = config.rate_limit if config.rate_limit is not None else UNLIMITED
        exceeded = config.rate_limit is not None and self._calls > limit
        return Limits(
            limit,
            max(limit - self._calls, 0),
            config.retry_after_seconds if exceeded else None,
            messages if config.daily_quota is not None else None,
        )
