"""The ledger's own odds: how earlier attempts that failed in one way turned out, against what is true of them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from uuid import UUID

from dashboard.insight.odds import odds
from dashboard.ledger.alike import Alike, Failure, read_alike, read_failures
from dashboard.lifecycle import Decision, EventType
from tests.conftest import SOAK
from tests.crew import (
    Hand,
    ask,
    attempt_ages,
    attempts_age,
    decide,
    due_now,
    graces_end,
    hear,
    held,
    hold_of,
    reconciled,
    told,
    unknown,
)
from tests.place import Place

TIMED_OUT = Failure("resend", "read_timeout", None)
HOUR = timedelta(hours=1)


def alike(place: Place, failure: Failure = TIMED_OUT) -> Alike:
    with place.database.transaction() as connection:
        return read_alike(connection, place.workspace, failure)


def test_what_an_event_tells_of_counts_as_taken_and_silence_as_nothing(place: Place) -> None:
    taken, *_ = unknown(place, "a")
    unknown(place, "b")
    assert alike(place) == Alike(0, 0, 2)
    hear(place, told(EventType.DELIVERED, taken))
    assert alike(place) == Alike(1, 1, 2)


def test_a_late_refusal_counts_as_not_taken(place: Place) -> None:
    _, hand, started = unknown(place, "a")
    hand.finish(started, "refused")
    assert alike(place) == Alike(0, 1, 1)


def test_what_a_person_only_believes_counts_as_nothing_until_the_provider_tells(place: Place) -> None:
    send, *_ = held(place, "a")
    decide(place, Decision.MARK_ACCEPTED)
    assert alike(place) == Alike(0, 0, 1)
    hear(place, told(EventType.DELIVERED, send))
    assert alike(place) == Alike(1, 1, 1)


def resent(place: Place, key: str) -> tuple[UUID, datetime]:
    """Unanswered an hour ago, submitted again by a person, and answered yes; and the second attempt's start."""
    send, *_ = held(place, key)
    attempt_ages(place, send, HOUR)
    decide(place, Decision.RESEND, hold=hold_of(place))
    hand = Hand(place)
    (again,) = hand.start()
    hand.finish(again, "accepted", f"msg-{key}")
    return send, datetime.now(UTC)


def test_after_a_resend_the_time_of_the_first_word_tells_which_attempt_was_taken(place: Place) -> None:
    first, _ = resent(place, "a")
    second, now = resent(place, "b")
    assert alike(place) == Alike(0, 0, 2)
    hear(place, told(EventType.DELIVERED, first, "msg-a", occurred_at=now - HOUR / 2))
    assert alike(place) == Alike(1, 1, 2)
    hear(place, told(EventType.DELIVERED, second, "msg-b", occurred_at=now + HOUR / 60))
    assert alike(place) == Alike(1, 2, 2, timed=1)


def test_an_event_that_names_its_attempt_tells_more_than_its_time(place: Place) -> None:
    """So it is where no key is honoured. A taken one whose first word comes hours late is not mistaken for the next."""
    first, now = resent(place, "a")
    second, _ = resent(place, "b")
    later = now + HOUR / 60
    hear(place, told(EventType.DELIVERED, first, "msg-1", attempt=1, occurred_at=later))
    hear(place, told(EventType.DELIVERED, second, "msg-b", attempt=2, occurred_at=later))
    assert alike(place) == Alike(1, 2, 2)


def test_other_failures_and_other_workspaces_are_not_alike(place: Place) -> None:
    unknown(place, "a")
    other = Place(place.database, name="other")
    unknown(other, "a")
    assert alike(place) == Alike(0, 0, 1)
    for failure in (
        Failure("resend", "read_timeout", "response"), Failure("resend", "reset", None),
        Failure("smtp", "read_timeout", None),
    ):  # fmt: skip
        assert alike(place, failure) == Alike(0, 0, 0)


def test_a_send_tells_how_it_failed(place: Place) -> None:
    (one, two), hand = ask(place, "a", "b"), Hand(place)
    for started in hand.start():
        hand.finish(started, "ambiguous", error_class="reset", phase="response")
    (plain,) = ask(place, "c")
    with place.database.transaction() as connection:
        failures = read_failures(connection, [one, two, plain])
    assert failures == [(Failure("resend", "reset", "response"), 2)]


def test_the_odds_agree_with_what_is_true(place: Place) -> None:
    """Of unanswered attempts a share was taken, which nobody sees but by events; the rest is submitted again."""
    number, truth, dice = 10_000 if SOAK else 400, 0.3, random.Random(14)
    place.run("update sendonce.mailstreams set unknown_policy = 'release'")
    taken = set()
    for start in range(0, number, 200):
        sends, hand = ask(place, *(f"k{i}" for i in range(start, start + 200))), Hand(place)
        for started in hand.start(hand.claim(200)):
            hand.finish(started, "ambiguous", error_class="read_timeout")
        attempts_age(place, sends, HOUR)
        long_ago = datetime.now(UTC) - HOUR + timedelta(seconds=5)
        really = [send for send in sends if dice.random() < truth]
        taken.update(really)
        hear(place, *(told(EventType.DELIVERED, send, occurred_at=long_ago) for send in really))
        graces_end(place)
        assert reconciled(place).released == len(sends) - len(really)
        due_now(place)
        again = hand.start(hand.claim(200))
        for started in again:
            hand.finish(started, "accepted", f"msg-{started.send_id}")
        soon = datetime.now(UTC) + timedelta(seconds=5)
        hear(place, *(told(EventType.DELIVERED, s.send_id, f"msg-{s.send_id}", occurred_at=soon) for s in again))
    seen = odds(alike(place))
    assert seen is not None
    assert (seen.cases, seen.untold) == (min(number, 2_000), 0)
    assert seen.low <= truth <= seen.high
    if number <= 2_000:
        assert seen.taken == len(taken), "each single one is judged rightly"
