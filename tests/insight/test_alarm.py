"""When a rule fires and clears: never back and forth, whatever the values do."""

from __future__ import annotations

import itertools
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from dashboard.insight.alarm import LONGEST_BLINK, Bounds, Stand, is_open, step
from dashboard.ledger.tables import AlertState
from tests.factories import NOON

MINUTE = timedelta(minutes=1)
QUIET = Stand(AlertState.QUIET, NOON)

values = st.one_of(st.sampled_from([0.0, 4.0, 5.0, 9.0, 10.0, 10.5, 99.0]), st.floats(0, 20))
series = st.lists(st.tuples(values, st.integers(1, 60)), max_size=80)
bounds_of_rules = st.builds(
    Bounds,
    st.just(10.0),
    st.sampled_from([10.0, 9.0, 5.0, 0.0]),
    st.sampled_from([timedelta(), timedelta(seconds=30), 2 * MINUTE, 5 * MINUTE]),
)


def walk(bounds: Bounds, looks: list[tuple[float, int]]) -> list[tuple[timedelta, float, AlertState]]:
    """The state after each look: time since noon, value, state. Each look comes some seconds after the one before."""
    stand, now, before, states = QUIET, NOON, None, []
    for value, seconds in looks:
        now += timedelta(seconds=seconds)
        stand = step(bounds, stand, value=value, now=now, looked_at=before)
        before = now
        states.append((now - NOON, value, stand.state))
    return states


def changes(states: list[tuple[timedelta, float, AlertState]]) -> list[tuple[int, bool]]:
    """Where an alert opened (True) or closed, by the number of its look."""
    found, was_open = [], False
    for number, (_, _, state) in enumerate(states):
        if is_open(state) != was_open:
            was_open = not was_open
            found.append((number, was_open))
    return found


@given(bounds=bounds_of_rules, looks=series)
def test_it_opens_only_after_a_time_above_and_closes_only_after_a_time_below(
    bounds: Bounds, looks: list[tuple[float, int]]
) -> None:
    states = walk(bounds, looks)
    for number, opened in changes(states):
        wait = bounds.hold_for if opened else bounds.clear_for
        end = states[number][0]
        earlier = [(at, value) for at, value, _ in states[: number + 1] if at > end - wait]
        begun = [(at, value) for at, value, _ in states[: number + 1] if at <= end - wait]
        decisive = [*begun[-1:], *earlier] if wait else [(end, states[number][1])]
        assert begun or not wait, "it was watched for as long as the rule says"
        if opened:
            assert all(value > bounds.threshold for _, value in decisive)
        else:
            assert all(value <= bounds.clears_at for _, value in decisive)


@given(bounds=bounds_of_rules, looks=series)
def test_it_does_not_flap(bounds: Bounds, looks: list[tuple[float, int]]) -> None:
    states = walk(bounds, looks)
    turns = changes(states)
    for (one, _), (other, opened) in itertools.pairwise(turns):
        apart = states[other][0] - states[one][0]
        assert apart >= (bounds.hold_for if opened else bounds.clear_for)
    closings = sum(not opened for _, opened in turns)
    assert closings <= sum((timedelta(seconds=s) for _, s in looks), timedelta()) / bounds.clear_for


@given(bounds=bounds_of_rules, looks=st.lists(st.tuples(st.floats(0, 10), st.integers(1, 60)), max_size=60))
def test_what_stays_at_the_threshold_or_below_never_fires(bounds: Bounds, looks: list[tuple[float, int]]) -> None:
    assert changes(walk(bounds, looks)) == []


@given(bounds=bounds_of_rules, looks=st.lists(st.tuples(st.floats(10.1, 99), st.integers(1, 60)), max_size=60))
def test_what_stays_above_fires_once(bounds: Bounds, looks: list[tuple[float, int]]) -> None:
    states = walk(bounds, looks)
    long_enough = bool(states) and states[-1][0] - states[0][0] >= bounds.hold_for
    assert [opened for _, opened in changes(states)] == [True] * long_enough


def test_a_value_between_the_thresholds_keeps_an_alert_open() -> None:
    bounds = Bounds(10, 5, timedelta())
    states = walk(bounds, [(11, 10), (7, 60), (4, 60), (6, 30), (4, 60)])
    assert [state for _, _, state in states] == [
        AlertState.FIRING, AlertState.FIRING, AlertState.CLEARING, AlertState.FIRING, AlertState.CLEARING
    ]  # fmt: skip


def test_while_nobody_looked_no_time_has_passed() -> None:
    bounds = Bounds(10, 5, 5 * MINUTE)
    gap = int((LONGEST_BLINK + MINUTE).total_seconds())
    states = walk(bounds, [(11, 1), (11, 60), (11, gap), (11, 60), (11, 100), (11, 100), (11, 100)])
    assert [state for _, _, state in states] == [AlertState.RISING] * 6 + [AlertState.FIRING]
