"""Rule 2: only what has a free place and a rate token is started; a kill leaves in doubt only what was in flight."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import pytest

from dashboard.simulator import Config, Simulator
from dashboard.worker.dispatch import Lane
from tests.crew import (
    Hand,
    Rival,
    ask,
    ask_one,
    open_transaction,
    reason_of,
    state_of,
    swept,
    until,
    wait_for_a_waiter,
)
from tests.lanes import a_lane, point_at
from tests.place import Place


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(Config(hold_answers=True)) as running:
        yield running


def test_a_lane_has_no_more_attempts_open_than_places_and_a_kill_leaves_no_more_in_doubt(
    place: Place, simulator: Simulator
) -> None:
    point_at(place, simulator)
    sends = ask(place, *(f"order:{i}" for i in range(10)))
    with a_lane(place, places=3) as lane:
        lane.go_round()
        assert simulator.wait_taken(3)
        for _ in range(3):
            lane.go_round()
        counts = place.one("select count(*) filter (where status = 'submitting') as n from sendonce.attempts")
        assert (counts["n"], len(simulator.books), lane.in_flight) == (3, 3, 3)
        assert swept(place).doubted == 3, "as after a kill at this moment"
        simulator.release_answers()
        _drain(lane)
    assert sorted({state_of(place, send) for send in sends}) == ["accepted"]


def test_a_call_that_several_share_takes_a_place_for_each(place: Place, simulator: Simulator) -> None:
    point_at(place, simulator)
    place.run("update sendonce.mailstreams set batches = true where name = 'news'")
    sends = [ask_one(place, f"news:{i}", stream="news", address=f"ada+{i}@example.com") for i in range(10)]
    with a_lane(place, places=3) as lane:
        lane.go_round()
        assert simulator.wait_taken(3)
        for _ in range(3):
            lane.go_round()
        counts = place.one("select count(*) as n, count(distinct batch) as calls from sendonce.attempts")
        assert (counts, len(simulator.books), lane.in_flight) == ({"n": 3, "calls": 1}, 3, 3)
        simulator.release_answers()
        _drain(lane)
    assert sorted({state_of(place, send) for send in sends}) == ["accepted"]
    assert [len(list(call)) for _, call in groupby(simulator.books, key=lambda row: row.call)] == [3, 3, 3, 1]


def _drain(lane: Lane) -> None:
    until(lambda: not lane.go_round())


def test_without_a_rate_token_a_claimed_send_goes_back_without_an_attempt(place: Place) -> None:
    _one_token(place)
    ask(place, *(f"order:{i}" for i in range(5)))
    hand = Hand(place)
    assert len(hand.start()) == 1
    assert place.count("attempts") == 1
    waiting = place.all("select reason, claim_at > now() as later from sendonce.work where state = 'pending'")
    assert waiting == [{"reason": "no_capacity", "later": True}] * 4
    assert hand.claim() == [], "each waits until a token can be there for it"
    assert swept(place).doubted == 1, "in doubt is only what was in flight"


def test_all_workers_share_the_tokens_of_an_account(place: Place) -> None:
    _one_token(place)
    ask(place, *(f"order:{i}" for i in range(8)))
    one, two = Hand(place), Hand(place)
    mine, theirs = one.claim(4), two.claim(4)
    assert len(mine) == len(theirs) == 4
    with open_transaction(place) as connection:
        first = len(one.start_in(connection, mine))
        second = Rival(lambda: two.start(theirs))
        wait_for_a_waiter(place, second)
    assert (first, second.result) == (1, [])


def test_a_claimed_send_of_a_paused_provider_is_given_back_without_an_attempt(place: Place) -> None:
    send, hand = ask_one(place), Hand(place)
    claims = hand.claim()
    place.run("update sendonce.accounts set paused_until = now() + interval '1 hour', paused_reason = 'quota'")
    assert hand.start(claims) == []
    assert (state_of(place, send), reason_of(place, send)) == ("pending", "provider_paused")
    assert place.count("attempts") == 0


def test_a_database_clock_that_steps_back_gives_no_rate_tokens(place: Place) -> None:
    ask(place, *map(str, range(10)))
    place.run("update sendonce.accounts set rate_per_second = 1")
    place.run(
        "insert into sendonce.account_tokens (account_id, tokens, refilled_at) values (%s, 0, now() + interval '5 s')",
        place.account,
    )
    assert Hand(place).start() == []


def _one_token(place: Place) -> None:
    """The account may start one attempt now, and the next one in a quarter of an hour."""
    place.run("update sendonce.accounts set rate_per_second = 0.001")
    place.run("insert into sendonce.account_tokens (account_id, tokens) values (%s, 1)", place.account)
