"""Templates that may run for ever or fill the memory, in a process of their own that ends before they do.

A loop in a loop, a string a billion long: Jinja's sandbox keeps a template from reaching out, not from eating up. In
the relay, one such request would hold up everybody's mail. So what is not plainly short runs in a helper process with
little time and memory; where it is used up, the text cannot be rendered.
"""

from __future__ import annotations

import atexit
import marshal
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any

TOO_MUCH = "the text takes more time or memory than a text may"
_TRIES = 2
"""A helper that was ended by somebody else is replaced once."""

Answer = tuple[bool, str]
"""Whether it could be rendered, and the text, or why not."""


class Helper:
    """The helper process of this one, started when it is first needed. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def ask(self, source: str, variables: Mapping[str, Any], html: bool) -> Answer:
        """Have a text rendered. Raises OSError where no helper can be started."""
        try:
            question = marshal.dumps((source, dict(variables), html))
        except ValueError:  # nested too deeply
            return False, "ValueError while rendering"
        with self._lock:
            for _ in range(_TRIES):
                process = self._running()
                try:
                    write(process.stdin, question)
                    answer: Answer = marshal.loads(read(process.stdout))  # noqa: S302  # our own process wrote it
                except (BrokenPipeError, EOFError):
                    if self._ended() == -signal.SIGPROF:
                        break
                else:
                    return answer
            return False, TOO_MUCH

    def end(self) -> None:
        """End the helper, if there is one."""
        with self._lock:
            if self._process is not None and self._owner == os.getpid():
                self._ended()

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._owner != os.getpid():  # after a fork it is the parent's
            self._process = subprocess.Popen(
                [sys.executable, "-m", "dashboard.ledger.bounded_helper"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, env=_without_secrets(),
            )  # fmt: skip
            self._owner = os.getpid()
        return self._process

    def _ended(self) -> int:
        process, self._process = self._process, None
        assert process is not None
        with suppress(BrokenPipeError):
            process.communicate()  # closes its input, which ends it
        return process.wait()


def _without_secrets() -> dict[str, str]:
    """The environment, but for our own settings: a text has no use for them."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("SENDONCE_", "DATABASE_"))}


def write(pipe: IO[bytes] | None, content: bytes) -> None:
    """One message between the two processes."""
    assert pipe is not None
    pipe.write(len(content).to_bytes(8) + content)
    pipe.flush()


def read(pipe: IO[bytes] | None) -> bytes:
    """The next message. Raises EOFError where the other side is gone."""
    assert pipe is not None
    length = int.from_bytes(_exactly(pipe, 8))
    return _exactly(pipe, length)


def _exactly(pipe: IO[bytes], length: int) -> bytes:
    content = pipe.read(length)
    if len(content) < length:
        raise EOFError
    return content


HELPER = Helper()
atexit.register(HELPER.end)
