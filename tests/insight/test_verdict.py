"""What became of a send, for every state it can be in: the sentence, the cause, how sure, and what comes next."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta, timezone
from typing import Any
from uuid import UUID

import pytest

from dashboard.insight import causes, causes_accepted, causes_open, causes_stopped
from dashboard.insight.judging import Cause, Sureness
from dashboard.insight.timeline import timeline
from dashboard.insight.verdict import Verdict, verdict
from dashboard.insight.wording import REASONS
from dashboard.ledger.database import Connection
from dashboard.ledger.trace import Trace, read_trace
from dashboard.lifecycle import Reason, State
from tests.factories import Factory, at

PROVED, LIKELY, CANNOT_TELL = Sureness.PROVED, Sureness.LIKELY, Sureness.CANNOT_TELL


def read(factory: Factory, send: UUID) -> Trace:
    found = read_trace(factory.connection, factory.workspace, send)
    assert found is not None
    return found


def alter(factory: Factory, query: str, **bind: Any) -> None:
    factory.connection.execute("update sendonce." + query, bind)  # type: ignore[arg-type]


# ── what happened ────────────────────────────────────────────────────────────────────────────────────────────────────


def told(word: str, **event: Any) -> Callable[[Factory], UUID]:
    """Accepted, and the provider told one thing more."""

    def make(factory: Factory) -> UUID:
        send = factory.accepted()
        when = event.pop("occurred", 4.4)
        factory.event(send, event.pop("kind", word), occurred=when, **event)
        factory.delivery(send, word, when=when)
        return send

    return make


def asked_three_times(factory: Factory) -> UUID:
    send = told("delivered")(factory)
    factory.duplicate(send, when=10)
    factory.duplicate(send, when=20, verdict="in_progress")
    return send


def asked_with_other_content(factory: Factory) -> UUID:
    send = factory.accepted()
    factory.duplicate(send, when=10, verdict="mismatch", difference=["content"])
    return send


def proved_by_event(factory: Factory) -> UUID:
    send = factory.unknown()
    event = factory.event(send, "delivered", occurred=4, received=50)
    factory.settle(send, "accepted", Reason.EVENT, when=50)
    alter(
        factory,
        "attempts set status = 'accepted', finished_at = %(at)s, settled_by = 'event', provider_message_id = 'msg-1'",
        at=at(50),
    )
    factory.move(
        send, "accept", "unknown", "accepted", Reason.EVENT, when=50, made_by="event", event_id=event, attempt=1
    )
    factory.delivery(send, "delivered", when=4)
    return send


def second_id(factory: Factory) -> UUID:
    send = factory.accepted()
    factory.add(
        "second_message_ids", send_id=send, account_id=factory.account, provider_message_id="msg-2", seen_at=at(70)
    )
    return send


def resent_and_taken_twice(factory: Factory) -> UUID:
    send = factory.held()
    factory.decision(send, "resend", when=2000, after="pending")
    factory.move(
        send,
        "release",
        "held",
        "pending",
        Reason.RELEASED_BY_PERSON,
        when=2000,
        made_by="person",
        user_id=factory.person,
    )
    factory.settle(send, "accepted", Reason.ANSWERED, when=2010)
    alter(factory, "attempts set status = 'accepted', provider_message_id = 'msg-1', settled_by = 'event'")
    factory.attempt(send, n=2, started=2005, finished=2010, status="accepted", provider_message_id="msg-2")
    return send


def marked_by_person(factory: Factory) -> UUID:
    send = factory.held()
    factory.decision(send, "mark_accepted", when=2000, after="accepted", reason="they have it")
    factory.settle(send, "accepted", Reason.MARKED_BY_PERSON, when=2000)
    alter(factory, "attempts set status = 'accepted', settled_by = 'person', finished_at = %(at)s", at=at(2000))
    factory.move(
        send, "accept", "held", "accepted", Reason.MARKED_BY_PERSON, when=2000, made_by="person", user_id=factory.person
    )
    return send


def cancelled_in_doubt(factory: Factory) -> UUID:
    send = factory.held()
    factory.decision(send, "cancel", when=2000, after="cancelled")
    factory.settle(send, "cancelled", Reason.CANCELLED_BY_PERSON, when=2000)
    factory.move(
        send,
        "cancel",
        "held",
        "cancelled",
        Reason.CANCELLED_BY_PERSON,
        when=2000,
        made_by="person",
        user_id=factory.person,
    )
    return send


def cancelled_but_taken(factory: Factory) -> UUID:
    send = cancelled_in_doubt(factory)
    factory.event(send, "delivered", occurred=4, received=2500)
    alter(factory, "sends set taken_at = %(at)s", at=at(2500))
    factory.delivery(send, "delivered", when=4)
    return send


def cancelled_by_policy(factory: Factory) -> UUID:
    send = factory.settled("cancelled", Reason.LATE, settled=700)
    factory.move(send, "cancel", "claimed", "cancelled", Reason.LATE, when=700, worker=factory.worker)
    return send


def held_after_a_shared_call(made: Factory) -> UUID:
    send = made.held()
    made.share_a_call(send, made.accepted(recipient="two"), made.failed(recipient="three"))
    return send


def unknown_after_a_shared_call(made: Factory) -> UUID:
    send = made.unknown()
    made.share_a_call(send, made.unknown(recipient="two"))
    return send


def submitting_in_a_shared_call(made: Factory) -> UUID:
    send = made.submitting()
    made.share_a_call(send, made.submitting(recipient="two"))
    return send


def suppressed_then_lifted(factory: Factory) -> UUID:
    send = factory.suppressed()
    alter(factory, "suppressions set suppressed = false, source = 'person', said_at = %(at)s", at=at(500))
    return send


def never_rendered(factory: Factory) -> UUID:
    send = factory.settled("failed", Reason.CANNOT_RENDER, settled=0.1)
    factory.move(
        send, "record", None, "failed", Reason.CANNOT_RENDER, when=0.1, made_by="relay", detail="'name' is undefined"
    )
    return send


# ── what is open ─────────────────────────────────────────────────────────────────────────────────────────────────────


def refused_for_now(factory: Factory) -> UUID:
    send = factory.pending(claim_at=130, reason=Reason.REFUSED_FOR_NOW)
    factory.attempt(send, finished=3, status="rejected", error_code="429", reason="Too many requests")
    alter(factory, "work set last_attempt = 1, first_attempt_at = %(at)s", at=at(2))
    return send


def released_by_key(factory: Factory) -> UUID:
    send = factory.unknown()
    alter(
        factory,
        "work set state = 'pending', reason = 'released_by_key', claim_at = %(at)s, check_at = null,"
        " unknown_since = null, released_by = 'reconcile'",
        at=at(1900),
    )
    factory.move(
        send, "release", "unknown", "pending", Reason.RELEASED_BY_KEY, when=1900, made_by="reconcile", attempt=1
    )
    return send


def paused_stream(factory: Factory) -> UUID:
    send = factory.pending()
    alter(factory, "mailstreams set paused_at = %(at)s, paused_reason = 'wrong price'", at=at(-60))
    return send


def paused_workspace(factory: Factory) -> UUID:
    send = factory.pending()
    alter(factory, "workspaces set paused_at = %(at)s, paused_reason = 'incident 7'", at=at(-60))
    return send


def paused_provider(factory: Factory) -> UUID:
    send = factory.pending()
    alter(factory, "accounts set paused_until = %(at)s, paused_reason = 'quota used up'", at=at(300))
    return send


def stopped_provider(factory: Factory) -> UUID:
    send = factory.pending()
    alter(factory, "accounts set paused_until = 'infinity', paused_reason = 'wrong API key'")
    return send


def run_by_its_caller(factory: Factory) -> UUID:
    send = factory.pending(run_by="caller", reason=Reason.WAITS_FOR_CALLER)
    alter(factory, "work set run_by = 'caller'")
    return send


def claimed_by_a_job(factory: Factory) -> UUID:
    send = factory.claimed(run_by="caller")
    factory.connection.execute("delete from sendonce.workers")
    return send


def unknown_worker(factory: Factory) -> UUID:
    send = factory.claimed()
    factory.connection.execute("delete from sendonce.workers")
    return send


@dataclass(frozen=True)
class Case:
    make: Callable[[Factory], UUID]
    cause: Cause
    sureness: Sureness
    says: str
    next: str
    now: float = 4000
    world: dict[str, Any] = field(default_factory=dict)


def answered(factory: Factory) -> UUID:
    send = told("delivered")(factory)
    factory.reply(send, when=3603)
    return send


CASES = {
    "answered_by_its_recipient": Case(
        answered,
        Cause.REPLIED_TO,
        PROVED,
        "Accepted by Resend once, at 12:00:02, delivered to the mail server 2 s later, and answered from the "
        "recipient's address 1 h later.",
        "It arrived",
    ),
    "accepted_and_delivered": Case(
        told("delivered"),
        Cause.DELIVERED,
        PROVED,
        "Accepted by Resend once, at 12:00:02, and delivered to the mail server 2 s later.",
        "Nothing more",
    ),
    "asked_three_times": Case(
        asked_three_times,
        Cause.DELIVERED,
        PROVED,
        "Accepted by Resend once, at 12:00:02, and delivered to the mail server 2 s later; "
        "it was asked for 3 times, and the 2 later requests were refused as duplicates.",
        "Nothing more",
    ),
    "asked_with_other_content": Case(
        asked_with_other_content,
        Cause.SILENT,
        PROVED,
        "asked for 2 times, and the later request was refused for having other content under the same key.",
        "An event",
    ),
    "opened_only": Case(
        told("delivered", kind="opened"), Cause.DELIVERED, LIKELY, "probably delivered", "Nothing more"
    ),
    "silent": Case(
        Factory.accepted,
        Cause.SILENT,
        PROVED,
        "nothing was told about its delivery in the 1 h 6 min since.",
        "An event",
    ),
    "bounced": Case(
        told("bounced", bounce_class="hard", reason="550 no such user"),
        Cause.BOUNCED,
        PROVED,
        'the recipient\'s mail server refused it 2 s later (hard): "550 no such user".',
        "Nothing further",
    ),
    "complained": Case(
        told("complained", occurred=900), Cause.COMPLAINED, PROVED, "reported it as spam 14 min later.", "Nothing"
    ),
    "rejected": Case(
        told("rejected"), Cause.REFUSED_AFTER_TAKING, PROVED, "then refused to pass it on 2 s later.", "Nothing"
    ),
    "failed_later": Case(
        told("failed"), Cause.REFUSED_AFTER_TAKING, PROVED, "then failed to pass it on 2 s later.", "Nothing"
    ),
    "deferred": Case(
        told("deferred", reason="421 busy"),
        Cause.DEFERRED,
        PROVED,
        'put it off at 12:00:04: "421 busy"',
        "Resend goes on",
    ),
    "proved_by_event": Case(
        proved_by_event,
        Cause.DELIVERED,
        PROVED,
        "Accepted by Resend once: the call at 12:00:02 got no answer, but the event "
        '"delivered" received at 12:00:50 proves that it was taken, and delivered',
        "Nothing more",
    ),
    "second_id": Case(
        second_id,
        Cause.ACCEPTED_MORE_THAN_ONCE,
        PROVED,
        "Accepted by Resend 2 times (message ids msg-1 and msg-2), so the recipient may have got it more than once.",
        "Nothing",
    ),
    "resent_and_taken_twice": Case(
        resent_and_taken_twice,
        Cause.ACCEPTED_MORE_THAN_ONCE,
        PROVED,
        "(attempt 1 at 12:00:02 and attempt 2 at 12:33:25), so the recipient may have got it more than once; "
        "Ada allowed the further attempt at 12:33:20",
        "Nothing",
    ),
    "marked_by_person": Case(
        marked_by_person,
        Cause.MARKED_ACCEPTED,
        LIKELY,
        'Ada counted it as accepted at 12:33:20: "they have it"; no answer or event of Resend proves it.',
        "Nothing further",
    ),
    "cancelled_in_doubt": Case(
        cancelled_in_doubt,
        Cause.MAY_HAVE_LEFT,
        CANNOT_TELL,
        'Cancelled by Ada at 12:33:20: "the customer asked", but it may have left: attempt 1 at 12:00:02',
        "Nothing further",
    ),
    "cancelled_but_taken": Case(
        cancelled_but_taken,
        Cause.TAKEN,
        PROVED,
        "but Resend had taken an earlier attempt all the same, as was proved at 12:41:40, and delivered",
        "Nothing further",
    ),
    "cancelled": Case(
        Factory.cancelled, Cause.CANCELLED, PROVED, "Cancelled by Ada at 12:00:02; no provider was asked", "Nothing"
    ),
    "cancelled_by_policy": Case(
        cancelled_by_policy,
        Cause.CANCELLED,
        PROVED,
        "Cancelled at 12:11:40, because it is later than its mailstream allows (due at 12:00:00, 11 min late by then);"
        " no provider was asked to take it.",
        "Nothing",
    ),
    "suppressed": Case(
        Factory.suppressed,
        Cause.SUPPRESSED,
        PROVED,
        "Suppressed at 12:00:02, because an earlier email to this address bounced for good (11:00:00",
        "Nothing further",
    ),
    "suppressed_then_lifted": Case(
        suppressed_then_lifted, Cause.SUPPRESSED, PROVED, "bounced for good; no", "This send stays"
    ),
    "failed": Case(
        Factory.failed,
        Cause.FAILED,
        PROVED,
        "the provider refused it for good: 1 attempt was refused; the last answer of Resend was 422",
        "Nothing further",
    ),
    "never_rendered": Case(
        never_rendered,
        Cause.FAILED,
        PROVED,
        "its template could not be filled in ('name' is undefined): no provider was asked",
        "Nothing",
    ),
    "held": Case(
        Factory.held,
        Cause.HELD_IN_DOUBT,
        CANNOT_TELL,
        "Held for a person since 12:30:32: attempt 1 at 12:00:02 got no answer from Resend (read timeout), so it may",
        "The provider recognises a repeat until 1 Dec at 12:00:02.",
    ),
    "held_without_key": Case(
        Factory.held,
        Cause.HELD_IN_DOUBT,
        CANNOT_TELL,
        "so it may have been taken",
        "submitting it again may make two",
        world={"key_window": None},
    ),
    "held_after_the_key_ended": Case(
        Factory.held,
        Cause.HELD_IN_DOUBT,
        CANNOT_TELL,
        "so it may have been taken",
        "may now make two",
        world={"key_window": timedelta(minutes=45)},
    ),
    "held_after_a_shared_call": Case(
        held_after_a_shared_call,
        Cause.HELD_IN_DOUBT,
        CANNOT_TELL,
        "attempt 1 at 12:00:02, in one call with 2 others, got no answer from Resend (read timeout), so it may have",
        "Its call carried others too, and alone it would be another call, so submitting it again may make two.",
    ),
    "unknown_after_a_shared_call": Case(
        unknown_after_a_shared_call,
        Cause.UNKNOWN,
        CANNOT_TELL,
        "attempt 1 at 12:00:02, in one call with 1 other, got no answer",
        "Unknown until 12:30:32, then held for a person",
        now=100,
        world={"unknown_policy": "release"},
    ),
    "submitting_in_a_shared_call": Case(
        submitting_in_a_shared_call,
        Cause.SUBMITTING,
        CANNOT_TELL,
        "(attempt 1, in one call with 1 other)",
        "The provider answers within seconds",
        now=5,
    ),
    "held_late": Case(
        Factory.held_late,
        Cause.HELD,
        PROVED,
        "Held for a person since 12:30:00, because it is later than its mailstream allows (due at 12:00:00, 30 min"
        " late by then); no provider was asked to take it",
        "release it or cancel it",
    ),
    "unknown_then_held": Case(
        Factory.unknown,
        Cause.UNKNOWN,
        CANNOT_TELL,
        "Unknown since 12:00:32: attempt 1 at 12:00:02 got no answer",
        "Unknown until 12:30:32, then held for a person",
        now=100,
    ),
    "unknown_then_released": Case(
        Factory.unknown,
        Cause.UNKNOWN,
        CANNOT_TELL,
        "may have been taken",
        "then submitted again under the same key",
        now=100,
        world={"unknown_policy": "release"},
    ),
    "unknown_then_held_for_want_of_a_key": Case(
        Factory.unknown,
        Cause.UNKNOWN,
        CANNOT_TELL,
        "may have been taken",
        "then held for a person",
        now=100,
        world={"unknown_policy": "release", "key_window": None},
    ),
    "unknown_past_its_key": Case(
        Factory.unknown,
        Cause.UNKNOWN,
        CANNOT_TELL,
        "may have been taken",
        "then held for a person",
        now=100,
        world={"unknown_policy": "release", "key_window": timedelta(minutes=5)},
    ),
    "unknown_then_cancelled": Case(
        Factory.unknown,
        Cause.UNKNOWN,
        CANNOT_TELL,
        "may have been taken",
        "then cancelled",
        now=100,
        world={"unknown_policy": "cancel"},
    ),
    "unknown_past_its_grace": Case(
        Factory.unknown, Cause.UNKNOWN, CANNOT_TELL, "may have been taken", "Its grace period ended at 12:30:32"
    ),
    "claimed": Case(
        Factory.claimed,
        Cause.CLAIMED,
        PROVED,
        "Claimed by worker host-1:4711:abcd at 12:00:01; no provider has been asked",
        "given back at 12:01:00 at the latest",
        now=10,
    ),
    "submitting": Case(
        Factory.submitting,
        Cause.SUBMITTING,
        CANNOT_TELL,
        "handing it to Resend since 12:00:02 (attempt 1).",
        "By 12:00:42 it is answered or becomes unknown.",
        now=10,
    ),
    "worker_stopped": Case(
        lambda f: f.claimed(lease=90),
        Cause.WORKER_STOPPED,
        PROVED,
        "which was last heard of at 12:00:00",
        "At 12:01:30 the claim ends, and it is given back",
        now=60,
    ),
    "worker_stopped_in_flight": Case(
        lambda f: f.submitting(lease=90),
        Cause.WORKER_STOPPED,
        CANNOT_TELL,
        "it may have been taken",
        "At 12:01:30 the claim ends, and it becomes unknown",
        now=60,
    ),
    "worker_unknown": Case(
        unknown_worker, Cause.WORKER_STOPPED, PROVED, "which is not known any more", "given back", now=10
    ),
    "claimed_by_a_job": Case(
        claimed_by_a_job,
        Cause.CLAIMED,
        PROVED,
        "Claimed by the job that asked for it at 12:00:01",
        "given back",
        now=10,
    ),
    "stale_claim": Case(
        lambda f: f.claimed(lease=15),
        Cause.STALE_CLAIM,
        PROVED,
        "whose claim ran out at 12:00:15",
        "As soon as a worker sweeps",
        now=20,
    ),
    "scheduled": Case(
        lambda f: f.pending(due=9000, reason=Reason.SCHEDULED),
        Cause.SCHEDULED,
        PROVED,
        "Scheduled for later: it is due at 14:30:00; no provider has been asked to take it yet.",
        "in 2 h 28 min",
        now=100,
    ),
    "backlog": Case(
        Factory.pending,
        Cause.BACKLOG,
        PROVED,
        "Waits for a free worker since 12:00:00",
        "it has waited for 100 s",
        now=100,
    ),
    "backlog_that_will_be_late": Case(
        Factory.pending,
        Cause.BACKLOG,
        PROVED,
        "Waits for a free worker",
        "If it has not been submitted by 12:10:00, it is cancelled.",
        now=100,
        world={"too_late_after": timedelta(minutes=10), "late_policy": "cancel"},
    ),
    "refused_for_now": Case(
        refused_for_now,
        Cause.WAITS_TO_RETRY,
        PROVED,
        'because the provider refused it for now; the last answer was 429: "Too many requests"',
        "12:02:10, in 30 s.",
        now=100,
    ),
    "released_by_key": Case(
        released_by_key, Cause.BACKLOG, CANNOT_TELL, "so it may have been taken already", "A worker takes it", now=2000
    ),
    "paused_stream": Case(
        paused_stream,
        Cause.PAUSED,
        PROVED,
        'its mailstream receipts is paused since 11:59:00: "wrong price"',
        "resumes it",
        now=9,
    ),
    "paused_workspace": Case(
        paused_workspace,
        Cause.PAUSED,
        PROVED,
        'all sending of this workspace is paused since 11:59:00: "incident 7"',
        "resumes it",
        now=9,
    ),
    "paused_provider": Case(
        paused_provider,
        Cause.PAUSED,
        PROVED,
        'the account main at Resend is paused: "quota used up"',
        "The pause ends at 12:05:00",
        now=9,
    ),
    "stopped_provider": Case(
        stopped_provider, Cause.PAUSED, PROVED, '"wrong API key"', "once a person resumes it", now=9
    ),
    "run_by_its_caller": Case(
        run_by_its_caller, Cause.WAITS_FOR_CALLER, PROVED, "Waits for its own job", "next delivery of the job", now=9
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_verdict_is(connection: Connection, case: Case) -> None:
    factory = Factory(connection, **case.world)
    trace = read(factory, case.make(factory))
    found = verdict(trace, at(case.now))
    assert (found.cause, found.sureness) == (case.cause, case.sureness)
    assert case.says in found.sentence
    assert case.next in found.next
    _holds_what_every_verdict_promises(trace, found)


def _holds_what_every_verdict_promises(trace: Trace, found: Verdict) -> None:
    assert found.sentence.endswith(".")
    assert ".." not in found.sentence
    assert " sent" not in f" {found.sentence} {found.next}".replace("resent", "")
    assert found.proof, "every verdict names what it rests on"
    shown = {entry.evidence for entry in timeline(trace)} | {
        "work",
        *(f"suppression {r.scope}" for r in trace.suppressions),
    }
    assert set(found.proof) <= shown


def test_every_cause_has_a_case() -> None:
    assert {case.cause for case in CASES.values()} | {Cause.CONTRADICTION} == set(Cause)


def test_every_cause_function_is_asked() -> None:
    defined = {
        function
        for module in (causes_accepted, causes_stopped, causes_open)
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__ and not name.startswith("_")
    }
    assert set(causes.CAUSES) == defined


def test_every_reason_has_words() -> None:
    assert set(REASONS) == set(Reason)


def test_a_ledger_that_contradicts_itself_is_not_guessed_from(factory: Factory) -> None:
    send = factory.pending()
    factory.connection.execute("delete from sendonce.work")
    found = verdict(read(factory, send), at(100))
    assert (found.cause, found.sureness) == (Cause.CONTRADICTION, CANNOT_TELL)
    assert "sendonce verify" in found.next


def test_nothing_with_an_unanswered_attempt_is_proved_untaken(factory: Factory) -> None:
    for make in (factory.unknown, factory.held, factory.submitting):
        trace = read(factory, make())
        for hours in (0, 1, 100):
            assert verdict(trace, at(3600 * hours)).sureness == CANNOT_TELL


def marked(factory: Factory) -> UUID:
    send = factory.settled("accepted", Reason.MARKED_BY_PERSON, settled=50, attempts=1)
    factory.attempt(send, finished=32, status="ambiguous", doubted=32)
    factory.move(send, "accept", "held", "accepted", Reason.MARKED_BY_PERSON, when=50, made_by="person")
    return send


def left(factory: Factory) -> UUID:
    send = factory.cancelled()
    factory.attempt(send, finished=32, status="ambiguous", doubted=32)
    return send


@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (Factory.accepted, Cause.SILENT), (Factory.held, Cause.HELD_IN_DOUBT), (Factory.unknown, Cause.UNKNOWN),
        (marked, Cause.MARKED_ACCEPTED), (left, Cause.MAY_HAVE_LEFT),
    ],
)  # fmt: skip
def test_events_are_promised_only_of_a_provider_that_tells_any(
    factory: Factory, make: Callable[[Factory], UUID], cause: Cause
) -> None:
    send = make(factory)
    for provider, tells in (("resend", True), ("smtp", False), ("one that is gone", True)):
        alter(factory, "accounts set provider = %(name)s, key_window = null", name=provider)
        found = verdict(read(factory, send), at(100))
        assert found.cause == cause
        assert ("event of the provider" in found.next) == tells
        assert found.next.strip() == found.next
        assert found.next.endswith(".")


def test_times_are_told_in_the_zone_of_the_reader(factory: Factory) -> None:
    trace = read(factory, factory.accepted())
    vienna = timezone(timedelta(hours=1))
    assert "at 13:00:02" in verdict(trace, at(60).astimezone(vienna)).sentence
    assert "on 30 Nov at 13:00:02" in verdict(trace, at(86_400).astimezone(vienna)).sentence
    assert "on 30 Nov 2026 at 12:00:02" in verdict(trace, at(86_400 * 400)).sentence


def test_a_late_answer_is_named_as_the_proof(factory: Factory) -> None:
    send = factory.unknown()
    factory.settle(send, "accepted", Reason.LATE_ANSWER, when=50)
    alter(factory, "attempts set status = 'accepted', settled_by = 'worker', finished_at = %(at)s", at=at(50))
    factory.move(send, "accept", "unknown", "accepted", Reason.LATE_ANSWER, when=50, worker=factory.worker, attempt=1)
    assert "its late answer at 12:00:50 proves" in verdict(read(factory, send), at(60)).sentence


def test_an_accepted_send_is_never_told_by_a_cause_of_another_state(factory: Factory) -> None:
    trace = read(factory, factory.accepted())
    assert trace.state == State.ACCEPTED
    told = [cause.__name__ for cause in causes.CAUSES if cause(trace, at(60)) is not None]
    assert told == ["silent"]
