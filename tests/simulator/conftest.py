"""Simulators and webhook receivers that end with their test."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dashboard.simulator import Config, Simulator
from tests.simulator.client import Receiver, endpoint


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    server = endpoint(receiver)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield receiver
    server.shutdown()
    server.server_close()
    thread.join()


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
