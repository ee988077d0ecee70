"""The Svix signature, and a parser that no body can break."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.lifecycle import EventType
from dashboard.providers import NotAuthentic, parse_events, read_webhook
from dashboard.providers.base import ProviderEvent
from tests.providers.rig import JSON, sample

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
SECRET, OTHER_SECRET = b"one secret of this account", b"another secret of this account"
DELIVERED = sample("resend", "webhook_delivered.json")["body"]


def written(secret: bytes) -> str:
    return "whsec_" + base64.b64encode(secret).decode()


def signed(
    body: bytes, *, secret: bytes = SECRET, age: float = 0, family: str = "svix", message_id: str = "msg_1"
) -> dict[str, str]:
    timestamp = str(int(NOW.timestamp() - age))
    content = f"{message_id}.{timestamp}.".encode() + body
    signature = base64.b64encode(hmac.digest(secret, content, hashlib.sha256)).decode()
    return {
        f"{family}-id": message_id,
        f"{family}-timestamp": timestamp,
        f"{family}-signature": f"v1,{signature}",
    }


def events(body: bytes, headers: dict[str, str], secrets: str = written(SECRET)) -> tuple[ProviderEvent, ...]:
    return parse_events("resend", headers, body, {"webhook_secret": secrets}, now=NOW)


def as_json(body: object) -> bytes:
    return json.dumps(body).encode()


# ── the signature ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("family", ["svix", "webhook"])
def test_both_header_families_are_read_in_any_case(family: str) -> None:
    body = as_json(DELIVERED)
    headers = {name.title(): value for name, value in signed(body, family=family).items()}
    assert [event.event_id for event in events(body, headers)] == ["msg_1"]


def test_the_same_json_written_otherwise_is_not_authentic() -> None:
    headers = signed(as_json(DELIVERED))
    with pytest.raises(NotAuthentic, match="no signature matches"):
        events(json.dumps(DELIVERED, indent=1).encode(), headers)


@pytest.mark.parametrize("age", [-300, 0, 300])
def test_a_timestamp_up_to_five_minutes_off_passes(age: int) -> None:
    body = as_json(DELIVERED)
    assert len(events(body, signed(body, age=age))) == 1


@pytest.mark.parametrize("age", [-301, 301, 86_400])
def test_a_timestamp_further_off_is_not_authentic(age: int) -> None:
    body = as_json(DELIVERED)
    with pytest.raises(NotAuthentic, match="five minutes"):
        events(body, signed(body, age=age))


def test_while_the_secret_is_rotated_both_count() -> None:
    body = as_json(DELIVERED)
    both = f"{written(OTHER_SECRET)} {written(SECRET)}"
    assert len(events(body, signed(body, secret=SECRET), both)) == 1
    assert len(events(body, signed(body, secret=OTHER_SECRET), both)) == 1
    with pytest.raises(NotAuthentic):
        events(body, signed(body, secret=b"a third"), both)


def test_a_secret_without_padding_or_prefix_is_the_same_secret() -> None:
    body = as_json(DELIVERED)
    assert len(events(body, signed(body), written(SECRET).removeprefix("whsec_").rstrip("="))) == 1


def test_one_good_signature_of_several_is_enough() -> None:
    body = as_json(DELIVERED)
    headers = signed(body)
    headers["svix-signature"] = f"v1,bm90aGluZw== v1a,xyz {headers['svix-signature']}"
    assert len(events(body, headers)) == 1


@pytest.mark.parametrize("prefix", ["v1a", "v2", "V1", "", " v1", "v1,v1"])
def test_a_signature_under_another_version_never_counts(prefix: str) -> None:
    body = as_json(DELIVERED)
    headers = signed(body)
    headers["svix-signature"] = prefix + headers["svix-signature"].removeprefix("v1")
    if prefix == " v1":
        headers["svix-signature"] = headers["svix-signature"].replace(" v1,", "v1 ,")
    with pytest.raises(NotAuthentic):
        events(body, headers)


@pytest.mark.parametrize("name", ["svix-id", "svix-timestamp", "svix-signature"])
@pytest.mark.parametrize("value", ["", "é", "\ud800", "v1,é", "１７", "1e3", "-5", "9" * 400])
def test_odd_headers_are_not_authentic_and_break_nothing(name: str, value: str) -> None:
    body = as_json(DELIVERED)
    with pytest.raises(NotAuthentic):
        events(body, signed(body) | {name: value})


def test_an_id_cannot_borrow_from_the_timestamp() -> None:
    body = as_json(DELIVERED)
    headers = signed(body, message_id=f"msg_1.{int(NOW.timestamp())}")
    with pytest.raises(NotAuthentic):
        events(body, headers)


@pytest.mark.parametrize("secrets", ["", "   ", "whsec_", "whsec_???", "é"])
def test_without_a_usable_secret_nothing_is_authentic(secrets: str) -> None:
    body = as_json(DELIVERED)
    with pytest.raises(NotAuthentic, match="no usable webhook secret"):
        events(body, signed(body, secret=b""), secrets)


def test_smtp_takes_no_webhook() -> None:
    with pytest.raises(NotAuthentic):
        read_webhook("smtp", {}, b"{}", {})


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def changed(data: dict[str, Any], **top: Any) -> ProviderEvent:
    body = as_json(DELIVERED | top | {"data": DELIVERED["data"] | data})
    (event,) = events(body, signed(body))
    return event


def test_the_attempt_number_comes_back_where_it_was_sent() -> None:
    assert changed({"tags": {"send_id": "s", "attempt": "3"}}).attempt == 3
    assert changed({"tags": {"send_id": "s", "attempt": "three"}}).attempt is None


def test_our_id_is_found_in_every_place_where_it_may_be() -> None:
    assert changed({"tags": [{"name": "send_id", "value": "from-list"}]}).send_id == "from-list"
    headers = [{"name": "x-send-ID", "value": "from-header"}]
    assert changed({"tags": {}, "headers": headers}).send_id == "from-header"
    assert changed({"tags": {"send_id": 17}}).send_id == "17"


def test_a_click_names_its_link_and_its_own_time() -> None:
    recorded = sample("resend", "webhook_clicked.json")["body"]
    body = as_json(recorded)
    (event,) = events(body, signed(body))
    assert (event.url, event.raw) == ("https://shop.example.com/o/1042", body)


def test_a_bounce_without_subtype_that_was_not_tried_is_a_rejection() -> None:
    event = changed(
        {"bounce": {"type": "Permanent", "message": "Resend has suppressed sending to this address"}},
        type="email.bounced",
    )
    assert (event.event_type, event.bounce_class) == (EventType.REJECTED, "suppressed")
    assert changed({"bounce": {"type": "Odd"}}, type="email.bounced").bounce_class == "undetermined"


@pytest.mark.parametrize("kind", ["email.received", "contact.created", "domain.updated", "suppression.added", "ping"])
def test_what_is_not_about_a_sent_message_gives_no_event(kind: str) -> None:
    body = as_json(DELIVERED | {"type": kind})
    assert events(body, signed(body)) == ()


def test_what_a_database_cannot_hold_is_replaced() -> None:
    event = changed({"bounce": {"message": "a\0b\ud800c", "type": "Permanent"}}, type="email.bounced")
    assert event.reason == "a\ufffdb\ufffdc"


@given(st.binary(max_size=200) | JSON.map(as_json))
def test_no_body_breaks_the_parser(body: bytes) -> None:
    try:
        found = events(body, signed(body))
    except ValueError:
        return
    assert len(found) <= 1


@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b'{"type":' + b"9" * 5000 + b"}", b"\xff", b""])
def test_a_hostile_body_is_malformed(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        events(body, signed(body))


@given(
    kind=st.sampled_from(["email.delivered", "email.bounced", "email.clicked", "email.failed", "email.suppressed"]),
    extra=st.dictionaries(
        st.sampled_from(["to", "tags", "headers", "bounce", "click", "failed", "suppressed", "email_id", "other"]), JSON
    ),
    created_at=JSON,
)
def test_a_known_event_is_never_lost_however_odd_the_rest_of_it_is(
    kind: str, extra: dict[str, Any], created_at: Any
) -> None:
    body = as_json({"type": kind, "created_at": created_at, "data": DELIVERED["data"] | extra})
    (event,) = events(body, signed(body))
    assert event.event_type is not EventType.UNKNOWN
    if "email_id" not in extra:
        assert event.provider_message_id == DELIVERED["data"]["email_id"]
    for told in (event.send_id, event.reason, event.recipient, event.url):
        assert told is None or told.encode()
