"""The life of a send: its states, the moves between them, and who makes each move.

This table is the only place that spells a transition. The database's enums and CHECKs, the set-based statements in
``ledger/moves.py``, the drawing in ``docs/life-of-a-send.md`` and the random walks of the tests are derived from it
or compared with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where a send is. The first four are *open* (they have a work row), the other four are *settled*."""

    PENDING = "pending"  # waits for a worker; a wait always carries a reason and the time of its next try
    CLAIMED = "claimed"  # one worker owns it until its lease ends
    UNKNOWN = "unknown"  # an attempt may have been taken; evidence, policy or a person will tell
    HELD = "held"  # only a person may decide
    ACCEPTED = "accepted"  # a provider took it
    FAILED = "failed"  # every attempt was definitely refused, and no further one is planned
    SUPPRESSED = "suppressed"  # the recipient must not get it
    CANCELLED = "cancelled"  # nobody wants it any more


OPEN_STATES = (State.PENDING, State.CLAIMED, State.UNKNOWN, State.HELD)
SETTLED_STATES = (State.ACCEPTED, State.FAILED, State.SUPPRESSED, State.CANCELLED)


class By(StrEnum):
    """Who makes a move."""

    RELAY = "relay"
    API = "api"
    WORKER = "worker"
    SWEEP = "sweep"
    RECONCILE = "reconcile"
    EVENT = "event"
    PERSON = "person"
    SCHEDULE = "schedule"
    CALLER = "caller"


@dataclass(frozen=True, slots=True)
class Move:
    """One allowed transition. ``recorded`` as a source means that there was no row before."""

    name: str
    from_states: tuple[State | None, ...]
    to_states: tuple[State, ...]
    made_by: tuple[By, ...]
    when: str


RECORD = Move(
    "record",
    (None,),
    (State.PENDING, State.FAILED),
    (By.RELAY, By.API, By.CALLER),
    "a key arrives for the first time; failed where its message cannot be rendered",
)
CLAIM = Move("claim", (State.PENDING,), (State.CLAIMED,), (By.WORKER, By.CALLER), "it is due and nothing pauses it")
GIVE_BACK = Move(
    "give_back",
    (State.CLAIMED,),
    (State.PENDING,),
    (By.WORKER, By.SWEEP, By.CALLER),
    "no attempt is open, and none is ambiguous unless its release is unused",
)
ACCEPT = Move(
    "accept",
    (State.CLAIMED, State.PENDING, State.UNKNOWN, State.HELD, State.FAILED),
    (State.ACCEPTED,),
    (By.WORKER, By.RECONCILE, By.EVENT, By.PERSON, By.CALLER),
    "the provider said yes, or evidence proves that it did",
)
DOUBT = Move(
    "doubt",
    (State.CLAIMED,),
    (State.UNKNOWN,),
    (By.WORKER, By.SWEEP, By.CALLER),
    "an attempt is open or ambiguous and nobody knows what became of it",
)
RETRY_LATER = Move(
    "retry_later",
    (State.CLAIMED, State.UNKNOWN, State.HELD),
    (State.PENDING,),
    (By.WORKER, By.CALLER),
    "definitely refused for now",
)
FAIL = Move(
    "fail",
    (State.CLAIMED, State.UNKNOWN, State.HELD),
    (State.FAILED,),
    (By.WORKER, By.RECONCILE, By.CALLER),
    "every attempt was refused or never written, and no further one is allowed",
)
HOLD = Move(
    "hold",
    (State.PENDING, State.CLAIMED, State.UNKNOWN),
    (State.HELD,),
    (By.WORKER, By.RECONCILE, By.SWEEP, By.SCHEDULE, By.CALLER),
    "no machine should decide",
)
SUPPRESS = Move(
    "suppress",
    (State.PENDING, State.CLAIMED),
    (State.SUPPRESSED,),
    (By.WORKER, By.CALLER),
    "the recipient must not get it",
)
CANCEL = Move(
    "cancel",
    (State.PENDING, State.CLAIMED, State.UNKNOWN, State.HELD),
    (State.CANCELLED,),
    (By.PERSON, By.RECONCILE, By.WORKER, By.SWEEP, By.API, By.CALLER),
    "a person, a policy or lateness ends it",
)
RELEASE = Move(
    "release",
    (State.UNKNOWN, State.HELD),
    (State.PENDING,),
    (By.RECONCILE, By.PERSON),
    "policy, a person, or proof that no attempt was taken allows another attempt",
)
REPLAY = Move(
    "replay", (State.FAILED,), (State.PENDING,), (By.PERSON,), "a person asks for it again under the same key"
)

