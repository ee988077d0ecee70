"""A complaint and the evidence about it, what an answer is, and the facts that several causes look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from itertools import combinations
from uuid import UUID

from dashboard.insight.judging import (
    Cause,
    Sureness,
    Verdict,
    acceptance_proof,
    one_of_several,
    proving_events,
    recognised,
    unanswered,
)
from dashboard.insight.verdict import judged
from dashboard.insight.wording import at, isolated, reference
from dashboard.ledger.evidence import MARGIN, Evidence, Stray, UnreadableRequest, WaitingRequest
from dashboard.ledger.trace import Attempt, Trace
from dashboard.lifecycle import State


class Complaint(StrEnum):
    """What the customer says."""

    TWICE = "twice"
    NEVER = "never"
    LATE = "late"
    UNWANTED = "unwanted"


class Finding(StrEnum):
    """The closed set of causes of a complaint. Those of one send (``judging.Cause``) keep their names."""

    # twice
    ACCEPTED_MORE_THAN_ONCE = "accepted_more_than_once"
    SAME_CONTENT_TWO_KEYS = "same_content_two_keys"
    SAME_CONTENT_TWO_STREAMS = "same_content_two_streams"
    MAY_BE_TWO = "may_be_two"
    DELIVERED_TWICE = "delivered_twice"
    BESIDE_SENDONCE = "beside_sendonce"
    TWO_REVISIONS = "two_revisions"
    TWO_OCCURRENCES = "two_occurrences"
    ONE_MESSAGE_COPIED = "one_message_copied"
    ONE_COPY = "one_copy"
    ONE_AT_MOST = "one_at_most"
    NO_COPY = "no_copy"
    # never: no send came of it
    IN_OUTBOX = "in_outbox"
    UNREADABLE_REQUEST = "unreadable_request"
    OTHER_CONTENT_REFUSED = "other_content_refused"
    KEY_USED_BEFORE = "key_used_before"
    NEVER_TRIGGERED = "never_triggered"
    # never: what became of the send
    FAILED = "failed"
    SUPPRESSED = "suppressed"
    CANCELLED = "cancelled"
    REFUSED_AFTER_TAKING = "refused_after_taking"
    BOUNCED = "bounced"
    HELD = "held"
    HELD_IN_DOUBT = "held_in_doubt"
    UNKNOWN = "unknown"
    MAY_HAVE_LEFT = "may_have_left"
    WORKER_STOPPED = "worker_stopped"
    STALE_CLAIM = "stale_claim"
    PAUSED = "paused"
    WAITS_FOR_CALLER = "waits_for_caller"
    WAITS_TO_RETRY = "waits_to_retry"
    BACKLOG = "backlog"
    SCHEDULED = "scheduled"
    SUBMITTING = "submitting"
    CLAIMED = "claimed"
    DEFERRED = "deferred"
    MARKED_ACCEPTED = "marked_accepted"
    SILENT = "silent"
    TAKEN = "taken"
    COMPLAINED = "complained"
    DELIVERED = "delivered"
    REPLIED_TO = "replied_to"
    CONTRADICTION = "contradiction"
    # late
    STILL_ON_ITS_WAY = "still_on_its_way"
    ASKED_LATE = "asked_late"
    WAITED_IN_OUTBOX = "waited_in_outbox"
    ASKED_FOR_LATER = "asked_for_later"
    WAITED_FOR_WORKER = "waited_for_worker"
    WORKER_HAD_STOPPED = "worker_had_stopped"
    WAS_PAUSED = "was_paused"
    PROVIDER_WAS_SLOW = "provider_was_slow"
    WAS_UNKNOWN = "was_unknown"
    WAS_HELD = "was_held"
    HAD_FAILED = "had_failed"
    WAS_DEFERRED = "was_deferred"
    PASSED_ON_LATE = "passed_on_late"
    ON_TIME = "on_time"
    # unwanted
    TAKEN_THOUGH_STOPPED = "taken_though_stopped"
    CANCEL_TOO_LATE = "cancel_too_late"
    BEFORE_OPT_OUT = "before_opt_out"
    OPT_OUT_HEARD_LATE = "opt_out_heard_late"
    EXEMPT = "exempt"
    OPT_OUT_LIFTED = "opt_out_lifted"
    NO_OPT_OUT = "no_opt_out"
    NOT_BY_US = "not_by_us"
    # all
    NOTHING_KNOWN = "nothing_known"


@dataclass(frozen=True, slots=True)
class Proof:
    """A row that proves something: of a send as ``Entry.evidence`` names it, or with ``send`` None one beside all."""

    send: UUID | None
    row: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to a complaint: one sentence (without its full stop), one cause, how sure, and the rows that prove it.

    ``next``: what to do. ``would_tell``: what would make it sure; empty where it is proved. ``about``: the send that it
    is about, where it is about one. ``times``: what the reply may say, by the names of its placeholders.
    """

    finding: Finding
    sureness: Sureness
    sentence: str
    next: str
    would_tell: str = ""
    proof: list[Proof] = field(default_factory=list)
    about: UUID | None = None
    times: Mapping[str, datetime] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """What causes look at. ``now`` is in the customer's zone. ``message_ids`` stood in the headers that were pasted."""

    complaint: Complaint
    evidence: Evidence
    now: datetime
    message_ids: tuple[str, ...] = ()

    @cached_property
    def verdicts(self) -> dict[UUID, Verdict]:
        """What became of each send, as its own page tells it; sentences are without their full stops."""
        return {trace.send.id: judged(trace, self.now) for trace in self.evidence.traces}

    def with_cause(self, *causes: Cause) -> list[Trace]:
        """The sends that are meant of which one of these is told, the nearest to the time first."""
        return [trace for trace in self.meant if self.verdicts[trace.send.id].cause in causes]

    @cached_property
    def taken(self) -> list[Trace]:
        """The sends that are meant and that a provider is proved to have taken, the nearest to the time first."""
        return [trace for trace in self.meant if least_copies(trace)]

    @cached_property
    def meant(self) -> list[Trace]:
        """The sends that are meant, the nearest to the time first: what is named. For one that ended without a copy
        those stand that brought the same person the same under another key, or still may.
        """
        living = [trace for trace in self.evidence.traces if trace.work is not None or most_copies(trace)]
        over = [trace for trace in self.evidence.named if trace not in living]
        replaced = [trace for trace in over if any(self._alike(trace, other) for other in living)]
        instead = [
            near for near in self.evidence.beside if near in living and any(self._alike(near, t) for t in replaced)
        ]
        return [*(trace for trace in self.evidence.named if trace not in replaced), *instead]

    def _alike(self, one: Trace, other: Trace) -> bool:
        return same_content(one, other) and self.evidence.same_person(one, other)

    def pairs(self) -> Iterator[tuple[Trace, Trace]]:
        """Each two sends to one person, of which one at least is meant; the nearest pairs first."""
        meant = {trace.send.id for trace in self.meant}
        for one, other in combinations(self.evidence.traces, 2):
            if (one.send.id in meant or other.send.id in meant) and self.evidence.same_person(one, other):
                first, second = sorted((one, other), key=lambda trace: (trace.send.asked_at, trace.send.id))
                yield first, second

    @property
    def end(self) -> datetime:
        """The end of the time that is asked about."""
        return self.evidence.around[1] if self.evidence.around else self.now

    def sure(self, sureness: Sureness = Sureness.PROVED) -> Sureness:
        """As sure as that, if all there is was looked at; else no more than likely."""
        return Sureness.LIKELY if self.evidence.cut and sureness is Sureness.PROVED else sureness


