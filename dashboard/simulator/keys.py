"""Idempotency keys as Resend documents them: kept 24 hours, for one method and endpoint, bound to the body."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from dashboard.simulator.books import Acceptance


class Conflict(Enum):
    """Why a request under a known key gets neither a new acceptance nor the first answer."""

    OTHER_BODY = auto()
    IN_PROGRESS = auto()


@dataclass(slots=True)
class Use:
    """The first use of a key: what it was used for, and what came of it."""

    fingerprint: str
    since: float
    message_ids: tuple[str, ...] = ()
    answered: bool = False


class Keys:
    """The keys of one account. Only accepted calls keep their key: a refused one may be corrected and repeated."""

    def __init__(self, window_seconds: float, rows: Iterable[Acceptance] = ()) -> None:
        self.window_seconds = window_seconds
        self._uses: dict[tuple[str, str], Use] = {}
        for row in rows:
            self._remember(row)

    def look(self, endpoint: str, key: str, fingerprint: str, now: float) -> Use | Conflict | None:
        """What the key was used for within the window, a conflict, or None: the key is free."""
        use = self._uses.get((endpoint, key))
        if use is None or now - use.since >= self.window_seconds:
            return None
        if use.fingerprint != fingerprint:
            return Conflict.OTHER_BODY
        return use if use.answered else Conflict.IN_PROGRESS

    def take(self, endpoint: str, key: str, use: Use) -> None:
        """Bind the key to this use from now on."""
        self._uses[endpoint, key] = use

    def clear(self) -> None:
        """Forget all keys."""
        self._uses.clear()

    def _remember(self, row: Acceptance) -> None:
        """Put back what a row of the books says: a provider that restarts still knows its keys."""
        if row.key is None or not row.endpoint:
            return
        known = self._uses.get((row.endpoint, row.key))
        if known is not None and row.item > 0:
            known.message_ids += (row.message_id,)
        else:
            self._uses[row.endpoint, row.key] = Use(row.fingerprint, row.at, (row.message_id,), answered=True)
