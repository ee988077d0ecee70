"""Amazon SES as the simulator plays it: signed requests, what is refused, and events that come by SNS."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from dashboard.providers import base
from dashboard.providers.ses import Ses
from dashboard.simulator import Simulator
from tests.simulator.client import Arrival, Client, Receiver, Reply

Start = Callable[..., Simulator]
PATH = "/v2/email/outbound-emails"
TOPIC = "arn:aws:sns:eu-west-1:123456789012:ses-events"


def mail(**changes: Any) -> dict[str, Any]:
    """The body of a send call."""
    simple = {"Subject": {"Data": "Hello"}, "Body": {"Text": {"Data": "Hi"}}}
    return {
        "FromEmailAddress": "Shop <shop@example.test>", "Destination": {"ToAddresses": ["ada@example.test"]},
        "EmailTags": [{"Name": "send_id", "Value": "send-1"}], "Content": {"Simple": simple}, **changes,
    }  # fmt: skip


def simple(**changes: Any) -> dict[str, Any]:
    return {"Content": {"Simple": {"Subject": {"Data": "Hello"}, "Body": {"Text": {"Data": "Hi"}}, **changes}}}


def send(
    sim: Simulator, document: Any = None, *, key: str = "AKID", secret: str = "secret", service: str = "ses",
    tampered: bytes | None = None, **headers: str,
) -> Reply:  # fmt: skip
    """A call that Amazon's own signer signed; ``tampered``: what is sent in place of the signed body."""
    body = json.dumps(mail() if document is None else document).encode()
    request = AWSRequest("POST", sim.http_url + PATH, data=body, headers={"content-type": "application/json"})  # type: ignore[no-untyped-call]
    SigV4Auth(Credentials(key, secret), service, "eu-west-1").add_auth(request)  # type: ignore[no-untyped-call]
    signed = {**{name.lower(): value for name, value in request.headers.items()}, **headers}
    return Client(sim).call("POST", PATH, tampered or body, headers=signed)


def test_success_tells_an_id(start: Start) -> None:
    sim = start(dialect="ses", api_key="AKID:secret")
    reply = send(sim)
    assert reply.status == 200
    assert [(row.message_id, row.send_id) for row in sim.books] == [(reply.json["MessageId"], "send-1")]


def test_only_a_request_that_is_signed_as_it_is_is_taken(start: Start) -> None:
    sim = start(dialect="ses", api_key="AKID:secret")
    refusals = [
        (Client(sim).call("POST", PATH, mail(), headers={"authorization": ""}), "MissingAuthenticationTokenException"),
        (Client(sim).call("POST", PATH, mail()), "IncompleteSignatureException"),
        (send(sim, key="OTHER"), "UnrecognizedClientException"),
        (send(sim, secret="other"), "InvalidSignatureException"),
        (send(sim, service="s3"), "IncompleteSignatureException"),
        (send(sim, tampered=b"{}"), "InvalidSignatureException"),
        (send(sim, **{"x-amz-date": "20200101T000000Z"}), "InvalidSignatureException"),
    ]
    for reply, name in refusals:
        assert (reply.status, reply.headers["x-amzn-errortype"].partition(":")[0]) == (403, name)
    assert sim.books == []


@pytest.mark.parametrize(
    "change",
    [
        {"Content": {}},
        {"Destination": {"ToAddresses": []}},
        {"Destination": {"ToAddresses": ["a@example.test"] * 51}},
        {"Destination": {"ToAddresses": ["jürgen@example.test"]}},
        {"FromEmailAddress": "nobody"},
        {"EmailTags": [{"Name": "send id", "Value": "x"}]},
        {"EmailTags": [{"Name": "send_id", "Value": "x" * 257}]},
        simple(Subject={}),
        simple(Subject={"Data": "Grüße"}),
        simple(Body={}),
        simple(Headers=[{"Name": "X-A", "Value": "Grüße"}]),
        simple(Headers=[{"Name": "X-A", "Value": "x" * 996}]),
        simple(Headers=[{"Name": f"X-{n}", "Value": "x"} for n in range(16)]),
    ],
)
def test_a_bad_message_is_refused(start: Start, change: dict[str, Any]) -> None:
    sim = start(dialect="ses")
    reply = send(sim, mail(**change))
    assert (reply.status, reply.headers["x-amzn-errortype"].partition(":")[0]) == (400, "BadRequestException")
    assert sim.books == []


def test_a_subscription_is_confirmed_before_anything_is_told_and_the_certificate_comes_from_where_it_is_named(
    start: Start, receiver: Receiver
) -> None:
    """The adapter goes to Amazon's host alone; this test's messenger brings what it asks for from the simulator."""
    sim = start(dialect="ses", webhooks={"url": receiver.url, "delay_ms": 1, "greet": True})
    visited = []

    def from_the_simulator(url: str) -> bytes:
        host, _, path = url.removeprefix("https://").partition("/")
        visited.append(path.partition("?")[0])
        assert host == "sns.eu-west-1.amazonaws.com"
        reply = Client(sim).call("GET", f"/{path}")
        assert reply.status == 200
        return reply.text.encode()

    adapter = Ses(fetch=from_the_simulator)

    def read(arrival: Arrival) -> base.Webhook:
        request = base.WebhookRequest(headers=arrival.headers, body=arrival.body, now=datetime.now(UTC))
        return adapter.read_webhook(request, {"topic_arns": TOPIC})

    assert receiver.wait_for(1)
    send(sim, mail(EmailTags=[{"Name": "send_id", "Value": "too-early"}]))
    confirm = read(receiver.arrivals[0]).confirm
    assert confirm is not None
    confirm()
    send(sim)
    assert sim.wait_idle()
    assert len(receiver.arrivals) == 3
    told = [event for arrival in receiver.arrivals[1:] for event in read(arrival).events]
    assert [(event.event_type, event.send_id) for event in told] == [("accepted", "send-1"), ("delivered", "send-1")]
    certificate, confirmation = visited
    assert certificate.endswith(".pem"), "which is fetched once"
    assert confirmation == ""


def test_nobody_else_can_confirm(start: Start, receiver: Receiver) -> None:
    sim = start(dialect="ses", webhooks={"url": receiver.url, "delay_ms": 1, "greet": True})
    assert receiver.wait_for(1)
    assert Client(sim).call("GET", f"/?Action=ConfirmSubscription&TopicArn={TOPIC}&Token=guessed").status == 400
    send(sim)
    assert sim.wait_idle()
    assert len(receiver.arrivals) == 1
