"""A committed ledger, a provider, a web and an API for each scenario."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.simulator import Config, Simulator
from tests.place import Place
from tests.scenarios.scene import Scene, the_scene


@pytest.fixture
def scene(place: Place, tmp_path: Path) -> Iterator[Scene]:
    """An installation with the workspace ``default``; ``sendonce verify`` finds nothing at its end."""
    with Simulator(Config()) as simulator, the_scene(place, simulator, tmp_path / "workers.log") as scene:
        yield scene
