"""Causes of a send that a provider took: once or more often, and what became of it then."""

from __future__ import annotations

from datetime import datetime

from dashboard.insight.judging import (
    Cause,
    Sureness,
    Verdict,
    acceptance_proof,
    account_name,
    by_event,
    events_of,
    last_move,
    move_proof,
    one_of_several,
    proving_events,
)
from dashboard.insight.wording import at, because, listed, provider, quoted, reference, span, upper_first
from dashboard.ledger.trace import Trace
from dashboard.lifecycle import By, Delivery, EventType, Reason, State


def accepted_more_than_once(trace: Trace, now: datetime) -> Verdict | None:
    """The provider took it twice: which attempts, and who allowed the further one."""
    if trace.acceptances < 2:
        return None
    attempts = trace.accepted_attempts
    told = [f"attempt {a.n} {at(a.started_at, now)}" for a in attempts]
    which = f" ({listed(told)})" if len(attempts) > 1 else f" (message ids {listed(trace.provider_message_ids)})"
    release = last_move(trace, "release")
    allowed = ""
    if release is not None:
        who = release.person or "the policy of its mailstream"
        allowed = f"; {who} allowed the further attempt {at(release.at, now)}, because {because(release.reason)}"
    return Verdict(
        sentence=f"Accepted by {account_name(trace)} {trace.acceptances} times{which}, "
        f"so the recipient may have got it more than once{allowed}",
        cause=Cause.ACCEPTED_MORE_THAN_ONCE,
        sureness=Sureness.PROVED,
        next="Nothing further is submitted.",
        proof=[*acceptance_proof(trace), *(f"message id {n.provider_message_id}" for n in trace.second_ids)],
    )


def marked_accepted(trace: Trace, now: datetime) -> Verdict | None:
    """A person counted it as accepted, and nothing that the provider said proves it."""
    move = last_move(trace, "accept")
    if trace.state != State.ACCEPTED or move is None or move.made_by != By.PERSON or proving_events(trace):
        return None
    decision = trace.decisions[-1] if trace.decisions else None
    return Verdict(
        sentence=f"{move.person or 'A person'} counted it as accepted {at(move.at, now)}"
        f"{quoted(decision.reason if decision else None)}; no answer or event of {account_name(trace)} proves it",
        cause=Cause.MARKED_ACCEPTED,
        sureness=Sureness.LIKELY,
        next=f"Nothing further is submitted.{by_event(trace, 'prove it')}",
        proof=move_proof(trace, "accept"),
    )


def complained(trace: Trace, now: datetime) -> Verdict | None:
    """Delivered, and then reported as spam."""
    return _told(trace, now, Delivery.COMPLAINED, Cause.COMPLAINED, "the recipient reported it as spam")


def bounced(trace: Trace, now: datetime) -> Verdict | None:
    """The receiving side refused it, at once or after it had taken it."""
    return _told(trace, now, Delivery.BOUNCED, Cause.BOUNCED, "the recipient's mail server refused it")


def refused_after_taking(trace: Trace, now: datetime) -> Verdict | None:
    """The provider took it and then would or could not send it on."""
    return _told(
        trace, now, Delivery.REJECTED, Cause.REFUSED_AFTER_TAKING, "the provider then refused to pass it on"
    ) or _told(trace, now, Delivery.FAILED, Cause.REFUSED_AFTER_TAKING, "the provider then failed to pass it on")


def _told(trace: Trace, now: datetime, word: Delivery, cause: Cause, what: str) -> Verdict | None:
    if trace.state != State.ACCEPTED or trace.send.delivery != word:
        return None
    events = events_of(trace, EventType(word))
    event = events[-1] if events else None
    time = event.occurred_at if event else trace.send.delivery_at
    when = f" {_later(time, trace, now)}" if time else ""
    delivered = events_of(trace, EventType.DELIVERED)
    first = f", and delivered to the mail server {_later(delivered[0].occurred_at, trace, now)}" if delivered else ""
    kind = f" ({event.bounce_class})" if event and event.bounce_class else ""
    return Verdict(
        sentence=f"{_accepted(trace, now)}{first}, but {what}{when}{kind}{quoted(event.reason if event else None)}",
        cause=cause,
        sureness=Sureness.PROVED if event else Sureness.LIKELY,
        next="Nothing further is submitted.",
        proof=[*acceptance_proof(trace), *map(reference, events)],
    )


def replied_to(trace: Trace, now: datetime) -> Verdict | None:
    """A person answered it from the address that it went to: it arrived.

    That is proved where the answer came to the address that only this message held, or where the provider told that it
    was delivered as well. A Message-ID alone can be copied, as any From can be written.
    """
    reply = trace.first_reply
    if trace.state != State.ACCEPTED or reply is None:
        return None
    events = events_of(trace, EventType.DELIVERED)
    first = f", delivered to the mail server {_later(events[0].occurred_at, trace, now)}" if events else ""
    proved = bool(events) or reply.matched_by == "address"
    return Verdict(
        sentence=f"{_accepted(trace, now)}{first}, and answered from the recipient's address "
        f"{_later(reply.at, trace, now)}",
        cause=Cause.REPLIED_TO,
        sureness=Sureness.PROVED if proved else Sureness.LIKELY,
        next="It arrived: whoever answered had it before them.",
        proof=[*acceptance_proof(trace), *map(reference, events[:1]), reference(reply)],
    )


