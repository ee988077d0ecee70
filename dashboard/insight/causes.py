"""What may have become of a send: a closed set of causes, each a small pure function over its trace.

A cause looks at the trace and either judges it or passes. ``CAUSES`` lists them in the order in which they are asked;
between them they cover every state, so that exactly one answers. None of them says *sent*: a provider *accepts* a
message, a mail server has it *delivered* to it. *Proved* is said only where rows prove it (DESIGN §4.11).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from dashboard.insight import causes_accepted as accepted
from dashboard.insight import causes_open as waiting
from dashboard.insight import causes_stopped as stopped
from dashboard.insight.judging import Cause, Sureness, Verdict
from dashboard.ledger.trace import Trace


def contradiction(trace: Trace, now: datetime) -> Verdict:
    """The ledger contradicts itself. Nothing is guessed from that."""
    return Verdict(
        sentence="The ledger contradicts itself about this send, so nothing can be said about it",
        cause=Cause.CONTRADICTION,
        sureness=Sureness.CANNOT_TELL,
        next="An administrator runs `sendonce verify`, which names the rows.",
        proof=["send"],
    )


CAUSES: tuple[Callable[[Trace, datetime], Verdict | None], ...] = (
    accepted.accepted_more_than_once,
    accepted.marked_accepted,
    accepted.complained,
    accepted.bounced,
    accepted.refused_after_taking,
    accepted.replied_to,
    accepted.delivered,
    accepted.deferred,
    accepted.silent,
    stopped.taken,
    stopped.may_have_left,
    stopped.suppressed,
    stopped.cancelled,
    stopped.failed,
    waiting.held_in_doubt,
    waiting.held,
    waiting.unknown,
    waiting.worker_stopped,
    waiting.stale_claim,
    waiting.submitting,
    waiting.claimed,
    waiting.waits_for_caller,
    waiting.scheduled,
    waiting.paused,
    waiting.waits_to_retry,
    waiting.backlog,
)
"""In the order in which they are asked; :func:`contradiction` answers where none of them does."""