MOVES = (
    RECORD, CLAIM, GIVE_BACK, ACCEPT, DOUBT, RETRY_LATER, FAIL, HOLD, SUPPRESS, CANCEL, RELEASE, REPLAY,
)  # fmt: skip


class AttemptStatus(StrEnum):
    """What became of one provider call."""

    SUBMITTING = "submitting"  # written ahead; the call may be running
    ACCEPTED = "accepted"
    REJECTED = "rejected"  # a definite no
    AMBIGUOUS = "ambiguous"  # may have been taken
    ABANDONED = "abandoned"  # proved never written


class Verdict(StrEnum):
    """What one arrival of a key met. The first arrival *won*; it is the send itself."""

    WON = "won"
    DUPLICATE = "duplicate"  # the send was settled
    IN_PROGRESS = "in_progress"  # the send was not settled: the queue must not take the job as done
    MISMATCH = "mismatch"  # other content under the same key: never sent, never silent


class EventType(StrEnum):
    """What a provider may tell about a message."""

    ACCEPTED = "accepted"
    DEFERRED = "deferred"
    DELIVERED = "delivered"
    BOUNCED = "bounced"
    REJECTED = "rejected"
    FAILED = "failed"
    COMPLAINED = "complained"
    UNSUBSCRIBED = "unsubscribed"
    RESUBSCRIBED = "resubscribed"
    OPENED = "opened"
    CLICKED = "clicked"
    AUTO_REPLY = "auto_reply"
    UNKNOWN = "unknown"


class Delivery(StrEnum):
    """The delivery outcome, folded from events; a separate fact from the state.

    In order of rank: the fold keeps the word of the highest, so that events may come in any order (DESIGN §3).
    """

    ACCEPTED = "accepted"
    DEFERRED = "deferred"
    DELIVERED = "delivered"
    FAILED = "failed"
    REJECTED = "rejected"
    BOUNCED = "bounced"
    COMPLAINED = "complained"


DELIVERY_OF_EVENT: dict[EventType, Delivery] = {
    EventType.ACCEPTED: Delivery.ACCEPTED,
    EventType.DEFERRED: Delivery.DEFERRED,
    EventType.DELIVERED: Delivery.DELIVERED,
    EventType.BOUNCED: Delivery.BOUNCED,
    EventType.REJECTED: Delivery.REJECTED,
    EventType.FAILED: Delivery.FAILED,
    EventType.COMPLAINED: Delivery.COMPLAINED,
    # An open or a click says nothing more about delivery than that it must have happened (inferred).
    EventType.OPENED: Delivery.DELIVERED,
    EventType.CLICKED: Delivery.DELIVERED,
    EventType.UNSUBSCRIBED: Delivery.DELIVERED,
    EventType.AUTO_REPLY: Delivery.DELIVERED,
}
"""``resubscribed`` and ``unknown`` say nothing about delivery."""

PROVES_ACCEPTANCE = frozenset(EventType) - {EventType.UNKNOWN, EventType.RESUBSCRIBED}
"""Any verified event of a known type, refusals included, proves that the provider took the message (DESIGN §5.5)."""


