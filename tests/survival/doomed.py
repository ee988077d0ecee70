"""``sendonce`` in a process that is killed, or frozen, at one step of its work: ``python doomed.py worker``. For tests.

SENDONCE_DIES_AT names the step; SENDONCE_FREEZES_AT one at which it stops as under SIGSTOP, once, and goes on when it
is woken. It is the real command: the functions of the product that take the steps are wrapped
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


def freeze() -> None:
    """All threads stop here until somebody wakes the process. Only once; whoever comes meanwhile waits as well."""
    with gate:
        if not frozen.is_set():
            frozen.set()
            # To this thread: the stop has begun before the call returns, and before anybody else passes the gate.
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


gate = threading.Lock()
frozen = threading.Event()


def doom(moment: str, step: str, end: Callable[[], object]) -> None:
    """Arrange the end."""
    if step == "submit":
        _doom_the_call(moment, end)
    elif moment == "before":
        _wrap(step, end)
    else:
        _doom_the_commit(step, end)


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


def _doom_the_commit(step: str, end: Callable[[], object]) -> None:
    here = threading.local()
    _wrap(step, lambda: setattr(here, "doomed", True))
    transaction = Database.transaction

    @contextmanager
    def watched(database: Database, *, durable: bool = True) -> Iterator[Connection]:
        with transaction(database, durable=durable) as connection:
            yield connection
        if getattr(here, "doomed", False):
            here.doomed = False
            end()

    Database.transaction = watched  # type: ignore[method-assign]


def _doom_the_call(moment: str, end: Callable[[], object]) -> None:
    submit = Submitter.submit

    def submitted(*arguments: Any) -> Any:
        if moment == "after":
            outcome = submit(*arguments)
            end()
            return outcome
        end()
        return submit(*arguments)

    Submitter.submit = submitted  # type: ignore[method-assign]


if __name__ == "__main__":
    for variable, end in (("SENDONCE_DIES_AT", die), ("SENDONCE_FREEZES_AT", freeze)):
        if variable in os.environ:
            doom(*os.environ[variable].split(), end)
    main()
