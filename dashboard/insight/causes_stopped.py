"""Causes of a send that is not submitted any more: suppressed, cancelled or failed."""

from __future__ import annotations

from datetime import datetime

from dashboard.insight.judging import (
    Cause,
    Sureness,
    Verdict,
    acceptance_proof,
    account_name,
    by_event,
    doubted,
    events_of,
    last_move,
    move_proof,
    proving_events,
    unanswered,
    what_was_tried,
    why_stopped,
)
from dashboard.insight.wording import at, because, how_it_failed, provider, quoted, reference
from dashboard.ledger.trace import SuppressionRule, Trace
from dashboard.lifecycle import AttemptStatus, EventType, Reason, State


def taken(trace: Trace, now: datetime) -> Verdict | None:
    """Suppressed or cancelled, but an attempt that had no answer turned out taken."""
    if trace.send.taken_at is None:
        return None
    proof = [*map(reference, proving_events(trace)[:1]), *acceptance_proof(trace)]
    return Verdict(
        sentence=f"{_stopped(trace, now)}, but {account_name(trace)} had taken an earlier attempt all the same, "
        f"as was proved {at(trace.send.taken_at, now)}{_delivered_too(trace, now)}",
        cause=Cause.TAKEN,
        sureness=Sureness.PROVED if proof else Sureness.LIKELY,
        next="Nothing further is submitted.",
        proof=proof,
    )


def may_have_left(trace: Trace, now: datetime) -> Verdict | None:
    """Suppressed or cancelled while an attempt has no answer."""
    doubts = unanswered(trace)
    if trace.state not in (State.SUPPRESSED, State.CANCELLED) or not doubts:
        return None
    return Verdict(
        sentence=f"{_stopped(trace, now)}, but it may have left: {doubted(doubts[0], now)}",
        cause=Cause.MAY_HAVE_LEFT,
        sureness=Sureness.CANNOT_TELL,
        next=f"Nothing further is submitted.{by_event(trace, 'tell whether it was taken')}",
        proof=[*_stop_proof(trace), *map(reference, doubts)],
    )


def suppressed(trace: Trace, now: datetime) -> Verdict | None:
    """Not submitted because the recipient must not get it: by what, since when."""
    if trace.state != State.SUPPRESSED:
        return None
    return Verdict(
        sentence=f"{_stopped(trace, now)}; {what_was_tried(trace)}",
        cause=Cause.SUPPRESSED,
        sureness=Sureness.PROVED,
        next="Nothing further is submitted."
        if any(rule.suppressed for rule in trace.suppressions)
        else "This send stays as it is; the suppression has been lifted since, so that later ones may go.",
        proof=[*_stop_proof(trace), *map(reference, trace.attempts)],
    )


def cancelled(trace: Trace, now: datetime) -> Verdict | None:
    """Cancelled by a person, a policy or lateness before any provider took it."""
    if trace.state != State.CANCELLED:
        return None
    return Verdict(
        sentence=f"{_stopped(trace, now)}; {what_was_tried(trace)}",
        cause=Cause.CANCELLED,
        sureness=Sureness.PROVED,
        next="Nothing further is submitted.",
        proof=[*_stop_proof(trace), *map(reference, trace.attempts)],
    )


def _stopped(trace: Trace, now: datetime) -> str:
    send, move = trace.send, last_move(trace, "suppress", "cancel")
    when = at(move.at if move else send.settled_at or now, now)
    if trace.state == State.SUPPRESSED:
        return f"Suppressed {when}, because {_suppression(trace, now)}"
    if move is not None and move.person:
        decision = trace.decisions[-1] if trace.decisions else None
        return f"Cancelled by {move.person} {when}{quoted(decision.reason if decision else None)}"
    return f"Cancelled {when}, because {why_stopped(trace, send.reason, move.at if move else None, now)}"


_SOURCE_OF_REASON = {
    Reason.BOUNCED_BEFORE: "bounced",
    Reason.COMPLAINED_BEFORE: "complained",
    Reason.UNSUBSCRIBED: "unsubscribed",
    Reason.SUPPRESSED_BY_PERSON: "person",
}


def _suppression(trace: Trace, now: datetime) -> str:
    """Why it is suppressed and since when, from the rule that was in force."""
    why = because(trace.send.reason)
    rules = _rules_in_force(trace)
    if not rules:
        return why
    rule = rules[-1]
    who = f" by {rule.person}" if rule.person else ""
    return f"{why} ({at(rule.said_at, now).removeprefix('at ').removeprefix('on ')}{who}{quoted(rule.reason)})"


def _rules_in_force(trace: Trace) -> list[SuppressionRule]:
    """What suppressed it, as far as that has not been lifted or restated since."""
    source = next((s for reason, s in _SOURCE_OF_REASON.items() if reason == trace.send.reason), None)
    return [rule for rule in trace.suppressions if rule.source == source and rule.suppressed]


def _stop_proof(trace: Trace) -> list[str]:
    rules = [f"suppression {rule.scope}" for rule in _rules_in_force(trace)] if trace.state == State.SUPPRESSED else []
    return [*move_proof(trace, "suppress", "cancel", "fail", "record"), *rules]


def _delivered_too(trace: Trace, now: datetime) -> str:
    events = events_of(trace, EventType.DELIVERED)
    return f", and delivered to the mail server {at(events[0].occurred_at, now)}" if events else ""


def failed(trace: Trace, now: datetime) -> Verdict | None:
    """Every attempt was refused or never written, and no further one is planned."""
    if trace.state != State.FAILED:
        return None
    refused = [a for a in trace.attempts if a.status == AttemptStatus.REJECTED]
    last = refused[-1] if refused else None
    said = (
        f"; the last answer of {provider(last.provider)} was {how_it_failed(last) or 'no'}{quoted(last.reason)}"
        if last
        else ""
    )
    when = at(trace.send.settled_at or now, now)
    move = last_move(trace, "record")
    detail = f" ({move.detail})" if move and move.detail else ""
    return Verdict(
        sentence=f"Failed {when}, because {because(trace.send.reason)}{detail}: {what_was_tried(trace)}{said}",
        cause=Cause.FAILED,
        sureness=Sureness.PROVED,
        next="Nothing further is submitted, unless a person asks for it again.",
        proof=[*_stop_proof(trace), *map(reference, trace.attempts)],
    )
