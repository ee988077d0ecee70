"""Rule 16: an id of the provider leads only into its own account, and a second one for a send is kept and told."""

from __future__ import annotations

from uuid import UUID

from dashboard.ledger import attempts
from dashboard.ledger.accounts import save_account
from dashboard.lifecycle import Decision, EventType
from dashboard.worker.reconcile import match_again
from tests.crew import BACKOFF, HOUR, Hand, ask, ask_one, attempts_of, decide, hear, held, state_of, told
from tests.place import Place, outcome_of


def _another_account(place: Place) -> UUID:
    with place.database.transaction() as connection:
        return save_account(
            connection, place.vault, workspace_id=place.workspace, name="other", provider="resend", settings={},
            secrets={}, endpoint="there",
        )  # fmt: skip


def test_a_message_id_matches_an_attempt_of_the_same_account_only(place: Place) -> None:
    send = ask_one(place)
    Hand(place).send("accepted", "msg-1")
    other = _another_account(place)
    assert hear(place, told(EventType.COMPLAINED, None, "msg-1"), account=other).unmatched == 1
    assert place.one("select delivery from sendonce.sends")["delivery"] is None
    assert hear(place, told(EventType.DELIVERED, None, "msg-1")).stored == 1
    assert place.one("select delivery::text from sendonce.sends")["delivery"] == "delivered"
    assert state_of(place, send) == "accepted"


def test_our_id_counts_before_the_providers(place: Place) -> None:
    first = ask_one(place, "order:1")
    Hand(place).send("accepted", "msg-1")
    second = ask_one(place, "order:2")
    Hand(place).send("accepted", "msg-2")
    hear(place, told(EventType.DELIVERED, second, "msg-1"))
    rows = place.all("select id, delivery::text from sendonce.sends")
    assert {row["id"]: row["delivery"] for row in rows} == {first: None, second: "delivered"}


def test_a_send_that_was_taken_twice_keeps_both_ids(place: Place) -> None:
    send, *_ = held(place)
    decide(place, Decision.RESEND)
    Hand(place).send("accepted", "msg-2")
    hear(place, told(EventType.DELIVERED, send, "msg-1", attempt=1))
    assert attempts_of(place, send) == ["accepted", "accepted"]
    hear(place, told(EventType.DELIVERED, send, "msg-3"))
    row = place.one("select send_id, account_id, provider_message_id from sendonce.second_message_ids")
    assert row == {"send_id": send, "account_id": place.account, "provider_message_id": "msg-3"}
    assert hear(place, told(EventType.OPENED, None, "msg-3")).stored == 1, "and events of either find the send"


def test_what_was_kept_for_a_second_id_is_matched_when_that_id_is_known(place: Place) -> None:
    send = ask_one(place)
    Hand(place).send("accepted", "msg-1")
    assert hear(place, told(EventType.COMPLAINED, None, "msg-2")).unmatched == 1
    hear(place, told(EventType.DELIVERED, send, "msg-2"))
    with place.database.transaction() as connection:
        assert match_again(connection, after=0) == 1
    assert place.one("select delivery::text from sendonce.sends")["delivery"] == "complained"
    assert place.count("unmatched") == 0


def test_repeats_that_came_while_nobody_knew_the_send_are_not_forgotten(place: Place) -> None:
    send = ask_one(place)
    fact = told(EventType.DELIVERED, None, "msg-1")
    for _ in range(3):
        hear(place, fact)
    Hand(place).send("accepted", "msg-1")
    assert place.one("select send_id, repeats from sendonce.events") == {"send_id": send, "repeats": 2}


def test_a_message_id_that_several_sends_have_leads_to_none_of_them(place: Place) -> None:
    """As one call for several may give it. Events that came before both sends have it, and after."""
    first, second = ask(place, "order:1", "order:2")
    hand = Hand(place)
    outcomes = [outcome_of(started, "accepted", "shared") for started in hand.start()]
    assert hear(place, told(EventType.COMPLAINED, None, "shared")).unmatched == 1
    with place.database.transaction() as connection:
        attempts.finish(connection, hand.id, outcomes, backoff=BACKOFF, breaker=HOUR)
    assert hear(place, told(EventType.BOUNCED, None, "shared")).unmatched == 1
    with place.database.transaction() as connection:
        assert match_again(connection, after=0) == 0
    assert hear(place, told(EventType.DELIVERED, second, "shared")).stored == 1
    rows = place.all("select id, delivery::text from sendonce.sends")
    assert {row["id"]: row["delivery"] for row in rows} == {first: None, second: "delivered"}
