"""The generator gives every order that there is: compared with brute force and with formulas."""

from __future__ import annotations

import itertools
from math import comb, factorial

import pytest

from tests.conftest import SOAK
from tests.interleaving.faults import Fault
from tests.interleaving.schedules import (
    ACCIDENTS,
    QUICK,
    THOROUGH,
    VISITS,
    Schedule,
    Step,
    Verb,
    interleavings,
    of_worker,
    orders,
    overlapping,
)

LIVES = [
    of_worker("A", (Verb.RELAY, Verb.CLAIM, Verb.START)), of_worker("B", (Verb.RELAY, Verb.CLAIM)),
    (Step("", Verb.SWEEP),),
]  # fmt: skip


def interrupted(order: tuple[Step, ...]) -> int:
    """How often somebody is followed by another although steps of his are still to come."""
    return sum(
        here.who != there.who and any(later.who == here.who for later in order[i + 1 :])
        for i, (here, there) in enumerate(itertools.pairwise(order))
    )


@pytest.mark.parametrize("preemptions", [0, 1, 2, 9])
def test_every_order_with_at_most_so_many_preemptions_is_there_once(preemptions: int) -> None:
    steps = [step for life in LIVES for step in life]
    in_order = [
        order
        for order in dict.fromkeys(itertools.permutations(steps))
        if all([s for s in order if s.who == life[0].who] == list(life) for life in LIVES)
    ]
    assert len(in_order) == factorial(6) // (factorial(3) * factorial(2))
    found = list(orders(LIVES, preemptions))
    assert len(set(found)) == len(found)
    assert set(found) == {order for order in in_order if interrupted(order) <= preemptions}


def _merges(visits: int) -> int:
    """Orders of two lives of five steps and so many of one, at most two pre-emptions: a life in k + 1 pieces has
    C(4, k) ways to be cut, and pieces of one life never touch."""

    def arrangements(a: int, b: int) -> int:
        """Of ``a`` and ``b`` ordered pieces and the visits, no two pieces of one life side by side."""
        words = set(itertools.permutations([*"A" * a, *"B" * b, *map(str, range(visits))]))
        return sum("AA" not in "".join(word) and "BB" not in "".join(word) for word in words)

    return sum(comb(4, i) * comb(4, j) * arrangements(i + 1, j + 1) for i in range(3) for j in range(3) if i + j <= 2)


@pytest.mark.parametrize("visits", [0, 1])
def test_two_workers_with_visits_are_as_many_as_the_formula_says(visits: int) -> None:
    # Half, since worker A goes first; each kind of visit in turn.
    assert len(list(interleavings(2, visits))) == _merges(visits) // 2 * len(VISITS) ** visits


def test_two_visits_are_as_many_as_the_formula_says() -> None:
    pairs, equal = comb(len(VISITS), 2), len(VISITS)
    assert len(list(interleavings(2, 2))) == _merges(2) // 2 * pairs + _merges(2) // 2 // 2 * equal


def test_a_worker_may_have_its_accident_at_every_step() -> None:
    found = list(interleavings(0, 0, ACCIDENTS))
    assert len(found) == 2 * len(ACCIDENTS) - 1, "before or after the other; one that never began has no order"
    assert len(ACCIDENTS) == 10


def test_neighbours_of_different_lives_overlap_once_each() -> None:
    schedule = Schedule.read("A.relay A.claim sweep B.relay A.start A.submit / accepted / keys honoured, two lanes")
    assert [s.overlap for s in overlapping(schedule)] == [1, 2, 3]


def test_a_schedule_can_be_read_as_it_is_printed() -> None:
    printed = {str(schedule) for family in (QUICK[2], QUICK[3]) for schedule in family.members()}
    assert {str(Schedule.read(text)) for text in printed} == printed
    assert len(printed) == len(QUICK[2]) + len(QUICK[3])


def test_how_many_there_are() -> None:
    number = {family.name: len(family) for family in (THOROUGH if SOAK else QUICK)}
    if SOAK:
        assert list(number.values()) == [19818, 310266, 17237, 114912, 89856, 31104, 15552, 7104, 118908, 20736]
    else:
        assert list(number.values()) == [765, 1989, 3648, 535, 216]


def test_parts_of_a_family_are_the_whole_of_it() -> None:
    for family in (QUICK[0], QUICK[-1]):
        assert sum(1 for part in range(7) for _ in family.members(part, 7)) == len(family)
    assert {fault for schedule in QUICK[0].members() for fault in schedule.faults} == set(Fault)
