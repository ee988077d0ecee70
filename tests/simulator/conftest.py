"""Simulators and webhook receivers that end with their test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dashboard.simulator import Config, Simulator
from tests.simulator.client import Receiver, listening


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with listening(Receiver()) as receiver:
        yield receiver


@pytest.fixture
def start() -> Iterator[Callable[..., Simulator]]:
    """Starts simulators that are stopped with the test. Settings as for `Config.changed`."""
    started: list[Simulator] = []

    def begin(**settings: Any) -> Simulator:
        sim = Simulator(Config().changed(settings)).start()
        started.append(sim)
        return sim

    yield begin
    for sim in started:
        sim.stop()