def delivered(trace: Trace, now: datetime) -> Verdict | None:
    """The receiving mail server has it. Where only an open or a click says so, that is inferred."""
    if trace.state != State.ACCEPTED or trace.send.delivery != Delivery.DELIVERED:
        return None
    events = events_of(trace, EventType.DELIVERED)
    if events:
        told, sureness = (
            f"and delivered to the mail server {_later(events[0].occurred_at, trace, now)}",
            Sureness.PROVED,
        )
    else:
        events = [e for e in proving_events(trace) if e.event_type not in (EventType.ACCEPTED, EventType.DEFERRED)]
        word = (
            f"it was {events[0].event_type} {_later(events[0].occurred_at, trace, now)}" if events else "later events"
        )
        told, sureness = f"and probably delivered, to judge by this: {word}", Sureness.LIKELY
    return Verdict(
        sentence=f"{_accepted(trace, now)}, {told}",
        cause=Cause.DELIVERED,
        sureness=sureness,
        next="Nothing more is to come from here; whether it is in the inbox or in spam, only the mailbox can tell.",
        proof=[*acceptance_proof(trace), *map(reference, events[:1])],
    )


def deferred(trace: Trace, now: datetime) -> Verdict | None:
    """The receiving mail server has put it off, and nothing since says more."""
    if trace.state != State.ACCEPTED or trace.send.delivery != Delivery.DEFERRED:
        return None
    events = events_of(trace, EventType.DEFERRED)
    time = events[-1].occurred_at if events else trace.send.delivery_at
    when = f" {at(time, now)}" if time else ""
    return Verdict(
        sentence=f"{_accepted(trace, now)}; the recipient's mail server put it off{when}"
        f"{quoted(events[-1].reason if events else None)}, and nothing was heard since",
        cause=Cause.DEFERRED,
        sureness=Sureness.PROVED if events else Sureness.LIKELY,
        next=f"{upper_first(account_name(trace))} goes on trying and tells when it is through.",
        proof=[*acceptance_proof(trace), *map(reference, events)],
    )


def silent(trace: Trace, now: datetime) -> Verdict | None:
    """Accepted, and nothing was told about its delivery."""
    if trace.state != State.ACCEPTED:
        return None
    accepted = _accepted_at(trace)
    since_then = f" in the {span(now - accepted)} since" if accepted and now > accepted else ""
    proved = bool(trace.accepted_attempts or proving_events(trace))
    return Verdict(
        sentence=f"{_accepted(trace, now)}; nothing was told about its delivery{since_then}",
        cause=Cause.SILENT,
        sureness=Sureness.PROVED if proved else Sureness.CANNOT_TELL,
        next=by_event(trace, "tell whether it was delivered").lstrip()
        or f"{upper_first(account_name(trace))} tells nothing further: whether it was delivered, only a bounce to its "
        "sender or the recipient can tell.",
        proof=acceptance_proof(trace) or list(map(reference, proving_events(trace)[:1])),
    )


def _accepted_at(trace: Trace) -> datetime | None:
    """When the provider answered yes; for a call without an answer, when it was made."""
    for attempt in trace.accepted_attempts:
        return attempt.started_at if attempt.doubted_at else attempt.finished_at
    return trace.send.settled_at


def _accepted(trace: Trace, now: datetime) -> str:
    """The beginning of a sentence about an accepted send."""
    for attempt in trace.accepted_attempts:
        name = provider(attempt.provider)
        if attempt.doubted_at is None and attempt.finished_at is not None:
            return f"Accepted by {name} once, {at(attempt.finished_at, now)}"
        if one_of_several(trace):
            return f"Accepted by {name} once, by one of several calls under one key: {_how_proved(trace, now)}"
        call = f"the call {at(attempt.started_at, now)} got no answer"
        return f"Accepted by {name} once: {call}, but {_how_proved(trace, now)}"
    return f"Accepted by {account_name(trace)} once, as {_how_proved(trace, now)}"


def _how_proved(trace: Trace, now: datetime) -> str:
    move = last_move(trace, "accept")
    if move is not None and move.reason == Reason.LATE_ANSWER:
        return f"its late answer {at(move.at, now)} proves that it was taken"
    events = proving_events(trace)
    if events:
        first = min(events, key=lambda event: event.received_at)
        return f'the event "{first.event_type}" received {at(first.received_at, now)} proves that it was taken'
    if move is not None:
        return f"{because(move.reason)} ({at(move.at, now)})"
    return "the ledger says that it was taken"


def _later(time: datetime, trace: Trace, now: datetime) -> str:
    """How long after the acceptance; the time itself where the clocks do not allow a difference."""
    accepted = _accepted_at(trace)
    if accepted is None or time < accepted:
        return at(time, now)
    return f"{span(time - accepted)} later"
