"""Causes of a send that is open: what it waits for, and what comes next."""

from __future__ import annotations

from datetime import datetime

from dashboard.insight.judging import (
    Cause,
    Sureness,
    Verdict,
    account_name,
    by_event,
    doubted,
    move_proof,
    sure_unless_doubted,
    tells_events,
    unanswered,
    what_was_tried,
    why_stopped,
)
from dashboard.insight.wording import (
    at,
    because,
    how_it_failed,
    in_a_batch,
    provider,
    quoted,
    reference,
    since,
    span,
    until,
    upper_first,
)
from dashboard.ledger.metrics import SILENCE
from dashboard.ledger.tables import Policy
from dashboard.ledger.trace import Trace, Work
from dashboard.lifecycle import Reason, RunBy, State

# ── waiting for somebody ─────────────────────────────────────────────────────────────────────────────────────────────


def held_in_doubt(trace: Trace, now: datetime) -> Verdict | None:
    """Held while an attempt has no answer: only a person may decide."""
    doubts = unanswered(trace)
    if trace.state != State.HELD or not doubts:
        return None
    return Verdict(
        sentence=f"Held for a person {_held_since(trace, now)}: {doubted(doubts[0], now)}, so it may have been taken",
        cause=Cause.HELD_IN_DOUBT,
        sureness=Sureness.CANNOT_TELL,
        next=f"A person decides: {_choices(trace, now)}{by_event(trace, 'settle it first')}{_expiry(trace, now)}",
        proof=[*move_proof(trace, "hold"), *map(reference, doubts)],
    )


def held(trace: Trace, now: datetime) -> Verdict | None:
    """Held without doubt about an attempt: late, or workers stop on it."""
    if trace.state != State.HELD:
        return None
    reason = trace.work.reason if trace.work else trace.send.reason
    why = why_stopped(trace, reason, trace.open_hold.opened_at if trace.open_hold else None, now)
    return Verdict(
        sentence=f"Held for a person {_held_since(trace, now)}, because {why}; {what_was_tried(trace)}",
        cause=Cause.HELD,
        sureness=Sureness.PROVED,
        next="A person confirms that it is cancelled: somebody cancelled it before."
        if _cancel_remembered(trace)
        else f"A person decides: release it or cancel it.{_expiry(trace, now)}",
        proof=[*move_proof(trace, "hold"), *map(reference, trace.attempts)],
    )


def _expiry(trace: Trace, now: datetime) -> str:
    """When its mailstream wants it no more, as a last sentence; none where it waits as long as it takes."""
    end = trace.work.check_at if trace.work else None
    return f" Undecided, it is cancelled {at(end, now)}: it is of no use any more." if end else ""


def _cancel_remembered(trace: Trace) -> bool:
    """Somebody cancelled it while its call was running, so that it is never submitted again."""
    return trace.work is not None and trace.work.cancel_reason is not None


def _choices(trace: Trace, now: datetime) -> str:
    if _cancel_remembered(trace):
        return "count it as accepted, or cancel it. It was cancelled before, so it is not submitted again."
    return f"submit it again, count it as accepted, or cancel it. {_key_protection(trace, now)}"


def _held_since(trace: Trace, now: datetime) -> str:
    hold = trace.open_hold
    return since(hold.opened_at, now) if hold else "now"


def _key_end(trace: Trace) -> datetime | None:
    """Until when the provider recognises a repeat of the unanswered attempt. None: it never does.

    The key of a batch is known for all of its members together, and none of them goes out in it again.
    """
    if any(attempt.batch for attempt in unanswered(trace)):
        return None
    window = trace.account.key_window if trace.account else None
    start = trace.work.ambiguous_since if trace.work else None
    return start + window if window is not None and start is not None else None


def _key_protection(trace: Trace, now: datetime) -> str:
    end = _key_end(trace)
    if any(attempt.batch for attempt in unanswered(trace)):
        return "Its call carried others too, and alone it would be another call, so submitting it again may make two."
    if end is None:
        return f"{upper_first(account_name(trace))} does not recognise a repeat, so submitting it again may make two."
    if end <= now:
        return f"The provider recognised a repeat {until(end, now)}; submitting it again may now make two."
    return f"The provider recognises a repeat {until(end, now)}."


def unknown(trace: Trace, now: datetime) -> Verdict | None:
    """An attempt has no answer yet: until when, then what."""
    if trace.state != State.UNKNOWN or trace.work is None:
        return None
    doubts = unanswered(trace)
    why = doubted(doubts[-1], now) if doubts else because(trace.work.reason)
    start = trace.work.unknown_since
    return Verdict(
        sentence=f"Unknown{' ' + since(start, now) if start else ''}: {why}, so it may have been taken",
        cause=Cause.UNKNOWN,
        sureness=Sureness.CANNOT_TELL,
        next=_after_unknown(trace, now),
        proof=list(map(reference, doubts)),
    )