# ── copies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def least_copies(trace: Trace) -> int:
    """How many copies a provider is proved to have taken. A person's word alone proves none."""
    if trace.winning_attempt is None and not trace.provider_message_ids and not proving_events(trace):
        return 0
    return max(1, trace.acceptances)


def most_copies(trace: Trace) -> int:
    """How many copies may have left: calls without an answer may have been taken. Repeats that the provider is bound to
    recognise by their key are one with the first."""
    doubts = [a for a in trace.attempts if a.n not in _proved(trace) and _may_have_left(a, trace)]
    if not doubts:
        return least_copies(trace)
    if recognised(trace):
        return max(1, least_copies(trace))
    return least_copies(trace) + len(doubts)


def _proved(trace: Trace) -> set[int]:
    """The attempts that are counted as proved."""
    if not least_copies(trace):
        return set()
    return {a.n for a in trace.accepted_attempts if a.provider_message_id or a.settled_by != "person"}


def _may_have_left(attempt: Attempt, trace: Trace) -> bool:
    marked = attempt.status == "accepted" and attempt.settled_by == "person" and not attempt.provider_message_id
    return marked or attempt in unanswered(trace)


def same_content(one: Trace, other: Trace) -> bool:
    """Whether the recipient would see the same. Of a tombstone that is not known any more."""
    return (
        one.send.fingerprint == other.send.fingerprint
        and one.send.stripped_at is None
        and other.send.stripped_at is None
    )


