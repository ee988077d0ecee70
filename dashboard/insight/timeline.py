"""One line of time from the trigger to the last event, in lanes, repeats folded.

The straight path (asked, recorded, claimed, attempted, accepted) is told from the send and its attempts, which carry
its facts; everything else from the rows that were written when it happened. Nothing is inferred.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from dashboard.identity import discreet
from dashboard.insight.clocks import placed_at, skew_of
from dashboard.insight.folding import Entry, Lane, Phase, folded, in_order
from dashboard.insight.wording import because, how_it_failed, in_a_batch, listed, provider, reference, span
from dashboard.ledger.trace import Attempt, Duplicate, Event, HistoricMove, MailReply, Trace
from dashboard.lifecycle import AttemptStatus, By, Decision, EventType, Reason, Verdict


def timeline(trace: Trace) -> list[Entry]:
    """The entries of a trace, oldest first. No text in it holds an address, whoever wrote it."""
    found = [*_asked(trace), *_claims(trace), *_decisions(trace), *_cancels(trace), *_late_facts(trace)]
    found += _left_out(trace)
    found += [entry for attempt in trace.attempts for entry in _attempt(trace, attempt)]
    found += map(_reply, trace.replies)
    return folded(in_order(_discreet(entry) for entry in [*found, *_of_rows(trace)]))


def single_entries(trace: Trace) -> list[Entry]:
    """Only what its duplicates, moves and events tell, nothing folded: for lists of these rows."""
    return in_order(map(_discreet, _of_rows(trace)))


def _of_rows(trace: Trace) -> Iterator[Entry]:
    yield from (_duplicate(trace, duplicate) for duplicate in trace.duplicates)
    yield from (_move(trace, move) for move in trace.moves if not _told_otherwise(trace, move))
    yield from (_event(trace, event) for event in trace.events)


def _discreet(entry: Entry) -> Entry:
    if "@" not in entry.who + entry.detail:
        return entry
    return replace(entry, who=discreet(entry.who), detail=discreet(entry.detail))


def _left_out(trace: Trace) -> Iterator[Entry]:
    """Of what there is very much of, only the oldest and the newest rows are read: what lies between is one entry."""
    for lane, left_out, word, times in (
        (Lane.DELIVERY, trace.more.duplicates, "deliveries", [duplicate.at for duplicate in trace.duplicates]),
        (Lane.RECONCILE, trace.more.moves, "moves", [move.at for move in trace.moves]),
        (Lane.EVENT, trace.more.events, "events", [event.occurred_at for event in trace.events]),
    ):
        if left_out and len(times) > 1:
            before, after = times[len(times) // 2 - 1 : len(times) // 2 + 1]
            yield Entry(
                at=before, until=after, lane=lane, what=f"{left_out:,} more {word} from then on", left_out=word,
                placed_at=before + timedelta(microseconds=1),
            )  # fmt: skip


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _asked(trace: Trace) -> Iterator[Entry]:
    send = trace.send
    trigger = f"{send.trigger_type} {send.trigger_id}"
    if send.triggered_at is not None:
        yield Entry(at=send.triggered_at, lane=Lane.TRIGGER, what="Triggered", who=trigger, evidence="send")
    yield Entry(
        at=send.asked_at, lane=Lane.TRIGGER, what="Asked for", who=trigger, detail=_way(send.source), evidence="send"
    )
    waited = send.recorded_at - send.asked_at
    detail = f"after {span(waited)}" if waited >= timedelta(seconds=1) else ""
    yield Entry(at=send.recorded_at, lane=Lane.DELIVERY, what="Recorded as a new send", detail=detail, evidence="send")
    if send.due_at - send.recorded_at >= timedelta(seconds=1):
        yield Entry(at=send.due_at, lane=Lane.TRIGGER, what="Due", evidence="send")


def _way(source: str) -> str:
    return {"outbox": "in the transaction's outbox", "api": "by the API", "queue": "by a queue job"}.get(source, source)


def _duplicate(trace: Trace, duplicate: Duplicate) -> Entry:
    what = {
        Verdict.DUPLICATE: "Asked for again: refused as a duplicate",
        Verdict.IN_PROGRESS: "Asked for again while it was under way: no second one is made",
        Verdict.MISMATCH: "Asked for again with other content under the same key: refused",
    }[Verdict(duplicate.verdict)]
    trigger = " ".join(filter(None, (duplicate.trigger_type, duplicate.trigger_id)))
    difference = f"other {listed(duplicate.difference)}" if duplicate.difference else ""
    worker = f"met by worker {trace.worker_name(duplicate.worker)}" if duplicate.worker else ""
    return Entry(
        at=duplicate.at,
        lane=Lane.DELIVERY,
        what=what,
        who=trigger or duplicate.source,
        detail="; ".join(filter(None, (_way(duplicate.source), worker, difference))),
        evidence=reference(duplicate),
        trouble=duplicate.verdict == Verdict.MISMATCH,
        again=True,
    )


# ── trying ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _claims(trace: Trace) -> Iterator[Entry]:
    winner = trace.winning_attempt
    claims = {a.claim_number: (a.claimed_at, a.worker) for a in trace.attempts}
    work = trace.work
    if work is not None and work.claimed_at is not None and work.claimed_by is not None:
        claims[work.claim_number] = (work.claimed_at, work.claimed_by)
    for claim, (claimed_at, worker) in claims.items():
        yield Entry(
            at=claimed_at,
            lane=Lane.CLAIM,
            what="Claimed" if len(claims) == 1 and claim == 1 else f"Claimed, claim {claim}",
            who=trace.worker_name(worker),
            detail="this claim led to acceptance" if winner and claim == winner.claim_number else "",
            evidence=f"claim {claim}",
        )


def _attempt(trace: Trace, attempt: Attempt) -> Iterator[Entry]:
    name = provider(attempt.provider)
    which = f"Attempt {attempt.n}"
    yield Entry(
        at=attempt.started_at, lane=Lane.ATTEMPT, what=f"{which}: handing over to {name}",
        who=trace.worker_name(attempt.worker), detail=in_a_batch(attempt), evidence=reference(attempt),
    )  # fmt: skip
    if attempt.doubted_at is not None:
        yield Entry(
            at=attempt.doubted_at, lane=Lane.ATTEMPT, what=f"{which}: no answer, it may have been taken", who=name,
            detail=_words(how_it_failed(attempt), attempt.phase, attempt.reason), evidence=reference(attempt),
            trouble=True, phases=_phases(attempt, attempt.doubted_at),
        )  # fmt: skip
    if attempt.finished_at is None or attempt.status == AttemptStatus.AMBIGUOUS:
        return
    yield _outcome(attempt, which, name)


def _phases(attempt: Attempt, ended_at: datetime) -> tuple[Phase, ...]:
    """What the time between its claim and its end went into; the call itself is timed by the worker's own clock."""
    call = timedelta(milliseconds=attempt.duration_ms) if attempt.duration_ms is not None else None
    took = ended_at - attempt.started_at
    phases = [
        Phase("from claim to start", attempt.started_at - attempt.claimed_at),
        Phase("the call", took if call is None else call),
        Phase("until its outcome was stored", took - call if call is not None else timedelta(0)),
    ]
    return tuple(phase for phase in phases if phase.length > timedelta(0))


