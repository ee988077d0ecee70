"""``sendonce`` in a process that stops itself at one step, for tests only.

FREEZE_AT names the step: ``start`` or ``submit``.

It is the real command. The function of the product that takes the step is wrapped here before it begins, so that the
product knows nothing of it. SIGSTOP stops all threads; whoever sends SIGCONT has it carry on where it stopped.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from dashboard.cli import main
from dashboard.ledger import attempts
from dashboard.worker.submit import Submitter

STEPS: dict[str, Any] = {"start": attempts, "submit": Submitter}


def freeze_at(step: str) -> None:
    """Stand still before the step, the first time."""
    owner = STEPS[step]
    act = getattr(owner, step)

    def frozen_first(*arguments: Any, **named: Any) -> Any:
        setattr(owner, step, act)
        os.kill(os.getpid(), signal.SIGSTOP)
        return act(*arguments, **named)

    setattr(owner, step, frozen_first)


if __name__ == "__main__":
    freeze_at(os.environ["FREEZE_AT"])
    main()
