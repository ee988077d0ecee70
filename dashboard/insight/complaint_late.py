"""*It came late*: where the time went, from the trigger to the mail server.

The way of a send is cut into waits, each for one thing, by the rows that were written when it went on. The longest wait
is the cause; where none is worth mentioning, it was on time from us.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from dashboard.insight.case import (
    SHORT_WAIT,
    Answer,
    Case,
    Finding,
    least_copies,
    owner_of,
    proof_of,
    stream_of,
    taken_at,
    taken_proof,
    trigger_of,
    uncapitalised,
    when,
)
from dashboard.insight.judging import Cause, Sureness, account_name, events_of, last_move
from dashboard.insight.wording import at, because, number, quoted, reference, span, upper_first
from dashboard.ledger.trace import HistoricMove, Trace
from dashboard.lifecycle import AttemptStatus, EventType, Reason


class For(StrEnum):
    """What a send waited for."""

    TRIGGER = "trigger"
    OUTBOX = "outbox"
    DUE = "due"
    WORKER = "worker"
    DEAD_WORKER = "dead_worker"
    PAUSE = "pause"
    PROVIDER = "provider"
    DOUBT = "doubt"
    PERSON = "person"
    REPLAY = "replay"
    RECEIVER = "receiver"
    PASSING_ON = "passing_on"


@dataclass(frozen=True, slots=True)
class Wait:
    """A part of the way of a send; ``rows`` prove when it began and ended."""

    what: For
    since: datetime
    until: datetime
    rows: tuple[str, ...] = ()

    @property
    def length(self) -> timedelta:
        """How long it took."""
        return self.until - self.since


# ── where the time went ──────────────────────────────────────────────────────────────────────────────────────────────


def waits(trace: Trace) -> list[Wait]:
    """The way of a send that a provider took, cut into waits, the earliest first. Clocks that differ make none."""
    send, taken = trace.send, taken_at(trace)
    if taken is None:
        return []
    found = [Wait(For.TRIGGER, send.triggered_at, send.asked_at, ("send",))] if send.triggered_at else []
    found.append(Wait(For.OUTBOX, send.asked_at, send.recorded_at, ("send",)))
    found.append(Wait(For.DUE, send.recorded_at, send.due_at, ("send",)))
    found += _queueing(trace, max(send.recorded_at, send.due_at), taken)
    delivered = next((event for event in events_of(trace, EventType.DELIVERED)), None)
    if delivered is not None:
        deferred = events_of(trace, EventType.DEFERRED)
        put_off = [event for event in deferred if event.occurred_at <= delivered.occurred_at]
        rows = tuple(map(reference, (*put_off, delivered)))
        found.append(Wait(For.RECEIVER if put_off else For.PASSING_ON, taken, delivered.occurred_at, rows))
    return [wait for wait in found if wait.length > timedelta(0)]


def _queueing(trace: Trace, start: datetime, taken: datetime) -> list[Wait]:
    """From being due to being taken: what each stretch waited for is told by the row that began or ended it."""
    marks: list[tuple[datetime, For, str]] = []  # from when on it waits for what, and the row that says so
    for move in trace.moves:
        if (what := _after(move)) is not None:
            marks.append((move.at, what, reference(move)))
    for attempt in trace.attempts:
        marks.append((attempt.started_at, For.PROVIDER, reference(attempt)))
        if attempt.doubted_at is not None:
            marks.append((attempt.doubted_at, For.DOUBT, reference(attempt)))
    found, since, what, row = [], start, _first(trace), "send"
    for time, then, reason in sorted(marks):
        until = min(max(time, since), taken)
        if then is For.DEAD_WORKER:
            what = For.DEAD_WORKER  # the stretch that ends here is the one that was lost
        found.append(Wait(what, since, until, (row, reason)))
        since, row = until, reason
        what = For.WORKER if then is For.DEAD_WORKER else then
        if time >= taken:
            break
    found.append(Wait(what, since, taken, (row,)))
    return found


def _first(trace: Trace) -> For:
    return For.REPLAY if any(move.move == "record" for move in trace.moves) else For.WORKER


def _after(move: HistoricMove) -> For | None:
    """What a send waits for once it has been moved so."""
    match move.move, move.reason:
        case "give_back", Reason.WORKER_STOPPED:
            return For.DEAD_WORKER
        case "give_back", Reason.STREAM_PAUSED | Reason.LEDGER_MOVED:
            return For.PAUSE
        case (("give_back" | "retry_later"), _):
            return For.PROVIDER
        case "doubt", _:
            return For.DOUBT
        case "hold", _:
            return For.PERSON
        case "fail", _:
            return For.REPLAY
        case (("release" | "replay"), _):
            return For.WORKER
    return None


def lost(trace: Trace, what: For) -> timedelta:
    """How long it waited for that, all together."""
    return sum((wait.length for wait in waits(trace) if wait.what is what), timedelta(0))


# ── causes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def still_on_its_way(case: Case) -> Answer | None:
    """It has not come, as far as is known: what its page says of it."""
    planned = case.with_cause(Cause.SCHEDULED) if case.taken else []  # nobody calls that late
    trace = next((trace for trace in case.meant if not least_copies(trace) and trace not in planned), None)
    if trace is None or (case.taken and not _nearer(case, trace)):
        return None
    verdict = case.verdicts[trace.send.id]
    return Answer(
        finding=Finding.STILL_ON_ITS_WAY,
        sureness=verdict.sureness,
        sentence=f"It is not known to have arrived: {uncapitalised(verdict.sentence)}",
        next=verdict.next,
        would_tell="" if verdict.sureness is Sureness.PROVED else verdict.next,
        proof=proof_of(trace, verdict.proof),
        about=trace.send.id,
        times=when(when=trace.send.recorded_at),
    )


def _nearer(case: Case, trace: Trace) -> bool:
    """Whether it is open, or nearer to the time than all that were taken."""
    return trace.work is not None or case.meant.index(trace) < case.meant.index(case.taken[0])


@dataclass(frozen=True, slots=True)
class _Lost:
    """What a send waited longest for: from when to when, how long all together, and the rows that prove it."""

    trace: Trace
    since: datetime
    until: datetime
    length: timedelta
    rows: list[str]


def _longest(case: Case, what: For) -> _Lost | None:
    """The send that took longest, if it waited longest for this and long enough to be called late."""
    trace = _slowest(case)
    if trace is None:
        return None
    longest = max(For, key=lambda one: lost(trace, one))
    if longest is not what or lost(trace, what) < SHORT_WAIT:
        return None
    stretches = [wait for wait in waits(trace) if wait.what is what]
    rows = [row for wait in stretches for row in wait.rows]
    return _Lost(trace, stretches[0].since, stretches[-1].until, lost(trace, what), rows)


def _slowest(case: Case) -> Trace | None:
    """Of the sends that are meant and were taken the one that took longest."""
    return max(case.taken, key=lambda trace: sum((w.length for w in waits(trace)), timedelta(0)), default=None)


def _answer(case: Case, finding: Finding, lost: _Lost, sentence: str, next: str, *, would_tell: str = "") -> Answer:
    return Answer(
        finding=finding,
        sureness=Sureness.LIKELY if would_tell else case.sure(),
        sentence=f"{sentence}; {_when_it_came(lost.trace, case.now)}",
        next=next,
        would_tell=would_tell,
        proof=[*proof_of(lost.trace, lost.rows), *taken_proof(lost.trace)],
        about=lost.trace.send.id,
        times=when(when=_came(lost.trace), first=lost.since, second=lost.until),
    )


def asked_late(case: Case) -> Answer | None:
    """What it is about had happened long before anybody asked for it."""
    if (way := _longest(case, For.TRIGGER)) is None:
        return None
    what, then = trigger_of(way.trace), at(way.since, case.now)
    said = f"It was asked for late: {what} happened {then} and asked for this email {span(way.length)} later"
    return _answer(
        case, Finding.ASKED_LATE, way, said, f"Ask {owner_of(way.trace)} why their side took so long to ask."
    )


def waited_in_outbox(case: Case) -> Answer | None:
    """Asked for in time, and relayed late."""
    if (way := _longest(case, For.OUTBOX)) is None:
        return None
    said = f"Asked for {at(way.since, case.now)}, it waited {span(way.length)} in the outbox: no worker relayed it"
    return _answer(
        case, Finding.WAITED_IN_OUTBOX, way, said, "Tell an operator: no relay ran then, or it could not keep up."
    )


def asked_for_later(case: Case) -> Answer | None:
    """Whoever asked for it wanted it sent later."""
    if (way := _longest(case, For.DUE)) is None:
        return None
    said = (
        f"It was scheduled: {trigger_of(way.trace)} asked for it {at(way.since, case.now)} and wanted it sent no "
        f"earlier than {at(way.until, case.now)}"
    )
    return _answer(case, Finding.ASKED_FOR_LATER, way, said, f"That time was chosen by {owner_of(way.trace)}.")


def waited_for_worker(case: Case) -> Answer | None:
    """Due, and no worker came to it."""
    if (way := _longest(case, For.WORKER)) is None:
        return None
    said = f"It was due {at(way.since, case.now)} and waited {span(way.length)} for a free worker"
    return _answer(
        case, Finding.WAITED_FOR_WORKER, way, said,
        "Tell an operator: there was more mail than the workers could take, or sending was paused.",
    )  # fmt: skip


def worker_had_stopped(case: Case) -> Answer | None:
    """Its worker stopped before it called the provider."""
    if (way := _longest(case, For.DEAD_WORKER)) is None:
        return None
    said = (
        f"A worker had claimed it and stopped: {span(way.length)} passed until another could take it "
        f"{at(way.until, case.now)}"
    )
    return _answer(
        case, Finding.WORKER_HAD_STOPPED, way, said, "Tell an operator, if that happens often: workers should not die."
    )


def was_paused(case: Case) -> Answer | None:
    """Its mailstream, its workspace or all sending was paused."""
    if (way := _longest(case, For.PAUSE)) is None:
        return None
    said = f"It waited {span(way.length)}, because {_reason(way.trace, 'give_back')}"
    return _answer(
        case, Finding.WAS_PAUSED, way, said,
        f"{upper_first(owner_of(way.trace))} or an operator can tell why {stream_of(way.trace)} was paused.",
    )  # fmt: skip


def provider_was_slow(case: Case) -> Answer | None:
    """The provider refused it for now, was paused, or took long to answer."""
    if (way := _longest(case, For.PROVIDER)) is None:
        return None
    name = account_name(way.trace)
    refused = [a for a in way.trace.attempts if a.status in (AttemptStatus.REJECTED, AttemptStatus.ABANDONED)]
    calls = f" after {number(len(refused), 'call')} that failed" if refused else ""
    moved = any(move.move in ("retry_later", "give_back") for move in way.trace.moves)
    why = _reason(way.trace, "retry_later", "give_back") if moved else "its answer took so long"
    return _answer(
        case, Finding.PROVIDER_WAS_SLOW, way, f"It waited {span(way.length)} for {name}{calls}: {why}",
        f"Tell an operator, if {name} is often slow or often refuses.",
    )  # fmt: skip


def was_unknown(case: Case) -> Answer | None:
    """A call got no answer, and was not repeated before that was safe."""
    if (way := _longest(case, For.DOUBT)) is None:
        return None
    said = (
        f"A call got no answer {at(way.since, case.now)}, and it took {span(way.length)} until it was safe to submit "
        "it again"
    )
    return _answer(
        case, Finding.WAS_UNKNOWN, way, said, "Nothing to mend: submitting it again at once might have made two.",
        would_tell="Whether the call without an answer had been taken: then the customer has had it since.",
    )  # fmt: skip


def was_held(case: Case) -> Answer | None:
    """It waited for a person's decision."""
    if (way := _longest(case, For.PERSON)) is None:
        return None
    said = (
        f"It was held for a person for {span(way.length)}, because {_reason(way.trace, 'hold')}, until it was released "
        f"{at(way.until, case.now)}"
    )
    doubtful = any(attempt.doubted_at for attempt in way.trace.attempts)
    return _answer(
        case, Finding.WAS_HELD, way, said, "Tell the operators: held sends wait for their decision.",
        would_tell="Whether the call without an answer had been taken: then the customer has had it since."
        if doubtful
        else "",
    )  # fmt: skip