def _after_unknown(trace: Trace, now: datetime) -> str:
    work, stream = trace.work, trace.stream
    if work is None or work.unknown_since is None or stream is None:
        return by_event(trace, "tell").lstrip()
    end = max(filter(None, (work.unknown_since + stream.grace, work.settled_after)))
    key_end = _key_end(trace)
    if _cancel_remembered(trace) or stream.unknown_policy == Policy.CANCEL:
        then = "cancelled"
    elif stream.unknown_policy == Policy.RELEASE and key_end is not None and key_end > end:
        then = "submitted again under the same key, by which the provider recognises a repeat"
    else:
        then = "held for a person"
    when = f"Unknown {until(end, now)}" if end > now else f"Its grace period ended {at(end, now)}"
    sooner = ", unless an event of the provider tells sooner" if tells_events(trace) else ""
    return f"{when}, then {then}{sooner}."


# ── on its way ───────────────────────────────────────────────────────────────────────────────────────────────────────


def worker_stopped(trace: Trace, now: datetime) -> Verdict | None:
    """Claimed by a worker that is not there any more."""
    work = trace.work
    if trace.state != State.CLAIMED or work is None or work.claimed_by is None:
        return None
    worker = trace.workers.get(work.claimed_by)
    if trace.send.run_by == RunBy.CALLER:
        return None  # a caller's job does not beat: only its lease tells
    if worker is None:
        return _stranded(trace, work, now, Cause.WORKER_STOPPED, "which is not known any more")
    if worker.stopped_at is None and now - worker.heartbeat_at < SILENCE:
        return None
    heard = f"which was last heard of {at(worker.stopped_at or worker.heartbeat_at, now)}"
    return _stranded(trace, work, now, Cause.WORKER_STOPPED, heard)


def stale_claim(trace: Trace, now: datetime) -> Verdict | None:
    """Claimed by a worker that is there and has let its lease run out."""
    work = trace.work
    if trace.state != State.CLAIMED or work is None or work.lease_until is None or work.lease_until >= now:
        return None
    return _stranded(trace, work, now, Cause.STALE_CLAIM, f"whose claim ran out {at(work.lease_until, now)}")


def _stranded(trace: Trace, work: Work, now: datetime, cause: Cause, which: str) -> Verdict:
    """A claim that its worker will not bring to an end."""
    in_flight = work.open_attempt is not None
    while_calling = (
        f", while attempt {work.open_attempt} had no answer: it may have been taken"
        if in_flight
        else _not_yet(trace, now)
    )
    then = (
        "becomes unknown, since its call may have been taken" if in_flight else "is given back and may be claimed again"
    )
    lapsed = work.lease_until is None or work.lease_until < now
    when = (
        "As soon as a worker sweeps, it"
        if lapsed
        else f"{upper_first(at(work.lease_until or now, now))} the claim ends, and it"
    )
    return Verdict(
        sentence=f"Claimed by {_holder(trace)}, {which}{while_calling}",
        cause=cause,
        sureness=sure_unless_doubted(trace),
        next=f"{when} {then}.",
        proof=[f"claim {work.claim_number}", *map(reference, unanswered(trace))],
    )


def _holder(trace: Trace) -> str:
    """Who has claimed it."""
    if trace.send.run_by == RunBy.CALLER:
        return "the job that asked for it"
    return f"worker {trace.worker_name(trace.work.claimed_by if trace.work else None)}"


def submitting(trace: Trace, now: datetime) -> Verdict | None:
    """A worker's call to the provider is running."""
    work = trace.work
    if trace.state != State.CLAIMED or work is None or work.open_attempt is None:
        return None
    doubts = unanswered(trace)
    start = f" {since(doubts[-1].started_at, now)}" if doubts else ""
    shared = f", {in_a_batch(doubts[-1])}" if doubts and doubts[-1].batch else ""
    end = (
        f" By {at(work.request_deadline, now).removeprefix('at ')} it is answered or becomes unknown."
        if work.request_deadline
        else ""
    )
    return Verdict(
        sentence=f"{upper_first(_holder(trace))} has been handing it to {account_name(trace)}{start}"
        f" (attempt {work.open_attempt}{shared})",
        cause=Cause.SUBMITTING,
        sureness=Sureness.CANNOT_TELL,
        next=f"The provider answers within seconds.{end}",
        proof=[f"claim {work.claim_number}", *map(reference, doubts)],
    )


