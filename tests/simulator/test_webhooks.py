"""Webhooks: signatures that an independent check accepts, stories, and how badly they travel."""

from __future__ import annotations

import base64
import hashlib
import hmac
import smtplib
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import groupby

import pytest

from dashboard.simulator import Simulator
from tests.simulator.client import Arrival, Client, Receiver

Start = Callable[..., Simulator]
SECRET = "whsec_" + base64.b64encode(b"a secret of twenty-four!").decode()


def told(arrivals: Iterable[Arrival], send_id: str) -> list[str]:
    """The types of the events about one send, in the order of their arrival."""
    return [arrival.story[1].removeprefix("email.") for arrival in arrivals if arrival.story[0] == send_id]


def test_an_event_is_signed_so_that_an_independent_check_accepts_it(start: Start, receiver: Receiver) -> None:
    sim = start(webhooks={"url": receiver.url, "secret": SECRET, "delay_ms": 1})
    message_id = Client(sim).send("send-1").json["id"]
    assert sim.wait_idle()
    assert told(receiver.arrivals, "send-1") == ["sent", "delivered"]
    for arrival in receiver.arrivals:
        signed = f"{arrival.headers['svix-id']}.{arrival.headers['svix-timestamp']}.".encode() + arrival.body
        expected = hmac.new(b"a secret of twenty-four!", signed, hashlib.sha256).digest()
        assert arrival.headers["svix-signature"] == "v1," + base64.b64encode(expected).decode()
        assert abs(int(arrival.headers["svix-timestamp"]) - time.time()) < 60
        data = arrival.event["data"]
        assert (data["email_id"], data["to"], data["tags"]["send_id"]) == (message_id, ["ada@example.test"], "send-1")
    sent, delivered = (arrival.event["created_at"] for arrival in receiver.arrivals)
    assert sent < delivered


@pytest.mark.parametrize(
    ("word", "story"),
    [
        ("bounce", ["sent", "bounced"]),
        ("softbounce", ["sent", "bounced"]),
        ("suppressed", ["suppressed"]),
        ("failed", ["failed"]),
        ("complain", ["sent", "delivered", "complained"]),
        ("delay", ["sent", "delivery_delayed", "delivered"]),
        ("click", ["sent", "delivered", "opened", "clicked"]),
        ("quiet", []),
    ],
)
def test_recipients_choose_their_story(start: Start, receiver: Receiver, word: str, story: list[str]) -> None:
    sim = start(webhooks={"url": receiver.url, "delay_ms": 1})
    Client(sim).send("send-1", to=f"{word}+ada@example.test")
    sim.flush()
    assert sim.wait_idle()
    assert Counter(told(receiver.arrivals, "send-1")) == Counter(story)
    details = {"bounce": "Permanent", "softbounce": "Transient"}
    if word in details:
        (bounced,) = (each.event for each in receiver.arrivals if each.event["type"] == "email.bounced")
        assert bounced["data"]["bounce"]["type"] == details[word]


def test_an_answer_that_is_lost_is_told_by_events_unless_the_recipient_is_quiet(
    start: Start, receiver: Receiver
) -> None:
    sim = start(webhooks={"url": receiver.url, "delay_ms": 1})
    for word in ("timeout", "timeout-quiet"):
        with pytest.raises(TimeoutError):
            Client(sim).send(word, to=f"{word}+ada@example.test", timeout=0.2)
    assert sim.wait_idle()
    assert told(receiver.arrivals, "timeout") == ["sent", "delivered"]
    assert told(receiver.arrivals, "timeout-quiet") == []
    assert len(sim.books) == 2