class MailClass(StrEnum):
    """The kind of mail, in claiming order; its defaults are in ``ledger/streams.py``."""

    SECURITY = "security"
    TRANSACTIONAL = "transactional"
    LIFECYCLE = "lifecycle"
    SCHEDULED = "scheduled"
    CAMPAIGN = "campaign"


BULK = frozenset({MailClass.LIFECYCLE, MailClass.SCHEDULED, MailClass.CAMPAIGN})
"""The classes whose mail may wait for others."""


class RunBy(StrEnum):
    """Whose code makes the provider call."""

    WORKER = "worker"
    CALLER = "caller"


class Decision(StrEnum):
    """What a person may decide on a held send."""

    RESEND = "resend"
    MARK_ACCEPTED = "mark_accepted"
    CANCEL = "cancel"


class Reason(StrEnum):
    """Why a send is where it is: a closed list, in one place, so that every page can explain each of them."""

    # pending
    DUE = "due"  # waits for a free worker
    SCHEDULED = "scheduled"  # was asked for with a later time
    REFUSED_FOR_NOW = "refused_for_now"  # the provider said: later
    PROVIDER_PAUSED = "provider_paused"  # trouble of the account, not of this send
    NO_CAPACITY = "no_capacity"  # claimed, but no slot or rate token was free in time
    STREAM_PAUSED = "stream_paused"
    WORKER_STOPPED = "worker_stopped"  # its claim ran out, or its worker stopped politely, before any attempt
    NEVER_WRITTEN = "never_written"  # the attempt is proved not to have left
    RELEASED_BY_KEY = "released_by_key"  # the provider honours the idempotency key of the unanswered attempt
    RELEASED_BY_PERSON = "released_by_person"
    PROVED_NOT_TAKEN = "proved_not_taken"  # every attempt turned out refused or never written
    REPLAYED = "replayed"
    WAITS_FOR_CALLER = "waits_for_caller"  # run by the caller: its next delivery may send it
    # claimed
    CLAIMED = "claimed"
    # unknown
    NO_ANSWER = "no_answer"  # the provider may have taken it and did not say
    WORKER_LOST = "worker_lost"  # the worker stopped while the call was running
    EARLIER_DOUBT = "earlier_doubt"  # the last attempt was refused, an earlier one may have been taken
    # held
    UNCONFIRMED = "unconfirmed"  # still unknown after its grace period
    WENT_IN_A_BATCH = "went_in_a_batch"  # its unanswered call carried others too: alone it would be another call
    KEY_ENDED = "key_ended"  # a release no longer holds: the provider has forgotten the key, or the account changed
    LATE = "late"  # past the time at which its mailstream still wants it
    WORKERS_STOP_ON_IT = "workers_stop_on_it"  # several claims ended without an attempt
    ATTEMPTS_USED_UP = "attempts_used_up"  # also failed
    MESSAGE_GONE = "message_gone"  # its content was scrubbed or cannot be decrypted
    LEDGER_MOVED = "ledger_moved"  # the database was restored, cloned or failed over since
    # failed
    REFUSED = "refused"  # the provider will never take this message
    CANNOT_RENDER = "cannot_render"
    CANNOT_BE_WRITTEN = "cannot_be_written"  # the adapter has no way to express it
    # suppressed
    BOUNCED_BEFORE = "bounced_before"
    COMPLAINED_BEFORE = "complained_before"
    UNSUBSCRIBED = "unsubscribed"
    SUPPRESSED_BY_PERSON = "suppressed_by_person"
    # cancelled
    CANCELLED_BY_PERSON = "cancelled_by_person"
    STILL_UNKNOWN = "still_unknown"  # the mailstream's policy: rather none than a late or second one
    # accepted
    ANSWERED = "answered"  # the provider's own yes to the call
    EVENT = "event"  # an event proves it
    LATE_ANSWER = "late_answer"  # the worker's answer came after its claim had ended
    MARKED_BY_PERSON = "marked_by_person"
