"""What providers report: every word of theirs in ours, and no body that breaks a parser or loses a good event."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.lifecycle import EventType
from dashboard.providers import mailgun, postmark, sendgrid, ses
from dashboard.providers.base import NotAuthentic, Provider, ProviderEvent, Webhook, WebhookRequest
from tests.providers.reporters import (
    CERTIFICATE,
    SENDGRID_KEY,
    TOPIC,
    as_json,
    from_mailgun,
    from_postmark,
    from_sendgrid,
    from_sns,
    request,
    shown,
    sns_message,
)
from tests.providers.rig import JSON

SETTINGS = {
    "sendgrid": {"webhook_secret": shown(SENDGRID_KEY)},
    "postmark": {"webhook_secret": "user:one"},
    "mailgun": {"webhook_secret": "signing-key"},
    "ses": {"topic_arns": TOPIC, "signing_certificate": CERTIFICATE.decode()},
}


def read(name: str, webhook: WebhookRequest) -> Webhook:
    known: tuple[Provider, ...] = (sendgrid.SendGrid(), postmark.Postmark(), mailgun.Mailgun(), ses.Ses())
    (adapter,) = (one for one in known if one.name == name)
    return adapter.read_webhook(webhook, SETTINGS[name])


def only(webhook: Webhook) -> ProviderEvent:
    (event,) = webhook.events
    return event


# ── SendGrid ─────────────────────────────────────────────────────────────────────────────────────────────────────────

SG_EVENT = {
    "event": "delivered", "sg_event_id": "e", "sg_message_id": "abc.recvd-1-2.0", "email": "Ada@example.com",
    "timestamp": 1796029200, "send_id": "s", "send_attempt": "2",
}  # fmt: skip


def sg(**changes: Any) -> ProviderEvent:
    return only(read("sendgrid", from_sendgrid(as_json([SG_EVENT | changes]))))


def test_sendgrid_says_whose_event_it_is() -> None:
    event = sg()
    assert (event.send_id, event.attempt, event.recipient) == ("s", 2, "ada@example.com")
    assert sg(event="deferred", attempt="7").attempt == 2, "their count of tries is not our attempt"


@pytest.mark.parametrize(
    ("told", "smtp_id", "message_id"),
    [
        ("abc.filter0001.1-2.0", None, "abc"),
        ("a.b.c.recvd-1-2.0", None, "a.b.c"),
        ("abc.0", None, "abc"),
        ("abc", None, "abc"),
        ("filter0001.1-2.0", "<xyz@geopod-ismtpd-3>", "xyz"),
        ("filter0001.1-2.0", "<ours@example.com>", None),
        (None, None, None),
    ],
)
def test_sendgrid_the_message_id_stands_before_the_routing(
    told: str | None, smtp_id: str | None, message_id: str | None
) -> None:
    assert sg(sg_message_id=told, **{"smtp-id": smtp_id}).provider_message_id == message_id


@pytest.mark.parametrize(
    ("changes", "event_type", "bounce_class"),
    [
        ({"event": "bounce", "status": "5.1.1", "type": "bounce"}, "bounced", "hard"),
        ({"event": "bounce", "status": "4.2.2"}, "bounced", "soft"),
        ({"event": "bounce", "status": "4.2.2", "type": "blocked"}, "bounced", "block"),
        ({"event": "dropped", "reason": "Spam Reporting Address"}, "rejected", "suppressed"),
        ({"event": "dropped", "reason": ["Spam"]}, "rejected", None),
    ],
)
def test_sendgrid_a_bounce_has_a_class_and_what_was_not_tried_is_none(
    changes: dict[str, Any], event_type: str, bounce_class: str | None
) -> None:
    event = sg(**changes)
    assert (event.event_type, event.bounce_class) == (event_type, bounce_class)


def test_sendgrid_an_event_without_an_id_gets_one_of_its_content() -> None:
    assert sg(sg_event_id=None).event_id == "delivered:abc.recvd-1-2.0:ada@example.com:1796029200"


def test_sendgrid_milliseconds_are_seen_as_such() -> None:
    assert sg(timestamp=1796029200123).occurred_at == sg(timestamp="1796029200.1239").occurred_at


def test_sendgrid_news_of_the_account_is_no_event() -> None:
    assert read("sendgrid", from_sendgrid(as_json([{"event": "account_status_change"}]))).events == ()


def test_sendgrid_a_batch_with_bad_parts_keeps_the_good_ones_and_shows_the_bad() -> None:
    told = read("sendgrid", from_sendgrid(as_json([5, SG_EVENT, {}, {"event": ["x"]}, SG_EVENT | {"event": "new"}])))
    assert [event.event_type for event in told.events] == ["delivered", "unknown"]
    assert [part.raw for part in told.unreadable] == [b"5", b"{}", b'{"event":["x"]}']
    assert json.loads(told.events[0].raw) == SG_EVENT


# ── Postmark ─────────────────────────────────────────────────────────────────────────────────────────────────────────

PM_EVENT = {
    "RecordType": "Bounce", "Type": "HardBounce", "ID": 4323372036854775807, "MessageID": "m", "Email": "a@example.com",
    "BouncedAt": "2026-11-30T04:00:00.1234567-05:00", "Metadata": {"send_id": "s", "attempt": "2"},
}  # fmt: skip


def pm(**changes: Any) -> ProviderEvent:
    return only(read("postmark", from_postmark(as_json(PM_EVENT | changes))))


@pytest.mark.parametrize(("kind", "meaning"), postmark.BOUNCES.items())
def test_postmark_every_kind_of_bounce_has_a_meaning(kind: str, meaning: postmark.Meaning) -> None:
    event = pm(Type=kind)
    assert (event.event_type, event.bounce_class) == meaning


def test_postmark_an_unknown_kind_is_kept() -> None:
    assert pm(Type="Surprise").event_type is EventType.UNKNOWN
    assert pm(Type={"odd": 1}).event_type is EventType.UNKNOWN
    assert (pm().send_id, pm().attempt, pm().event_id) == ("s", 2, "Bounce:4323372036854775807")


@pytest.mark.parametrize(
    ("cause", "suppressing", "event_type"),
    [
        ("HardBounce", True, "bounced"),
        ("SpamComplaint", True, "complained"),
        ("ManualSuppression", True, "unsubscribed"),
        (None, None, "unsubscribed"),
        (None, False, "resubscribed"),
    ],
)
def test_postmark_a_change_of_subscription_says_why(cause: str | None, suppressing: Any, event_type: str) -> None:
    event = pm(RecordType="SubscriptionChange", SuppressionReason=cause, SuppressSending=suppressing)
    assert event.event_type == event_type


@pytest.mark.parametrize("body", [{"RecordType": "Inbound"}, {"FromFull": {}, "MessageID": "m"}])
def test_postmark_inbound_mail_is_no_event(body: dict[str, Any]) -> None:
    assert read("postmark", from_postmark(as_json(body))).events == ()


# ── Mailgun ──────────────────────────────────────────────────────────────────────────────────────────────────────────

MG_EVENT = {
    "event": "failed", "severity": "permanent", "id": "e", "timestamp": 1796083199.9999, "recipient": "a@example.com",
    "message": {"headers": {"message-id": "<m@example.com>", "to": "A <a@example.com>"}},
    "user-variables": {"send_id": "s", "attempt": "2"}, "delivery-status": {"code": 550, "message": "no such user"},
}  # fmt: skip


def mg(**changes: Any) -> ProviderEvent:
    return only(read("mailgun", from_mailgun(MG_EVENT | changes)))


def test_mailgun_an_id_counts_within_its_day() -> None:
    assert (mg().event_id, mg().event_day) == ("e", "2026-11-30")
    assert mg(timestamp=1796083200).event_day == "2026-12-01"
    assert mg(timestamp="never").event_day == "2026-11-30", "the day of the signature"
    assert mg(id=None).event_id == "t" * 50


@pytest.mark.parametrize(
    ("changes", "event_type", "bounce_class"),
    [
        ({}, "bounced", "hard"),
        ({"delivery-status": {"code": 452}}, "bounced", "soft"),
        ({"delivery-status": {"code": 605}}, "bounced", "undetermined"),
        ({"delivery-status": [], "reason": []}, "bounced", "undetermined"),
        ({"severity": "temporary"}, "deferred", None),
        ({"reason": "suppress-unsubscribe"}, "rejected", "suppressed"),
    ],
)
def test_mailgun_a_failure_is_a_delay_a_bounce_or_no_try_at_all(
    changes: dict[str, Any], event_type: str, bounce_class: str | None
) -> None:
    event = mg(**changes)
    assert (event.event_type, event.bounce_class) == (event_type, bounce_class)


def test_mailgun_what_was_rejected_names_its_recipient_in_the_header_alone() -> None:
    event = mg(event="rejected", recipient=None, reject={"reason": "loop"})
    assert (event.recipient, event.reason, event.provider_message_id) == ("a@example.com", "loop", "m@example.com")
    assert mg(recipient=None, message={"headers": {"to": "a@example.com, b@example.com"}}).recipient is None


@pytest.mark.parametrize(("bot", "machine"), [("apple", True), ("", False), (None, None), (5, None)])
def test_mailgun_tells_machines_apart(bot: Any, machine: bool | None) -> None:
    assert mg(event="opened", **{"client-info": {"bot": bot}}).machine is machine


@pytest.mark.parametrize("word", ["stored", "list_member_uploaded", "list_uploaded"])
def test_mailgun_news_of_lists_and_inbound_mail_is_no_event(word: str) -> None:
    assert read("mailgun", from_mailgun({"event": word})).events == ()


# ── Amazon SES ───────────────────────────────────────────────────────────────────────────────────────────────────────

MAIL = {
    "timestamp": "2026-11-30T08:59:00Z", "messageId": "m", "destination": ["a@example.com"],
    "tags": {"send_id": ["s"], "attempt": ["2"]},
}  # fmt: skip


def notified(message: dict[str, Any]) -> tuple[ProviderEvent, ...]:
    return read("ses", from_sns(sns_message(json.dumps(message)))).events


@pytest.mark.parametrize(
    ("bounce", "event_type", "bounce_class", "reason"),
    [
        ({"bounceType": "Permanent", "bounceSubType": "NoEmail"}, "bounced", "hard", "Permanent/NoEmail"),
        ({"bounceType": "Transient"}, "bounced", "soft", "Transient"),
        ({"bounceType": "New"}, "bounced", "undetermined", "New"),
        ({"bounceSubType": "Suppressed"}, "rejected", "suppressed", "Suppressed"),
        ({"bounceType": [], "bounceSubType": {}}, "bounced", "undetermined", None),
    ],
)
def test_ses_a_bounce_has_a_class_and_what_was_not_tried_is_none(
    bounce: dict[str, Any], event_type: str, bounce_class: str, reason: str | None
) -> None:
    (event,) = notified({"eventType": "Bounce", "mail": MAIL, "bounce": bounce})
    assert (event.event_type, event.bounce_class, event.reason) == (event_type, bounce_class, reason)
    assert (event.recipient, event.send_id, event.attempt) == ("a@example.com", "s", 2), "there is one recipient only"


@pytest.mark.parametrize(
    ("complaint", "event_type", "bounce_class"),
    [
        ({"complaintFeedbackType": "abuse"}, "complained", None),
        ({}, "complained", None),
        ({"complaintFeedbackType": "not-spam"}, "unknown", None),
        ({"complaintSubType": "OnAccountSuppressionList"}, "rejected", "suppressed"),
    ],
)
def test_ses_a_complaint_may_be_none(complaint: dict[str, Any], event_type: str, bounce_class: str | None) -> None:
    (event,) = notified({"eventType": "Complaint", "mail": MAIL, "complaint": complaint})
    assert (event.event_type, event.bounce_class) == (event_type, bounce_class)


def test_ses_several_recipients_are_several_events_of_one_id() -> None:
    listed = [{"emailAddress": f"{name}@example.com"} for name in "ab"] + [{}, 5]
    events = notified({"eventType": "Bounce", "mail": MAIL, "bounce": {"bouncedRecipients": listed}})
    assert [(e.event_id, e.recipient) for e in events] == [("sns-1", "a@example.com"), ("sns-1", "b@example.com")]


def test_ses_an_open_of_a_mail_to_several_names_nobody() -> None:
    (event,) = notified({"eventType": "Open", "mail": MAIL | {"destination": ["a@b.c", "d@e.f"]}, "open": {}})
    assert event.recipient is None


def test_ses_inbound_mail_is_no_event() -> None:
    assert notified({"notificationType": "Received", "mail": MAIL}) == ()


# ── bodies that nobody would send ────────────────────────────────────────────────────────────────────────────────────

SES_EVENT = {"eventType": "Delivery", "mail": MAIL, "delivery": {"recipients": ["a@example.com"]}}
FIELDS = ["email", "event", "timestamp", "sg_event_id", "send_id", "reason", "type", "status", "ip", "smtp-id"]

Sign = Callable[[bytes], WebhookRequest]
SIGNED: dict[str, Sign] = {
    "sendgrid": from_sendgrid,
    "postmark": from_postmark,
    "mailgun": request,
    "ses": lambda body: from_sns(sns_message(body.decode("latin-1"))),
}
QUICK = settings(max_examples=40, deadline=None)


@pytest.mark.parametrize("name", SIGNED)
@QUICK
@given(body=st.binary(max_size=200) | JSON.map(as_json))
def test_no_body_breaks_a_parser(name: str, body: bytes) -> None:
    for webhook in (SIGNED[name](body), request(body)):
        try:
            told = read(name, webhook)
        except (NotAuthentic, ValueError):
            continue
        assert all(event.event_type for event in told.events)


@pytest.mark.parametrize("name", SIGNED)
@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b"\xff", b""])
def test_a_hostile_body_is_malformed(name: str, body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        read(name, SIGNED[name](body))


def storable(event: ProviderEvent) -> bool:
    told = (event.event_id, event.provider_message_id, event.send_id, event.reason, event.recipient, event.url)
    return all(part is None or (part.encode() and "\0" not in part) for part in told) and bool(event.event_id)


@QUICK
@given(
    batch=st.lists(JSON | st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6), max_size=5),
    extra=st.dictionaries(st.sampled_from([name for name in FIELDS if name != "event"]), JSON),
    place=st.integers(0, 5),
)
def test_sendgrid_no_neighbour_and_no_odd_field_loses_a_good_event(
    batch: list[Any], extra: dict[str, Any], place: int
) -> None:
    batch.insert(place, SG_EVENT | extra)
    told = read("sendgrid", from_sendgrid(as_json(batch)))
    assert any(event.event_type is EventType.DELIVERED for event in told.events)
    assert all(storable(event) for event in told.events)
    assert len(told.events) + len(told.unreadable) == len(batch), "each is told or shown"


@QUICK
@given(
    kind=st.sampled_from(["Delivery", "Open", "Click", "SpamComplaint", "Bounce", "SubscriptionChange"]),
    extra=st.dictionaries(
        st.sampled_from(
            ["ID", "MessageID", "Email", "Recipient", "BouncedAt", "Metadata", "Details", "SuppressSending"]
        ),
        JSON,
    ),
)
def test_postmark_no_odd_field_loses_a_good_event(kind: str, extra: dict[str, Any]) -> None:
    event = pm(**{"RecordType": kind} | extra)
    assert event.event_type is not EventType.UNKNOWN
    assert storable(event)


@QUICK
@given(
    kind=st.sampled_from(list(mailgun.EVENTS)),
    extra=st.dictionaries(
        st.sampled_from(["id", "timestamp", "recipient", "message", "delivery-status", "reason", "severity", "url"]),
        JSON,
    ),
)
def test_mailgun_no_odd_field_loses_a_good_event(kind: str, extra: dict[str, Any]) -> None:
    event = mg(**{"event": kind} | extra)
    assert event.event_type is not EventType.UNKNOWN
    assert storable(event)


@QUICK
@given(
    kind=st.sampled_from([word for word in ses.EVENTS if word not in ("Subscription", "Complaint")]),
    extra=st.dictionaries(st.sampled_from(["mail", "bounce", "delivery", "deliveryDelay", "reject", "failure"]), JSON),
    mail=st.dictionaries(st.sampled_from(["destination", "tags", "headers", "timestamp", "messageId"]), JSON),
)
def test_ses_no_odd_field_loses_a_good_event(kind: str, extra: dict[str, Any], mail: dict[str, Any]) -> None:
    events = notified({"eventType": kind, "mail": MAIL | mail} | extra)
    assert events
    assert all(event.event_type is not EventType.UNKNOWN and storable(event) for event in events)
