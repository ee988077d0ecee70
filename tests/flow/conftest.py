"""A whole installation for each test of the flow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.simulator import Config, Simulator
from tests.flow.town import Town, a_town
from tests.place import Place


@pytest.fixture
def town(place: Place, tmp_path: Path) -> Iterator[Town]:
    """Its provider honours idempotency keys."""
    with Simulator(Config()) as simulator, a_town(place, simulator, tmp_path / "workers.log") as town:
        yield town
