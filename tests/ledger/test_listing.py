"""Lists of sends are narrowed by filters, go page by page, and walk an index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from dashboard.ledger.listing import Cursor, SendFilter, list_sends
from dashboard.lifecycle import State, Verdict
from tests.factories import Factory

MAKERS: dict[State, Callable[..., UUID]] = {
    State.PENDING: Factory.pending,
    State.CLAIMED: Factory.claimed,
    State.UNKNOWN: Factory.unknown,
    State.HELD: Factory.held,
    State.ACCEPTED: Factory.accepted,
    State.FAILED: Factory.failed,
    State.SUPPRESSED: Factory.suppressed,
    State.CANCELLED: Factory.cancelled,
}


def listed(factory: Factory, *, limit: int = 50, **filters: Any) -> list[UUID]:
    """All pages of a list."""
    found: list[UUID] = []
    after = None
    while True:
        page = list_sends(factory.connection, factory.workspace, SendFilter(**filters), after=after, limit=limit)
        assert len(page.rows) <= limit
        found += [row.send_id for row in page.rows]
        if page.next is None:
            return found
        after = Cursor.read(str(page.next))


@pytest.mark.parametrize("state", State)
def test_a_list_by_state_has_the_sends_of_that_state_only(factory: Factory, state: State) -> None:
    made = {s: make(factory, address=None) for s, make in MAKERS.items()}
    assert listed(factory, state=state) == [made[state]]
    assert listed(factory, state=state, mailstream="receipts") == [made[state]]
    assert listed(factory, state=state, mailstream="other") == []


def test_the_list_of_all_is_newest_first_across_mailstreams(factory: Factory) -> None:
    factory.stream("welcome")
    made = [factory.pending(asked=i, mailstream=("receipts", "welcome")[i % 2]) for i in range(7)]
    assert listed(factory) == made[::-1]
    assert listed(factory, mailstream="welcome") == [made[5], made[3], made[1]]


@pytest.mark.parametrize("filters", [{}, {"state": State.PENDING}, {"verdict": Verdict.MISMATCH}])
def test_pages_of_any_size_make_the_same_list(factory: Factory, filters: dict[str, Any]) -> None:
    for second in range(9):
        send = factory.pending(asked=second // 3, due=second // 3)  # threes at one moment
        factory.duplicate(send, when=100 + second // 3, verdict="mismatch", state_met="pending")
    whole = listed(factory, **filters)
    assert len(set(whole)) == 9
    assert [listed(factory, limit=limit, **filters) for limit in (1, 2, 4, 9)] == [whole] * 4


def test_open_states_list_what_has_waited_longest_first(factory: Factory) -> None:
    late, early = factory.pending(due=20), factory.pending(due=10)
    assert listed(factory, state=State.PENDING) == [early, late]
    new, old = factory.held(opened=4000), factory.held(opened=3000)
    assert listed(factory, state=State.HELD) == [old, new]


def test_a_send_that_failed_twice_is_listed_once_and_one_that_was_replayed_is_not(factory: Factory) -> None:
    twice = factory.failed(answered=3)
    factory.move(twice, "replay", "failed", "pending", "replayed", when=10)
    factory.move(twice, "fail", "claimed", "failed", "refused", when=20)
    again = factory.failed(answered=4)
    factory.move(again, "replay", "failed", "pending", "replayed", when=11)
    assert listed(factory, state=State.FAILED) == [twice]


def test_a_list_by_verdict_has_each_send_once_by_its_last_such_delivery(factory: Factory) -> None:
    first, second = factory.accepted(message_id="a"), factory.accepted(message_id="b")
    for send, when in ((first, 10), (second, 11), (first, 12)):
        factory.duplicate(send, when=when, verdict="mismatch")
    factory.duplicate(factory.pending(), when=13)
    assert listed(factory, verdict=Verdict.MISMATCH) == [first, second]
    assert listed(factory, verdict=Verdict.MISMATCH, state=State.FAILED) == []
    assert listed(factory, verdict=Verdict.MISMATCH, state=State.ACCEPTED, mailstream="receipts") == [first, second]
    page = list_sends(factory.connection, factory.workspace, SendFilter(verdict=Verdict.MISMATCH))
    assert [row.duplicates for row in page.rows] == [2, 1]


@pytest.mark.parametrize("text", ["", "x", "2026-11-30~", "never~0b6e2f1c-0000-5000-8000-000000000001"])
def test_a_damaged_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Cursor.read(text)