def test_repeats_disorder_and_other_ids_come_in_the_shares_asked_for(start: Start, receiver: Receiver) -> None:
    sends = 200
    shares = {"repeat": 0.3, "other_id": 0.1, "out_of_order": 0.4}
    sim = start(seed=9, webhooks={"url": receiver.url, "delay_ms": 5, "concurrency": 1, "paused": True, **shares})
    client = Client(sim)
    for n in range(sends):
        client.send(f"send-{n}")
    sim.flush()
    sim.configure(webhooks={"paused": False})
    assert sim.wait_idle()

    by_id = Counter(arrival.headers["svix-id"] for arrival in receiver.arrivals)
    facts = Counter(arrival.body for arrival in receiver.arrivals)
    assert len(facts) == 2 * sends, "a repeat tells the very same bytes"
    repeated = sum(n - 1 for n in by_id.values())
    other_ids = len(by_id) - len(facts)
    firsts = [next(iter(told(receiver.arrivals, f"send-{n}"))) for n in range(sends)]
    disordered = firsts.count("delivered")
    counts = sim.webhook_counts()
    assert (repeated, other_ids, disordered) == (counts["repeats"], counts["other_ids"], counts["out_of_order"])
    assert 0.2 * 400 < repeated < 0.4 * 400
    assert 0.05 * 400 < other_ids < 0.16 * 400
    assert 0.3 * 200 < disordered < 0.5 * 200


def test_without_any_share_events_come_once_and_in_order(start: Start, receiver: Receiver) -> None:
    sim = start(webhooks={"url": receiver.url, "delay_ms": 5, "concurrency": 1})
    for n in range(50):
        Client(sim).send(f"send-{n}")
    assert sim.wait_idle()
    assert all(told(receiver.arrivals, f"send-{n}") == ["sent", "delivered"] for n in range(50))


def test_events_come_late(start: Start, receiver: Receiver) -> None:
    sim = start(webhooks={"url": receiver.url, "delay_ms": 1e12})
    Client(sim).send("send-1")
    assert sim.webhook_counts()["pending"] == 2
    assert receiver.arrivals == []
    assert sim.flush() == 2
    assert receiver.wait_for(2)
    for arrival in receiver.arrivals:
        assert datetime.fromisoformat(arrival.event["created_at"]) <= datetime.now(UTC), (
            "nothing is told before its time"
        )


def test_an_event_overtakes_the_answer(start: Start, receiver: Receiver) -> None:
    acknowledge = threading.Event()

    def answer(_: int) -> int:
        acknowledge.wait(timeout=1.5)
        return 204

    receiver.answer = answer
    sim = start(webhooks={"url": receiver.url, "overtake": 1.0, "delay_ms": 1e12})
    answered = threading.Event()
    thread = threading.Thread(target=lambda: (Client(sim).send("send-1"), answered.set()))
    thread.start()
    assert receiver.wait_for(1)
    assert not answered.is_set(), "the event was there, the answer was not"
    acknowledge.set()
    assert answered.wait(timeout=10)
    thread.join()
    assert sim.webhook_counts()["overtaking"] == 1


def test_the_share_of_overtaking_events_is_as_asked_for(start: Start, receiver: Receiver) -> None:
    sim = start(seed=2, webhooks={"url": receiver.url, "overtake": 0.25, "delay_ms": 1e12})
    for n in range(100):
        Client(sim).send(f"send-{n}")
    assert sim.webhook_counts()["overtaking"] == len(receiver.arrivals)
    assert 13 <= len(receiver.arrivals) <= 38


def test_an_answer_does_not_wait_for_ever_for_its_event(start: Start, receiver: Receiver) -> None:
    answered = threading.Event()

    def answer(_: int) -> int:
        answered.wait(timeout=10)
        return 204

    receiver.answer = answer
    sim = start(webhooks={"url": receiver.url, "overtake": 1.0, "delay_ms": 1e12})
    assert Client(sim).send("send-1").status == 200
    answered.set()


def test_a_call_is_repeated_under_the_same_id_until_it_is_acknowledged(start: Start, receiver: Receiver) -> None:
    receiver.answer = lambda n: {1: 503, 2: 302, 3: 500}.get(n, 200)
    sim = start(webhooks={"url": receiver.url, "time_scale": 0.0001, "delay_ms": 1, "concurrency": 1})
    Client(sim).send("send-1", to="suppressed+ada@example.test")
    assert sim.wait_idle()
    assert len(receiver.arrivals) == 4
    assert len({(arrival.headers["svix-id"], arrival.body) for arrival in receiver.arrivals}) == 1
    counts = sim.webhook_counts()
    assert (counts["sent"], counts["failed"], counts["acknowledged"]) == (4, 3, 1)


