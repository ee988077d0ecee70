"""Every interleaving of two workers over one send keeps every promise, whatever dies, breaks or comes between."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import pytest

from tests.conftest import SCHEDULES, SOAK
from tests.interleaving.explorer import Explorer
from tests.interleaving.schedules import QUICK, SINGLE, THOROUGH, Family, Schedule

BATCH = 5_000
"""So many sends make their steps together."""

REGRESSIONS = (
    # Two lanes of one worker: what one knew of an attempt that was lost with its commit settled the other's attempt,
    # which had the same number. It was taken, and sent again.
    "A.relay A.claim A.start_undone sweep B.relay B.claim B.start B.submit B.store A.store A.start A.submit A.store"
    " / taken_late / keys ignored, two lanes",
    "A.relay A.claim A.start_undone rest B.relay B.claim B.start B.submit B.store A.store A.start A.submit A.store"
    " / answer_lost / keys ignored, two lanes",
)
"""Schedules that broke a promise once."""


def _parts(families: tuple[Family, ...]) -> list[object]:
    """Each family in parts of some tens of thousands, to be spread over cores."""
    return [
        pytest.param(family, part, parts, id=f"{family.name} {part + 1} of {parts}")
        for family in families
        for parts in [len(family) // 40_000 + 1]
        for part in range(parts)
    ]


@pytest.mark.parametrize(("family", "part", "parts"), _parts(THOROUGH if SOAK else QUICK))
def test_every_schedule_keeps_every_promise(
    explorer: Explorer, record_property: Callable[[str, object], None], family: Family, part: int, parts: int
) -> None:
    explored, broken = 0, []
    members = family.members(part, parts)
    while batch := list(itertools.islice(members, BATCH)):
        broken += explorer.play(batch)
        explored += len(batch)
    assert broken == []
    assert abs(explored - len(family) / parts) <= len(family) / len(family.orders()), "a part of the family, and whole"
    _went_everywhere(explorer.seen, family)
    record_property(SCHEDULES, explored)


def _went_everywhere(seen: Counter[str], family: Family) -> None:
    expected = {"end: accepted", "end: held"}
    if family.faults is SINGLE:
        expected |= {"end: failed"}
    if family.visits != (0,):
        expected |= {"end: cancelled", "cancel: Cancelled", "cancel: Refused", "stripped"}
    if family.visits != (0,) and (family.preemptions or family.accidents):  # somebody comes while a call is open
        expected |= {"cancel: Remembered"}
    if family.visits != (0,) and family.faults is SINGLE:
        expected |= {"replay: Replayed", "replay: Refused"}
    if family.overlaps:
        expected |= {"waited", "did not wait"}
    if 2 in family.visits:
        expected |= {"resend: Decided"}
    assert expected <= set(seen), expected - set(seen)


@pytest.mark.parametrize("text", REGRESSIONS)
def test_what_broke_once_holds(explorer: Explorer, text: str) -> None:
    assert explorer.play([Schedule.read(text)]) == []