def claimed(trace: Trace, now: datetime) -> Verdict | None:
    """A worker has it and has not started its call."""
    work = trace.work
    if trace.state != State.CLAIMED or work is None or work.lease_until is None or work.claimed_at is None:
        return None
    return Verdict(
        sentence=f"Claimed by {_holder(trace)} {at(work.claimed_at, now)}{_not_yet(trace, now)}",
        cause=Cause.CLAIMED,
        sureness=sure_unless_doubted(trace),
        next=f"It is handed over, or given back {at(work.lease_until, now)} at the latest.",
        proof=[f"claim {work.claim_number}", *map(reference, unanswered(trace))],
    )


def waits_for_caller(trace: Trace, now: datetime) -> Verdict | None:
    """Run by the caller: its next delivery submits it."""
    if trace.state != State.PENDING or trace.send.run_by != RunBy.CALLER:
        return None
    return _pending(
        trace, now, Cause.WAITS_FOR_CALLER, "Waits for its own job to deliver it again",
        "The next delivery of the job that asked for it submits it; our workers never do.",
    )  # fmt: skip


def scheduled(trace: Trace, now: datetime) -> Verdict | None:
    """Asked for with a later time."""
    work = trace.work
    if trace.state != State.PENDING or work is None or work.due_at <= now or work.last_attempt:
        return None
    return _pending(
        trace, now, Cause.SCHEDULED, f"Scheduled for later: it is due {at(work.due_at, now)}",
        f"It is submitted {at(work.due_at, now)}, in {span(work.due_at - now)}.",
    )  # fmt: skip


def paused(trace: Trace, now: datetime) -> Verdict | None:
    """Something that it needs is paused: the workspace, its mailstream, or the provider account."""
    if trace.state != State.PENDING:
        return None
    stream, account = trace.stream, trace.account
    if stream and stream.workspace_paused_at:
        what, when, why = "all sending of this workspace", stream.workspace_paused_at, stream.workspace_paused_reason
    elif stream and stream.paused_at:
        what, when, why = f"its mailstream {stream.name}", stream.paused_at, stream.paused_reason
    elif account and (account.paused_for_good or (account.paused_until and account.paused_until > now)):
        what, when, why = f"the account {account.name} at {provider(account.provider)}", None, account.paused_reason
    else:
        return None
    end = account.paused_until if account and when is None else None
    start = f" {since(when, now)}" if when else ""
    return _pending(
        trace, now, Cause.PAUSED, f"Waits, because {what} is paused{start}{quoted(why)}",
        f"The pause ends {at(end, now)}; then it is submitted." if end else "It is submitted once a person resumes it.",
    )  # fmt: skip


def waits_to_retry(trace: Trace, now: datetime) -> Verdict | None:
    """Not submitted yet or refused for now; the time of its next try is known."""
    work = trace.work
    if trace.state != State.PENDING or work is None or work.claim_at is None or work.claim_at <= now:
        return None
    last = trace.attempts[-1] if trace.attempts else None
    said = f"; the last answer was {how_it_failed(last) or 'no'}{quoted(last.reason)}" if last and last.reason else ""
    return _pending(
        trace, now, Cause.WAITS_TO_RETRY, f"Waits for its next try, because {because(work.reason)}{said}",
        f"The next try is {at(work.claim_at, now)}, in {span(work.claim_at - now)}.",
    )  # fmt: skip


def backlog(trace: Trace, now: datetime) -> Verdict | None:
    """Due, and no worker has come to it."""
    work = trace.work
    if trace.state != State.PENDING or work is None or work.claim_at is None:
        return None
    again = "" if work.reason in (Reason.DUE, Reason.SCHEDULED) else f" ({because(work.reason)})"
    return _pending(
        trace, now, Cause.BACKLOG, f"Waits for a free worker {since(work.claim_at, now)}{again}",
        f"A worker takes it as soon as one is free; it has waited for {span(now - work.claim_at)}.",
    )  # fmt: skip


def _pending(trace: Trace, now: datetime, cause: Cause, sentence: str, then: str) -> Verdict:
    return Verdict(
        sentence=f"{sentence}{_not_yet(trace, now)}",
        cause=cause,
        sureness=sure_unless_doubted(trace),
        next=f"{then}{_lateness(trace, now)}",
        proof=["work", *map(reference, trace.attempts)],
    )


def _not_yet(trace: Trace, now: datetime) -> str:
    """What is known of earlier attempts of a send that waits."""
    doubts = unanswered(trace)
    if doubts:
        return f"; {doubted(doubts[0], now)}, so it may have been taken already"
    return f"; {what_was_tried(trace)} so far" if trace.attempts else "; no provider has been asked to take it yet"


def _lateness(trace: Trace, now: datetime) -> str:
    stream, work = trace.stream, trace.work
    if stream is None or work is None or stream.too_late_after is None:
        return ""
    end = work.due_at + stream.too_late_after
    then = "cancelled" if stream.late_policy == Policy.CANCEL else "held for a person"
    return f" If it has not been submitted {until(end, now).replace('until', 'by')}, it is {then}." if end > now else ""
