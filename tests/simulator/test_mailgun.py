"""Mailgun as the simulator plays it: what is refused, what is shown, and what its signatures cover."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Callable
from urllib.parse import urlencode

import pytest

from dashboard.simulator import Simulator
from tests.simulator.client import Client, Receiver, Reply

Start = Callable[..., Simulator]
BASIC = {"authorization": "Basic YXBpOmtleQ=="}
PATH = "/v3/mg.example.test/messages"
FORM = {"content-type": "application/x-www-form-urlencoded"}


def send(sim: Simulator, changes: dict[str, str] | None = None, *, more: list[tuple[str, str]] | None = None) -> Reply:
    """A send call; an empty text takes a field away."""
    fields = {
        "from": "Shop <shop@example.test>", "to": '"Ada, Countess" <ada@example.test>', "subject": "Hello",
        "text": "Hi", "v:send_id": "send-1", **(changes or {}),
    }  # fmt: skip
    form = urlencode([(name, value) for name, value in fields.items() if value] + (more or [])).encode()
    return Client(sim).call("POST", PATH, form, headers=BASIC | FORM)


def test_the_id_is_a_message_id_in_angle_brackets_the_clients_own_where_it_sets_one(start: Start) -> None:
    sim = start(dialect="mailgun")
    made, own = send(sim), send(sim, {"h:Message-Id": "<mine@shop.example.test>"})
    assert (made.status, made.json["message"]) == (200, "Queued. Thank you.")
    assert made.json["id"].startswith("<")
    assert made.json["id"].endswith("@mg.example.test>")
    assert own.json["id"] == "<mine@shop.example.test>"
    assert [row.message_id for row in sim.books] == [made.json["id"].strip("<>"), "mine@shop.example.test"]
    assert [row.recipient for row in sim.books] == ['"Ada, Countess" <ada@example.test>'] * 2


def test_a_message_id_that_comes_twice_is_no_idempotency_key(start: Start) -> None:
    sim = start(dialect="mailgun")
    assert [send(sim, {"h:Message-Id": "<mine@shop.example.test>"}).status for _ in range(2)] == [200, 200]
    assert sim.summary()["most_copies_of_one_send"] == 2


def test_a_form_may_be_multipart(start: Start) -> None:
    sim = start(dialect="mailgun")
    fields = {
        "from": "shop@example.test",
        "to": "ada@example.test",
        "subject": "Grüße",
        "html": "<p>",
        "v:send_id": "s",
    }
    parts = "".join(
        f'--edge\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    )
    kind = {"content-type": "multipart/form-data; boundary=edge"}
    assert Client(sim).call("POST", PATH, f"{parts}--edge--\r\n".encode(), headers=BASIC | kind).status == 200
    assert [(row.send_id, row.recipient) for row in sim.books] == [("s", "ada@example.test")]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"from": ""}, "from"),
        ({"to": "nobody"}, "to parameter"),
        ({"subject": ""}, "subject"),
        ({"text": ""}, "at least one"),
        ({"v:long": "x" * 16_384}, "16 kB"),
    ],
)
def test_a_bad_message_is_refused_in_words(start: Start, change: dict[str, str], word: str) -> None:
    sim = start(dialect="mailgun")
    reply = send(sim, change)
    assert reply.status == 400
    assert word in reply.json["message"]
    assert send(sim, more=[("o:tag", f"t{n}") for n in range(4)]).status == 400
    assert sim.books == []


def test_with_recipient_variables_each_recipient_gets_a_message_under_one_id(start: Start) -> None:
    sim = start(dialect="mailgun")
    variables = {"ada@example.test": {"id": 1, "first": "Ada %recipient.id%"}, "eve@example.test": {"id": "2"}}
    fields = {
        "subject": "Hey, %recipient.first%", "text": "%recipient_email% %recipient_name% 100% %x%",
        "html": "<p>%recipient.id%</p>", "v:send_id": "send-%recipient.id%", "h:X-Number": "<%recipient.id%>",
        "recipient-variables": json.dumps(variables),
    }  # fmt: skip
    reply = send(sim, fields, more=[("to", "eve@example.test, nobody@example.test")])
    assert {row.message_id for row in sim.books} == {reply.json["id"].strip("<>")}
    assert [(mail.to, mail.subject, mail.text, mail.html, mail.headers["X-Number"]) for mail in sim.mails()] == [
        (['"Ada, Countess" <ada@example.test>'], "Hey, Ada %recipient.id%",
         "ada@example.test Ada, Countess 100% %x%", "<p>1</p>", "<1>"),
        (["eve@example.test"], "Hey, %recipient.first%", "eve@example.test  100% %x%", "<p>2</p>", "<2>"),
        (["nobody@example.test"], "Hey, %recipient.first%", "nobody@example.test  100% %x%",
         "<p>%recipient.id%</p>", "<%recipient.id%>"),
    ]  # fmt: skip
    assert [row.send_id for row in sim.books] == ["send-1", "send-2", "send-%recipient.id%"]


def test_without_recipient_variables_all_recipients_see_each_other(start: Start) -> None:
    sim = start(dialect="mailgun")
    send(sim, {"text": "%recipient.id%"}, more=[("to", "eve@example.test")])
    (mail,) = sim.mails()
    assert (len(mail.to), mail.text) == (2, "%recipient.id%")
    for bad in ("{", "[]", '{"ada@example.test": 1}'):
        assert "JSON" in send(sim, {"recipient-variables": bad}).json["message"]


def test_requests_that_are_no_send_call_are_refused(start: Start) -> None:
    sim = start(dialect="mailgun", api_key="right")
    client = Client(sim)
    for credentials in ("", "Basic !", "Basic YXBpOmtleQ==", "Bearer right"):
        reply = client.call("POST", PATH, b"", headers=FORM | {"authorization": credentials})
        assert (reply.status, reply.text) == (401, "Forbidden")
    right = {"authorization": "Basic YXBpOnJpZ2h0"}
    assert client.call("POST", PATH, {"from": "x"}, headers=right).status == 400, "the body is no form"
    assert client.call("GET", "/v3/mg.example.test/nothing", headers=right).status == 404


def test_a_wrong_path_is_greeted_with_200(start: Start) -> None:
    reply = Client(start(dialect="mailgun")).call("POST", "/messages", b"", headers=FORM)
    assert (reply.status, reply.text) == (200, "Mailgun Magnificent API")


def test_events_are_listed_by_recipient_and_time(start: Start) -> None:
    sim = start(dialect="mailgun")
    send(sim)
    send(sim, {"to": "eve@example.test"})

    def ask(query: str) -> Reply:
        return Client(sim).call("GET", f"/v3/mg.example.test/events?{query}", headers=BASIC)

    begin = int(time.time()) - 60
    found = ask(f"recipient=ada@example.test&begin={begin}&ascending=yes&limit=300").json["items"]
    assert (found[0]["event"], found[0]["user-variables"]["send_id"]) == ("accepted", "send-1")
    assert {each["recipient"] for each in found} == {"ada@example.test"}
    assert ask(f"begin={begin + 120}&ascending=yes").json["items"] == []
    for query in (f"begin={begin}", "limit=301", "begin=yesterday&ascending=yes"):
        assert ask(query).status == 400, query


def test_what_is_signed_is_timestamp_and_token_and_not_the_event(start: Start, receiver: Receiver) -> None:
    receiver.answer = lambda _: 200
    sim = start(dialect="mailgun", webhooks={"url": receiver.url, "delay_ms": 1, "secret": "signing key"})
    send(sim)
    assert sim.wait_idle()
    tokens = set()
    for arrival in receiver.arrivals:
        told = arrival.event["signature"]
        content = (told["timestamp"] + told["token"]).encode()
        assert told["signature"] == hmac.new(b"signing key", content, hashlib.sha256).hexdigest()
        assert len(told["token"]) == 50
        tokens.add(told["token"])
    assert [arrival.event["event-data"]["event"] for arrival in receiver.arrivals] == ["accepted", "delivered"]
    assert len(tokens) == 2


@pytest.mark.parametrize(("status", "tries"), [(406, [1, 1]), (500, [7, 1]), (204, [7, 1])])
def test_only_200_is_good_406_ends_it_and_delivered_is_told_once_only(
    start: Start, receiver: Receiver, status: int, tries: list[int]
) -> None:
    receiver.answer = lambda _: status
    sim = start(dialect="mailgun", webhooks={"url": receiver.url, "delay_ms": 1, "time_scale": 0.00001})
    send(sim)
    assert sim.wait_idle()
    events = [arrival.event["event-data"]["event"] for arrival in receiver.arrivals]
    assert [events.count("accepted"), events.count("delivered")] == tries
