"""What useSend, Postal, Brevo, SparkPost, Mailjet, Mandrill and Mailtrap report: who may, and what it means."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import pytest
from cryptography.hazmat.primitives import hashes
from hypothesis import given
from hypothesis import strategies as st

from dashboard.lifecycle import EventType
from dashboard.providers import NotAuthentic, read_webhook
from dashboard.providers.base import CannotVerify, ProviderEvent, Settings, Webhook
from tests.providers.json_apis import (
    APIS,
    NAMES,
    NOW,
    OTHER_SECRET,
    SECRET,
    URL,
    Api,
    as_form,
    as_json,
    basic_headers,
    is_storable,
    mandrill_headers,
    public_key,
    rsa_signature,
    usesend_headers,
)
from tests.providers.rig import JSON, sample

every_api = pytest.mark.parametrize("api", APIS, ids=NAMES)
BATCHES = [api for api in APIS if api.batch is not None]
BY_NAME = {api.name: api for api in APIS}


def one_event(name: str, event: object) -> ProviderEvent:
    webhook = BY_NAME[name].read(BY_NAME[name].one(event))
    assert webhook.unreadable == ()
    (told,) = webhook.events
    return told


# ── who may report ───────────────────────────────────────────────────────────────────────────────────────────────────


@every_api
def test_while_the_secret_is_rotated_both_count(api: Api) -> None:
    body = api.one(api.event)
    for secret in (SECRET, OTHER_SECRET):
        assert len(api.read(body, signed_with=secret, secrets=f"{OTHER_SECRET} {SECRET}").events) == 1
    with pytest.raises(NotAuthentic):
        api.read(body, signed_with="user:a-third", secrets=f"{OTHER_SECRET} {SECRET}")


@every_api
def test_without_a_secret_nobody_can_tell_and_the_provider_must_come_again(api: Api) -> None:
    body = api.one(api.event)
    with pytest.raises(CannotVerify):
        read_webhook(api.name, api.signing(body, SECRET), body, {}, NOW, url=URL)


@every_api
def test_a_request_without_headers_or_with_odd_ones_is_not_authentic(api: Api) -> None:
    body = api.one(api.event)
    settings = {"webhook_secret": api.secret_of(SECRET)}
    with pytest.raises(NotAuthentic):
        read_webhook(api.name, {}, body, settings, NOW, url=URL)
    for odd in ("", "é", "\ud800", "v1=", "Basic", "Basic é", "９", "-1", "9" * 400, "=" * 7):
        headers = {**api.signing(body, SECRET)}
        for name in headers:
            with pytest.raises(NotAuthentic):
                read_webhook(api.name, {**headers, name: odd}, body, settings, NOW, url=URL)


@pytest.mark.parametrize("age", [-299, 0, 299])
def test_a_usesend_timestamp_up_to_five_minutes_off_passes(age: int) -> None:
    body = as_json(BY_NAME["usesend"].event)
    headers = usesend_headers(body, SECRET, age=age)
    assert len(read_webhook("usesend", headers, body, {"webhook_secret": SECRET}, NOW).events) == 1


@pytest.mark.parametrize("age", [-302, 302, 86_400])
def test_a_usesend_timestamp_further_off_is_not_authentic(age: int) -> None:
    body = as_json(BY_NAME["usesend"].event)
    with pytest.raises(NotAuthentic, match="five minutes"):
        read_webhook("usesend", usesend_headers(body, SECRET, age=age), body, {"webhook_secret": SECRET}, NOW)


def test_postals_weaker_signature_counts_only_where_there_is_no_stronger_one() -> None:
    body = as_json(BY_NAME["postal"].event)
    settings = {"webhook_secret": public_key(SECRET)}
    weak = {"X-Postal-Signature": rsa_signature(body, SECRET, hashes.SHA1())}
    assert len(read_webhook("postal", weak, body, settings, NOW).events) == 1
    for forged in ("", "AAAA", rsa_signature(body + b" ", SECRET, hashes.SHA256())):
        with pytest.raises(NotAuthentic):
            read_webhook("postal", {**weak, "X-Postal-Signature-256": forged}, body, settings, NOW)


@pytest.mark.parametrize("key", ["AAAA", "é", "-----BEGIN", "p=;"])
def test_a_postal_key_that_cannot_be_one_is_our_own_trouble(key: str) -> None:
    body = as_json(BY_NAME["postal"].event)
    with pytest.raises(CannotVerify):
        read_webhook("postal", BY_NAME["postal"].signing(body, SECRET), body, {"webhook_secret": key}, NOW)


def test_mandrill_signs_the_address_that_stands_at_mandrill_and_every_field_in_order() -> None:
    api = BY_NAME["mandrill"]
    form = as_form([api.event])
    settings = {"webhook_secret": SECRET}
    with pytest.raises(NotAuthentic):
        read_webhook("mandrill", api.signing(form, SECRET), form, settings, NOW, url="https://elsewhere.example.com")
    elsewhere = {**settings, "webhook_url": URL}
    headers = api.signing(form, SECRET)
    assert len(read_webhook("mandrill", headers, form, elsewhere, NOW, url="http://inside:8000").events) == 1
    more = b"z=2&" + form + b"&a="
    content = f"amandrill_events{json.dumps([api.event])}z2".encode()
    assert len(read_webhook("mandrill", mandrill_headers(more, SECRET, content=content), more, elsewhere, NOW).events)


@pytest.mark.parametrize("body", [b"\xff", b"a=1&" * 30, b"", b"mandrill_events"])
def test_a_form_that_cannot_be_one_is_not_authentic(body: bytes) -> None:
    with pytest.raises(NotAuthentic):
        read_webhook("mandrill", {"x-mandrill-signature": "x"}, body, {"webhook_secret": SECRET}, NOW, url=URL)


ASKED = [
    ({"webhook_secret": "a-token"}, {"authorization": "bearer a-token"}, None, True),
    ({"webhook_secret": "a-token"}, {"authorization": "Bearer another"}, None, False),
    ({"webhook_secret": "a-token"}, {"authorization": "Digest a-token"}, None, False),
    ({"webhook_secret": SECRET}, basic_headers(b"", SECRET), "192.0.2.1", True),
    ({"webhook_networks": "192.0.2.0/24 2001:db8::/32"}, {}, "192.0.2.7", True),
    ({"webhook_networks": "192.0.2.0/24 2001:db8::/32"}, {}, "2001:db8::7", True),
    ({"webhook_networks": "192.0.2.0/24"}, {}, "::ffff:192.0.2.7", True),
    ({"webhook_networks": "192.0.2.7"}, {}, "192.0.2.8", False),
    ({"webhook_networks": "192.0.2.0/24"}, {}, None, False),
    ({"webhook_networks": "192.0.2.0/24"}, {}, "unix:", False),
    ({"webhook_secret": SECRET, "webhook_networks": "192.0.2.0/24"}, {}, "192.0.2.7", False),
    ({"webhook_secret": SECRET, "webhook_networks": "192.0.2.7"}, basic_headers(b"", SECRET), "203.0.113.1", False),
    ({"webhook_secret": SECRET, "webhook_networks": "192.0.2.7"}, basic_headers(b"", SECRET), "192.0.2.7", True),
]


@pytest.mark.parametrize(("settings", "headers", "remote", "passes"), ASKED)
def test_where_nothing_is_signed_the_account_says_who_may_call(
    settings: Settings, headers: dict[str, str], remote: str | None, passes: bool
) -> None:
    body = BY_NAME["brevo"].one(BY_NAME["brevo"].event)
    if passes:
        assert len(read_webhook("brevo", headers, body, settings, NOW, remote_address=remote).events) == 1
        return
    with pytest.raises(NotAuthentic):
        read_webhook("brevo", headers, body, settings, NOW, remote_address=remote)


def test_a_list_of_addresses_that_cannot_be_one_is_our_own_trouble() -> None:
    with pytest.raises(CannotVerify):
        read_webhook("mailjet", {}, b"[]", {"webhook_networks": "everywhere"}, NOW, remote_address="192.0.2.1")


# ── what is never lost ───────────────────────────────────────────────────────────────────────────────────────────────


@every_api
def test_an_event_of_an_unknown_kind_is_kept_with_its_ids(api: Api) -> None:
    written = json.dumps(api.event)
    (known,) = api.read(api.one(api.event)).events
    word = {"usesend": "email.delivered", "postal": "MessageSent", "brevo": "delivered", "mailjet": "sent"}.get(
        api.name, {"sparkpost": "bounce", "mandrill": "hard_bounce", "mailtrap": "bounce"}.get(api.name, "")
    )
    unheard = "email.unheard" if api.name == "usesend" else "unheard_of"
    event = json.loads(written.replace(f'"{word}"', f'"{unheard}"', 1))
    told = one_event(api.name, event)
    assert told.event_type is EventType.UNKNOWN
    assert (told.provider_message_id, told.send_id) == (known.provider_message_id, known.send_id)


@given(said=JSON, raw=st.binary(max_size=200))
def test_no_body_breaks_a_parser(said: Any, raw: bytes) -> None:
    for api in APIS:
        for body in (api.written(said), api.one(said), raw if api.name != "mandrill" else quoted_form(raw)):
            try:
                told = api.read(body)
            except ValueError:
                continue
            assert isinstance(told, Webhook)


def quoted_form(raw: bytes) -> bytes:
    return urlencode({"mandrill_events": raw.decode("latin-1")}).encode()


@every_api
@pytest.mark.parametrize("body", [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b"\xff", b"", b"null", b"1"])
def test_a_hostile_body_is_malformed(api: Api, body: bytes) -> None:
    if api.name == "mandrill":
        body = b"mandrill_events=" + body.replace(b"\xff", b"%C3%BF")
    with pytest.raises(ValueError, match=r".+"):
        api.read(body)


@given(odd=st.lists(JSON, max_size=3), place=st.integers(0, 3))
def test_a_bad_event_of_a_batch_spoils_no_good_one(odd: list[Any], place: int) -> None:
    for api in BATCHES:
        assert api.batch is not None
        told = api.read(api.written(api.batch([*odd[:place], api.event, *odd[place:]])))
        assert [event.event_id for event in told.events].count(api.event_id) == 1
        assert len(told.events) + len(told.unreadable) <= len(odd) + 1
        assert all(part.reason for part in told.unreadable)


def changed(event: Any, path: list[str], value: object) -> Any:
    """The event with what stands at ``path`` replaced; where nothing stands there, unchanged."""
    if not path or not isinstance(event, dict):
        return value if not path else event
    return {key: changed(inner, path[1:], value) if key == path[0] else inner for key, inner in event.items()}


def paths(event: Any) -> list[list[str]]:
    """Where something stands in an event, however deep."""
    if not isinstance(event, dict):
        return []
    return [[key, *rest] for key, inner in event.items() for rest in ([], *paths(inner))]


CONTAINERS = {"data", "payload", "message", "msys", "message_event", "msg"}
NAMING = {"event", "type", "id", "direction"}
"""What says that there is an event, and which: without it, nobody can know what was told."""


@given(changes=st.lists(st.tuples(st.integers(0, 999), JSON), min_size=1, max_size=3))
def test_a_known_event_is_never_lost_however_odd_the_rest_of_it_is(changes: list[tuple[int, Any]]) -> None:
    for api in APIS:
        event = api.event
        (known,) = api.read(api.one(event)).events
        free = [path for path in paths(event) if path[-1] not in CONTAINERS | NAMING]
        for number, value in changes:
            event = changed(event, free[number % len(free)], value)
        told = one_event(api.name, event)
        assert told.event_type is known.event_type
        assert is_storable(told)


@given(name=st.text(min_size=1, max_size=12) | st.sampled_from(["\0", "\ud800", "a\0b"]))
def test_an_event_of_any_name_can_be_stored(name: str) -> None:
    for api in BATCHES:
        (path,) = [path for path in paths(api.event) if path[-1] in ("event", "type")]
        told = api.read(api.one(changed(api.event, path, name)))
        assert all(is_storable(event) for event in told.events)
        assert len(told.events) == 1 or name in ("inbound",)


# ── what it means ────────────────────────────────────────────────────────────────────────────────────────────────────


def usesend(kind: str, **data: Any) -> ProviderEvent:
    event = BY_NAME["usesend"].event
    return one_event("usesend", {**event, "type": f"email.{kind}", "data": event["data"] | data})


@pytest.mark.parametrize(
    ("bounce", "event_type", "bounce_class"),
    [
        ({"type": "Permanent", "subType": "NoEmail"}, "bounced", "hard"),
        ({"type": "Transient", "subType": "MailboxFull"}, "bounced", "soft"),
        ({"type": "Undetermined"}, "bounced", "undetermined"),
        ({}, "bounced", "undetermined"),
        ({"type": "Permanent", "subType": "Suppressed"}, "rejected", "suppressed"),
        ({"type": "Permanent", "subType": "OnAccountSuppressionList"}, "rejected", "suppressed"),
    ],
)
def test_a_usesend_bounce_has_the_class_of_ses(bounce: Any, event_type: str, bounce_class: str) -> None:
    told = usesend("bounced", bounce=bounce | {"message": "why"})
    assert (told.event_type, told.bounce_class, told.reason) == (event_type, bounce_class, "why")


@pytest.mark.parametrize(
    ("kind", "event_type"),
    [
        *[
            ("queued", "accepted"),
            ("delivery_delayed", "deferred"),
            ("rejected", "rejected"),
            ("complained", "complained"),
        ],
        *[("rendering_failure", "failed"), ("opened", "opened"), ("cancelled", "unknown")],
    ],
)
def test_a_usesend_event_has_its_meaning(kind: str, event_type: str) -> None:
    assert usesend(kind).event_type == event_type


def test_a_usesend_failure_says_why_and_a_click_where() -> None:
    assert usesend("failed", failed={"reason": "no domain"}).reason == "no domain"
    assert usesend("clicked", click={"url": "https://x.example"}).url == "https://x.example"
    assert usesend("delivered", to=["a@example.com", "b@example.com"]).recipient is None


@pytest.mark.parametrize("kind", ["contact.created", "domain.verified", "webhook.test"])
def test_what_usesend_tells_about_no_message_is_ignored(kind: str) -> None:
    api = BY_NAME["usesend"]
    assert api.read(as_json({**api.event, "type": kind})) == Webhook()


@pytest.mark.parametrize(
    ("word", "event_type", "reason"),
    [
        *[("MessageHeld", "deferred", "250 2.0.0 OK"), ("MessageDeliveryFailed", "bounced", "250 2.0.0 OK")],
        *[("MessageLoaded", "opened", None), ("MessageLinkClicked", "clicked", None)],
    ],
)
def test_a_postal_event_has_its_meaning(word: str, event_type: str, reason: str | None) -> None:
    told = one_event("postal", {**BY_NAME["postal"].event, "event": word})
    assert (told.event_type, told.reason) == (event_type, reason)


def test_postal_tells_nothing_about_inbound_mail_domains_and_limits() -> None:
    api, event = BY_NAME["postal"], BY_NAME["postal"].event
    inbound = {"message": event["payload"]["message"] | {"direction": "incoming"}}
    for quiet in ({**event, "payload": inbound}, {"event": "SendLimitExceeded", "payload": {"server": {}}}):
        assert api.read(as_json(quiet)) == Webhook()


def test_an_old_postal_that_gives_no_uuid_is_deduplicated_by_what_it_tells() -> None:
    event = {key: value for key, value in BY_NAME["postal"].event.items() if key != "uuid"}
    first, again = one_event("postal", event), one_event("postal", event)
    assert first.event_id == again.event_id == "MessageSent:1563:1772442903.25"
    assert one_event("postal", {**event, "timestamp": 5}).event_id != first.event_id


@pytest.mark.parametrize("word", ["list_addition", "contact_updated"])
def test_what_brevo_tells_about_contacts_and_inbound_mail_is_ignored(word: str) -> None:
    api = BY_NAME["brevo"]
    assert api.read(as_json({"event": word, "email": "a@example.com"})) == Webhook()
    assert api.read(as_json({"items": [{"Uuid": ["x"]}]})) == Webhook()


def test_brevo_sends_one_event_or_a_batch() -> None:
    api = BY_NAME["brevo"]
    assert [event.event_id for event in api.read(as_json(api.event)).events] == [api.event_id]
    assert len(api.read(as_json([api.event, {**api.event, "event": "click", "link": "https://x.example"}])).events) == 2


def test_an_event_without_the_facts_of_an_id_gets_one_from_its_content() -> None:
    event = {key: value for key, value in BY_NAME["brevo"].event.items() if key != "ts_epoch"}
    first = one_event("brevo", event)
    assert first.event_id.startswith("delivered:sha256:")
    assert one_event("brevo", event).event_id == first.event_id
    assert one_event("brevo", {**event, "email": "other@example.net"}).event_id != first.event_id


@pytest.mark.parametrize(
    ("word", "event_type", "machine"),
    [("opened", "opened", False), ("proxy_open", "opened", True), ("error", "failed", None)],
)
def test_a_brevo_open_says_whether_a_machine_did_it(word: str, event_type: str, machine: bool | None) -> None:
    told = one_event("brevo", {**BY_NAME["brevo"].event, "event": word})
    assert (told.event_type, told.machine) == (event_type, machine)


@pytest.mark.parametrize("custom", ["order 1042", "[1]", '"send_id"', "", None, 7, "[" * 100_000])
def test_any_text_may_stand_where_brevo_echoes_our_id(custom: object) -> None:
    assert one_event("brevo", {**BY_NAME["brevo"].event, "X-Mailin-custom": custom}).send_id is None


def test_the_attempt_number_comes_back_where_it_was_sent() -> None:
    event = {**BY_NAME["brevo"].event, "X-Mailin-custom": json.dumps({"send_id": "s", "attempt": "3"})}
    assert (one_event("brevo", event).send_id, one_event("brevo", event).attempt) == ("s", 3)


def sparkpost(**changes: Any) -> ProviderEvent:
    event = BY_NAME["sparkpost"].event["msys"]["message_event"]
    return one_event("sparkpost", {"msys": {"message_event": event | changes}})


@pytest.mark.parametrize(
    ("code", "event_type", "bounce_class"),
    [
        *[("10", "bounced", "hard"), (30, "bounced", "hard"), ("22", "bounced", "soft"), ("70", "bounced", "soft")],
        *[
            ("54", "bounced", "block"),
            ("25", "rejected", None),
            ("60", "auto_reply", None),
            ("100", "auto_reply", None),
        ],
        *[("80", "resubscribed", None), ("90", "unsubscribed", None)],
        *[("1", "bounced", "undetermined"), (None, "bounced", "undetermined")],
    ],
)
def test_a_sparkpost_bounce_has_the_class_of_its_code(code: Any, event_type: str, bounce_class: str | None) -> None:
    for kind in ("bounce", "out_of_band"):
        told = sparkpost(type=kind, bounce_class=code)
        assert (told.event_type, told.bounce_class) == (event_type, bounce_class)


def test_a_sparkpost_time_is_text_or_number_and_inbound_mail_is_ignored() -> None:
    assert sparkpost(timestamp=1772442904).occurred_at == sparkpost(timestamp="1772442904").occurred_at
    assert BY_NAME["sparkpost"].read(as_json([{"msys": {"relay_message": {"type": "x"}}}])) == Webhook()


def test_a_mailjet_id_keeps_all_its_digits() -> None:
    assert one_event("mailjet", BY_NAME["mailjet"].event).provider_message_id == "1152921534432109876"


def test_a_mailjet_event_of_a_group_that_gives_its_id_as_text_alone_keeps_it() -> None:
    """The documented sample of grouped events has ``mj_message_id`` and no ``MessageID``."""
    event = {key: value for key, value in BY_NAME["mailjet"].event.items() if key != "MessageID"}
    told = one_event("mailjet", {**event, "mj_message_id": "1152921534432109876"})
    assert told.provider_message_id == "1152921534432109876"
    assert told.event_id == BY_NAME["mailjet"].event_id


def test_a_mailjet_event_without_payload_is_known_by_its_custom_id() -> None:
    event = {**BY_NAME["mailjet"].event, "Payload": "", "CustomID": "ours"}
    assert one_event("mailjet", event).send_id == "ours"


@pytest.mark.parametrize(
    ("changes", "event_type", "bounce_class"),
    [
        ({"hard_bounce": True, "error": "greylisted"}, "bounced", "hard"),
        ({"hard_bounce": False, "error": "quota exceeded"}, "bounced", "soft"),
        ({"hard_bounce": False, "error": "greylisted"}, "deferred", None),
    ],
)
def test_a_mailjet_bounce_that_is_tried_again_is_none(changes: Any, event_type: str, bounce_class: str | None) -> None:
    told = one_event("mailjet", {**BY_NAME["mailjet"].event, "event": "bounce", **changes})
    assert (told.event_type, told.bounce_class) == (event_type, bounce_class)


def test_a_mandrill_batch_passes_over_lists_and_inbound_mail() -> None:
    api = BY_NAME["mandrill"]
    told = api.read(as_form([{"type": "whitelist"}, {"event": "inbound", "msg": {}}, api.event]))
    assert [event.event_id for event in told.events] == [api.event_id]
    assert told.unreadable == ()


@pytest.mark.parametrize(
    ("word", "event_type", "bounce_class"),
    [
        *[("soft_bounce", "bounced", "soft"), ("deferral", "deferred", None), ("spam", "complained", None)],
        *[("unsub", "unsubscribed", None), ("delivered", "delivered", None), ("reject", "rejected", "suppressed")],
    ],
)
def test_a_mandrill_event_has_its_meaning(word: str, event_type: str, bounce_class: str | None) -> None:
    told = one_event("mandrill", {**BY_NAME["mandrill"].event, "event": word})
    assert (told.event_type, told.bounce_class) == (event_type, bounce_class)


def test_mailtrap_writes_a_list_or_one_event_a_line() -> None:
    """The two formats that a webhook can be given at Mailtrap: JSON, and JSON Lines."""
    api, events = BY_NAME["mailtrap"], sample("mailtrap", "webhook_batch.json")["body"]["events"]
    for end in (b"", b"\n", b"\r\n"):
        lines = b"\n".join(map(as_json, events)) + end
        assert api.read(lines).events == api.read(as_json({"events": events})).events
    assert len(api.read(as_json(events[0])).events) == 1, "a single event is one line"
    broken = api.read(b"\n".join([as_json(events[0]), b'{"event":', as_json(events[1])]))
    assert (len(broken.events), len(broken.unreadable)) == (2, 1)


def test_what_a_database_cannot_hold_is_replaced() -> None:
    told = one_event("mailtrap", {**BY_NAME["mailtrap"].event, "response": "a\0b\ud800c"})
    assert told.reason == "a\ufffdb\ufffdc"


def test_every_sample_of_a_batch_keeps_each_events_own_part_for_people() -> None:
    recorded = sample("mailtrap", "webhook_batch.json")["body"]
    told = BY_NAME["mailtrap"].read(as_json(recorded))
    assert [json.loads(event.raw) for event in told.events] == recorded["events"]
