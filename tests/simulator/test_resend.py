"""Resend's HTTP API: shapes, limits, idempotency keys, and each fault with what it leaves in the books."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, RemoteDisconnected

import pytest

from dashboard.simulator import Simulator
from tests.simulator.client import Client, Reply, email

Start = Callable[..., Simulator]


def test_an_accepted_message_is_in_the_books_with_our_id_and_can_be_looked_up(start: Start) -> None:
    sim = start()
    reply = Client(sim).send("send-7", key="key-7")
    assert reply.status == 200
    message_id = reply.json["id"]
    assert str(uuid.UUID(message_id)) == message_id
    assert {"ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"} <= reply.headers.keys()
    (row,) = sim.books
    assert (row.message_id, row.send_id, row.key, row.recipient, row.protocol) == (
        message_id,
        "send-7",
        "key-7",
        "ada@example.test",
        "resend",
    )
    found = Client(sim).call("GET", f"/emails/{message_id}").json
    assert (found["object"], found["id"], found["to"], found["text"]) == (
        "email",
        message_id,
        ["ada@example.test"],
        "Hi",
    )
    assert {"name": "send_id", "value": "send-7"} in found["tags"]


def test_the_send_id_header_stands_in_for_the_tag(start: Start) -> None:
    sim = start()
    Client(sim).call("POST", "/emails", {**email("x"), "tags": [], "headers": {"x-send-id": "from-header"}})
    assert [row.send_id for row in sim.books] == ["from-header"]


@pytest.mark.parametrize(
    ("change", "status", "name"),
    [
        ({"to": None}, 422, "missing_required_field"),
        ({"subject": ""}, 422, "missing_required_field"),
        ({"text": None}, 422, "missing_required_field"),
        ({"to": ["not an address"]}, 422, "validation_error"),
        ({"to": ["a@example.test"] * 51}, 422, "validation_error"),
        ({"from": "nobody"}, 422, "invalid_from_address"),
        ({"tags": [{"name": "send id", "value": "x"}]}, 400, "validation_error"),
        ({"to": ["reject+ada@example.test"]}, 422, "validation_error"),
    ],
)
def test_a_bad_message_is_refused_in_the_vendors_shape(
    start: Start, change: dict[str, object], status: int, name: str
) -> None:
    sim = start()
    reply = Client(sim).call("POST", "/emails", {**email("send-1"), **change})
    assert (reply.status, reply.json["statusCode"], reply.json["name"]) == (status, status, name)
    assert reply.json["message"]
    assert sim.books == []


def test_requests_that_are_no_send_call_are_refused(start: Start) -> None:
    client = Client(start(api_key="re_right"))
    assert client.call("POST", "/emails", email("x"), headers={"authorization": ""}).json["name"] == "missing_api_key"
    wrong = client.call("POST", "/emails", email("x"), headers={"authorization": "Bearer re_wrong"})
    assert (wrong.status, wrong.json["name"]) == (403, "invalid_api_key")
    right = {"authorization": "Bearer re_right"}
    assert client.call("PUT", "/emails", email("x"), headers=right).status == 405
    assert client.call("GET", "/nothing", headers=right).status == 404
    assert client.call("GET", "/emails/unknown", headers=right).json["name"] == "not_found"
    assert client.call("POST", "/emails", b"{", headers=right).status == 400


def test_a_batch_answers_in_request_order_and_one_bad_item_refuses_all(start: Start) -> None:
    sim = start()
    client = Client(sim)
    batch = [email(f"send-{n}", to=f"u{n}@example.test") for n in range(3)]
    ids = [item["id"] for item in client.call("POST", "/emails/batch", batch).json["data"]]
    assert [(row.message_id, row.send_id) for row in sim.books] == [(ids[n], f"send-{n}") for n in range(3)]
    assert len({row.call for row in sim.books}) == 1
    bad = [email("good"), {**email("bad"), "to": None}]
    assert client.call("POST", "/emails/batch", bad).status == 422
    assert client.call("POST", "/emails/batch", [email("x")] * 101).status == 422
    assert len(sim.books) == 3
    reply = client.call("POST", "/emails/batch", bad, headers={"x-batch-validation": "permissive"}).json
    assert (len(reply["data"]), [error["index"] for error in reply["errors"]]) == (1, [1])
    assert [row.send_id for row in sim.books[3:]] == ["good"]


# ── idempotency keys ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_repeat_under_an_honoured_key_gets_the_first_answer_and_sends_nothing(start: Start) -> None:
    sim = start()
    client = Client(sim)
    first, second = client.send(key="k"), client.send(key="k")
    assert first.json == second.json
    assert len(sim.books) == 1
    batch = [email("b1"), email("b2")]
    replies = [client.call("POST", "/emails/batch", batch, headers={"idempotency-key": "k"}).json for _ in range(2)]
    assert replies[0] == replies[1], "the key of another endpoint is another key"
    assert len(sim.books) == 3
    assert sim.counts()["replayed"] == 2


def test_the_same_key_with_another_body_is_a_conflict(start: Start) -> None:
    sim = start()
    client = Client(sim)
    client.send(key="k")
    reply = client.send(key="k", text="other")
    assert (reply.status, reply.json["name"]) == (409, "invalid_idempotent_request")
    assert len(sim.books) == 1


def test_the_same_key_while_the_first_request_is_unanswered_is_a_conflict(start: Start) -> None:
    sim = start(hold_answers=True)
    client = Client(sim)
    replies: list[Reply] = []
    thread = threading.Thread(target=lambda: replies.append(client.send(key="k")))
    thread.start()
    assert sim.wait_taken(1)
    second = client.send(key="k")
    assert (second.status, second.json["name"]) == (409, "concurrent_idempotent_requests")
    sim.release_answers()
    thread.join()
    assert client.send(key="k").json == replies[0].json
    assert len(sim.books) == 1


def test_an_ignored_key_makes_each_request_new(start: Start) -> None:
    sim = start(honour_keys=False)
    client = Client(sim)
    assert client.send(key="k").json != client.send(key="k").json
    assert sim.summary()["sends_taken_more_than_once"] == 1
    assert sim.summary()["repeated_sends"] == {"send-1": 2}


def test_a_key_is_forgotten_after_its_window(start: Start) -> None:
    sim = start(key_window_seconds=0.0)
    client = Client(sim)
    assert client.send(key="k").json != client.send(key="k").json


def test_a_key_that_breaks_the_rules_is_refused(start: Start) -> None:
    sim = start()
    reply = Client(sim).send(key="k" * 257)
    assert (reply.status, reply.json["name"]) == (400, "invalid_idempotency_key")
    assert sim.books == []


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_calls_above_the_rate_limit_are_told_when_to_come_back(start: Start) -> None:
    sim = start(rate_limit=2, retry_after_seconds=3)
    client = Client(sim)
    replies = [client.send(f"send-{n}") for n in range(12)]
    refused = [reply for reply in replies if reply.status == 429]
    assert refused
    assert {reply.headers["retry-after"] for reply in refused} == {"3"}
    assert {reply.json["name"] for reply in refused} == {"rate_limit_exceeded"}
    assert len(sim.books) == 12 - len(refused)
    assert sim.counts()["http_429"] == len(refused)


def test_a_used_up_quota_refuses_until_it_is_raised(start: Start) -> None:
    sim = start(daily_quota=1)
    client = Client(sim)
    assert client.send("a").headers["x-resend-daily-quota"] == "1"
    refused = client.send("b")
    assert (refused.status, refused.json["name"]) == (429, "daily_quota_exceeded")
    sim.configure(daily_quota=None)
    assert client.send("b").status == 200
    assert len(sim.books) == 2


# ── faults ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def meet(sim: Simulator, *, timeout: float = 10) -> str:
    """What a client sees."""
    try:
        reply = Client(sim).send(timeout=timeout)
    except TimeoutError:
        return "timeout"
    except (ConnectionResetError, RemoteDisconnected) as error:
        return "reset" if isinstance(error, ConnectionResetError) and error.errno else "closed"
    return f"{reply.status} {reply.headers['content-type']}"


@pytest.mark.parametrize(
    ("fault", "seen", "taken"),
    [
        ("accept_then_timeout", "timeout", 1),
        ("reset_after", "reset", 1),
        ("reset_before", "reset", 0),
        ("http_500_taken", "500 application/json", 1),
        ("http_500_not_taken", "500 application/json", 0),
        ("http_429", "429 application/json", 0),
        ("slow", "200 application/json", 1),
        ("garbage", "200 text/html", 1),
    ],
)
def test_each_fault_shows_and_leaves_what_it_says(start: Start, fault: str, seen: str, taken: int) -> None:
    sim = start(http={fault: 1.0}, slow_ms=30)
    assert meet(sim, timeout=0.3 if seen == "timeout" else 10) == seen
    assert len(sim.books) == taken
    assert sim.counts()[f"fault_{fault}"] == 1


def test_a_slow_answer_takes_its_time_though_the_message_was_taken_at_once(start: Start) -> None:
    sim = start(http={"slow": 1.0}, slow_ms=250)
    began = time.monotonic()
    thread = threading.Thread(target=Client(sim).send)
    thread.start()
    assert sim.wait_taken(1)
    assert thread.is_alive()
    thread.join()
    assert time.monotonic() - began >= 0.25


def test_the_answer_lost_after_acceptance_is_given_to_a_repeat_under_the_same_key(start: Start) -> None:
    sim = start()
    client = Client(sim)
    for word, error in (("timeout", TimeoutError), ("lost", ConnectionResetError)):
        with pytest.raises(error):
            client.send(word, key=word, to=f"{word}+ada@example.test", timeout=0.3)
        assert client.send(word, key=word, to=f"{word}+ada@example.test").json["id"] == sim.books[-1].message_id
    assert len(sim.books) == 2


@pytest.mark.parametrize(("word", "seen"), [("error", 500), ("busy", 429), ("garbage", 200)])
def test_recipients_choose_their_fault_the_first_time(start: Start, word: str, seen: int) -> None:
    client = Client(start())
    first, second = (client.send(key="k", to=f"{word}+ada@example.test") for _ in range(2))
    assert first.status == seen
    assert (second.status, second.headers["content-type"]) == (200, "application/json")


def test_an_ordinary_recipient_is_not_taken_for_a_story(start: Start) -> None:
    client = Client(start())
    assert client.send("a", to="jean-reject+news@example.test").status == 200
    assert client.send("b", to="rejected@example.test").status == 200


def test_what_goes_wrong_is_repeated_by_the_seed_whatever_the_order(start: Start) -> None:
    faults = {"http_500_not_taken": 0.3, "http_429": 0.3, "garbage": 0.2}

    def outcomes(seed: int, order: range) -> dict[int, list[str]]:
        client = Client(start(seed=seed, http=faults))
        return {n: [_kind(client.send(f"send-{n}")) for _ in range(2)] for n in order}

    forward, backward = outcomes(5, range(40)), outcomes(5, range(39, -1, -1))
    assert forward == backward
    assert forward != outcomes(6, range(40))
    assert {kind for kinds in forward.values() for kind in kinds} == {"500", "429", "200", "200 html"}


def test_what_goes_wrong_is_repeated_by_the_seed_under_concurrency(start: Start) -> None:
    def outcomes(threads: int) -> dict[int, str]:
        client = Client(start(seed=11, http={"http_500_not_taken": 0.3, "http_429": 0.3}))
        with ThreadPoolExecutor(threads) as pool:
            return dict(enumerate(pool.map(lambda n: _kind(client.send(f"send-{n}")), range(60))))

    assert outcomes(8) == outcomes(1)


def _kind(reply: Reply) -> str:
    return f"{reply.status}{' html' if 'html' in reply.headers['content-type'] else ''}"


def test_a_refused_connection_is_refused_and_the_port_stays_ours(start: Start) -> None:
    sim = start()
    url = sim.http_url
    sim.refuse_connections()
    with pytest.raises(ConnectionRefusedError):
        Client(sim).send()
    sim.accept_connections()
    assert sim.http_url == url
    assert Client(sim).send().status == 200


# ── HTTP itself ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_connection_serves_many_requests_and_a_request_in_pieces(start: Start) -> None:
    sim = start()
    connection = HTTPConnection(sim.smtp_host, int(sim.http_url.rpartition(":")[2]), timeout=10)
    for n in range(3):
        body = json.dumps(email(f"send-{n}")).encode()
        connection.putrequest("POST", "/emails")
        connection.putheader("Authorization", "Bearer x")
        connection.putheader("Content-Length", str(len(body)))
        connection.endheaders()
        connection.send(body[:10])
        connection.send(body[10:])
        response = connection.getresponse()
        assert response.status == 200
        response.read()
    connection.close()
    assert len(sim.books) == 3


def test_a_body_without_length_and_a_broken_request_are_refused(start: Start) -> None:
    sim = start()
    chunked = Client(sim).call("POST", "/emails", b"", headers={"transfer-encoding": "chunked"})
    assert chunked.status == 411
    assert Client(sim).call("POST", "/emails", None, headers={"content-length": "-1"}).status == 400
