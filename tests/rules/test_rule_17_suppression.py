"""Rule 17: suppression is the fold of what was said by its own time; how far it reaches depends on who said what."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from dashboard.ledger.vault import Vault
from dashboard.lifecycle import EventType, MailClass
from tests.crew import Hand, Rival, ask_one, attempts_of, hear, hear_in, open_transaction, state_of, told
from tests.place import KEYS, Place

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
BULK = {MailClass.LIFECYCLE, MailClass.SCHEDULED, MailClass.CAMPAIGN}


def _said(place: Place, word: EventType, *, after: float = 0, stream: str = "receipts", **facts: object) -> None:
    """Something that a provider tells of an earlier mail to the same address."""
    earlier = ask_one(place, "earlier", stream=stream)
    hand = Hand(place)
    for started in hand.start():
        hand.finish(started, "accepted")
    hear(place, told(word, earlier, occurred_at=NOON + timedelta(seconds=after), **facts))


def _outcome(place: Place, stream: str, address: str = "ada@example.com") -> str:
    send: UUID = ask_one(place, "order:1", stream=stream, address=address)
    started = Hand(place).start()
    assert bool(started) == (attempts_of(place, send) == ["submitting"])
    return "started" if started else state_of(place, send)


@pytest.mark.parametrize("mail_class", MailClass)
@pytest.mark.parametrize(
    ("word", "bounce", "reaches"),
    [
        (EventType.BOUNCED, "hard", set(MailClass)),
        (EventType.BOUNCED, "soft", set()),
        (EventType.BOUNCED, "block", set()),
        (EventType.REJECTED, "suppressed", set()),
        (EventType.FAILED, None, set()),
        (EventType.COMPLAINED, None, BULK),
        (EventType.UNSUBSCRIBED, None, set()),
    ],
)
def test_what_was_said_of_one_mail_reaches_so_far(
    place: Place, word: EventType, bounce: str | None, reaches: set[MailClass], mail_class: MailClass
) -> None:
    place.stream("other", mail_class.value)
    _said(place, word, bounce_class=bounce)
    assert _outcome(place, "other") == ("suppressed" if mail_class in reaches else "started")


def test_an_unsubscribe_reaches_its_own_stream(place: Place) -> None:
    _said(place, EventType.UNSUBSCRIBED, stream="news")
    assert _outcome(place, "news") == "suppressed"


def test_an_address_is_suppressed_however_it_is_written(place: Place) -> None:
    _said(place, EventType.BOUNCED, bounce_class="hard")
    assert _outcome(place, "receipts", "  ADA@Example.COM ") == "suppressed"


def test_a_suppression_outlives_the_rotation_of_the_encryption_keys(place: Place) -> None:
    _said(place, EventType.BOUNCED, bounce_class="hard")
    place.vault = Vault((("k2", b"n" * 32), *KEYS))
    assert _outcome(place, "receipts") == "suppressed"


def test_what_a_process_hears_that_has_the_new_keys_already_counts_for_one_that_has_not(place: Place) -> None:
    before, place.vault = place.vault, Vault((("k2", b"n" * 32), *KEYS))
    _said(place, EventType.BOUNCED, bounce_class="hard")
    place.vault = before
    assert _outcome(place, "receipts") == "suppressed"


def test_another_address_is_not(place: Place) -> None:
    _said(place, EventType.BOUNCED, bounce_class="hard")
    assert _outcome(place, "receipts", "ada+tag@example.com") == "started"


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
@pytest.mark.parametrize("last", [EventType.UNSUBSCRIBED, EventType.RESUBSCRIBED])
def test_the_newest_word_by_its_own_time_stands_in_whatever_order_it_comes(
    place: Place, order: tuple[int, ...], last: EventType
) -> None:
    first = EventType.RESUBSCRIBED if last is EventType.UNSUBSCRIBED else EventType.UNSUBSCRIBED
    words = [(last, 0.0), (first, 10.0), (last, 20.0)]
    for i in order:
        _said(place, words[i][0], after=words[i][1], stream="receipts")
    assert _outcome(place, "receipts") == ("suppressed" if last is EventType.UNSUBSCRIBED else "started")


def test_of_two_words_of_the_same_moment_the_one_that_suppresses_stands(place: Place) -> None:
    for key, words in enumerate(itertools.permutations((EventType.UNSUBSCRIBED, EventType.RESUBSCRIBED))):
        place.stream(f"s{key}", "campaign")
        for word in words:
            send = ask_one(place, f"earlier:{key}:{word}", stream=f"s{key}", address=f"a{key}@example.com")
            hand = Hand(place)
            for started in hand.start():
                hand.finish(started, "accepted")
            hear(place, told(word, send, occurred_at=NOON))
        row = place.one("select suppressed from sendonce.suppressions where mailstream = %s", f"s{key}")
        assert row["suppressed"]


def test_a_suppression_that_commits_before_the_start_counts(place: Place) -> None:
    _said(place, EventType.DELIVERED)
    earlier = place.one("select id from sendonce.sends")["id"]
    send, hand = ask_one(place, "order:1"), Hand(place)
    claims = hand.claim()
    with open_transaction(place) as connection:
        hear_in(connection, place, told(EventType.BOUNCED, earlier, bounce_class="hard"))
    start = Rival(lambda: hand.start(claims))
    assert start.result == []
    assert (state_of(place, send), attempts_of(place, send)) == ("suppressed", [])