def had_failed(case: Case) -> Answer | None:
    """It had failed, and a person asked for it again."""
    if (way := _longest(case, For.REPLAY)) is None:
        return None
    said = (
        f"It had failed {at(way.since, case.now)}, because {_reason(way.trace, 'fail', 'record')}, and was asked for "
        f"again {at(way.until, case.now)}"
    )
    return _answer(
        case, Finding.HAD_FAILED, way, said, f"Ask {owner_of(way.trace)} whether what made it fail is mended."
    )


def was_deferred(case: Case) -> Answer | None:
    """The recipient's mail server put it off."""
    if (way := _longest(case, For.RECEIVER)) is None:
        return None
    told = next((event.reason for event in events_of(way.trace, EventType.DEFERRED) if event.reason), None)
    said = f"The recipient's mail server put it off for {span(way.length)}{quoted(told)}"
    return _answer(case, Finding.WAS_DEFERRED, way, said, "Nothing to mend here: their mail server made it wait.")


def passed_on_late(case: Case) -> Answer | None:
    """It left from here in time, and the provider took long to deliver it."""
    if (way := _longest(case, For.PASSING_ON)) is None:
        return None
    name = account_name(way.trace)
    said = f"It left from here in time; {name} needed {span(way.length)} to deliver it"
    return _answer(case, Finding.PASSED_ON_LATE, way, said, f"An operator can ask {name} why.")


