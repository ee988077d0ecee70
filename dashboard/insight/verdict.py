"""What became of a send, in one plain sentence, and how sure that is."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from dashboard.insight.causes import CAUSES, contradiction
from dashboard.insight.judging import Cause, Sureness, Verdict
from dashboard.insight.wording import reference
from dashboard.ledger.trace import Trace
from dashboard.lifecycle import Verdict as Met

__all__ = ["Cause", "Sureness", "Verdict", "judged", "verdict"]


def verdict(trace: Trace, now: datetime) -> Verdict:
    """Judge a send by all that the ledger knows of it. Times in the sentence are in the zone of ``now``."""
    found = judged(trace, now)
    later = [reference(duplicate) for duplicate in trace.duplicates[:3]]
    return replace(found, sentence=f"{found.sentence}{_asked_again(trace)}.", proof=found.proof + later)


def judged(trace: Trace, now: datetime) -> Verdict:
    """The same as a part of another sentence: without its full stop, and without how often it was asked for."""
    return next(filter(None, (cause(trace, now) for cause in CAUSES)), None) or contradiction(trace, now)


def _asked_again(trace: Trace) -> str:
    """How often it was asked for, and what became of the later requests."""
    later = trace.deliveries - 1
    if not later:
        return ""
    other = sum(duplicate.verdict == Met.MISMATCH for duplicate in trace.duplicates)
    same = later - other
    repeats, others = "a duplicate" if same == 1 else "duplicates", "having other content under the same key"
    if not other:
        told = f"{_requests(same)} refused as {repeats}"
    elif not same:
        told = f"{_requests(other)} refused for {others}"
    else:
        told = f"the {later} later requests were refused: {same} as {repeats}, {other} for {others}"
    return f"; it was asked for {later + 1} times, and {told}"


def _requests(count: int) -> str:
    return "the later request was" if count == 1 else f"the {count} later requests were"
