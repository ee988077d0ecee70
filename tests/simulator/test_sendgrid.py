"""SendGrid as the simulator plays it: what is refused, what is shown, and signatures that another check accepts."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from dashboard.simulator import Simulator
from tests.simulator.client import Client, Receiver, Reply

Start = Callable[..., Simulator]


def mail(**changes: Any) -> dict[str, Any]:
    """The body of a send call."""
    person = {"to": [{"email": "ada@example.test"}], "custom_args": {"send_id": "send-1"}}
    content = [{"type": "text/plain", "value": "Hi"}, {"type": "text/html", "value": "<p>Hi</p>"}]
    sender = {"email": "shop@example.test", "name": "Shop"}
    return {"personalizations": [person], "from": sender, "subject": "Hello", "content": content, **changes}


def person(address: str = "ada@example.test", **own: Any) -> dict[str, Any]:
    return {"to": [{"email": address}], **own}


def send(sim: Simulator, **changes: Any) -> Reply:
    return Client(sim).call("POST", "/v3/mail/send", mail(**changes))


def test_success_is_202_with_an_id_in_a_header_and_nothing_else(start: Start) -> None:
    sim = start(dialect="sendgrid")
    reply = send(sim)
    assert (reply.status, reply.text) == (202, "")
    assert [row.message_id for row in sim.books] == [reply.headers["x-message-id"]]
    limits = {name for name in reply.headers if name.startswith("x-ratelimit-")}
    assert limits == {"x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"}
    assert 0 <= int(reply.headers["x-ratelimit-reset"]) - time.time() + 1 <= 3, "a second since the epoch"


def test_one_call_may_hold_many_messages_which_share_an_id(start: Start) -> None:
    sim = start(dialect="sendgrid")
    many = [{"to": [{"email": f"u{n}@example.test"}], "custom_args": {"send_id": f"s{n}"}} for n in range(3)]
    send(sim, personalizations=many)
    assert [row.send_id for row in sim.books] == ["s0", "s1", "s2"]
    assert len({row.message_id for row in sim.books}) == 1


def test_each_message_of_a_call_may_have_a_subject_headers_and_substitutions_of_its_own(start: Start) -> None:
    sim = start(dialect="sendgrid")
    ada = person(subject="For -name-", substitutions={"-name-": "Ada", "-more-": "<b>"}, headers={"X-A": "1"})
    eve = person("eve@example.test", headers={"X-B": "2"})
    content = [{"type": "text/plain", "value": "Hi -name- -more-"}]
    assert send(sim, personalizations=[ada, eve], content=content, headers={"X-A": "0"}).status == 202
    assert [(mail.subject, mail.text, dict(mail.headers)) for mail in sim.mails()] == [
        ("For Ada", "Hi Ada <b>", {"X-A": "1"}),
        ("Hello", "Hi -name- -more-", {"X-A": "0", "X-B": "2"}),
    ]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"personalizations": []}, "personalizations"),
        ({"personalizations": [{"to": []}]}, "personalizations.0.to"),
        ({"personalizations": [{"to": [{"email": "nobody"}]}]}, "personalizations.0.to.0.email"),
        ({"personalizations": [{"to": [{"email": "a@example.test"}]}] * 1001}, "personalizations"),
        ({"from": {"name": "Shop"}}, "from.email"),
        ({"subject": ""}, "subject"),
        ({"content": []}, "content"),
        ({"content": [{"type": "text/plain", "value": ""}]}, "content.0"),
        ({"content": [{"type": "text/html", "value": "x"}, {"type": "text/plain", "value": "x"}]}, "content"),
        ({"headers": {"Reply-To": "x@example.test"}}, "headers"),
        ({"headers": {"X-Number": 1}}, "headers"),
        ({"custom_args": {"number": 1}}, "custom_args"),
        ({"custom_args": {"long": "x" * 10_000}}, "personalizations.0.custom_args"),
        ({"personalizations": [person("a@example.test"), person("A@example.test")]}, "personalizations"),
        ({"personalizations": [person(headers={"Subject": "x"})]}, "personalizations.0"),
        ({"personalizations": [person(substitutions={"-x-": "x" * 10_000})]}, "personalizations.0.substitutions"),
    ],
)
def test_a_bad_message_is_refused_with_the_field_that_is_wrong(
    start: Start, change: dict[str, Any], field: str
) -> None:
    sim = start(dialect="sendgrid")
    reply = send(sim, **change)
    assert (reply.status, [error["field"] for error in reply.json["errors"]]) == (400, [field])
    assert sim.books == []


def test_requests_that_are_no_send_call_are_refused(start: Start) -> None:
    sim = start(dialect="sendgrid", api_key="SG.right")
    right = {"authorization": "Bearer SG.right"}
    client = Client(sim)
    assert client.call("POST", "/v3/mail/send", mail(), headers={"authorization": ""}).status == 401
    assert client.call("POST", "/v3/mail/send", mail()).status == 401
    assert client.call("PUT", "/v3/mail/send", mail(), headers=right).status == 405
    assert client.call("POST", "/v3/mail/send", b"{", headers=right).status == 400
    assert client.call("POST", "/v3/mail/send", mail(), headers=right | {"content-type": "text/plain"}).status == 415
    assert client.call("POST", "/v3/mail", mail(), headers=right).status == 404


def logs(sim: Simulator, query: str, **more: Any) -> Reply:
    return Client(sim).call("POST", "/v3/logs", {"query": query, **more})


def test_the_logs_take_the_documented_query_and_no_other(start: Start) -> None:
    sim = start(dialect="sendgrid")
    send(sim)
    send(sim, personalizations=[{"to": [{"email": "eve@example.test"}]}])
    (shown,) = logs(sim, 'to_email = "ada@example.test" AND subject = "Hello"').json["messages"]
    assert shown["sg_message_id"].startswith(sim.books[0].message_id + ".")
    assert logs(sim, 'sg_message_id_created_at > TIMESTAMP "2099-01-01T00:00:00Z"').json["messages"] == []
    assert len(logs(sim, 'sg_message_id_created_at >= TIMESTAMP "2020-01-01T00:00:00Z"').json["messages"]) == 2
    for query in ('custom_args = "x"', "to_email = ada@example.test", 'to_email > "a"', ""):
        assert logs(sim, query).status == 400, query
    assert logs(sim, 'subject = "Hello"', limit=1001).status == 400
    found = Client(sim).call("GET", f"/v3/logs/{shown['sg_message_id']}").json
    assert (found["custom_args"], found["to_email"]) == ({"send_id": "send-1"}, "ada@example.test")
    assert Client(sim).call("GET", "/v3/logs/unknown").status == 404


def test_an_event_is_signed_over_its_timestamp_and_its_bytes_line_ends_included(
    start: Start, receiver: Receiver
) -> None:
    sim = start(dialect="sendgrid", webhooks={"url": receiver.url, "delay_ms": 1, "secret": "any"})
    key = load_der_public_key(base64.b64decode(sim.webhook_secret))
    assert isinstance(key, ec.EllipticCurvePublicKey)
    message_id = send(sim).headers["x-message-id"]
    assert sim.wait_idle()
    assert len(receiver.arrivals) == 2
    for arrival in receiver.arrivals:
        stamp = arrival.headers["x-twilio-email-event-webhook-timestamp"]
        signature = base64.b64decode(arrival.headers["x-twilio-email-event-webhook-signature"])
        key.verify(signature, stamp.encode() + arrival.body, ec.ECDSA(SHA256()))
        assert arrival.body.endswith(b"]\r\n")
        (event,) = json.loads(arrival.body)
        assert event["sg_message_id"].startswith(f"{message_id}.recvd-")
        assert (event["send_id"], event["email"]) == ("send-1", "ada@example.test")
