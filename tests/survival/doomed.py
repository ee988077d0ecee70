"""``sendonce`` in a process that is killed at one step of its work, for tests only: ``python doomed.py worker``.

SENDONCE_DIES_AT names the step. It is the real command: the functions of the product that take the steps are wrapped
here before it begins, so that the product itself knows nothing of its death. ``before NAME`` kills the process inside
the transaction of that step, all its statements done; ``after NAME`` directly after its COMMIT was answered. ``before
submit`` is the moment before a call, ``after submit`` the moment when its answer is there and stored nowhere.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from dashboard.cli import main
from dashboard.ledger import attempts, outbox, work
from dashboard.ledger.database import Connection, Database
from dashboard.worker import process
from dashboard.worker.submit import Submitter

STEPS: dict[str, tuple[Any, str]] = {
    "relay": (outbox, "relay"),
    "claim": (work, "claim"),
    "start": (attempts, "start"),
    "finish": (attempts, "finish"),
    "sweep": (process, "sweep"),
    "reconcile": (process, "reconcile"),
}
"""Each step, and the function that does it in an open transaction."""


def die() -> NoReturn:
    """As the kernel does when memory runs out: nothing is cleaned up, no handler runs."""
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives this")


def doom(moment: str, step: str) -> None:
    """Arrange the end."""
    if step == "submit":
        _doom_the_call(moment)
    elif moment == "before":
        _wrap(step, die)
    else:
        _doom_the_commit(step)


def _wrap(step: str, done: Callable[[], object]) -> None:
    """Call ``done`` when the step has done something; one that met nothing to do is none."""
    owner, name = STEPS[step]
    act = getattr(owner, name)

    def acted(*arguments: Any, **named: Any) -> Any:
        result = act(*arguments, **named)
        if result and result != type(result)():
            done()
        return result

    setattr(owner, name, acted)


def _doom_the_commit(step: str) -> None:
    here = threading.local()
    _wrap(step, lambda: setattr(here, "doomed", True))
    transaction = Database.transaction

    @contextmanager
    def watched(database: Database, *, durable: bool = True) -> Iterator[Connection]:
        with transaction(database, durable=durable) as connection:
            yield connection
        if getattr(here, "doomed", False):
            die()

    Database.transaction = watched  # type: ignore[method-assign]


def _doom_the_call(moment: str) -> None:
    submit = Submitter.submit

    def submitted(*arguments: Any) -> Any:
        if moment == "after":
            submit(*arguments)
        die()

    Submitter.submit = submitted  # type: ignore[method-assign]


if __name__ == "__main__":
    doom(*os.environ["SENDONCE_DIES_AT"].split())
    main()
