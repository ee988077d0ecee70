"""A loop: the same verb again and again, in a thread of its own, until the worker stops."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dashboard.log import Action, log
from dashboard.worker.dispatch import DATABASE_TROUBLE, named, pause_after


class Loop(threading.Thread):
    """Calls ``step`` until told to stop. A step that did something is repeated at once, an idle one after a wait.

    A database that is away is waited for, longer each time, with jitter; the loop says so once each time.
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

    def run(self) -> None:
        """Go on until told to stop."""
        trouble = 0
        while not self._stopping.is_set():
            try:
                busy = self._step()
                trouble = 0
            except DATABASE_TROUBLE as error:
                trouble += 1
                log.warning(Action.LOOP_FAILED, loop=self.name, error=named(error), in_a_row=trouble)
                self._stopping.wait(pause_after(trouble))
                continue
            if not busy:
                self._wake.wait(self._wait)
                if self._wake is not self._stopping:
                    self._wake.clear()
