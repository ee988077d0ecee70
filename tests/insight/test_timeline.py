"""The timeline: oldest first, in lanes, repeats folded, nothing inferred."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from dashboard.insight.clocks import skew
from dashboard.insight.folding import QUIET, Entry, Lane, silences
from dashboard.insight.timeline import timeline
from dashboard.ledger import trace as trace_module
from dashboard.ledger.cancelling import cancel_send
from dashboard.ledger.trace import read_trace
from dashboard.lifecycle import Reason
from tests.factories import Factory, at


def entries(factory: Factory, send: UUID) -> list[Entry]:
    trace = read_trace(factory.connection, factory.workspace, send)
    assert trace is not None
    return timeline(trace)


def of_lane(factory: Factory, send: UUID, lane: Lane) -> list[Entry]:
    return [entry for entry in entries(factory, send) if entry.lane == lane]


def test_the_straight_path_is_told_from_the_send_and_its_attempt_alone(factory: Factory) -> None:
    found = entries(factory, factory.accepted())
    assert [(entry.lane, entry.what) for entry in found] == [
        ("trigger", "Triggered"),
        ("trigger", "Asked for"),
        ("delivery", "Recorded as a new send"),
        ("claim", "Claimed"),
        ("attempt", "Attempt 1: handing over to Resend"),
        ("attempt", "Attempt 1: accepted"),
    ]
    assert found[0].who == "order.paid evt_1"
    assert found[3].detail == "this claim led to acceptance"
    assert found[4].who == "host-1:4711:abcd"
    assert "message id msg-1" in found[5].detail
    assert not any(entry.trouble for entry in found)


def test_an_attempt_that_shared_its_call_says_with_how_many(factory: Factory) -> None:
    send = factory.accepted()
    factory.share_a_call(send, *(factory.accepted(recipient=f"recipient_{n}") for n in range(2, 26)))
    start, end = of_lane(factory, send, Lane.ATTEMPT)
    assert (start.what, start.detail) == ("Attempt 1: handing over to Resend", "in one call with 24 others")
    assert "others" not in end.detail


def test_entries_come_oldest_first(factory: Factory) -> None:
    send = factory.held()
    factory.event(send, "opened", occurred=-5)
    factory.duplicate(send, when=1)
    times = [entry.at for entry in entries(factory, send)]
    assert times == sorted(times)


def test_duplicates_of_one_kind_are_folded_with_their_count(factory: Factory) -> None:
    send = factory.accepted()
    for second in (10, 11, 12):
        factory.duplicate(send, when=second)
    factory.duplicate(send, when=13, trigger_id="evt_2")
    found = of_lane(factory, send, Lane.DELIVERY)[1:]
    assert [(entry.who, entry.count) for entry in found] == [("order.paid evt_1", 3), ("order.paid evt_2", 1)]
    assert (found[0].at, found[0].until) == (at(10), at(12))


def test_a_mismatch_stands_out_and_says_what_differed(factory: Factory) -> None:
    send = factory.accepted()
    factory.duplicate(send, when=10, verdict="mismatch", difference=["content", "address"])
    entry = of_lane(factory, send, Lane.DELIVERY)[-1]
    assert entry.trouble
    assert entry.what == "Asked for again with other content under the same key: refused"
    assert "other content and address" in entry.detail


def test_repeats_of_an_event_are_counted(factory: Factory) -> None:
    send = factory.accepted()
    factory.event(send, "delivered", occurred=5, repeats=2, other_ids=1)
    assert [entry.count for entry in of_lane(factory, send, Lane.EVENT)] == [4]


def test_an_event_that_came_before_our_own_answer_says_so(factory: Factory) -> None:
    send = factory.accepted(started=2, answered=9)
    factory.event(send, "accepted", occurred=3, received=4)
    factory.event(send, "delivered", occurred=10, received=11)
    before, after = of_lane(factory, send, Lane.EVENT)
    assert "before the answer to our own call" in before.detail
    assert after.detail == ""


def test_an_event_that_was_long_under_way_says_so(factory: Factory) -> None:
    send = factory.accepted()
    factory.event(send, "delivered", occurred=5, received=605)
    assert of_lane(factory, send, Lane.EVENT)[0].detail == "received 10 min later"


def test_an_unanswered_attempt_that_was_settled_later_shows_both(factory: Factory) -> None:
    send = factory.unknown()
    factory.settle(send, "accepted", Reason.EVENT, when=50)
    factory.connection.execute(
        "update sendonce.attempts set status = 'accepted', settled_by = 'event', finished_at = %s", (at(50),)
    )
    found = of_lane(factory, send, Lane.ATTEMPT)
    assert [(entry.at, entry.what, entry.trouble) for entry in found] == [
        (at(2), "Attempt 1: handing over to Resend", False),
        (at(32), "Attempt 1: no answer, it may have been taken", True),
        (at(50), "Attempt 1: turned out accepted", False),
    ]
    assert "told by an event" in found[2].detail


def test_a_persons_decision_is_told_once_with_its_reason(factory: Factory) -> None:
    send = factory.held()
    factory.decision(send, "cancel", when=2000, after="cancelled", reason="they got it by hand")
    factory.settle(send, "cancelled", Reason.CANCELLED_BY_PERSON, when=2000)
    factory.move(
        send,
        "cancel",
        "held",
        "cancelled",
        Reason.CANCELLED_BY_PERSON,
        when=2000.01,
        made_by="person",
        user_id=factory.person,
    )
    found = of_lane(factory, send, Lane.PERSON)
    assert [(entry.what, entry.who, entry.detail) for entry in found] == [
        ("Decided: cancel it", "Ada", "they got it by hand")
    ]


def test_a_person_who_counts_it_as_accepted_wins_no_claim(factory: Factory) -> None:
    send = factory.held()
    factory.settle(send, "accepted", Reason.MARKED_BY_PERSON, when=2000)
    factory.connection.execute(
        "update sendonce.attempts set status = 'accepted', settled_by = 'person', finished_at = %s", (at(2000),)
    )
    found = entries(factory, send)
    assert "this claim led to acceptance" not in [entry.detail for entry in found]
    assert found[-1].what == "Attempt 1: counted as accepted by a person"


def test_a_move_says_why_and_when_the_next_try_is(factory: Factory) -> None:
    send = factory.pending(claim_at=130, reason=Reason.REFUSED_FOR_NOW)
    factory.move(
        send, "retry_later", "claimed", "pending", Reason.REFUSED_FOR_NOW, when=10, worker=factory.worker, attempt=1,
        next_try_at=at(130),
    )  # fmt: skip
    entry = of_lane(factory, send, Lane.ATTEMPT)[0]
    assert entry.what == "Waits for its next try"
    assert entry.detail == "the provider refused it for now; next try 2 min later"


def test_one_claim_after_another_is_told_with_its_number(factory: Factory) -> None:
    send = factory.settled("accepted", Reason.ANSWERED, settled=200, attempts=2)
    other = factory.add("workers", id=uuid4(), name="host-2:1:ef", version="0.1.0", loops=["dispatch"])
    factory.attempt(send, n=1, finished=3, status="rejected", worker=other)
    factory.attempt(send, n=2, started=100, finished=101, status="accepted")
    found = of_lane(factory, send, Lane.CLAIM)
    assert [(entry.what, entry.who, bool(entry.detail)) for entry in found] == [
        ("Claimed, claim 1", "host-2:1:ef", False),
        ("Claimed, claim 2", "host-1:4711:abcd", True),
    ]


def test_a_second_message_id_and_a_taken_cancel_stand_out(factory: Factory) -> None:
    send = factory.cancelled()
    factory.connection.execute("update sendonce.sends set taken_at = %s", (at(90),))
    factory.add(
        "second_message_ids", send_id=send, account_id=factory.account, provider_message_id="m2", seen_at=at(80)
    )
    second, taken = entries(factory, send)[-2:]
    assert (second.trouble, taken.trouble) == (True, True)
    assert second.evidence == "message id m2"
    assert taken.what == "Turned out taken by the provider, though cancelled"


def test_a_cancel_that_met_a_call_is_told_when_it_was_asked_for_and_so_is_one_that_came_too_late(
    factory: Factory,
) -> None:
    send, ended, waiting = factory.submitting(), factory.accepted(), factory.pending()
    for each in (send, ended, waiting):
        cancel_send(
            factory.connection, workspace_id=factory.workspace, send_id=each, user_id=factory.person,
            reason="the order was cancelled",
        )  # fmt: skip
    (remembered,) = of_lane(factory, send, Lane.PERSON)
    assert remembered.what == "Asked to cancel it while its call is running: too late if that is taken"
    assert (remembered.who, remembered.detail) == ("Ada", "the order was cancelled")
    assert remembered.evidence.startswith("audit ")
    (late,) = of_lane(factory, ended, Lane.PERSON)
    assert late.what == "Asked to cancel it: too late"
    assert [entry.what for entry in of_lane(factory, waiting, Lane.PERSON)] == ["Cancelled"], "told by its move alone"


# ── very much of it ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_comes_again_and_again_is_folded_over_others_of_that_sort(factory: Factory) -> None:
    send = factory.accepted()
    for second in range(10, 16):
        factory.event(send, "opened" if second % 2 else "clicked", occurred=second)
    factory.event(send, "complained", occurred=20)
    factory.event(send, "opened", occurred=30)
    assert [(entry.what, entry.count, entry.end) for entry in of_lane(factory, send, Lane.EVENT)] == [
        ("A link was clicked", 3, at(14)),
        ("Opened", 3, at(15)),
        ("Reported as spam by the recipient", 1, at(20)),
        ("Opened", 1, at(30)),
    ]


def test_many_that_differ_a_little_become_one_that_can_be_unfolded(factory: Factory) -> None:
    send = factory.accepted()
    for number in range(8):
        factory.duplicate(send, when=10 + number, trigger_id=f"evt_{number}")
    entry = of_lane(factory, send, Lane.DELIVERY)[-1]
    assert (entry.count, entry.who) == (8, "8 triggers")
    assert [one.who for one in entry.folded] == [f"order.paid evt_{number}" for number in range(8)]
    assert len({one.evidence for one in entry.folded}) == 8, "each with its row"


def test_a_mismatch_is_never_folded_into_ordinary_repeats(factory: Factory) -> None:
    send = factory.accepted()
    for number in range(8):
        factory.duplicate(send, when=10 + number)
    factory.duplicate(send, when=14.5, verdict="mismatch", difference=["content"])
    entries_ = of_lane(factory, send, Lane.DELIVERY)[1:]
    assert [(entry.count, entry.trouble) for entry in entries_] == [(8, False), (1, True)]


def test_of_very_many_the_first_and_last_are_told_and_the_others_counted_where_they_lie(
    factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "LIMIT", 4)
    send = factory.accepted()
    for second in range(10):
        factory.event(send, "opened", occurred=100 + second)
    told = of_lane(factory, send, Lane.EVENT)
    assert [(entry.what, entry.at, entry.end, entry.left_out) for entry in told] == [
        ("Opened", at(100), at(101), ""),
        ("6 more events from then on", at(101), at(108), "events"),
        ("Opened", at(108), at(109), ""),
    ]


def test_a_thousand_events_make_a_handful_of_entries(factory: Factory) -> None:
    send = factory.accepted()
    for number in range(1_000):
        kind = ("opened", "clicked", "deferred")[number % 3]
        factory.event(send, kind, occurred=10 + number, reason=f"try {number}" if kind == "deferred" else None)
    told = of_lane(factory, send, Lane.EVENT)
    assert len(told) == 3
    assert sum(entry.count for entry in told) == 1_000
    assert {entry.detail for entry in told} == {"", "333 different details"}


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_attempt_tells_what_its_time_went_into(factory: Factory) -> None:
    send = factory.settled("accepted", Reason.ANSWERED, settled=5, attempts=1)
    factory.attempt(
        send, started=2, finished=5, status="accepted", settled_by="worker", duration_ms=2_500, claimed_at=at(0.5)
    )
    outcome = of_lane(factory, send, Lane.ATTEMPT)[-1]
    assert [(phase.name, phase.seconds) for phase in outcome.phases] == [
        ("from claim to start", 1.5), ("the call", 2.5), ("until its outcome was stored", 0.5),
    ]  # fmt: skip


def test_silence_is_told_between_entries_and_up_to_now(factory: Factory) -> None:
    send = factory.accepted()
    factory.event(send, "delivered", occurred=7200)
    told = entries(factory, send)
    *between, after = silences(told, at(20_000))
    assert [silence for silence in between if silence] == [told[-1].at - told[-2].at]
    assert after == timedelta(seconds=12_800)
    assert list(silences(told, told[-1].at + QUIET / 2))[-1] is None


def test_what_lies_ahead_makes_no_silence(factory: Factory) -> None:
    send = factory.pending(due=7200)
    assert not any(silences(entries(factory, send), at(60)))


def test_events_before_their_attempt_show_that_the_clocks_differ(factory: Factory) -> None:
    send = factory.accepted(started=10, answered=11)
    factory.event(send, "accepted", occurred=7.5, received=12)
    factory.event(send, "delivered", occurred=30.25, received=20)
    early, late = of_lane(factory, send, Lane.EVENT)
    assert early.at == at(7.5), "it stands at the provider's own time"
    assert "by the provider's clock 2.5 s before its attempt began" in early.detail
    assert "by the provider's clock 10.2 s after we received it" in late.detail
    trace = read_trace(factory.connection, factory.workspace, send)
    assert trace is not None
    clocks = skew(trace)
    assert (clocks.behind, clocks.ahead) == (timedelta(seconds=2.5), timedelta(seconds=10.25))


def test_whole_seconds_are_no_sign_of_a_wrong_clock(factory: Factory) -> None:
    send = factory.accepted(started=10.7, answered=10.9)
    factory.event(send, "accepted", occurred=10, received=11)
    told = entries(factory, send)
    told = told[-3:]
    assert [entry.lane for entry in told] == [Lane.ATTEMPT, Lane.EVENT, Lane.ATTEMPT], "not before its own attempt"
    assert "clock" not in told[1].detail
    trace = read_trace(factory.connection, factory.workspace, send)
    assert trace is not None
    assert skew(trace).behind == timedelta(0)


def test_no_text_holds_an_address_whoever_wrote_it(factory: Factory) -> None:
    send = factory.accepted(trigger="signup of grace@example.com")
    factory.event(send, "bounced", occurred=9, reason="550 <ada@example.com>: no such user")
    factory.duplicate(send, when=10, trigger_id="joan@example.com")
    told = " ".join(f"{entry.who} {entry.detail}" for entry in entries(factory, send))
    assert "g•••@example.com" in told
    assert "a•••@example.com" in told
    assert not any(name in told for name in ("grace@", "ada@", "joan@"))
