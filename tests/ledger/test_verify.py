"""The invariants on a live ledger: a clean one holds, and each way of breaking one is found."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from dashboard.cli import run as run_command
from dashboard.ledger import holds, suppressions
from dashboard.ledger.database import Connection
from dashboard.ledger.suppressions import Statement
from dashboard.ledger.tables import SuppressionScope
from dashboard.ledger.verify import CHECKS, verify
from dashboard.lifecycle import Decision, EventType
from tests.factories import Factory, at
from tests.ledger.course import Ledger, now_of


def broken(connection: Connection) -> dict[int, list[tuple[UUID | None, str]]]:
    """What is found, by the number of the invariant."""
    found = verify(connection)
    assert [finding.invariant for finding in found] == list(range(1, 12))
    return {f.invariant: [(row.send_id, row.what) for row in f.rows] for f in found if not f.holds}


def breaks(ledger: Ledger) -> dict[int, list[tuple[UUID | None, str]]]:
    """What is found in a committed ledger."""
    with ledger.database.snapshot() as connection:
        return broken(connection)


# ── a ledger that holds ──────────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_ledger_holds(ledger: Ledger) -> None:
    assert breaks(ledger) == {}


def test_every_course_that_a_send_can_take_holds(ledger: Ledger) -> None:
    for key in (
        "straight",
        "straight",
        "refused",
        "later",
        "trouble",
        "released",
        "lost",
        "held",
        "marked",
        "cancelled",
    ):
        ledger.ask(key, subject="Your receipt" if ledger.asked != 1 else "Another one")
    by_key = {ledger.key(started.send_id): started for started in ledger.start()}
    assert breaks(ledger) == {}, "while every call is running"
    ledger.finish(by_key["straight"], "accepted", "m-straight")
    ledger.finish(by_key["refused"], "refused")
    ledger.finish(by_key["later"], "refused_for_now")
    ledger.finish(by_key["trouble"], "account_trouble")
    for name in ("released", "held", "marked", "cancelled"):
        ledger.finish(by_key[name], "ambiguous")
    ledger.sweep()
    assert breaks(ledger) == {}
    ledger.hear(by_key["straight"].send_id, EventType.DELIVERED)
    ledger.hear(by_key["straight"].send_id, EventType.BOUNCED, bounce_class="soft")
    ledger.hear(by_key["refused"].send_id, EventType.DELIVERED)  # it was taken after all
    ledger.reconcile()  # released by key
    assert breaks(ledger) == {}
    for started in ledger.start():
        ledger.finish(started, "accepted" if started.send_id == by_key["released"].send_id else "ambiguous")
    with ledger.step() as connection:
        connection.execute("update sendonce.mailstreams set unknown_policy = 'hold'")
    ledger.reconcile()
    assert breaks(ledger) == {}
    ledger.decide(Decision.RESEND)
    for started in ledger.start():
        ledger.finish(started, "ambiguous")
    ledger.reconcile()
    with ledger.step() as connection:
        assert len(holds.open_holds(connection, ledger.made.workspace)) > 2
    ledger.hear(by_key["held"].send_id, EventType.DELIVERED)
    ledger.hear(by_key["lost"].send_id, EventType.UNKNOWN)
    ledger.decide(Decision.MARK_ACCEPTED)
    assert breaks(ledger) == {}


def test_what_was_cancelled_in_doubt_and_taken_all_the_same_holds(ledger: Ledger) -> None:
    ledger.ask("doubtful")
    (started,) = ledger.start()
    ledger.finish(started, "ambiguous")
    with ledger.step() as connection:
        connection.execute("update sendonce.mailstreams set unknown_policy = 'hold'")
    ledger.reconcile()
    ledger.decide(Decision.CANCEL)
    assert breaks(ledger) == {}
    ledger.hear(started.send_id, EventType.COMPLAINED)
    assert breaks(ledger) == {}


def test_what_a_worker_turned_away_holds(ledger: Ledger) -> None:
    with ledger.step() as connection:
        suppressions.say(
            connection,
            [
                Statement(
                    workspace_id=ledger.made.workspace,
                    address_lookup=ledger.vault.lookup("gone@example.com"),
                    scope=SuppressionScope.EVERYTHING,
                    said_at=now_of(connection),
                    source="person",
                )
            ],
        )
    ledger.ask("to nobody", address="gone@example.com")
    assert ledger.start() == []
    assert breaks(ledger) == {}


def test_every_state_that_the_factory_makes_holds(factory: Factory) -> None:
    for make in (
        factory.pending, factory.claimed, factory.submitting, factory.unknown, factory.held, factory.held_late,
        factory.accepted, factory.failed, factory.suppressed,
    ):  # fmt: skip
        make()
    assert broken(factory.connection) == {}


# ── breaking it ──────────────────────────────────────────────────────────────────────────────────────────────────────

Planted = tuple[UUID | None, str]
"""The send that a violation was planted in, and a part of what must be said of it."""

PLANTS: dict[str, tuple[int, Callable[[Factory], Planted]]] = {}


def plants(invariant: int) -> Callable[[Callable[[Factory], Planted]], Callable[[Factory], Planted]]:
    """A violation of this invariant, planted by hand in rows that the database itself cannot refuse."""

    def register(plant: Callable[[Factory], Planted]) -> Callable[[Factory], Planted]:
        PLANTS[plant.__name__] = (invariant, plant)
        return plant

    return register


def change(made: Factory, query: str, *values: object) -> None:
    assert made.connection.execute(query, values).rowcount > 0  # type: ignore[call-overload]


@plants(1)
def an_id_that_does_not_follow_from_the_key(made: Factory) -> Planted:
    send = uuid4()
    made.accepted(id=send)
    change(made, "delete from sendonce.attempts")
    made.attempt(send, finished=2.4, status="accepted", idempotency_key=None)
    return send, "does not follow from the key 'receipt:order_1:recipient_1'"


@plants(2)
def a_gap_in_the_attempts(made: Factory) -> Planted:
    send = made.settled("failed", "refused", settled=9, attempts=2)
    made.move(send, "fail", "claimed", "failed", "refused", when=9)
    made.attempt(send, n=2, finished=3, status="rejected", claim_number=1)
    change(
        made,
        "insert into sendonce.moves (send_id, workspace_id, move, from_state, to_state, made_by, reason, attempt)"
        " values (%s, %s, 'retry_later', 'claimed', 'pending', 'worker', 'refused_for_now', 1)",
        send,
        made.workspace,
    )
    return send, "attempts are numbered up to 2, and there are 1"


@plants(2)
def two_attempts_under_one_claim(made: Factory) -> Planted:
    send = retried(made)
    change(made, "update sendonce.attempts set claim_number = 1")
    return send, "attempt 2 was started under claim 1"


@plants(2)
def an_attempt_before_its_claim(made: Factory) -> Planted:
    send = made.accepted()
    change(made, "update sendonce.attempts set started_at = claimed_at - interval '1 second'")
    return send, "not started within its claim"


@plants(2)
def an_open_attempt_of_a_settled_send(made: Factory) -> Planted:
    send = retried(made)
    change(made, "update sendonce.attempts set status = 'submitting', finished_at = null where n = 2")
    change(made, "update sendonce.attempts set status = 'accepted' where n = 1")
    return send, "attempt 2 is open, but not by the work row"


@plants(2)
def an_open_attempt_that_only_the_work_row_knows(made: Factory) -> Planted:
    send = made.submitting()
    change(made, "update sendonce.attempts set status = 'abandoned', finished_at = started_at")
    return send, "attempt 1 is open by the work row"


@plants(2)
def an_attempt_that_is_not_counted(made: Factory) -> Planted:
    send = made.failed()
    change(made, "update sendonce.sends set last_attempt = 0")
    return send, "counts 0 attempts, and there are 1"


@plants(2)
def a_claim_that_never_was(made: Factory) -> Planted:
    send = made.failed()
    change(made, "update sendonce.attempts set claim_number = 7")
    return send, "under claim 7, and the ledger knows claims up to 1"


@plants(3)
def a_retry_beside_an_open_attempt(made: Factory) -> Planted:
    send = retried(made)
    change(made, "update sendonce.attempts set finished_at = %s where n = 1", at(100))
    return send, "attempt 2 was started while an earlier one was open"


@plants(3)
def a_retry_that_nothing_allowed(made: Factory) -> Planted:
    send = retried(made)
    change(made, "delete from sendonce.moves where move = 'retry_later'")
    return send, "nothing had made the send pending again"


@plants(3)
def a_retry_in_doubt_without_a_release(made: Factory) -> Planted:
    send = retried(made)
    doubt(made)
    return send, "in doubt, without a release"


@plants(3)
def a_retry_after_the_provider_forgot_the_key(made: Factory) -> Planted:
    send = retried(made)
    doubt(made)
    release(made, "reconcile", "released_by_key")
    change(made, "update sendonce.accounts set key_window = interval '15 seconds'")
    return send, "after the provider had forgotten the key"


@plants(3)
def a_doubt_that_the_work_row_forgot(made: Factory) -> Planted:
    send = made.held()
    change(made, "update sendonce.work set ambiguous_since = null")
    return send, "attempt 1 is in doubt, and the work row does not know it"


@plants(4)
def an_attempt_after_the_end(made: Factory) -> Planted:
    send = made.cancelled()
    change(made, "update sendonce.moves set user_id = null, made_by = 'worker'")
    change(made, "update sendonce.sends set last_attempt = 1")
    made.attempt(send, started=300, finished=301, status="rejected")
    return send, "attempt 1 was started after the send was cancelled"


@plants(4)
def a_move_that_there_is_not(made: Factory) -> Planted:
    send = made.pending()
    made.move(send, "retry_later", "accepted", "pending", "refused_for_now", when=1)
    return send, "retry_later from accepted to pending, which is none"


@plants(4)
def a_move_by_somebody_who_may_not_make_it(made: Factory) -> Planted:
    send = made.pending()
    made.move(send, "release", "held", "pending", "released_by_person", when=1, made_by="relay")
    return send, "relay made the move release"


@plants(5)
def an_outbox_row_in_two_places(made: Factory) -> Planted:
    outbox_id = uuid4()
    send = made.pending(outbox_id=outbox_id)
    made.duplicate(send, when=1, outbox_id=outbox_id, verdict="in_progress", state_met="pending")
    return send, "is duplicate and send"


@plants(5)
def an_outbox_row_that_is_a_send_already(made: Factory) -> Planted:
    outbox_id = uuid4()
    send = made.pending(outbox_id=outbox_id)
    made.add("outbox", id=outbox_id, send_id=send, workspace_id=made.workspace, request=Jsonb({}))
    return send, "is outbox and send"


@plants(5)
def an_open_send_without_a_work_row(made: Factory) -> Planted:
    return made.send(), "open and has no work row"


@plants(5)
def a_settled_send_with_a_work_row(made: Factory) -> Planted:
    send = made.failed()
    made.work(send, claim_number=1, last_attempt=1, counted_attempts=1, first_attempt_at=at(2))
    return send, "the send is failed and has a work row"


@plants(5)
def a_work_row_without_its_send(made: Factory) -> Planted:
    send = made.pending()
    change(made, "delete from sendonce.sends")
    return send, "a work row without its send"


@plants(5)
def an_end_that_no_move_tells_of(made: Factory) -> Planted:
    send = made.failed()
    change(made, "delete from sendonce.moves")
    return send, "the send is failed, and no move tells of it"


@plants(5)
def a_held_send_without_a_hold(made: Factory) -> Planted:
    send = made.held()
    change(made, "delete from sendonce.holds")
    return send, "no hold tells people so"


@plants(5)
def a_hold_of_what_is_not_held(made: Factory) -> Planted:
    send = made.pending()
    made.hold(send, "late", opened=1, waives=["late"])
    return send, "the send is not held"


@plants(6)
def a_delivery_that_no_event_told(made: Factory) -> Planted:
    send = made.accepted()
    made.delivery(send, "delivered", when=3)
    return send, "its events say nothing"


@plants(6)
def a_delivery_of_a_lower_rank_than_its_events(made: Factory) -> Planted:
    send = made.accepted()
    made.event(send, "delivered", occurred=3)
    made.event(send, "complained", occurred=4)
    made.delivery(send, "delivered", when=3)
    return send, "its events say complained"


@plants(6)
def a_delivery_at_another_time_than_its_first_event(made: Factory) -> Planted:
    send = made.accepted()
    made.event(send, "delivered", occurred=3)
    made.event(send, "opened", occurred=4)
    made.delivery(send, "delivered", when=4)
    return send, "its events say delivered"


@plants(6)
def an_open_send_that_an_event_proves_taken(made: Factory) -> Planted:
    send = made.unknown()
    made.event(send, "accepted", occurred=3)
    made.delivery(send, "accepted", when=3)
    return send, "proves that it was taken, and the send is open"


@plants(6)
def a_failed_send_with_an_accepted_attempt(made: Factory) -> Planted:
    send = made.failed()
    change(made, "update sendonce.attempts set status = 'accepted'")
    return send, "attempt 1 was accepted, and the send is failed"


@plants(7)
def an_attempt_to_a_suppressed_address(made: Factory) -> Planted:
    send = made.failed()
    made.suppression("bounced", said=-3600)
    change(made, "update sendonce.suppressions set stored_at = %s", at(-3599))
    return send, "the address was suppressed (bounced)"


@plants(8)
def an_attempt_under_a_key_of_its_own(made: Factory) -> Planted:
    send = made.failed()
    change(made, "update sendonce.attempts set idempotency_key = 'other'")
    return send, "carried the key other"


@plants(8)
def a_retry_in_doubt_on_another_account(made: Factory) -> Planted:
    send = retried(made)
    doubt(made)
    release(made, "reconcile", "released_by_key")
    other = made.add("accounts", workspace_id=made.workspace, name="other", provider="smtp")
    change(made, "update sendonce.attempts set account_id = %s where n = 2", other)
    return send, "repeated attempt 1, which was in doubt, on another account"


@plants(8)
def a_retry_in_doubt_at_another_endpoint(made: Factory) -> Planted:
    send = retried(made)
    doubt(made)
    release(made, "reconcile", "released_by_key")
    change(made, "update sendonce.attempts set endpoint = 'elsewhere' where n = 2")
    return send, "repeated attempt 1, which was in doubt, at another endpoint"


@plants(8)
def a_retry_in_doubt_without_the_key(made: Factory) -> Planted:
    send = retried(made)
    doubt(made)
    release(made, "reconcile", "released_by_key")
    change(made, "update sendonce.attempts set idempotency_key = null where n = 1")
    return send, "which was in doubt, under another key"


def in_a_batch(made: Factory, **attempt: object) -> UUID:
    """A send whose call was shared and is in doubt; with ``attempt`` as it is told of its twin."""
    sends = [made.unknown(recipient="one"), made.unknown(recipient="two")]
    made.share_a_call(*sends)
    for name, value in attempt.items():
        change(made, f"update sendonce.attempts set {name} = %s where send_id = %s", value, sends[0])
    return min(sends, key=str)


@plants(8)
def a_member_of_a_batch_under_its_own_key(made: Factory) -> Planted:
    send = made.unknown()
    change(made, "update sendonce.attempts set batch = %s", uuid4())
    return send, "instead of the id of the batch"


@plants(8)
def a_batch_of_two_accounts(made: Factory) -> Planted:
    other = made.add("accounts", workspace_id=made.workspace, name="other", provider="smtp")
    return in_a_batch(made, account_id=other), "its members do not share the account"


@plants(8)
def a_batch_that_was_begun_twice(made: Factory) -> Planted:
    return in_a_batch(made, started_at=at(2.5)), "its members do not share the time"


@plants(8)
def a_batch_of_two_workers(made: Factory) -> Planted:
    return in_a_batch(made, worker=uuid4()), "its members do not share the worker"


@plants(3)
def a_member_of_a_batch_released_by_a_key(made: Factory) -> Planted:
    send = retried(made)
    doubt(made)
    release(made, "reconcile", "released_by_key")
    batch = uuid4()
    change(made, "update sendonce.attempts set batch = %s, idempotency_key = %s", batch, str(batch))
    return send, "what was in doubt went in a batch"


@plants(9)
def an_open_send_without_its_message(made: Factory) -> Planted:
    send = made.pending()
    change(made, "delete from sendonce.messages")
    return send, "its message is gone"


@plants(9)
def an_open_send_without_its_address(made: Factory) -> Planted:
    send = made.pending()
    change(made, "update sendonce.messages set address = null")
    return send, "its address is gone"


@plants(9)
def an_open_send_without_its_body(made: Factory) -> Planted:
    send = made.held()
    change(made, "update sendonce.messages set body = null")
    return send, "its body is gone"


@plants(9)
def an_attempt_without_its_send(made: Factory) -> Planted:
    send = made.failed()
    change(made, "delete from sendonce.sends")
    return send, "attempt 1 without its send"


@plants(9)
def an_event_without_its_send(made: Factory) -> Planted:
    send = uuid4()
    made.event(send, "delivered", occurred=1)
    return send, "without its send"


@plants(9)
def a_delivery_without_its_send(made: Factory) -> Planted:
    send = uuid4()
    made.duplicate(send, when=1)
    return send, "without its send"


@plants(10)
def a_decision_without_a_move(made: Factory) -> Planted:
    send = decided(made)
    change(made, "delete from sendonce.moves where made_by = 'person'")
    return send, "followed by no move of the same person"


@plants(10)
def a_decision_that_is_not_in_the_audit_log(made: Factory) -> Planted:
    send = decided(made)
    change(made, "delete from sendonce.audit")
    return send, "is not in the audit log"


@plants(10)
def a_decision_that_saw_nothing(made: Factory) -> Planted:
    send = decided(made)
    change(made, "update sendonce.decisions set seen = '{}'")
    return send, "does not say what was seen"


@plants(10)
def a_hold_that_a_person_closed_without_a_decision(made: Factory) -> Planted:
    send = decided(made)
    change(made, "delete from sendonce.decisions")
    return send, "no decision tells who and why"


@plants(10)
def a_move_of_nobody_in_particular(made: Factory) -> Planted:
    send = made.cancelled()
    change(made, "update sendonce.moves set user_id = null")
    return send, "nothing tells who"


@plants(10)
def a_persons_move_that_is_not_in_the_audit_log(made: Factory) -> Planted:
    return made.cancelled(), "cancel of a person is not in the audit log"


@plants(11)
def an_acceptance_that_nothing_proves(made: Factory) -> Planted:
    send = made.accepted()
    change(made, "update sendonce.attempts set status = 'rejected'")
    return send, "accepted, and nothing proves it"


@plants(11)
def a_taking_that_nothing_proves(made: Factory) -> Planted:
    send = made.suppressed()
    change(made, "update sendonce.sends set taken_at = settled_at")
    return send, "taken all the same, and nothing proves it"


@plants(11)
def a_taking_that_is_not_told(made: Factory) -> Planted:
    send = made.suppressed()
    made.event(send, "delivered", occurred=3)
    made.delivery(send, "delivered", when=3)
    return send, "was taken all the same, and does not say so"


@plants(11)
def a_mark_that_nobody_made(made: Factory) -> Planted:
    send = made.accepted()
    change(made, "update sendonce.sends set reason = 'marked_by_person'")
    return send, "a person is said to have marked it"


def retried(made: Factory) -> UUID:
    """Refused for now, then for good."""
    send = made.settled("failed", "refused", settled=30, attempts=2)
    change(made, "update sendonce.sends set last_claim = 2")
    made.attempt(send, finished=3, status="rejected")
    made.move(send, "retry_later", "claimed", "pending", "refused_for_now", when=3, attempt=1)
    made.attempt(send, n=2, started=20, finished=30, status="rejected")
    made.move(send, "fail", "claimed", "failed", "refused", when=30, attempt=2)
    return send


def doubt(made: Factory) -> None:
    """The first attempt of what was retried had no answer."""
    change(made, "update sendonce.attempts set status = 'ambiguous', doubted_at = finished_at where n = 1")


def release(made: Factory, by: str, reason: str) -> None:
    change(
        made,
        "update sendonce.moves set move = 'release', from_state = 'unknown', made_by = %s::text::sendonce.made_by,"
        " reason = %s where move = 'retry_later'",
        by, reason,
    )  # fmt: skip


def decided(made: Factory) -> UUID:
    """Held, and cancelled by a person."""
    send = made.held()
    made.move(
        send, "cancel", "held", "cancelled", "cancelled_by_person", when=2000, made_by="person", user_id=made.person
    )
    made.decision(send, "cancel", when=2000, after="cancelled")
    change(made, "update sendonce.decisions set seen = %s", Jsonb({"attempts": 1}))
    made.add(
        "audit", workspace_id=made.workspace, user_id=made.person, action="held.cancel", subject=str(send), at=at(2000)
    )
    made.settle(send, "cancelled", "cancelled_by_person", when=2000)
    change(made, "update sendonce.sends set last_claim = 1")
    return send


def test_a_planted_violation_is_found(factory: Factory, subtests: pytest.Subtests) -> None:
    for name, (invariant, plant) in PLANTS.items():
        with subtests.test(name), factory.connection.transaction(force_rollback=True):
            factory.made = 0
            send, what = plant(factory)
            factory.pending(key="innocent")
            found = broken(factory.connection)
            assert any(row == send and what in told for row, told in found.get(invariant, [])), found
            assert all(row == send for rows in found.values() for row, _ in rows), "nothing is said of the innocent"


@pytest.mark.parametrize("make", [retried, decided])
def test_what_the_plants_grow_on_holds(make: Callable[[Factory], UUID], factory: Factory) -> None:
    make(factory)
    assert broken(factory.connection) == {}


def test_a_person_may_repeat_what_is_in_doubt_under_another_account(factory: Factory) -> None:
    a_retry_in_doubt_on_another_account(factory)
    change(
        factory,
        "update sendonce.moves set made_by = 'person', reason = 'released_by_person', user_id = %s"
        " where move = 'release'",
        factory.person,
    )
    assert set(broken(factory.connection)) == {10}, "only the decision is missing"


def test_every_invariant_has_a_plant() -> None:
    assert {invariant for invariant, _ in PLANTS.values()} == {check.invariant for check in CHECKS}


def test_only_the_first_rows_are_named(factory: Factory) -> None:
    for _ in range(5):
        factory.send()
    lost = verify(factory.connection, shown=3)[4]
    assert (len(lost.rows), lost.more, lost.holds) == (3, True, False)


# ── the command ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_command_ends_with_1_where_an_invariant_breaks(
    ledger: Ledger, database_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DATABASE_URL", database_url)
    ledger.ask("one")
    assert run_command(["verify"]) == 0
    assert "BREAKS" not in capsys.readouterr().out
    with ledger.step() as connection:
        connection.execute("delete from sendonce.work")
    assert run_command(["verify", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [f["invariant"] for f in found if not f["holds"]] == [5]
    assert found[4]["rows"][0]["what"] == "the send is open and has no work row"
    assert run_command(["verify"]) == 1
    assert "5  BREAKS" in capsys.readouterr().out


def test_a_random_course_of_events_in_any_order_holds(ledger: Ledger) -> None:
    for i in range(20):
        ledger.ask(f"send {i}")
    chance = random.Random(7)
    for started in ledger.start():
        words = chance.sample(sorted(EventType), k=3)
        if chance.random() < 0.5:
            ledger.hear(started.send_id, words[0])
        ledger.finish(started, chance.choice(["accepted", "ambiguous", "refused", "never_written"]))
        for word in words[1:]:
            ledger.hear(started.send_id, word)
    assert breaks(ledger) == {}