def exact(length: timedelta) -> str:
    """A short length of time to the millisecond, a longer one as others are told."""
    ms = round(length.total_seconds() * 1000)
    return f"{ms} ms" if ms < 1000 else f"{ms / 1000:.1f} s" if ms < 120_000 else span(length)


def _outcome(attempt: Attempt, which: str, name: str) -> Entry:
    assert attempt.finished_at is not None
    ms = attempt.duration_ms
    latency = f"after {exact(timedelta(milliseconds=ms))}" if ms is not None else ""
    told = f"told by {_TELLERS[By(attempt.settled_by)]}" if attempt.doubted_at and attempt.settled_by else ""
    match AttemptStatus(attempt.status):
        case AttemptStatus.ACCEPTED if attempt.settled_by == By.PERSON:
            what, detail, trouble = "counted as accepted by a person", "", False
        case AttemptStatus.ACCEPTED:
            what, trouble = "accepted" if not attempt.doubted_at else "turned out accepted", False
            detail = _words(latency, told, attempt.provider_message_id and f"message id {attempt.provider_message_id}")
        case AttemptStatus.REJECTED:
            what, trouble = "refused" if not attempt.doubted_at else "turned out refused", True
            detail = _words(latency, told, how_it_failed(attempt), attempt.phase, attempt.reason)
        case _:
            what, trouble = "proved never to have left", True
            detail = _words(told, attempt.reason)
    return Entry(
        at=attempt.finished_at, lane=Lane.ATTEMPT, what=f"{which}: {what}", who=name, detail=detail,
        evidence=reference(attempt), trouble=trouble,
        phases=() if attempt.doubted_at else _phases(attempt, attempt.finished_at),
    )  # fmt: skip


