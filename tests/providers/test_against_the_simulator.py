"""The promise that everything else rests on, against a provider that misbehaves from a seed and keeps honest books:
*accepted* is in the books, and a definite no is not."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import NAMESPACE_URL, UUID, uuid5

import pytest

from dashboard.providers import provider
from dashboard.providers.base import Accepted, Ambiguous, Channel, NeverWritten, Outcome, Rejected
from dashboard.simulator import PRESETS, Config, Simulator
from tests.providers.rig import outgoing

SENDS = [uuid5(NAMESPACE_URL, f"send {number}") for number in range(300)]


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    config = Config(seed=7, slow_ms=20.0).changed({group: PRESETS["heavy"][group] for group in ("http", "smtp")})
    with Simulator(config) as running:
        yield running


def opened(adapter: str, simulator: Simulator) -> Channel:
    settings = {"api_key": "re_x", "base_url": simulator.http_url, "security": "none"}
    settings |= {"host": simulator.smtp_host, "port": str(simulator.smtp_port)}
    return provider(adapter).open_channel(settings, request_timeout=0.5)


def submit_all(channel: Channel, sends: list[UUID]) -> dict[UUID, Outcome]:
    def submit(send: UUID) -> Outcome:
        return channel.submit(dataclasses.replace(outgoing(), send_id=send))

    with ThreadPoolExecutor(8) as pool:
        return dict(zip(sends, pool.map(submit, sends), strict=True))


@pytest.mark.parametrize("adapter", ["resend", "smtp"])
def test_accepted_is_in_the_providers_books_and_a_definite_no_is_not(adapter: str, simulator: Simulator) -> None:
    channel = opened(adapter, simulator)
    outcomes = submit_all(channel, SENDS)
    channel.close()
    copies = Counter(row.send_id for row in simulator.books)
    for send, outcome in outcomes.items():
        match outcome:
            case Accepted():
                assert copies[str(send)] == 1
            case Rejected() | NeverWritten():
                assert copies[str(send)] == 0, outcome
            case Ambiguous():
                assert copies[str(send)] <= 1
    seen = Counter(type(outcome) for outcome in outcomes.values())
    assert min(seen[Accepted], seen[Rejected], seen[Ambiguous]) > 5
    if adapter == "resend":
        ids = {row.send_id: row.message_id for row in simulator.books}
        told = {str(send): outcome for send, outcome in outcomes.items()}
        assert all(ids[send] == one.provider_message_id for send, one in told.items() if isinstance(one, Accepted))


def test_repeating_until_accepted_under_one_key_makes_exactly_one_mail(simulator: Simulator) -> None:
    channel = opened("resend", simulator)
    left = list(SENDS)
    for _ in range(20):
        outcomes = submit_all(channel, left)
        left = [send for send, outcome in outcomes.items() if not isinstance(outcome, Accepted)]
        if not left:
            break
    channel.close()
    assert left == []
    assert Counter(row.send_id for row in simulator.books) == Counter(map(str, SENDS))
