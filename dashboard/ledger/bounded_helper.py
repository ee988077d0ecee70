"""The helper process of ``bounded.py``: renders what it is asked to, with little time and memory."""

from __future__ import annotations

import marshal
import resource
import signal
import sys
from contextlib import suppress

from dashboard.ledger.bounded import Answer, read, write
from dashboard.ledger.rendering import CannotRender, run_whole

CPU_SECONDS = 1.0
"""Of one text. Time on a processor: that others keep the machine busy is not its fault."""
MEMORY = 1 << 30
"""Bytes of address space, Python and Jinja included."""


def serve() -> None:
    """Answer until nobody asks any more. A timer of the kernel ends this process in mid-text."""
    with suppress(ValueError, OSError):  # some systems do not know this limit
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    while True:
        try:
            question = read(sys.stdin.buffer)
        except EOFError:
            return
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        answer = _answer(question)
        signal.setitimer(signal.ITIMER_PROF, 0)
        write(sys.stdout.buffer, marshal.dumps(answer))


def _answer(question: bytes) -> Answer:
    source, variables, html = marshal.loads(question)  # noqa: S302  # our own process wrote it
    try:
        return True, run_whole(source, variables, html=html)
    except CannotRender as error:
        return False, str(error)


if __name__ == "__main__":
    serve()
