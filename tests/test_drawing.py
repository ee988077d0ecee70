"""``docs/life-of-a-send.md`` shows the state machine as it is."""

from __future__ import annotations

from dashboard.lifecycle import MOVES, State
from docs import draw


def test_the_drawing_is_that_of_the_table() -> None:
    assert draw.FILE.read_text() == draw.page(), "run: python -m docs.draw"


def test_the_drawing_has_every_state_and_move() -> None:
    page = draw.page()
    for state in State:
        assert f" {state}" in draw.diagram()
    for move in MOVES:
        assert f"| {move.name.replace('_', ' ')} |" in page
