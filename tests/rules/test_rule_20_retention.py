"""Rule 20, retention: a settled send is locked, looked at again and stripped; its tombstone still knows a late delivery
of its key and a late event of its provider, and nothing that is personal."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from dashboard.identity import send_id
from dashboard.ledger.holds import Refused
from dashboard.ledger.replay import replay_send
from dashboard.ledger.retention import strip
from dashboard.lifecycle import Decision, EventType
from tests.crew import (
    DAY,
    Hand,
    Rival,
    ask,
    ask_one,
    attempt_ages,
    attempts_of,
    decide,
    hear,
    held,
    open_transaction,
    person,
    record_in,
    state_of,
    told,
    unknown,
    verdicts_of,
    wait_for_a_waiter,
)
from tests.place import Place

MONTH = timedelta(days=30)


@pytest.fixture(autouse=True)
def _kept_for_a_month(place: Place) -> None:
    place.run("update sendonce.mailstreams set retain_for = %s", MONTH)


def accepted(place: Place, key: str = "order:1", message_id: str = "msg-1") -> UUID:
    send = ask_one(place, key)
    Hand(place).send("accepted", message_id)
    return send


def ages(place: Place, send: UUID, by: timedelta = MONTH + DAY) -> None:
    """The send was recorded, tried and settled so much earlier."""
    place.run(
        "update sendonce.sends set recorded_at = recorded_at - %(by)s, due_at = due_at - %(by)s,"
        " asked_at = asked_at - %(by)s, settled_at = settled_at - %(by)s where id = %(send)s",
        by=by, send=send,
    )  # fmt: skip
    attempt_ages(place, send, by)


def stripped(place: Place) -> int:
    with place.database.transaction() as connection:
        return strip(connection, place.vault)


def test_a_send_past_its_retention_keeps_what_became_of_it_and_loses_all_that_is_personal(place: Place) -> None:
    send = accepted(place)
    hear(place, told(EventType.DELIVERED, send, "msg-1", recipient="ada@example.com", reason="to ada", url="https://x"))
    ask(place, "order:1")
    ages(place, send)
    before = place.one("select state::text, delivery::text, settled_at, account_id from sendonce.sends")
    assert stripped(place) == 1
    assert place.one("select state::text, delivery::text, settled_at, account_id from sendonce.sends") == before
    row = place.one("select key, recipient_id, address_lookup, trigger_id, metadata from sendonce.sends")
    assert row == {"key": f" {send}", "recipient_id": "", "address_lookup": None, "trigger_id": "", "metadata": None}
    assert place.count("messages") == 0
    event = place.one("select event_type::text, recipient, raw, reason, url from sendonce.events")
    assert event == {"event_type": "delivered", "recipient": send.bytes, "raw": None, "reason": None, "url": None}
    assert place.one("select trigger_id from sendonce.duplicates") == {"trigger_id": None}
    attempt = place.one("select status::text, provider_message_id, reason from sendonce.attempts")
    assert attempt == {"status": "accepted", "provider_message_id": "msg-1", "reason": None}


def test_the_fingerprint_of_a_tombstone_is_a_keyed_one(place: Place) -> None:
    send = accepted(place)
    before = place.one("select fingerprint from sendonce.sends")
    ages(place, send)
    stripped(place)
    assert place.one("select fingerprint from sendonce.sends") != before


def test_what_a_template_lacked_goes_with_the_message(place: Place) -> None:
    message = {"from": "shop@example.com", "subject": "Your receipt", "text": "Dear {{ ada }}", "variables": {}}
    send = ask_one(place, message=message)
    assert place.one("select detail from sendonce.moves") == {"detail": "'ada' is undefined"}
    ages(place, send)
    assert stripped(place) == 1
    assert place.one("select detail from sendonce.moves") == {"detail": None}


def test_what_is_younger_or_of_a_mailstream_that_keeps_everything_is_left_alone(place: Place) -> None:
    young, kept = accepted(place), ask_one(place, "news:1", stream="news")
    Hand(place).send("accepted", "msg-2")
    ages(place, young, MONTH - DAY)
    ages(place, kept)
    place.run("update sendonce.mailstreams set retain_for = null where name = 'news'")
    assert stripped(place) == 0
    assert place.count("messages") == 2


@pytest.mark.parametrize("open_one", ["pending", "unknown", "held"])
def test_nothing_unsettled_is_stripped_however_old(place: Place, open_one: str) -> None:
    make = {"pending": ask_one, "unknown": lambda p: unknown(p)[0], "held": lambda p: held(p)[0]}[open_one]
    send = make(place)
    ages(place, send, 100 * MONTH)
    assert (stripped(place), place.count("messages")) == (0, 1)


def test_what_was_held_for_longer_than_its_retention_is_kept_until_that_after_its_end(place: Place) -> None:
    send, *_ = held(place)
    ages(place, send)
    decide(place, Decision.MARK_ACCEPTED)
    assert stripped(place) == 0
    ages(place, send)
    assert stripped(place) == 1
    seen = place.one("select seen from sendonce.decisions")["seen"]
    assert not {"key", "recipient_id", "error"} & set(seen)
    assert seen["attempts"] == 1, "what a decision rested on stays, but for what is personal"


# ── what a tombstone still knows ─────────────────────────────────────────────────────────────────────────────────────


def test_a_late_delivery_of_the_key_is_a_duplicate_and_sends_nothing(place: Place) -> None:
    send = accepted(place)
    ages(place, send)
    stripped(place)
    assert ask(place, "order:1") == [send]
    assert verdicts_of(place, send) == ["duplicate"]
    assert Hand(place).start() == []
    assert place.one("select difference from sendonce.duplicates") == {"difference": None}


def test_a_late_delivery_with_other_content_is_still_a_mismatch(place: Place) -> None:
    send = accepted(place)
    ages(place, send)
    stripped(place)
    ask(place, "order:1", text="Something else")
    assert verdicts_of(place, send) == ["mismatch"]


def test_a_key_that_looks_like_a_tombstones_is_another_send(place: Place) -> None:
    send = accepted(place)
    ages(place, send)
    stripped(place)
    assert ask(place, str(send)) == [send_id(place.workspace, "receipts", str(send))]
    assert place.count("sends") == 2


@pytest.mark.parametrize("named_by", ["our id", "the provider's id"])
def test_a_late_event_still_finds_it_and_brings_nothing_personal_back(place: Place, named_by: str) -> None:
    send = accepted(place)
    ages(place, send)
    stripped(place)
    event = told(
        EventType.COMPLAINED,
        send if named_by == "our id" else None,
        "msg-1",
        recipient="ada@example.com",
        reason="spam",
    )
    assert hear(place, event).stored == 1
    assert place.one("select delivery::text from sendonce.sends") == {"delivery": "complained"}
    stored = place.one("select recipient, raw, reason from sendonce.events")
    assert stored == {"recipient": send.bytes, "raw": None, "reason": None}
    suppressed = place.one("select source, address_lookup from sendonce.suppressions")
    assert suppressed == {"source": "complained", "address_lookup": place.vault.lookup("ada@example.com")}
    assert hear(place, event).repeated == 1
    assert place.one("select repeats from sendonce.events") == {"repeats": 1}


def test_an_event_that_was_heard_before_is_a_repeat_after(place: Place) -> None:
    send = accepted(place)
    event = told(EventType.DELIVERED, send, "msg-1", recipient="ada@example.com")
    hear(place, event)
    ages(place, send)
    stripped(place)
    assert hear(place, event).repeated == 1
    assert place.one("select count(*) as n, max(repeats) as repeats from sendonce.events") == {"n": 1, "repeats": 1}


def test_two_recipients_of_one_event_id_are_both_stripped(place: Place) -> None:
    first, second = accepted(place), accepted(place, "order:2", "msg-2")
    for send, name in ((first, "ada"), (second, "grace")):
        hear(place, told(EventType.DELIVERED, send, event_id="both", recipient=f"{name}@example.com"))
        ages(place, send)
    assert (stripped(place), place.count("events")) == (2, 2)


# ── at the same time ─────────────────────────────────────────────────────────────────────────────────────────────────


def _failed(place: Place) -> UUID:
    send = ask_one(place)
    Hand(place).send("refused")
    ages(place, send)
    return send


def test_a_strip_that_meets_a_replay_passes_the_send_by(place: Place) -> None:
    send, user = _failed(place), person(place)
    with open_transaction(place) as connection:
        replay_send(connection, workspace_id=place.workspace, send_id=send, user_id=user, reason="again")
        assert stripped(place) == 0
    assert stripped(place) == 0
    assert (state_of(place, send), place.count("messages")) == ("pending", 1)
    assert len(Hand(place).start()) == 1


def test_a_replay_that_meets_a_strip_waits_for_it_and_is_refused(place: Place) -> None:
    send, user = _failed(place), person(place)

    def replay() -> object:
        with place.database.transaction() as connection:
            return replay_send(connection, workspace_id=place.workspace, send_id=send, user_id=user, reason="again")

    with open_transaction(place) as connection:
        assert strip(connection, place.vault) == 1
        late = Rival(replay)
        wait_for_a_waiter(place, late)
    assert isinstance(late.result, Refused)
    assert "Its message is gone" in late.result.reason
    assert (state_of(place, send), attempts_of(place, send)) == ("failed", ["rejected"])


def test_a_delivery_and_a_strip_at_once_end_as_a_duplicate_of_a_tombstone(place: Place) -> None:
    send = accepted(place)
    ages(place, send)
    with open_transaction(place) as connection:
        assert strip(connection, place.vault) == 1
        assert [r.send_id for r in record_in(connection, place, "order:1")] == [send]
    assert verdicts_of(place, send) == ["duplicate"]
