"""``?wait=S``: the answer is held back until the send is settled, in a bounded number of threads."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from threading import BoundedSemaphore
from uuid import UUID

from dashboard.ledger.standing import Standing, read_standing
from dashboard.lifecycle import State
from dashboard.web.state import database

PLACES = BoundedSemaphore(8)
"""So many requests of one process may wait at once; the others are answered as if they had not asked to."""

SHORTEST, LONGEST = 0.05, 0.5
"""Seconds between two looks; each is twice as long as the one before."""


def wait_for(workspace_id: UUID, send_id: UUID, seconds: float) -> Standing | None:
    """How a send stands once it is settled, or after so many seconds, or as soon as waiting makes no sense."""
    standing = _look(workspace_id, send_id)
    if seconds <= 0 or not _worth_waiting(standing, seconds):
        return standing
    with _place() as free:
        end = time.monotonic() + seconds
        pause = SHORTEST
        while free and _worth_waiting(standing, end - time.monotonic()):
            time.sleep(max(min(pause, end - time.monotonic()), 0))
            pause = min(pause * 2, LONGEST)
            standing = _look(workspace_id, send_id)
    return standing


def _worth_waiting(standing: Standing | None, left: float) -> bool:
    """Not for what is settled, is held for a person, or is not tried again in time."""
    if standing is None or standing.settled or standing.state is State.HELD or left <= 0:
        return False
    return standing.next_try is None or standing.next_try <= standing.now + timedelta(seconds=left)


def _look(workspace_id: UUID, send_id: UUID) -> Standing | None:
    with database().transaction(durable=False) as connection:
        return read_standing(connection, workspace_id, send_id)


@contextmanager
def _place() -> Iterator[bool]:
    free = PLACES.acquire(blocking=False)
    try:
        yield free
    finally:
        if free:
            PLACES.release()