def _reason(trace: Trace, *moves: str) -> str:
    move = last_move(trace, *moves)
    return because(move.reason) if move else "no reason was recorded"


def _came(trace: Trace) -> datetime | None:
    delivered = events_of(trace, EventType.DELIVERED)
    return delivered[0].occurred_at if delivered else taken_at(trace)


def _when_it_came(trace: Trace, now: datetime) -> str:
    time, came = taken_at(trace), _came(trace)
    accepted = f"{account_name(trace)} accepted it {at(time, now)}" if time else ""
    if time is None or came is None or came <= time:
        return accepted
    return f"{accepted} and delivered it to the mail server {span(came - time)} later"


def on_time(case: Case) -> Answer | None:
    """Nothing on the way took long: it was on time from us."""
    trace = _slowest(case)
    if trace is None:
        return None
    begin, taken = trace.send.triggered_at or trace.send.asked_at, taken_at(trace)
    took = f", {span(taken - begin)} after {trigger_of(trace)}" if taken and taken > begin else ""
    delivered = events_of(trace, EventType.DELIVERED)[:1]
    rows = ["send", *map(reference, delivered)]
    return Answer(
        finding=Finding.ON_TIME,
        sureness=case.sure(),
        sentence=f"On time from us: {_when_it_came(trace, case.now)}{'' if delivered else took}",
        next="Nothing to mend here. After it was delivered, only the mailbox can tell why it was seen late."
        if delivered
        else "Nothing to mend here. When it was delivered, the provider has not told.",
        proof=[*taken_proof(trace), *proof_of(trace, rows)],
        about=trace.send.id,
        times=when(when=_came(trace), first=begin),
    )
