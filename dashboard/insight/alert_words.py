"""An alert in words, for every channel alike. Only names of rules and mailstreams, and figures: nothing personal."""

from __future__ import annotations

from datetime import timedelta

from dashboard.insight.wording import span
from dashboard.ledger.measures import FACTS, Measure, Unit
from dashboard.ledger.tables import NoticeKind

NEXT_STEPS: dict[Measure, str] = {
    Measure.OUTBOX_AGE: "See whether a worker runs its relay, and what its log says.",
    Measure.DUE_AGE: "See whether a worker dispatches, and whether an account or mailstream is paused.",
    Measure.STALE_CLAIMS: "See which workers stopped, and whether one sweeps.",
    Measure.UNKNOWN: "Look at the provider's answers and at its webhooks: they settle unknown sends.",
    Measure.HELD: "Decide the held sends.",
    Measure.HELD_AGE: "Decide the held sends: somebody waits for them.",
    Measure.DUPLICATE_RATE: "Look for a webhook that is configured twice, or a job that is not acknowledged.",
    Measure.MISMATCHES: "A producer uses one key for two different emails: look at the mismatches.",
    Measure.GAP_RATE: "Mail that was due has not left: look at what holds it back.",
    Measure.AMBIGUOUS_RATE: "The provider takes too long or cuts off: look at its status page.",
    Measure.REJECTED_RATE: "Look at the reasons of the refusals.",
    Measure.BOUNCE_RATE: "Look at where the addresses come from before the provider pauses the account.",
    Measure.COMPLAINT_RATE: "Look at who gets this mail and why; mailbox providers act at 0.3 %.",
    Measure.DEAD_LETTERS: "Look at the dead letters: queue them again or discard them.",
    Measure.ACCOUNTS_PAUSED: "Look at the account's reason; its credentials or quota may be used up.",
    Measure.ACCOUNTS_BROKEN: "Look at the account's check: it says what is wrong, and what to publish.",
    Measure.WORKERS_LOST: "See why the process ended; what it had in flight is unknown until it is settled.",
    Measure.ACCEPTED_TWICE: "Look at the send's trace: it names the attempt that was repeated.",
    Measure.SENDING_OFF: "Look at the place of the ledger: sendonce place",
}
"""What to do first about each measure."""


def amount(value: float, unit: Unit) -> str:
    """A value of a measure in words: ``3 min``, ``12 %``, ``7``, ``yes``."""
    match unit:
        case Unit.SECONDS:
            return span(timedelta(seconds=value)) if value >= 1 else "0 s"
        case Unit.SHARE:
            return f"{value * 100:.3g} %"
        case Unit.YES:
            return "yes" if value else "no"
        case Unit.COUNT:
            return f"{value:,.10g}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def condition(measure: Measure, threshold: float, *, hold_for: timedelta, over: timedelta | None = None) -> str:
    """What a rule waits for: ``above 5 % over 10 min, for 5 min``."""
    fact = FACTS[measure]
    words = "as soon as it is so" if fact.unit is Unit.YES else f"above {amount(threshold, fact.unit)}"
    if fact.counted and over is not None:
        words += f" over {span(over)}"
    return f"{words}, for {span(hold_for)}" if hold_for else words


def headline(
    kind: NoticeKind, *, measure: Measure, value: float, threshold: float, mailstream: str, workspace: str
) -> str:
    """The alert in one line."""
    fact = FACTS[measure]
    where = f"{mailstream} in {workspace}" if mailstream else workspace
    if kind is NoticeKind.CLEARED:
        return f"{fact.title}: over again ({where})"
    if fact.unit is Unit.YES:
        return f"{fact.title} ({where})"
    return f"{fact.title}: {amount(value, fact.unit)}, above {amount(threshold, fact.unit)} ({where})"