_TELLERS = {
    By.RELAY: "the relay",
    By.API: "the API",
    By.SWEEP: "the sweep",
    By.SCHEDULE: "the schedule",
    By.WORKER: "its worker's late answer",
    By.EVENT: "an event",
    By.RECONCILE: "the provider when asked",
    By.PERSON: "a person",
    By.CALLER: "its caller",
}


def _words(*parts: str | None) -> str:
    """What there is to say, each thing once: an error's class and its reason are often the same word."""
    return "; ".join(dict.fromkeys(part for part in parts if part))


# ── why it went where it went ────────────────────────────────────────────────────────────────────────────────────────

_MOVES = {
    "record": "Failed when it was recorded",
    "give_back": "Given back to the queue",
    "accept": "Accepted",
    "doubt": "Became unknown",
    "retry_later": "Waits for its next try",
    "fail": "Failed",
    "hold": "Held for a person",
    "suppress": "Suppressed",
    "cancel": "Cancelled",
    "release": "Released for another attempt",
    "replay": "Asked for again under its own key",
}
_MAKERS: dict[str, str] = {
    By.RECONCILE: "the reconciler",
    By.EVENT: "an event",
    By.SWEEP: "the sweep",
    By.SCHEDULE: "the schedule",
}
_AGAIN = {"give_back", "retry_later"}
_TROUBLE = {"record", "doubt", "fail", "hold"}
_LANES = {"give_back": Lane.CLAIM, "doubt": Lane.ATTEMPT, "retry_later": Lane.ATTEMPT, "fail": Lane.ATTEMPT}


def _move(trace: Trace, move: HistoricMove) -> Entry:
    lane = Lane.PERSON if move.made_by == By.PERSON else _LANES.get(move.move, Lane.RECONCILE)
    wait = move.next_try_at - move.at if move.next_try_at else None
    return Entry(
        at=move.at,
        lane=lane,
        what=_MOVES.get(move.move, move.move),
        who=move.person or trace.worker_name(move.worker) or _MAKERS.get(move.made_by, move.made_by),
        detail=_words(
            because(move.reason), move.detail, f"next try {span(wait)} later" if wait and wait > timedelta(0) else ""
        ),
        evidence=reference(move),
        trouble=move.move in _TROUBLE,
        again=move.move in _AGAIN,
    )


def _told_otherwise(trace: Trace, move: HistoricMove) -> bool:
    """Whether another entry tells the same with more: a person's decision, or the attempt whose answer was missed."""
    doubted = {attempt.n for attempt in trace.attempts if attempt.doubted_at is not None}
    missed = move.move == "doubt" and move.attempt in doubted and move.reason == Reason.NO_ANSWER
    return missed or trace.decision_of(move) is not None


def _decisions(trace: Trace) -> Iterator[Entry]:
    words = {
        Decision.RESEND: "submit it again",
        Decision.MARK_ACCEPTED: "count it as accepted",
        Decision.CANCEL: "cancel it",
    }
    for decision in trace.decisions:
        yield Entry(
            at=decision.at,
            lane=Lane.PERSON,
            what=f"Decided: {words[Decision(decision.decision)]}",
            who=decision.person,
            detail=_words(decision.reason, decision.approved_by and f"{decision.approved_by} agreed"),
            evidence=f"decision {decision.id}",
        )


def _cancels(trace: Trace) -> Iterator[Entry]:
    for asked in trace.cancels:
        yield Entry(
            at=asked.at,
            lane=Lane.PERSON,
            what="Asked to cancel it: too late" if asked.too_late
            else "Asked to cancel it while its call is running: too late if that is taken",
            who=asked.person or "",
            detail=asked.reason or "",
            evidence=f"audit {asked.id}",
        )  # fmt: skip


