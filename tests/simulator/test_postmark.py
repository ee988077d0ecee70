"""Postmark as the simulator plays it: what is refused, what is shown, and to whom what is told is authentic."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from dashboard.simulator import Simulator
from tests.simulator.client import Client, Receiver, Reply

Start = Callable[..., Simulator]
TOKEN = {"x-postmark-server-token": "token", "accept": "application/json"}


def mail(**changes: Any) -> dict[str, Any]:
    """The body of a send call."""
    return {
        "From": "Shop <shop@example.test>", "To": '"Ada, Countess" <ada@example.test>', "Subject": "Hello",
        "TextBody": "Hi", "Metadata": {"send_id": "send-1"}, **changes,
    }  # fmt: skip


def send(sim: Simulator, **changes: Any) -> Reply:
    return Client(sim).call("POST", "/email", mail(**changes), headers=TOKEN)


def test_success_tells_an_id_and_error_code_zero(start: Start) -> None:
    sim = start(dialect="postmark")
    reply = send(sim)
    assert (reply.status, reply.json["ErrorCode"], reply.json["To"]) == (200, 0, "ada@example.test")
    assert [(row.message_id, row.send_id) for row in sim.books] == [(reply.json["MessageID"], "send-1")]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"From": "nobody"}, 300),
        ({"To": ""}, 300),
        ({"To": ", ".join(["a@example.test"] * 51)}, 300),
        ({"TextBody": ""}, 300),
        ({"Subject": 1}, 403),
        ({"Metadata": {"number": 1}}, 403),
        ({"Metadata": {"a": "1", "A": "2"}}, 300),
        ({"Metadata": {"a name of more than twenty": "1"}}, 300),
        ({"Metadata": {"a": "x" * 81}}, 300),
        ({"Headers": {"X-A": "1"}}, 403),
        ({"Headers": [{"Name": "X-A"}]}, 403),
    ],
)
def test_a_bad_message_is_refused_with_a_code(start: Start, change: dict[str, Any], code: int) -> None:
    sim = start(dialect="postmark")
    reply = send(sim, **change)
    assert (reply.status, reply.json["ErrorCode"]) == (422, code)
    assert sim.books == []


def test_requests_that_are_no_send_call_are_refused(start: Start) -> None:
    sim = start(dialect="postmark", api_key="right")
    right = {"x-postmark-server-token": "right"}
    client = Client(sim)
    assert client.call("POST", "/email", mail()).json["ErrorCode"] == 10
    assert client.call("POST", "/email", mail(), headers=TOKEN).status == 401
    assert client.call("GET", "/email", headers=right).status == 405
    assert client.call("POST", "/email", b"[", headers=right).json["ErrorCode"] == 402
    assert client.call("GET", "/nothing", headers=right).status == 404


def test_a_batch_answers_for_each_message_also_for_the_bad_ones(start: Start) -> None:
    sim = start(dialect="postmark")
    batch = [mail(), mail(To="nobody"), mail(Metadata={"send_id": "send-3"})]
    reply = Client(sim).call("POST", "/email/batch", batch, headers=TOKEN)
    assert (reply.status, [each["ErrorCode"] for each in reply.json]) == (200, [0, 300, 0])
    assert [row.send_id for row in sim.books] == ["send-1", "send-3"]
    assert [row.message_id for row in sim.books] == [each.get("MessageID") for each in reply.json if "To" in each]


def test_messages_are_found_by_one_field_of_their_metadata(start: Start) -> None:
    sim = start(dialect="postmark")
    send(sim)
    send(sim, Metadata={"send_id": "send-2"})

    def ask(query: str) -> Reply:
        return Client(sim).call("GET", f"/messages/outbound?{query}", headers=TOKEN)

    found = ask("metadata_send_id=send-2&count=50&offset=0").json
    assert (found["TotalCount"], [each["MessageID"] for each in found["Messages"]]) == (1, [sim.books[1].message_id])
    assert ask("recipient=ada@example.test&count=1&offset=1").json["TotalCount"] == 2
    for query in ("metadata_send_id=send-2", "count=501&offset=0", "count=500&offset=9501"):
        assert ask(query).status == 422, query
    assert ask("metadata_a=1&metadata_b=2&count=1&offset=0").status == 422
    details = Client(sim).call("GET", f"/messages/outbound/{sim.books[0].message_id}/details", headers=TOKEN).json
    assert details["Metadata"] == {"send_id": "send-1"}


def test_events_come_with_a_password_and_a_trace_id_that_stays(start: Start, receiver: Receiver) -> None:
    receiver.answer = lambda number: 500 if number == 1 else 200
    hook = {"url": receiver.url, "delay_ms": 1, "secret": "hook:pass word", "time_scale": 0.0001}
    sim = start(dialect="postmark", webhooks=hook)
    send(sim)
    assert sim.wait_idle()
    first, again = receiver.arrivals
    expected = "Basic " + base64.b64encode(b"hook:pass word").decode()
    assert {arrival.headers["authorization"] for arrival in receiver.arrivals} == {expected}
    assert first.headers["x-pm-webhook-trace-id"] == again.headers["x-pm-webhook-trace-id"]
    assert first.body == again.body
    assert (first.event["RecordType"], first.event["Metadata"]) == ("Delivery", {"send_id": "send-1"})


@pytest.mark.parametrize(("status", "tries"), [(401, 1), (404, 1), (408, 7), (429, 7), (503, 7)])
def test_another_4xx_drops_an_event_for_good(start: Start, receiver: Receiver, status: int, tries: int) -> None:
    receiver.answer = lambda _: status
    sim = start(dialect="postmark", webhooks={"url": receiver.url, "delay_ms": 1, "time_scale": 0.00001})
    send(sim)
    assert sim.wait_idle()
    assert (len(receiver.arrivals), sim.webhook_counts()["given_up"]) == (tries, 1)


def test_a_new_webhook_is_tried_with_each_kind_before_anything_is_told(start: Start, receiver: Receiver) -> None:
    sim = start(dialect="postmark", webhooks={"url": receiver.url, "delay_ms": 1, "greet": True})
    assert receiver.wait_for(5)
    kinds = [arrival.event["RecordType"] for arrival in receiver.arrivals]
    assert kinds == ["Delivery", "Bounce", "SpamComplaint", "Open", "Click"]
    while len(receiver.arrivals) < 6:
        send(sim)
        assert sim.wait_idle()
    assert receiver.arrivals[5].event["Metadata"] == {"send_id": "send-1"}
