"""What a verdict is, and the facts of a trace that several causes look at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from dashboard.insight.wording import (
    at,
    because,
    how_it_failed,
    in_a_batch,
    listed,
    number,
    provider,
    reference,
    span,
)
from dashboard.ledger.trace import Attempt, Event, HistoricMove, Trace
from dashboard.lifecycle import PROVES_ACCEPTANCE, AttemptStatus, EventType, Reason
from dashboard.providers import PROVIDERS


class Sureness(StrEnum):
    """How sure a verdict is."""

    PROVED = "proved"
    LIKELY = "likely"
    CANNOT_TELL = "cannot_tell"


class Cause(StrEnum):
    """The closed set."""

    ACCEPTED_MORE_THAN_ONCE = "accepted_more_than_once"
    MARKED_ACCEPTED = "marked_accepted"
    COMPLAINED = "complained"
    BOUNCED = "bounced"
    REFUSED_AFTER_TAKING = "refused_after_taking"
    DELIVERED = "delivered"
    REPLIED_TO = "replied_to"
    DEFERRED = "deferred"
    SILENT = "silent"
    TAKEN = "taken"
    MAY_HAVE_LEFT = "may_have_left"
    SUPPRESSED = "suppressed"
    CANCELLED = "cancelled"
    FAILED = "failed"
    HELD_IN_DOUBT = "held_in_doubt"
    HELD = "held"
    UNKNOWN = "unknown"
    SUBMITTING = "submitting"
    CLAIMED = "claimed"
    WORKER_STOPPED = "worker_stopped"
    STALE_CLAIM = "stale_claim"
    WAITS_FOR_CALLER = "waits_for_caller"
    SCHEDULED = "scheduled"
    PAUSED = "paused"
    WAITS_TO_RETRY = "waits_to_retry"
    BACKLOG = "backlog"
    CONTRADICTION = "contradiction"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """``next``: what happens next and when, or empty where nothing does. ``proof``: rows, as ``Entry.evidence``."""

    sentence: str
    cause: Cause
    sureness: Sureness
    next: str
    proof: list[str]


def unanswered(trace: Trace) -> list[Attempt]:
    """The attempts that the provider may have taken, as far as is known now."""
    return [a for a in trace.attempts if a.status in (AttemptStatus.AMBIGUOUS, AttemptStatus.SUBMITTING)]


def proving_events(trace: Trace) -> list[Event]:
    """The events that prove that the provider took the message."""
    return [event for event in trace.events if event.event_type in PROVES_ACCEPTANCE]


def recognised(trace: Trace) -> bool:
    """Whether all attempts went under one key while the provider remembered it."""
    window = trace.account.key_window if trace.account else None
    keys = {attempt.idempotency_key for attempt in trace.attempts}
    if window is None or len(keys) != 1 or None in keys:
        return False
    return trace.attempts[-1].submit_deadline - trace.attempts[0].started_at <= window


def one_of_several(trace: Trace) -> bool:
    """Whether events prove that one of several calls under one key was taken, and nobody here knows which."""
    calls = len(trace.accepted_attempts) + len(unanswered(trace))
    return calls > 1 and recognised(trace) and bool(proving_events(trace))


def account_name(trace: Trace) -> str:
    """The provider of the send as a sentence names it."""
    names = [a.provider for a in trace.accepted_attempts or trace.attempts[-1:]]
    return provider(names[0] if names else trace.account.provider if trace.account else "")


def tells_events(trace: Trace) -> bool:
    """False where the provider never tells anything after its answer, as an SMTP server does not."""
    name = trace.account.provider if trace.account else None
    return all(one.capabilities({}).webhooks for one in PROVIDERS if one.name == name)


def by_event(trace: Trace, what: str) -> str:
    """What an event of the provider would do, as a last sentence; none where no event ever comes."""
    return f" An event of the provider would {what}." if tells_events(trace) else ""


def last_move(trace: Trace, *names: str) -> HistoricMove | None:
    """The last move of these names."""
    return next((move for move in reversed(trace.moves) if move.move in names), None)


def events_of(trace: Trace, *types: EventType) -> list[Event]:
    """The events of these types, in the order of the provider's times."""
    return [event for event in trace.events if event.event_type in types]


def acceptance_proof(trace: Trace) -> list[str]:
    """The rows that prove that the provider took it."""
    return [*map(reference, trace.accepted_attempts), *move_proof(trace, "accept")]


def move_proof(trace: Trace, *names: str) -> list[str]:
    """The row of the last move of these names: the decision where a person made it, for that says more."""
    move = last_move(trace, *names)
    decision = trace.decision_of(move) if move else None
    return [f"decision {decision.id}"] if decision else [reference(move)] if move else []


def what_was_tried(trace: Trace) -> str:
    """What was tried, for a send that no provider took."""
    refused = [a for a in trace.attempts if a.status == AttemptStatus.REJECTED]
    abandoned = [a for a in trace.attempts if a.status == AttemptStatus.ABANDONED]
    if not trace.attempts:
        return "no provider was asked to take it"
    told = [f"{number(len(refused), 'attempt was', 'attempts were')} refused"] if refused else []
    told += [f"{number(len(abandoned), 'attempt')} never left"] if abandoned else []
    return listed(told) or "no attempt was taken"


def why_stopped(trace: Trace, reason: str | None, looked: datetime | None, now: datetime) -> str:
    """The reason of a send that was held or ended, and for one that was late how much, when it was ``looked`` at."""
    due = trace.send.due_at
    if reason != Reason.LATE or looked is None or looked <= due:
        return because(reason)
    return f"{because(reason)} (due {at(due, now)}, {span(looked - due)} late by then)"


def doubted(attempt: Attempt, now: datetime) -> str:
    """The words for an attempt without an answer."""
    name, shared = provider(attempt.provider), in_a_batch(attempt)
    which = f"attempt {attempt.n} {at(attempt.started_at, now)}{f', {shared},' if shared else ''}"
    return f"{which} got no answer from {name} ({how_it_failed(attempt)})"


def sure_unless_doubted(trace: Trace) -> Sureness:
    """It is proved that no provider took it, unless an attempt has no answer."""
    return Sureness.CANNOT_TELL if unanswered(trace) else Sureness.PROVED