# ── hearing ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_EVENTS = {
    EventType.ACCEPTED: "The provider confirms that it accepted it",
    EventType.DEFERRED: "The recipient's mail server put it off",
    EventType.DELIVERED: "Delivered to the mail server",
    EventType.BOUNCED: "Refused by the recipient's mail server",
    EventType.REJECTED: "The provider refused to pass it on",
    EventType.FAILED: "The provider failed to pass it on",
    EventType.COMPLAINED: "Reported as spam by the recipient",
    EventType.UNSUBSCRIBED: "The recipient unsubscribed",
    EventType.RESUBSCRIBED: "The recipient subscribed again",
    EventType.OPENED: "Opened",
    EventType.CLICKED: "A link was clicked",
    EventType.AUTO_REPLY: "An automatic reply came",
    EventType.UNKNOWN: "The provider told something that we do not know",
}
_AGAIN_EVENTS = {
    EventType.DEFERRED, EventType.OPENED, EventType.CLICKED, EventType.AUTO_REPLY, EventType.UNKNOWN,
}  # fmt: skip
_TROUBLE_EVENTS = {
    EventType.DEFERRED, EventType.BOUNCED, EventType.REJECTED, EventType.FAILED, EventType.COMPLAINED,
    EventType.UNKNOWN,
}  # fmt: skip


def _event(trace: Trace, event: Event) -> Entry:
    kind = EventType(event.event_type)
    machine = {True: "by a machine", False: "by a person", None: ""}[event.machine]
    opened = kind in (EventType.OPENED, EventType.CLICKED)
    delay = event.received_at - event.occurred_at
    clocks = skew_of(trace, event)
    return Entry(
        at=event.occurred_at,
        lane=Lane.EVENT,
        what=_EVENTS[kind],
        who=_event_provider(trace, event),
        detail=_words(
            machine if opened else "",
            event.bounce_class,
            event.reason,
            "received before the answer to our own call" if _before_answer(trace, event) else "",
            f"received {span(delay)} later" if delay > timedelta(minutes=1) else "",
            f"by the provider's clock {exact(clocks.behind)} before its attempt began" if clocks.behind else "",
            f"by the provider's clock {exact(clocks.ahead)} after we received it" if clocks.ahead else "",
        ),
        evidence=reference(event),
        trouble=kind in _TROUBLE_EVENTS,
        count=1 + event.repeats + event.other_ids,
        again=kind in _AGAIN_EVENTS,
        placed_at=placed_at(trace, event),
    )


def _event_provider(trace: Trace, event: Event) -> str:
    attempts = [
        a for a in trace.attempts if event.provider_message_id in (None, a.provider_message_id)
    ] or trace.attempts
    return provider(attempts[-1].provider if attempts else trace.account.provider if trace.account else "")


def _before_answer(trace: Trace, event: Event) -> bool:
    """Whether the event came in before the answer to the call that it tells of was stored."""
    answers = [
        attempt.finished_at
        for attempt in trace.accepted_attempts
        if attempt.settled_by in (By.WORKER, By.CALLER)
        and event.provider_message_id in (None, attempt.provider_message_id)
    ]
    return any(answer is not None and event.received_at < answer for answer in answers)


def _late_facts(trace: Trace) -> Iterator[Entry]:
    for second in trace.second_ids:
        yield Entry(
            at=second.seen_at,
            lane=Lane.EVENT,
            what="A second message id: the provider accepted it more than once",
            detail=f"message id {second.provider_message_id}",
            evidence=f"message id {second.provider_message_id}",
            trouble=True,
        )
    if trace.send.taken_at is not None:
        yield Entry(
            at=trace.send.taken_at,
            lane=Lane.RECONCILE,
            what=f"Turned out taken by the provider, though {trace.state}",
            evidence="send",
            trouble=True,
        )


_WAYS = {"address": "to the address made for this email", "message_id": "names this email's Message-ID"}


_FROM = {True: "from the recipient's address", False: "from another address", None: ""}


def _reply(reply: MailReply) -> Entry:
    delay = reply.received_at - reply.at
    return Entry(
        at=reply.at,
        lane=Lane.REPLY,
        what=f"{'An automatic reply came' if reply.automatic else 'Answered'} {_FROM[reply.own_address]}".rstrip(),
        who=reply.sender or "",
        detail=_words(
            _WAYS[reply.matched_by],
            f"received {span(delay)} later" if delay > timedelta(minutes=5) else "",
        ),
        evidence=reference(reply),
        again=reply.automatic,
    )
