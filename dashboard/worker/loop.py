"""A loop: the same verb again and again, in a thread of its own, until the worker stops."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from dashboard.worker.meters import ERRORS, ROUNDS
from dashboard.worker.trouble import wait_out


class Loop(threading.Thread):
    """Calls ``step`` until told to stop. A step that did something is repeated at once, an idle one after a wait.

    An error is said and waited out: a database that is away, or a bug, must not end the loop.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], bool],
        *,
        wait: float,
        stopping: threading.Event,
        wake: threading.Event | None = None,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._step = step
        self._wait = wait
        self._stopping = stopping
        self._wake = wake or stopping
        self.went_round_at = time.monotonic()

    def run(self) -> None:
        """Go on until told to stop."""
        trouble = 0
        while not self._stopping.is_set():
            try:
                busy = self._step()
                trouble = 0
                self.went_round_at = time.monotonic()
                ROUNDS.labels(self.name).inc()
            except Exception as error:
                trouble += 1
                ERRORS.labels(self.name).inc()
                wait_out(self.name, error, trouble)
                continue
            if not busy:
                self._wake.wait(self._wait)
                if self._wake is not self._stopping:
                    self._wake.clear()
