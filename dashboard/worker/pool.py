"""A pool of threads that grows only as calls block.

Provider calls block for tens of milliseconds or return at once, and a set has hundreds of them. A thread that takes a
call wakes, or starts, one other if more are waiting, and no further one before that one has come to run. So calls that
block spread over all threads within a moment, while calls that do not are worked off by the few threads that run:
waking a thread for each would cost more than the calls themselves.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable

Call = Callable[[], None]
"""What is run. It must not raise."""


class Pool:
    """At most ``size`` calls at once, in the order in which they came."""

    def __init__(self, size: int, *, name: str) -> None:
        self._size = size
        self._name = name
        self._calls: deque[Call] = deque()
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._waking = False
        self._closed = False

    def submit(self, calls: Iterable[Call]) -> None:
        """Have these run. Returns at once."""
        with self._changed:
            self._calls.extend(calls)
            self._wake_one()

    def close(self) -> None:
        """Run what was submitted, then end all threads."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _wake_one(self) -> None:
        """With the lock held: see to it that one more thread comes, if calls wait and none is on its way."""
        if self._waking or not self._calls:
            return
        if self._idle:
            self._waking = True
            self._changed.notify()
        elif len(self._threads) < self._size:
            self._waking = True
            thread = threading.Thread(target=self._work, name=f"{self._name}-{len(self._threads)}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _work(self) -> None:
        with self._changed:
            self._waking = False
        while True:
            with self._changed:
                while not self._calls:
                    if self._closed:
                        return
                    self._idle += 1
                    self._changed.wait()
                    self._idle -= 1
                    self._waking = False
                call = self._calls.popleft()
                self._wake_one()
            call()
