"""Rule 5: proof that the provider took a send wins over whatever the ledger believed before."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from dashboard.identity import send_id
from dashboard.ledger.cancelling import cancel_send
from dashboard.ledger.replay import Replayed, replay_send
from dashboard.ledger.suppressions import Statement, say
from dashboard.ledger.tables import SuppressionScope
from dashboard.lifecycle import Decision, EventType
from dashboard.worker.reconcile import match_again
from tests.crew import (
    Hand,
    Rival,
    ask_one,
    attempts_of,
    decide,
    graces_end,
    hear,
    hear_in,
    held,
    open_transaction,
    person,
    reconciled,
    released,
    state_of,
    told,
    unknown,
    wait_for_a_waiter,
)
from tests.place import Place

DELIVERED = EventType.DELIVERED


def _claimed(place: Place) -> UUID:
    send = ask_one(place)
    Hand(place).claim()
    return send


def _submitting(place: Place) -> UUID:
    send = ask_one(place)
    Hand(place).start()
    return send


def _failed(place: Place) -> UUID:
    send = ask_one(place)
    Hand(place).send("refused")
    return send


def _waiting_for_its_second_attempt(place: Place) -> UUID:
    place.run("update sendonce.mailstreams set unknown_policy = 'release'")
    return released(place)[0]


STATES: dict[str, Callable[[Place], UUID]] = {
    "pending": ask_one,
    "pending, released": _waiting_for_its_second_attempt,
    "claimed": _claimed,
    "claimed, its call running": _submitting,
    "unknown": lambda place: unknown(place)[0],
    "held": lambda place: held(place)[0],
    "failed": _failed,
}


@pytest.mark.parametrize("before", STATES)
def test_an_event_makes_the_send_accepted_and_ends_every_claim(place: Place, before: str) -> None:
    send = STATES[before](place)
    hear(place, told(DELIVERED, send, "msg-7"))
    assert state_of(place, send) == "accepted"
    assert place.all("select from sendonce.work") == []
    assert place.all("select from sendonce.holds where closed_at is null") == []
    assert not set(attempts_of(place, send)) & {"submitting", "ambiguous"}
    for moved in place.all(
        "select from_state::text, made_by::text, event_id from sendonce.moves where move = 'accept'"
    ):
        assert moved["from_state"] == before.partition(",")[0]
        assert (moved["made_by"], moved["event_id"] is not None) == ("event", True)


@pytest.mark.parametrize("word", sorted(EventType))
def test_any_known_word_is_proof_refusals_included(place: Place, word: EventType) -> None:
    send, *_ = unknown(place)
    hear(place, told(word, send))
    says_nothing = (EventType.UNKNOWN, EventType.RESUBSCRIBED)
    assert state_of(place, send) == ("unknown" if word in says_nothing else "accepted")


def test_the_only_attempt_in_doubt_becomes_the_accepted_one_and_keeps_the_message_id(place: Place) -> None:
    send, *_ = unknown(place)
    hear(place, told(DELIVERED, send, "msg-7"))
    attempt = place.one("select status::text, provider_message_id, settled_by::text from sendonce.attempts")
    assert attempt == {"status": "accepted", "provider_message_id": "msg-7", "settled_by": "event"}


def test_the_attempt_that_the_evidence_names_is_accepted_and_the_open_one_comes_into_doubt(place: Place) -> None:
    send = _waiting_for_its_second_attempt(place)
    Hand(place).start()
    assert attempts_of(place, send) == ["ambiguous", "submitting"]
    hear(place, told(DELIVERED, send, "msg-7", attempt=1))
    assert attempts_of(place, send) == ["accepted", "ambiguous"]
    assert state_of(place, send) == "accepted"


def test_a_look_at_kept_events_comes_before_an_attempt_starts(place: Place) -> None:
    send = ask_one(place)
    place.run(
        "insert into sendonce.unmatched (workspace_id, account_id, event_id, fact, event_type, occurred_at, send_id)"
        " values (%s, %s, 'e', 'f', 'delivered', now(), %s)",
        place.workspace, place.account, send,
    )  # fmt: skip
    assert Hand(place).start() == []
    assert (state_of(place, send), place.count("unmatched"), place.count("attempts")) == ("accepted", 0, 0)


def test_a_start_that_meets_the_reconciler_with_a_kept_event_waits_for_it_and_does_not_start(place: Place) -> None:
    hear(place, told(DELIVERED, send_id(place.workspace, "receipts", "order:1"), "msg-7"))
    send, hand = ask_one(place), Hand(place)
    claims = hand.claim()
    with open_transaction(place) as connection:
        assert match_again(connection, after=0) == 1
        start = Rival(lambda: hand.start(claims))
        wait_for_a_waiter(place, start)
    assert start.result == []
    assert (state_of(place, send), attempts_of(place, send), place.count("unmatched")) == ("accepted", [], 0)


def test_the_reconciler_that_meets_a_start_with_a_kept_event_waits_for_it_and_takes_it_once(place: Place) -> None:
    hear(place, told(DELIVERED, send_id(place.workspace, "receipts", "order:1"), "msg-7"))
    send, hand = ask_one(place), Hand(place)
    claims = hand.claim()
    with open_transaction(place) as connection:
        assert hand.start_in(connection, claims) == []
        again = Rival(lambda: _match_again(place))
        wait_for_a_waiter(place, again)
    assert again.result == 0
    assert (state_of(place, send), place.count("events"), place.count("unmatched")) == ("accepted", 1, 0)


def _match_again(place: Place) -> int:
    with place.database.transaction() as connection:
        return match_again(connection, after=0)


def test_a_start_that_meets_an_event_waits_for_it_and_does_not_start(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    claims = hand.claim()
    with open_transaction(place) as connection:
        hear_in(connection, place, told(DELIVERED, send))
        start = Rival(lambda: hand.start(claims))
        wait_for_a_waiter(place, start)
    assert start.result == []
    assert attempts_of(place, send) == []


def test_an_event_that_meets_a_start_waits_for_it_and_closes_its_attempt(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    claims = hand.claim()
    with open_transaction(place) as connection:
        hand.start_in(connection, claims)
        event = Rival(lambda: hear(place, told(DELIVERED, send, "msg-7")))
        wait_for_a_waiter(place, event)
    assert event.result.stored == 1
    assert (state_of(place, send), attempts_of(place, send)) == ("accepted", ["accepted"])


def test_an_event_that_meets_the_answer_changes_nothing_twice(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    (started,) = hand.start()
    with open_transaction(place) as connection:
        hear_in(connection, place, told(DELIVERED, send, "msg-7"))
        answer = Rival(lambda: hand.finish(started, "accepted", "msg-7"))
        wait_for_a_waiter(place, answer)
    assert (answer.result.accepted, answer.result.late) == (0, 1)
    assert attempts_of(place, send) == ["accepted"]
    assert place.one("select provider_message_id from sendonce.attempts") == {"provider_message_id": "msg-7"}
    assert place.count("second_message_ids") == 0


def test_evidence_that_meets_a_replay_starts_over_and_still_wins(place: Place) -> None:
    send = _failed(place)
    with open_transaction(place) as connection:
        connection.execute("select from sendonce.sends where id = %s for update", (send,))
        event = Rival(lambda: hear(place, told(DELIVERED, send, "msg-7")))
        wait_for_a_waiter(place, event)
        user = person(place)
        again = replay_send(connection, workspace_id=place.workspace, send_id=send, user_id=user, reason="again")
        assert again == Replayed(send)
    assert event.result.stored == 1
    assert (state_of(place, send), place.count("work")) == ("accepted", 0)


@pytest.mark.parametrize("end", ["suppressed", "cancelled"])
def test_a_send_that_was_stopped_stays_so_and_is_marked_taken(place: Place, end: str) -> None:
    send, *_ = unknown(place)
    if end == "cancelled":
        with place.database.transaction() as connection:
            cancel_send(connection, workspace_id=place.workspace, send_id=send, user_id=None, reason="too late by now")
    else:
        _suppress_its_second_attempt(place)
    assert state_of(place, send) == end
    hear(place, told(DELIVERED, send, "msg-7"))
    row = place.one("select state::text, taken_at is not null as taken, delivery::text from sendonce.sends")
    assert row == {"state": end, "taken": True, "delivery": "delivered"}
    assert attempts_of(place, send) == ["accepted"]


def _suppress_its_second_attempt(place: Place) -> None:
    graces_end(place)
    reconciled(place)
    decide(place, Decision.RESEND)
    with place.database.transaction() as connection:
        row = place.one("select address_lookup, now() as now from sendonce.sends")
        say(
            connection,
            [
                Statement(
                    workspace_id=place.workspace, address_lookup=row["address_lookup"], said_at=row["now"],
                    scope=SuppressionScope.EVERYTHING, source="bounced",
                )
            ],
        )  # fmt: skip
    assert Hand(place).start() == []
