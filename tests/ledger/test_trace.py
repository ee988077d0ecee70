"""The trace of a send: everything about it, in one round trip."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from dashboard.ledger import trace as trace_module
from dashboard.ledger.trace import Trace, read_address, read_message, read_trace
from dashboard.ledger.vault import Unreadable, Vault
from dashboard.lifecycle import State
from tests.factories import ADDRESS, Factory, at


def read(factory: Factory, send: UUID) -> Trace:
    found = read_trace(factory.connection, factory.workspace, send)
    assert found is not None
    return found


STATES: dict[State, Callable[[Factory], UUID]] = {
    State.PENDING: Factory.pending,
    State.CLAIMED: Factory.submitting,
    State.UNKNOWN: Factory.unknown,
    State.HELD: Factory.held,
    State.ACCEPTED: Factory.accepted,
    State.FAILED: Factory.failed,
    State.SUPPRESSED: Factory.suppressed,
    State.CANCELLED: Factory.cancelled,
}


@pytest.mark.parametrize("state", State)
def test_a_send_of_each_state_is_read_with_that_state(factory: Factory, state: State) -> None:
    found = read(factory, STATES[state](factory))
    assert found.state == state
    assert (found.work is None) == (found.send.settled_at is not None)


def test_a_send_of_another_workspace_is_not_found(factory: Factory) -> None:
    other = Factory(factory.connection)
    send = factory.accepted()
    assert read_trace(factory.connection, other.workspace, send) is None
    assert read_trace(factory.connection, factory.workspace, uuid4()) is None


def test_a_trace_has_every_row_of_its_send_and_none_of_another(factory: Factory) -> None:
    for send in (
        factory.accepted(message_id="msg-1"),
        factory.accepted(message_id="msg-2", recipient="recipient_2", address=None),
    ):
        factory.duplicate(send, when=3)
        factory.event(send, "delivered", occurred=4)
        factory.move(send, "give_back", "claimed", "pending", "worker_stopped", when=1, worker=factory.worker)
        factory.add(
            "second_message_ids",
            send_id=send,
            account_id=factory.account,
            provider_message_id=f"again {send}",
            attempt=1,
        )
    found = read(factory, send)
    assert [a.provider_message_id for a in found.attempts] == ["msg-2"]
    assert [len(rows) for rows in (found.duplicates, found.events, found.moves, found.second_ids)] == [1, 1, 1, 1]
    assert found.deliveries == 2
    assert found.stream is not None
    assert found.stream.owner == "Shop"
    assert found.account is not None
    assert (found.account.name, found.account.key_window) == ("main", timedelta(hours=24))


def test_the_claim_winner_is_the_worker_of_the_accepted_attempt(factory: Factory) -> None:
    send = factory.settled("accepted", "answered", settled=200, attempts=2)
    loser = factory.add("workers", id=uuid4(), name="host-2:1:ef", version="0.1.0", loops=["dispatch"])
    factory.attempt(send, n=1, finished=3, status="rejected", worker=loser)
    factory.attempt(send, n=2, started=100, finished=101, status="accepted", provider_message_id="msg-1")
    found = read(factory, send)
    assert found.claim_winner == factory.worker
    assert {worker.name for worker in found.workers.values()} == {"host-1:4711:abcd", "host-2:1:ef"}


def test_of_very_many_rows_the_first_and_last_are_read_and_the_others_counted(
    factory: Factory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_module, "LIMIT", 4)
    send = factory.accepted()
    for second in range(6):
        factory.duplicate(send, when=3 + second)
        factory.event(send, "opened", occurred=10 + second)
    found = read(factory, send)
    assert [duplicate.at for duplicate in found.duplicates] == [at(3), at(4), at(7), at(8)]
    assert [event.occurred_at for event in found.events] == [at(10), at(11), at(14), at(15)]
    assert (found.more.duplicates, found.more.events, found.more.moves) == (2, 2, 0)
    assert found.deliveries == 7


def test_a_trace_takes_the_same_statements_however_many_events_there_are(factory: Factory) -> None:
    few, many = factory.accepted(), factory.accepted()
    for second in range(300):
        factory.event(many, "opened", occurred=second)
    taken = []
    for send in (few, many):
        read(factory, send)  # first, so that every statement is prepared
        before = _statements(factory)
        read(factory, send)
        taken.append(_statements(factory) - before)
    assert taken[0] == taken[1] <= 16


def _statements(factory: Factory) -> int:
    """Executions of the prepared statements of this connection."""
    row = factory.connection.execute("select sum(generic_plans + custom_plans) from pg_prepared_statements").fetchone()
    assert row is not None
    return int(row[0])


def test_an_account_that_only_a_person_may_resume_is_paused_for_good(factory: Factory) -> None:
    send = factory.pending()
    factory.connection.execute("update sendonce.accounts set paused_until = 'infinity', paused_reason = 'quota'")
    account = read(factory, send).account
    assert account is not None
    assert account.paused_for_good
    assert account.paused_until is None


def test_neighbours_are_found_by_recipient_and_by_address_within_a_day(factory: Factory) -> None:
    send = factory.accepted(key="a", content="hello")
    same_person = factory.pending(key="b", content="hello", asked=3600, address="other@example.com")
    same_address = factory.pending(key="c", content="hello", asked=-3600, recipient="recipient_9")
    factory.pending(key="d", asked=-90_000)
    factory.pending(key="e", recipient="recipient_9", address="nobody@example.com")
    found = read(factory, send).neighbours
    assert [(n.send_id, n.same_content) for n in found] == [(same_address, False), (same_person, True)]


def test_a_decision_is_told_with_the_name_of_its_maker(factory: Factory) -> None:
    send = factory.held()
    factory.decision(send, "cancel", when=2000, after="cancelled")
    found = read(factory, send)
    assert [(d.person, d.decision, d.before_state) for d in found.decisions] == [("Ada", "cancel", "held")]
    assert found.open_hold is None
    assert [hold.closed_by for hold in found.holds] == ["person"]


def test_address_and_message_are_decrypted_apart_from_the_trace(factory: Factory) -> None:
    send = factory.accepted(content="Thank you")
    assert ADDRESS not in repr(read(factory, send))
    assert read_address(factory.connection, factory.vault, send) == ADDRESS
    message = read_message(factory.connection, factory.vault, send)
    assert message is not None
    assert (message.subject, message.text) == ("Your receipt", "Thank you")


def test_a_scrubbed_or_foreign_message_is_not_shown(factory: Factory) -> None:
    send = factory.accepted()
    with pytest.raises(Unreadable):
        read_address(factory.connection, Vault([("other", b"o" * 32)]), send)
    factory.connection.execute("update sendonce.messages set address = null, body = null")
    assert read_address(factory.connection, factory.vault, send) is None
    assert read_message(factory.connection, factory.vault, send) is None
    assert read_message(factory.connection, factory.vault, uuid4()) is None


def test_an_attempt_taken_again_under_a_recognised_key_is_one_acceptance(factory: Factory) -> None:
    send = factory.accepted()
    factory.attempt(send, n=2, started=9, finished=10, status="accepted", provider_message_id="msg-1")
    assert read(factory, send).acceptances == 1
    factory.connection.execute("update sendonce.accounts set key_window = null")
    assert read(factory, send).acceptances == 2


def test_what_a_person_counted_as_accepted_is_no_second_acceptance(factory: Factory) -> None:
    send = factory.accepted()
    factory.attempt(send, n=2, started=9, finished=10, status="accepted", settled_by="person")
    factory.connection.execute("update sendonce.accounts set key_window = null")
    assert read(factory, send).acceptances == 1