def test_a_call_that_is_never_acknowledged_is_given_up_after_the_schedule(start: Start, receiver: Receiver) -> None:
    receiver.answer = lambda _: 503
    sim = start(webhooks={"url": receiver.url, "time_scale": 0.0, "delay_ms": 1})
    Client(sim).send("send-1", to="suppressed+ada@example.test")
    assert sim.wait_idle()
    assert len(receiver.arrivals) == 8
    assert sim.webhook_counts()["given_up"] == 1


def test_a_receiver_that_is_down_is_tried_by_the_schedule(start: Start) -> None:
    sim = start(webhooks={"url": "http://127.0.0.1:9/hook", "time_scale": 0.0, "delay_ms": 1})
    Client(sim).send("send-1", to="suppressed+ada@example.test")
    assert sim.wait_idle()
    counts = sim.webhook_counts()
    assert (counts["sent"], counts["failed"], counts["given_up"]) == (8, 8, 1)


def test_a_receiver_that_does_not_answer_in_time_is_tried_again(start: Start, receiver: Receiver) -> None:
    silent = threading.Event()

    def answer(call: int) -> int:
        if call == 1:
            silent.wait(timeout=10)
        return 200

    receiver.answer = answer
    sim = start(webhooks={"url": receiver.url, "time_scale": 0.001, "delay_ms": 1, "timeout_seconds": 0.2})
    Client(sim).send("send-1", to="suppressed+ada@example.test")
    assert sim.wait_idle()
    silent.set()
    assert len(receiver.arrivals) == 2
    assert sim.webhook_counts()["acknowledged"] == 1


def test_connections_to_the_receiver_are_few_and_kept(start: Start, receiver: Receiver) -> None:
    sim = start(webhooks={"url": receiver.url, "delay_ms": 5, "concurrency": 3})
    for n in range(60):
        Client(sim).send(f"send-{n}")
    assert sim.wait_idle()
    assert len(receiver.arrivals) == 120
    assert 1 <= len({arrival.connection for arrival in receiver.arrivals}) <= 3


def test_paused_events_wait(start: Start, receiver: Receiver) -> None:
    sim = start(webhooks={"url": receiver.url, "delay_ms": 1, "paused": True})
    Client(sim).send("send-1")
    sim.flush()
    assert not sim.wait_idle(timeout=0.2)
    assert receiver.arrivals == []
    sim.configure(webhooks={"paused": False})
    assert sim.wait_idle()
    assert len(receiver.arrivals) == 2


def test_smtp_mail_and_simulators_without_a_url_tell_nothing(start: Start, receiver: Receiver) -> None:
    sim = start(webhooks={"url": receiver.url, "delay_ms": 1})
    with smtplib.SMTP(sim.smtp_host, sim.smtp_port, timeout=10) as client:
        client.sendmail("a@example.test", ["b@example.test"], b"Subject: x\r\n\r\nHi\r\n")
    assert sim.webhook_counts()["pending"] == 0
    without = start()
    Client(without).send("send-1")
    assert without.webhook_counts()["pending"] == 0


def test_the_shares_of_fates_are_repeated_by_the_seed(start: Start, receiver: Receiver) -> None:
    def stories(seed: int) -> list[str]:
        del receiver.arrivals[:]
        sim = start(seed=seed, fates={"bounce": 0.3, "quiet": 0.3}, webhooks={"url": receiver.url, "delay_ms": 1})
        for n in range(40):
            Client(sim).send(f"send-{n}")
        sim.flush()
        assert sim.wait_idle()
        ordered = sorted({arrival.story for arrival in receiver.arrivals})
        return [
            f"{send_id} {'+'.join(kind for _, kind in group)}" for send_id, group in groupby(ordered, lambda s: s[0])
        ]

    first = stories(1)
    assert stories(1) == first
    assert stories(2) != first
