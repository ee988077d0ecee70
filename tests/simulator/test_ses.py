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
PATH, BULK = "/v2/email/outbound-emails", "/v2/email/outbound-bulk-emails"
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
    tampered: bytes | None = None, path: str = PATH, **headers: str,
) -> Reply:  # fmt: skip
    """A call that Amazon's own signer signed; ``tampered``: what is sent in place of the signed body."""
    body = json.dumps(mail() if document is None else document).encode()
    request = AWSRequest("POST", sim.http_url + path, data=body, headers={"content-type": "application/json"})  # type: ignore[no-untyped-call]
    SigV4Auth(Credentials(key, secret), service, "eu-west-1").add_auth(request)  # type: ignore[no-untyped-call]
    signed = {**{name.lower(): value for name, value in request.headers.items()}, **headers}
    return Client(sim).call("POST", path, tampered or body, headers=signed)


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


# ── bulk ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def entry(address: str = "ada@example.test", data: Any = None, **changes: Any) -> dict[str, Any]:
    """One of the entries of a bulk call."""
    content = {"ReplacementTemplate": {"ReplacementTemplateData": json.dumps(data or {})}}
    return {"Destination": {"ToAddresses": [address]}, "ReplacementEmailContent": content, **changes}


def bulk(*entries: Any, template: Any = None, **changes: Any) -> dict[str, Any]:
    """The body of a bulk call."""
    parts = {"Subject": "For {{name}}", "Text": "Hi {{ name }}", "Html": "<p>{{name}}</p>"}
    content = {"Template": {"TemplateContent": parts, **(template or {})}}
    sender = {"FromEmailAddress": "shop@example.test"}
    return sender | {"DefaultContent": content, "BulkEmailEntries": list(entries)} | changes


def named(name: str, value: str) -> list[dict[str, str]]:
    return [{"Name": name, "Value": value}]


def test_bulk_each_entry_is_rendered_with_its_own_values_as_they_are(start: Start) -> None:
    sim = start(dialect="ses")
    ada = entry(
        data={"name": "<b>{{name}} & ✉"}, ReplacementTags=named("send_id", "s1"), ReplacementHeaders=named("X-A", "1")
    )
    template = {"TemplateData": '{"name":"friend"}', "Headers": named("X-A", "0")}
    document = bulk(ada, entry("eve@example.test"), template=template, DefaultEmailTags=named("send_id", "s0"))
    reply = send(sim, document, path=BULK)
    assert [(mail.subject, mail.text, mail.html, dict(mail.headers)) for mail in sim.mails()] == [
        ("For <b>{{name}} & ✉", "Hi <b>{{name}} & ✉", "<p><b>{{name}} & ✉</p>", {"X-A": "1"}),
        ("For friend", "Hi friend", "<p>friend</p>", {"X-A": "0"}),
    ]
    results = reply.json["BulkEmailEntryResults"]
    assert [(one["Status"], one["MessageId"]) for one in results] == [("SUCCESS", row.message_id) for row in sim.books]
    assert [row.send_id for row in sim.books] == ["s1", "s0"]


def test_bulk_each_entry_has_a_result_of_its_own(start: Start) -> None:
    sim = start(dialect="ses")
    known = {"name": "Ada"}
    entries = [
        entry("nobody", known), entry("ok@example.test", known), entry("reject+a@example.test", known), {},
        entry("a@example.test", known, ReplacementHeaders=named("X-A", "ü")), entry("b@example.test", "no object"),
    ]  # fmt: skip
    results = send(sim, bulk(*entries), path=BULK).json["BulkEmailEntryResults"]
    bad = "INVALID_PARAMETER"
    assert [one["Status"] for one in results] == [bad, "SUCCESS", "MESSAGE_REJECTED", bad, bad, bad]
    stored = {"DefaultContent": {"Template": {"TemplateName": "welcome"}}}
    results = send(sim, bulk(entries[1], **stored), path=BULK).json["BulkEmailEntryResults"]
    assert [one["Status"] for one in results] == ["TEMPLATE_NOT_FOUND"]
    assert [row.recipient for row in sim.books] == ["ok@example.test"]


def test_bulk_what_cannot_be_rendered_is_accepted_and_fails_later(start: Start, receiver: Receiver) -> None:
    sim = start(dialect="ses", webhooks={"url": receiver.url, "delay_ms": 1})
    assert send(sim, bulk(entry()), path=BULK).json["BulkEmailEntryResults"][0]["Status"] == "SUCCESS"
    assert receiver.wait_for(1)
    assert json.loads(receiver.arrivals[0].event["Message"])["eventType"] == "Rendering Failure"


@pytest.mark.parametrize(
    "change",
    [
        {"BulkEmailEntries": []},
        {"BulkEmailEntries": [entry(data={"name": "Ada"})] * 51},
        {"BulkEmailEntries": [entry(data={"name": "x" * 260_000})] * 4},
        {"FromEmailAddress": "nobody"},
        {"DefaultContent": {}},
        {"DefaultContent": {"Template": {}}},
        {"DefaultContent": {"Template": {"TemplateContent": {"Subject": "x"}}}},
        {"DefaultContent": {"Template": {"TemplateContent": {"Subject": "x", "Text": "{{#if x}}x{{/if}}"}}}},
    ],
)
def test_bulk_a_bad_call_is_refused_as_a_whole(start: Start, change: dict[str, Any]) -> None:
    sim = start(dialect="ses")
    reply = send(sim, bulk(entry(data={"name": "Ada"})) | change, path=BULK)
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
