"""A whole installation for each test: a committed ledger, a provider whose books are the truth, real workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.simulator import Config, Simulator
from tests.flow.town import Town, a_town
from tests.place import Place


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    """A provider that honours no idempotency key: what reaches it twice is taken twice."""
    with Simulator(Config()) as simulator:
        simulator.configure(honour_keys=False)
        yield simulator


@pytest.fixture
def town(place: Place, simulator: Simulator, tmp_path: Path) -> Iterator[Town]:
    """Receipts are held when their fate stays unknown, on an account that honours no keys."""
    with a_town(place, simulator, tmp_path / "workers.log") as town:
        town.stream(policy="hold", keys=False)
        yield town
