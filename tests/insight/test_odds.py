"""The odds that an unanswered attempt was taken: shares with Wilson's interval."""

from __future__ import annotations

import pytest

from dashboard.insight.odds import odds, wilson
from dashboard.ledger.alike import Alike


@pytest.mark.parametrize(
    ("hits", "cases", "low", "high"),
    [  # as published calculators of Wilson's score interval have them
        (0, 10, 0.0, 0.2775),
        (1, 10, 0.0179, 0.4042),
        (5, 10, 0.2366, 0.7634),
        (10, 10, 0.7225, 1.0),
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
    ],
)
def test_the_interval_is_that_of_wilson(hits: int, cases: int, low: float, high: float) -> None:
    assert wilson(hits, cases) == (pytest.approx(low, abs=6e-5), pytest.approx(high, abs=6e-5))


@pytest.mark.parametrize(("hits", "cases"), [(0, 0), (2, 1), (-1, 3)])
def test_what_is_no_share_has_no_interval(hits: int, cases: int) -> None:
    with pytest.raises(ValueError, match="hits must lie"):
        wilson(hits, cases)


def test_what_was_never_heard_of_is_told_apart_from_the_cases() -> None:
    told = odds(Alike(taken=3, resolved=4, all=9))
    assert told is not None
    assert (told.taken, told.cases, told.untold) == (3, 4, 5)
    assert odds(Alike(taken=0, resolved=0, all=7)) is None