def same_trigger(one: Trace, other: Trace) -> bool:
    """Whether one thing that happened asked for both."""
    return (one.send.trigger_type, one.send.trigger_id) == (other.send.trigger_type, other.send.trigger_id)


def asked_again(case: Case, trace: Trace) -> tuple[datetime, Proof] | None:
    """Where a send of long before is meant because it was asked for again in the time that is named: when, and the row
    that says so."""
    around = case.evidence.question.around
    if around is None or trace.send.recorded_at >= around[0] - MARGIN:
        return None
    for request in case.evidence.waiting:
        if request.send_id == trace.send.id:
            return request.asked_at, beside(request)
    for duplicate in reversed(trace.duplicates):
        if around[0] - MARGIN <= duplicate.at <= around[1] + MARGIN:
            return duplicate.at, Proof(trace.send.id, reference(duplicate))
    return None


# ── words and proof ──────────────────────────────────────────────────────────────────────────────────────────────────

LONGEST_NAME = 60
"""Characters of a name in a sentence; whole names stand in the evidence."""


def short(text: str) -> str:
    """A name that does not burst a sentence, nor turn its direction round."""
    text = isolated(text)
    return text if len(text) <= LONGEST_NAME else isolated(f"{text[: LONGEST_NAME - 1]}…")


def stream_of(trace: Trace) -> str:
    """The mailstream and its owner: ``receipts (Payments team)``."""
    owner = trace.stream.owner if trace.stream else ""
    return f"{short(trace.send.mailstream)} ({short(owner)})" if owner else short(trace.send.mailstream)


def owner_of(trace: Trace) -> str:
    """Whoever may change its trigger."""
    owner = trace.stream.owner if trace.stream else ""
    return short(owner) or f"the owner of {short(trace.send.mailstream)}"


def trigger_of(trace: Trace) -> str:
    """What asked for it: ``order.paid evt_991``."""
    return short(f"{trace.send.trigger_type} {trace.send.trigger_id}".strip()) or "nothing that is known any more"


def taken_at(trace: Trace) -> datetime | None:
    """When a provider took it first: its answer, or the call that turned out taken without one.

    Of several calls under one key, whose answers all name the same message, nobody here knows which was taken first:
    then the provider's own time tells.
    """
    attempts, events = trace.accepted_attempts, proving_events(trace)
    if attempts and not one_of_several(trace):
        return attempts[0].started_at if attempts[0].doubted_at else attempts[0].finished_at
    if events:
        return min(event.occurred_at for event in events)
    return trace.send.settled_at if trace.state == State.ACCEPTED else trace.send.taken_at


def taken_words(trace: Trace, now: datetime) -> str:
    """``at 14:03:22``; nothing where it was not taken."""
    time = taken_at(trace)
    return at(time, now) if time else ""


def proof_of(trace: Trace, rows: Iterable[str]) -> list[Proof]:
    """These rows of a send."""
    return [Proof(trace.send.id, row) for row in dict.fromkeys(rows)]


def taken_proof(trace: Trace) -> list[Proof]:
    """The rows that prove that a provider took it; failing all others its own."""
    rows = acceptance_proof(trace) or [reference(event) for event in proving_events(trace)[:1]]
    return proof_of(trace, rows or ["send"])


def beside(row: WaitingRequest | UnreadableRequest | Stray) -> Proof:
    """A row that belongs to no send."""
    kinds = {WaitingRequest: "outbox", UnreadableRequest: "dead letter", Stray: "unmatched event"}
    return Proof(None, f"{kinds[type(row)]} {row.id}")


_OWN_WORDS = (
    "Accepted",
    "Cancelled",
    "Claimed",
    "Failed",
    "Held",
    "Scheduled",
    "Suppressed",
    "The",
    "Unknown",
    "Waits",
)


def between(around: tuple[datetime, datetime], now: datetime) -> str:
    """``between 14:00:00 and 16:00:00``, or with the days where these are others."""
    since, until = (at(time, now).removeprefix("at ").removeprefix("on ") for time in around)
    return f"between {since} and {until}"


def uncapitalised(sentence: str) -> str:
    """A sentence of a verdict as the end of another one; a name at its beginning stays as it is."""
    return f"{sentence[:1].lower()}{sentence[1:]}" if sentence.startswith(_OWN_WORDS) else sentence


def when(**times: datetime | None) -> dict[str, datetime]:
    """The times that a reply may tell, as far as they are known."""
    return {name: time for name, time in times.items() if time is not None}


SHORT_WAIT = timedelta(minutes=1)
"""Below this nobody calls an email late."""
