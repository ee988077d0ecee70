"""What a cancel would do to a send as it stands, told before somebody does it."""

from __future__ import annotations

from datetime import datetime

from dashboard.insight.judging import account_name, doubted, unanswered
from dashboard.insight.wording import upper_first
from dashboard.ledger.trace import Trace


def what_a_cancel_does(trace: Trace, now: datetime) -> str:
    """For an open send that is not held: a held one is decided on its own page."""
    doubts = unanswered(trace)
    if trace.work is not None and trace.work.open_attempt is not None:
        return (
            f"{upper_first(account_name(trace))} is being asked to take it right now, and that call cannot be called "
            "back. If it is taken, the cancel comes too late. If not, the send is cancelled instead of tried again."
        )
    if doubts:
        return (
            f"It is never submitted again. But {doubted(doubts[0], now)}: if that one was taken, the customer has it "
            "all the same, and the trace will say so."
        )
    return "Nothing has left: it is never submitted, and the customer does not get it."
