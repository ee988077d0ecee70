"""How people are told of alerts: signed webhooks, Slack-compatible webhooks, and email straight to an SMTP server.

None of it goes through the ledger that it tells of: no outbox, no worker's dispatch, no provider account.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """What is told. ``id`` is the same however often it is tried; ``facts`` are for programs."""

    id: str
    event: str
    at: datetime
    headline: str
    lines: tuple[str, ...]
    link: str
    facts: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Arrived:
    """The other side took it."""


@dataclass(frozen=True, slots=True)
class NotArrived:
    """It did not. ``error``: in our own words; ``for_good``: trying again is no use."""

    error: str
    for_good: bool = False


Outcome = Arrived | NotArrived
