"""``docs/life-of-a-send.md`` shows the state machine as it is, ``docs/providers.md`` the adapters as they are, and
``docs/complaints.md`` the causes in the order in which they are asked."""

from __future__ import annotations

from dashboard.insight.case import Complaint
from dashboard.lifecycle import MOVES, State
from dashboard.providers import PROVIDERS
from docs import draw


def test_the_drawing_is_that_of_the_table() -> None:
    assert draw.FILE.read_text() == draw.page(), "run: python -m docs.draw"


def test_the_drawing_has_every_state_and_move() -> None:
    page = draw.page()
    for state in State:
        assert f" {state}" in draw.diagram()
    for move in MOVES:
        assert f"| {move.name.replace('_', ' ')} |" in page


def test_the_tables_of_providers_are_those_of_the_adapters() -> None:
    text = draw.PROVIDERS_FILE.read_text()
    assert text == draw.providers_page(text), "run: python -m docs.draw"
    for known in PROVIDERS:
        assert f"| {known.title} |" in text
        assert f"<!-- drawn: settings {known.name} -->" in text, "give it a section with its settings"


def test_the_causes_of_complaints_are_those_that_are_asked() -> None:
    text = draw.COMPLAINTS_FILE.read_text()
    assert text == draw.complaints_page(text), "run: python -m docs.draw"
    for complaint in Complaint:
        assert f"<!-- drawn: causes {complaint} -->" in text
        assert f"<!-- drawn: open {complaint} -->" in text
