"""The rate limit of the account: so many calls in each second, told in the headers of every answer."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.simulator.config import Config

UNLIMITED = 10_000
"""What the headers promise where no limit is set."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Whether this call is over the limit, and the headers that say so."""

    exceeded: bool
    headers: dict[str, str]


class Throttle:
    """Counts the calls of the current second."""

    def __init__(self) -> None:
        self._second = 0
        self._calls = 0

    def take(self, config: Config, now: float) -> Limits:
        """Count one call."""
        if int(now) != self._second:
            self._second, self._calls = int(now), 0
        self._calls += 1
        limit = config.rate_limit if config.rate_limit is not None else UNLIMITED
        remaining = max(limit - self._calls, 0)
        headers = {"ratelimit-limit": str(limit), "ratelimit-remaining": str(remaining), "ratelimit-reset": "1"}
        return Limits(config.rate_limit is not None and self._calls > limit, headers)
