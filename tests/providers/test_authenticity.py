"""Who may report: each provider's own proof, two keys at once, and what is our own trouble rather than a stranger."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from dashboard.providers.base import CannotVerify, NotAuthentic, Provider, Unverifiable, WebhookRequest
from dashboard.providers.fetch import LARGEST, Unreachable, fetch
from dashboard.providers.mailgun import Mailgun
from dashboard.providers.postmark import Postmark
from dashboard.providers.sendgrid import SendGrid
from dashboard.providers.ses import Ses
from tests.providers.reporters import (
    CERTIFICATE,
    CERTIFICATE_URL,
    NOW,
    OTHER_CERTIFICATE,
    OTHER_SENDGRID_KEY,
    OTHER_SNS_KEY,
    SENDGRID_KEY,
    TOPIC,
    as_json,
    from_mailgun,
    from_postmark,
    from_sendgrid,
    from_sns,
    mailgun_signature,
    request,
    shown,
    sns_message,
)
from tests.providers.rig import Server, http_answer

BATCH = as_json([{"event": "delivered", "sg_event_id": "e", "email": "ada@example.com"}])
DELIVERY = as_json({"RecordType": "Delivery", "MessageID": "m", "Recipient": "ada@example.com"})
FACT = {"event": "delivered", "id": "e", "timestamp": 1796029200.5, "recipient": "ada@example.com"}
NOTICE = json.dumps({"eventType": "Delivery", "mail": {"messageId": "m"}, "delivery": {"recipients": ["a@b.c"]}})


def found(adapter: Provider, webhook: WebhookRequest, **settings: str) -> int:
    return len(adapter.read_webhook(webhook, settings).events)


def refused(adapter: Provider, webhook: WebhookRequest, match: str = ".", **settings: str) -> None:
    with pytest.raises(NotAuthentic, match=match) as caught:
        adapter.read_webhook(webhook, settings)
    assert not isinstance(caught.value, CannotVerify), "it would be 503"


@pytest.mark.parametrize(
    ("adapter", "webhook"),
    [
        (SendGrid(), from_sendgrid(BATCH)),
        (Postmark(), from_postmark(DELIVERY)),
        (Mailgun(), from_mailgun(FACT)),
        (Ses(), from_sns(sns_message(NOTICE))),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_an_account_that_cannot_verify_anything_is_our_own_trouble(adapter: Provider, webhook: WebhookRequest) -> None:
    for settings in ({}, {"webhook_secret": "  ", "topic_arns": " "}):
        with pytest.raises(CannotVerify):
            adapter.read_webhook(webhook, settings)


# ── SendGrid ─────────────────────────────────────────────────────────────────────────────────────────────────────────

KEY, OTHER_KEY = shown(SENDGRID_KEY), shown(OTHER_SENDGRID_KEY)


def test_sendgrid_two_keys_count_while_one_replaces_the_other() -> None:
    for key in (SENDGRID_KEY, OTHER_SENDGRID_KEY):
        assert found(SendGrid(), from_sendgrid(BATCH, key=key), webhook_secret=f"{OTHER_KEY} {KEY}") == 1
    refused(SendGrid(), from_sendgrid(BATCH), "no signature matches", webhook_secret=OTHER_KEY)


@pytest.mark.parametrize(("age", "passes"), [(24 * 3600, True), (-300, True), (26 * 3600, False), (-301, False)])
def test_sendgrid_a_delivery_counts_as_long_as_it_is_repeated(age: int, passes: bool) -> None:
    if passes:
        assert found(SendGrid(), from_sendgrid(BATCH, age=age), webhook_secret=KEY) == 1
    else:
        refused(SendGrid(), from_sendgrid(BATCH, age=age), "timestamp", webhook_secret=KEY)


@pytest.mark.parametrize("name", ["signature", "timestamp"])
@pytest.mark.parametrize("value", ["", "é", "\ud800", "AAAA", "MEUC", "-5", "1e3", "９", "9" * 400])
def test_sendgrid_odd_headers_are_not_authentic_and_break_nothing(name: str, value: str) -> None:
    good = from_sendgrid(BATCH)
    headers = dict(good.headers) | {f"x-twilio-email-event-webhook-{name}": value}
    refused(SendGrid(), request(BATCH, headers), webhook_secret=KEY)


def test_sendgrid_the_line_ends_between_events_are_signed_too() -> None:
    body = b"[\r\n" + BATCH[1:-1] + b"\r\n]\r\n"
    assert found(SendGrid(), from_sendgrid(body), webhook_secret=KEY) == 1
    headers = dict(from_sendgrid(body).headers)
    refused(SendGrid(), request(body.replace(b"\r\n", b"\n"), headers), webhook_secret=KEY)


# ── Postmark ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_postmark_two_passwords_count_while_one_replaces_the_other() -> None:
    for credentials in ("user:one", "user:two"):
        assert found(Postmark(), from_postmark(DELIVERY, credentials=credentials), webhook_secret="user:two user:one")
    refused(Postmark(), from_postmark(DELIVERY, credentials="user:three"), "wrong", webhook_secret="user:two user:one")


@pytest.mark.parametrize("value", ["", "Basic", "Basic é", "Bearer dXNlcjpvbmU=", "Basic dXNlcjpvbmU", "Basic \ud800"])
def test_postmark_odd_credentials_are_not_authentic_and_break_nothing(value: str) -> None:
    refused(Postmark(), request(DELIVERY, {"Authorization": value}), webhook_secret="user:one")


@pytest.mark.parametrize(
    ("remote", "passes"),
    [
        ("3.134.147.250", True),
        ("50.31.156.9", True),
        ("::ffff:50.31.156.9", True),
        ("50.31.157.9", False),
        ("nobody", False),
        (None, False),
    ],
)
def test_postmark_where_networks_are_named_the_request_must_come_from_one(remote: str | None, passes: bool) -> None:
    networks = "3.134.147.250 50.31.156.0/24"
    both = {"webhook_networks": networks, "webhook_secret": "user:one"}
    if passes:
        assert found(Postmark(), from_postmark(DELIVERY, remote=remote), webhook_networks=networks) == 1
        assert found(Postmark(), from_postmark(DELIVERY, remote=remote), **both) == 1
        refused(Postmark(), from_postmark(DELIVERY, remote=remote, credentials="x:y"), **both)
    else:
        refused(Postmark(), from_postmark(DELIVERY, remote=remote), "elsewhere", **both)


def test_postmark_a_network_that_is_none_is_our_own_trouble() -> None:
    with pytest.raises(CannotVerify, match="webhook_networks"):
        Postmark().read_webhook(from_postmark(DELIVERY), {"webhook_networks": "example.com"})


# ── Mailgun ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_mailgun_two_keys_count_while_one_replaces_the_other() -> None:
    for key in ("signing-key", "another"):
        assert found(Mailgun(), from_mailgun(FACT, key=key), webhook_secret="another signing-key") == 1
    refused(Mailgun(), from_mailgun(FACT), "no signature matches", webhook_secret="another")


def test_mailgun_the_parents_signature_counts_for_a_sub_account() -> None:
    signature = mailgun_signature(key="of the sub-account")
    signature["parent-signature"] = mailgun_signature()["signature"]
    body = as_json({"signature": signature, "event-data": FACT})
    assert found(Mailgun(), request(body), webhook_secret="signing-key") == 1


@pytest.mark.parametrize(("age", "passes"), [(8 * 3600, True), (-300, True), (10 * 3600, False), (-301, False)])
def test_mailgun_a_request_counts_as_long_as_it_is_repeated(age: int, passes: bool) -> None:
    if passes:
        assert found(Mailgun(), from_mailgun(FACT, age=age), webhook_secret="signing-key") == 1
    else:
        refused(Mailgun(), from_mailgun(FACT, age=age), "timestamp", webhook_secret="signing-key")


def test_mailgun_tells_which_token_was_signed_in_place_of_the_body_and_how_long_that_counts() -> None:
    read = Mailgun().read_webhook(from_mailgun(FACT, age=60), {"webhook_secret": "signing-key"})
    assert read.signed_token is not None
    assert read.signed_token.token == "t" * 50
    refused(Mailgun(), from_mailgun(FACT, age=9 * 3600 + 1), "timestamp", webhook_secret="signing-key")
    assert read.signed_token.good_until == NOW + timedelta(hours=9) - timedelta(seconds=60)


@pytest.mark.parametrize("part", [None, 5, [], {}, {"timestamp": {}, "token": 1, "signature": []}])
def test_mailgun_an_odd_signature_is_not_authentic_and_breaks_nothing(part: Any) -> None:
    refused(Mailgun(), request(as_json({"signature": part, "event-data": FACT})), webhook_secret="signing-key")
    with pytest.raises(Unverifiable):
        Mailgun().read_webhook(request(b'{"signature":'), {"webhook_secret": "signing-key"})


# ── Amazon SNS ───────────────────────────────────────────────────────────────────────────────────────────────────────


def ses(pem: bytes = CERTIFICATE, asked: list[str] | None = None) -> Ses:
    """An adapter whose certificates come from here."""

    def fetched(url: str) -> bytes:
        if asked is not None:
            asked.append(url)
        return pem

    return Ses(fetch=fetched)


@pytest.mark.parametrize("version", ["1", "2"])
def test_sns_both_versions_of_the_signature_count_with_and_without_subject(version: str) -> None:
    for subject in ({}, {"Subject": "an event"}):
        webhook = from_sns(sns_message(NOTICE, SignatureVersion=version, **subject))
        assert found(ses(), webhook, topic_arns=f"arn:another {TOPIC}") == 1


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"TopicArn": "arn:aws:sns:eu-west-1:123456789012:of-somebody"}, "topic"),
        ({"SignatureVersion": "3"}, "version"),
        ({"Timestamp": "2026-11-30T06:59:59.000Z"}, "two hours"),
        ({"Timestamp": "2026-11-30T09:06:00.000Z"}, "two hours"),
        ({"Timestamp": "yesterday"}, "two hours"),
    ],
)
def test_sns_a_signed_message_of_another_topic_time_or_version_does_not_count(
    changes: dict[str, str], match: str
) -> None:
    refused(ses(), from_sns(sns_message(NOTICE, **changes)), match, topic_arns=TOPIC)


@pytest.mark.parametrize("name", ["Message", "MessageId", "Timestamp", "TopicArn"])
def test_sns_a_changed_field_breaks_the_signature(name: str) -> None:
    webhook = from_sns(sns_message(NOTICE))
    message = json.loads(webhook.body)
    changed = as_json(message | {name: message[name].replace("Delivery", "Bounce").replace("09:00", "09:01") + " "})
    refused(ses(), request(changed, dict(webhook.headers)), topic_arns=f"{TOPIC} arn:x")


def test_sns_header_and_body_must_name_one_type() -> None:
    refused(ses(), from_sns(sns_message(NOTICE), header="SubscriptionConfirmation"), "types", topic_arns=TOPIC)


@pytest.mark.parametrize(
    "url",
    [
        "http://sns.eu-west-1.amazonaws.com/a.pem",
        "https://sns.eu-west-1.amazonaws.com.evil.example/a.pem",
        "https://evil.example/sns.eu-west-1.amazonaws.com/a.pem",
        "https://sns.eu-west-1.amazonaws.com@evil.example/a.pem",
        "https://user@sns.eu-west-1.amazonaws.com/a.pem",
        "https://sns.eu-west-1.amazonaws.com:8443/a.pem",
        "https://s3.eu-west-1.amazonaws.com/bucket/a.pem",
        "https://sns.eu-west-1.amazonaws.com/a.txt?x=.pem",
        "https://sns.eu-west-1.amazonaws.com/a.txt",
        "https://[sns.eu-west-1.amazonaws.com/a.pem",
        "",
    ],
)
def test_sns_a_certificate_elsewhere_than_at_amazon_is_never_fetched(url: str) -> None:
    asked: list[str] = []
    refused(ses(asked=asked), from_sns(sns_message(NOTICE, SigningCertURL=url)), "Amazon", topic_arns=TOPIC)
    assert asked == []


def test_sns_a_certificate_is_fetched_once() -> None:
    asked: list[str] = []
    adapter = ses(asked=asked)
    for _ in range(3):
        assert found(adapter, from_sns(sns_message(NOTICE)), topic_arns=TOPIC) == 1
    assert asked == [CERTIFICATE_URL]


def test_sns_a_certificate_that_cannot_be_had_is_our_own_trouble_and_is_asked_for_again() -> None:
    answers: list[Callable[[], bytes]] = [_nobody, lambda: b"no certificate", lambda: CERTIFICATE]
    adapter = Ses(fetch=lambda url: answers.pop(0)())
    for _ in range(2):
        with pytest.raises(CannotVerify, match="certificate"):
            adapter.read_webhook(from_sns(sns_message(NOTICE)), {"topic_arns": TOPIC})
    assert found(adapter, from_sns(sns_message(NOTICE)), topic_arns=TOPIC) == 1


def _nobody() -> bytes:
    raise Unreachable("HTTP 500")


def test_sns_certificates_of_the_account_count_instead_of_fetched_ones() -> None:
    asked: list[str] = []
    pinned = (CERTIFICATE + OTHER_CERTIFICATE).decode()
    webhook = from_sns(sns_message(NOTICE), key=OTHER_SNS_KEY)
    assert found(ses(asked=asked), webhook, topic_arns=TOPIC, signing_certificate=pinned) == 1
    refused(ses(asked=asked), webhook, topic_arns=TOPIC, signing_certificate=CERTIFICATE.decode())
    assert asked == []
    with pytest.raises(CannotVerify, match="signing_certificate"):
        ses().read_webhook(from_sns(sns_message(NOTICE)), {"topic_arns": TOPIC, "signing_certificate": "x"})


def subscription(url: str, **changes: str) -> WebhookRequest:
    said = {"Type": "SubscriptionConfirmation", "Token": "t", "SubscribeURL": url} | changes
    return from_sns(sns_message("You have chosen to subscribe", **said))


def test_sns_a_subscription_of_a_known_topic_is_confirmed_at_amazon_and_only_when_asked_to() -> None:
    url, asked = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=t", []
    told = ses(asked=asked).read_webhook(subscription(url), {"topic_arns": TOPIC})
    assert (told.events, asked) == ((), [CERTIFICATE_URL])
    assert told.confirm is not None
    told.confirm()
    assert asked == [CERTIFICATE_URL, url]


def test_sns_no_other_subscription_is_confirmed() -> None:
    good = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription"
    refused(ses(), subscription("https://evil.example/?Action=ConfirmSubscription"), "Amazon", topic_arns=TOPIC)
    refused(ses(), subscription(good, TopicArn="arn:of:somebody"), "topic", topic_arns=TOPIC)
    gone = ses().read_webhook(subscription(good, Type="UnsubscribeConfirmation"), {"topic_arns": TOPIC})
    assert (gone.events, gone.confirm) == ((), None)


def test_sns_a_confirmation_that_fails_is_our_own_trouble() -> None:
    answers: list[Callable[[], bytes]] = [lambda: CERTIFICATE, _nobody]
    adapter = Ses(fetch=lambda url: answers.pop(0)())
    told = adapter.read_webhook(subscription("https://sns.eu-west-1.amazonaws.com/?x"), {"topic_arns": TOPIC})
    assert told.confirm is not None
    with pytest.raises(CannotVerify, match="confirmed"):
        told.confirm()


# ── fetching ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def over_tls(answer: bytes, context: ssl.SSLContext) -> Server:
    def behave(connection: socket.socket, _: int) -> None:
        with context.wrap_socket(connection, server_side=True) as secured:
            secured.recv(65536)
            secured.sendall(answer)

    return Server(behave)


def test_a_document_is_fetched_over_verified_tls(trusted_tls: ssl.SSLContext) -> None:
    with over_tls(http_answer(CERTIFICATE), trusted_tls) as server:
        assert fetch(f"https://127.0.0.1:{server.port}/a.pem") == CERTIFICATE


@pytest.mark.parametrize(
    "answer",
    [
        http_answer(b"x", status="302 Found", headers="Location: https://example.com/\r\n"),
        http_answer(b"x", status="404 Not Found"),
        http_answer(b"x" * (LARGEST + 1)),
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx",
        b"nonsense\r\n\r\n",
        b"",
    ],
)
def test_anything_else_is_no_document(answer: bytes, trusted_tls: ssl.SSLContext) -> None:
    with over_tls(answer, trusted_tls) as server:
        with pytest.raises(Unreachable):
            fetch(f"https://127.0.0.1:{server.port}/a.pem")
        assert server.connections == 1, "no redirect, no repeat"


def test_a_server_that_nobody_vouches_for_gives_no_document(untrusted_tls: ssl.SSLContext) -> None:
    with over_tls(http_answer(CERTIFICATE), untrusted_tls) as server, pytest.raises(Unreachable):
        fetch(f"https://127.0.0.1:{server.port}/a.pem")
