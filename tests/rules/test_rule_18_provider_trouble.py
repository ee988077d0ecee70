"""Rule 18: trouble of an account is no send's fault: it is paused for all workers, and its sends wait uncounted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from dashboard.ledger import attempts
from dashboard.ledger.accounts import save_account
from dashboard.ledger.attempts import Kind
from dashboard.ledger.vault import Vault
from dashboard.simulator import Config, Simulator
from tests.crew import (
    BACKOFF,
    Hand,
    Rival,
    ask,
    ask_one,
    attempts_of,
    due_now,
    open_transaction,
    reason_of,
    state_of,
    until,
    wait_for_a_waiter,
    work_of,
)
from tests.lanes import a_lane, point_at
from tests.place import Place, outcome_of

PAUSE = timedelta(minutes=5)


def _resume(place: Place) -> None:
    place.run("update sendonce.accounts set paused_until = now() - interval '1 second'")
    due_now(place)


def _paused(place: Place) -> bool:
    paused: bool = place.one("select coalesce(paused_until > now(), false) as paused from sendonce.accounts")["paused"]
    return paused


def test_a_refusal_of_the_account_sends_the_send_back_uncounted(place: Place) -> None:
    place.run("update sendonce.mailstreams set max_attempts = 1")
    send, hand = ask_one(place), Hand(place)
    for n in range(1, 4):
        (started,) = hand.start()
        assert started.n == n
        hand.finish(started, "account_trouble", pause=PAUSE, reason="the key was revoked")
        row = work_of(place, send)
        assert (row["state"], row["reason"], row["counted_attempts"]) == ("pending", "provider_paused", 0)
        _resume(place)
    (started,) = hand.start()
    hand.finish(started, "refused_for_now")
    assert (state_of(place, send), reason_of(place, send)) == ("failed", "attempts_used_up"), "this one counted"


def test_the_pause_has_its_reason_and_its_end_and_counts_for_every_worker(place: Place) -> None:
    first, second = ask(place, "order:1", "order:2")
    hand, other = Hand(place), Hand(place)
    (started,) = hand.start(hand.claim(1))
    rest = other.claim()
    hand.finish(started, "account_trouble", pause=PAUSE, reason="the key was revoked")
    row = place.one("select paused_until - now() <= %s as bounded, paused_reason from sendonce.accounts", PAUSE)
    assert row == {"bounded": True, "paused_reason": "the key was revoked"}
    due_now(place)
    assert other.start(rest) == []
    assert Hand(place).claim() == []
    _resume(place)
    assert {s.send_id for s in other.start()} == {first, second}


def test_the_alert_is_raised_once_however_many_workers_meet_the_trouble(place: Place) -> None:
    ask(place, *(f"order:{i}" for i in range(3)))
    hands = [Hand(place) for _ in range(3)]
    started = [hand.start(hand.claim(1))[0] for hand in hands]
    alerts = [
        hand.finish(each, "account_trouble", pause=PAUSE, reason="quota").paused
        for hand, each in zip(hands, started, strict=True)
    ]
    assert [len(alert) for alert in alerts] == [1, 0, 0]


def test_two_workers_that_meet_it_at_the_same_moment_pause_it_once(place: Place) -> None:
    ask(place, "order:1", "order:2")
    one, two = Hand(place), Hand(place)
    first, second = one.start(one.claim(1))[0], two.start(two.claim(1))[0]
    with open_transaction(place) as connection:
        mine = one.finish_in(connection, first, "account_trouble", pause=PAUSE, reason="quota")
        other = Rival(lambda: two.finish(second, "account_trouble", pause=PAUSE, reason="quota"))
        wait_for_a_waiter(place, other)
    assert (len(mine.paused), len(other.result.paused)) == (1, 0)


def test_a_pause_is_only_made_longer(place: Place) -> None:
    ask(place, "order:1", "order:2")
    hand = Hand(place)
    first, second = hand.start()
    hand.finish(first, "account_trouble", pause=timedelta(hours=6), reason="quota")
    hand.finish(second, "account_trouble", pause=timedelta(seconds=1), reason="quota")
    assert place.one("select paused_until > now() + interval '5 hours' as far from sendonce.accounts")["far"]


def test_a_provider_that_cannot_be_reached_three_times_in_a_row_is_left_alone_for_longer_each_time(
    place: Place,
) -> None:
    ask(place, *(f"order:{i}" for i in range(8)))
    hand = Hand(place)
    spans = []
    for round_ in range(3):
        for each in hand.start()[: 3 if round_ == 0 else 1]:
            hand.finish(each, "account_trouble", reason="connection refused")
            spans.append(place.one("select paused_until - now() as left from sendonce.accounts")["left"])
        _resume(place)
    assert spans[:2] == [None, None]
    for left, seconds in zip(spans[2:], (30, 60, 120), strict=True):
        assert timedelta(seconds=seconds - 2) < left <= timedelta(seconds=seconds)


def test_a_whole_set_that_meets_one_outage_is_one_round_of_trouble(place: Place) -> None:
    ask(place, *(f"order:{i}" for i in range(60)))
    one, two = Hand(place), Hand(place)
    started = [(one, each) for each in one.start(one.claim(30))] + [(two, each) for each in two.start()]
    assert len(started) == 60
    for hand, each in started:
        hand.finish(each, "account_trouble", reason="connection refused")
    left = place.one("select paused_until - now() as left, troubles from sendonce.accounts")
    assert left["left"] <= timedelta(seconds=30), "not an hour for a blink of the provider"
    assert left["troubles"] == 3


def in_trouble(place: Place, sends: int = 10) -> Hand:
    """The breaker has opened, and its pause is over."""
    ask(place, *(f"order:{i}" for i in range(sends)))
    hand = Hand(place)
    for each in hand.start(hand.claim(3)):
        hand.finish(each, "account_trouble", reason="connection refused")
    assert _paused(place)
    _resume(place)
    return hand


def test_after_the_pause_one_call_tries_and_everybody_else_waits_for_its_answer(place: Place) -> None:
    hand, other = in_trouble(place), Hand(place)
    late = other.claim()  # claimed before the other has begun
    (trying,) = hand.start()
    assert other.start(late) == []
    assert (hand.start(), other.start()) == ([], [])
    assert _paused(place)
    hand.finish(trying, "accepted", "m-1")
    assert not _paused(place)
    assert len(other.start()) == 9, "and now all that has waited"


def test_a_call_that_tried_in_vain_makes_the_next_pause_twice_as_long(place: Place) -> None:
    hand = in_trouble(place)
    (trying,) = hand.start()
    assert hand.finish(trying, "account_trouble", reason="connection refused").paused == set(), "no second alert"
    left = place.one("select paused_until - now() as left from sendonce.accounts")["left"]
    assert timedelta(seconds=58) < left <= timedelta(seconds=60)


def test_a_call_that_never_tells_how_its_try_went_is_followed_by_another(place: Place) -> None:
    hand = in_trouble(place)
    assert len(hand.start()) == 1
    _resume(place)
    assert len(hand.start()) == 1


def test_an_answer_that_was_under_way_ends_no_pause_that_has_another_reason(place: Place) -> None:
    ask(place, *(f"order:{i}" for i in range(4)))
    hand = Hand(place)
    first, *others = hand.start()
    for each in others:
        hand.finish(each, "account_trouble", pause=PAUSE, reason="quota")
    hand.finish(first, "accepted", "m-1")
    assert _paused(place)


def test_a_yes_in_between_begins_the_count_anew(place: Place) -> None:
    ask(place, *(f"order:{i}" for i in range(5)))
    hand = Hand(place)
    started = hand.start()
    for each, kind in zip(started, ("account_trouble", "account_trouble", "accepted"), strict=False):
        hand.finish(each, kind)  # type: ignore[arg-type]
    for each in started[3:]:
        hand.finish(each, "account_trouble")
    assert not _paused(place)


def test_a_refusal_of_one_message_pauses_nobody(place: Place) -> None:
    ask(place, *(f"order:{i}" for i in range(5)))
    hand = Hand(place)
    for each in hand.start():
        assert hand.finish(each, "refused").paused == set()
    assert not _paused(place)


def test_a_provider_that_says_when_is_asked_no_sooner(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    (started,) = hand.start()
    hand.finish(started, "refused_for_now", retry_after=7200.0)
    row = place.one("select claim_at - now() > interval '119 minutes' as later, reason from sendonce.work")
    assert row == {"later": True, "reason": "refused_for_now"}
    assert hand.claim() == []
    assert state_of(place, send) == "pending"


# ── what looks like trouble of the account, and is not ───────────────────────────────────────────────────────────────

BROKEN = {
    "of another row": "update sendonce.messages set body = (select body from sendonce.messages"
    " where send_id = %(other)s) where send_id = %(send)s",
    "cut off": "update sendonce.messages set body = substring(body for 20) where send_id = %(send)s",
    "empty": "update sendonce.messages set body = '' where send_id = %(send)s",
    "no ciphertext at all": "update sendonce.messages set body = 'some text' where send_id = %(send)s",
    "an address of another row": "update sendonce.messages set address = (select address from sendonce.messages"
    " where send_id = %(other)s) where send_id = %(send)s",
}


@pytest.mark.parametrize("how", BROKEN)
def test_one_message_that_cannot_be_decrypted_is_set_aside_and_pauses_nobody(place: Place, how: str) -> None:
    with Simulator(Config()) as simulator, a_lane(place) as lane:
        point_at(place, simulator)
        other, broken, *rest = ask(place, *(f"order:{i}" for i in range(6)))
        place.run(BROKEN[how], send=broken, other=other)
        until(lambda: not lane.go_round())
        assert {row.send_id for row in simulator.books} == {str(send) for send in (other, *rest)}
    assert (state_of(place, broken), reason_of(place, broken)) == ("held", "message_gone")
    assert attempts_of(place, broken) == ["abandoned"], "it never left"
    assert place.one("select paused_until, troubles from sendonce.accounts") == {"paused_until": None, "troubles": 0}


def test_a_body_that_is_no_message_is_set_aside_too(place: Place) -> None:
    with Simulator(Config()) as simulator, a_lane(place) as lane:
        point_at(place, simulator)
        broken = ask_one(place)
        place.run("update sendonce.messages set body = %s", place.vault.encrypt(b"[]", broken.bytes))
        until(lambda: not lane.go_round())
    assert (state_of(place, broken), reason_of(place, broken)) == ("held", "message_gone")
    assert place.one("select troubles from sendonce.accounts") == {"troubles": 0}


def test_a_key_that_is_not_configured_is_the_installations_fault_and_costs_no_send(place: Place) -> None:
    with Simulator(Config()) as simulator, a_lane(place, vault=Vault((("k2", b"2" * 32),))) as lane:
        point_at(place, simulator)
        sends = ask(place, "order:1", "order:2")
        lane.go_round()
        until(lambda: lane.go_round() and place.one("select troubles > 0 as any from sendonce.accounts")["any"])
        assert {state_of(place, send) for send in sends} <= {"pending", "claimed"}
        assert simulator.books == []
    assert place.one("select max(counted_attempts) <= 1 as free from sendonce.work")["free"]


def test_answers_and_troubles_of_the_same_accounts_in_two_sets_never_deadlock(place: Place) -> None:
    """One set has an answer of the second account and trouble of the first, the other one trouble of both."""
    with place.database.transaction() as connection:
        other = save_account(
            connection, place.vault, workspace_id=place.workspace, name="other", provider="resend", settings={},
            secrets={}, endpoint="there",
        )  # fmt: skip
    place.stream("others", "transactional", account_id=other)
    first, second = sorted((place.account, other))

    def set_of(name: str, came_to: dict[UUID, Kind]) -> Callable[[], attempts.Settled]:
        ask(place, f"{name}:1")
        ask(place, f"{name}:2", stream="others")
        hand = Hand(place)
        finished = [outcome_of(s, came_to[s.account_id], f"{name}-{s.account_id}") for s in hand.start()]
        assert len(finished) == 2

        def finish() -> attempts.Settled:
            with place.database.transaction() as connection:
                return attempts.finish(
                    connection, hand.id, finished, backoff=BACKOFF, breaker=timedelta(seconds=30)
                )  # fmt: skip

        return finish

    both = set_of("a", {first: "account_trouble", second: "account_trouble"})
    mixed = set_of("b", {first: "account_trouble", second: "accepted"})
    place.run("update sendonce.accounts set troubles = 1")
    waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    with open_transaction(place) as connection:
        connection.execute("select from sendonce.accounts where id = %s for update", [first])
        rivals = [Rival(both)]
        until(lambda: len(place.all(waiting)) == 1)
        rivals.append(Rival(mixed))
        until(lambda: len(place.all(waiting)) == 2)
    assert [rival.result.late for rival in rivals] == [0, 0]
    assert len(place.all("select from sendonce.work where state = 'pending'")) == 3
