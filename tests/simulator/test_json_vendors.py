"""useSend, Postal, Brevo, SparkPost, Mailjet, Mandrill and Mailtrap as the simulator plays them, measured by what their
documents say: what a call must have, what each refusal looks like, what keys do, what events carry and how they are
made authentic."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

import pytest
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, HashAlgorithm
from cryptography.hazmat.primitives.serialization import load_der_public_key

from dashboard.simulator import Simulator
from dashboard.simulator.dialects import DIALECTS
from tests.simulator.client import Arrival, Client, Receiver
from tests.simulator.json_vendors import (
    ADDRESS,
    BREVO,
    BY_NAME,
    MAILJET,
    MANDRILL,
    POSTAL,
    SPARKPOST,
    USESEND,
    UUID,
    VENDORS,
    Vendor,
    authorization,
    changed,
    without,
)

Start = Callable[..., Simulator]
every_vendor = pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)


# ── sending ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@every_vendor
def test_a_good_call_gets_the_documented_yes_and_is_in_the_books_with_our_id(start: Start, vendor: Vendor) -> None:
    sim = start(dialect=vendor.name, api_key=vendor.credential)
    reply = vendor.send(Client(sim))
    assert reply.status == vendor.yes
    (row,) = sim.books
    assert (row.message_id, row.send_id) == (str(vendor.message_id(reply.json)), UUID)
    assert (row.recipient, row.protocol, row.key) == (ADDRESS, vendor.name, None)


@every_vendor
def test_without_a_key_or_with_another_nothing_is_taken(start: Start, vendor: Vendor) -> None:
    sim = start(dialect=vendor.name, api_key=vendor.credential)
    headers, status, code = vendor.wrong_key
    body = vendor.body(UUID, ADDRESS)
    if vendor is MANDRILL:  # whose key is a part of the body
        body, status, code = {**body, "key": "other"}, 500, "Invalid_Key"
    for sent in (headers, dict.fromkeys(vendor.headers, "")):
        if sent or vendor is MANDRILL:
            reply = vendor.call(Client(sim), body, headers=sent)
            assert reply.status in (status, 401, 200 if vendor is POSTAL else status)
    assert (reply.status, reply.json is not None) == (reply.status, True)
    reply = vendor.call(Client(sim), body, headers=headers)
    assert (reply.status, vendor.code(reply.json)) == (status, code)
    assert sim.books == []


LONG = "x" * 2_000
BREACHES: list[tuple[str, tuple[str | int, ...], Any, int, object]] = [
    ("usesend", ("from",), ..., 400, "ZodError"),
    ("usesend", ("from",), "nobody", 400, "BAD_REQUEST"),
    ("usesend", ("to",), ..., 400, "ZodError"),
    ("usesend", ("to",), [1], 400, "ZodError"),
    ("usesend", ("subject",), "", 400, "ZodError"),
    ("usesend", ("text",), "", 400, "ZodError"),
    ("usesend", ("text",), ..., 400, "ZodError"),
    ("usesend", ("html",), "", 400, "ZodError"),
    ("usesend", ("headers",), {"X-Empty": ""}, 400, "ZodError"),
    ("postal", ("to",), ..., 200, "NoRecipients"),
    ("postal", ("to",), ["a@example.test"] * 51, 200, "TooManyToAddresses"),
    ("postal", ("plain_body",), " ", 200, "NoContent"),
    ("postal", ("from",), ..., 200, "FromAddressMissing"),
    ("postal", ("from",), "nobody", 200, "UnauthenticatedFromAddress"),
    ("brevo", ("sender",), ..., 400, "missing_parameter"),
    ("brevo", ("to",), [], 400, "missing_parameter"),
    ("brevo", ("to",), [{"email": "nobody"}], 400, "invalid_parameter"),
    ("brevo", ("subject",), ..., 400, "missing_parameter"),
    ("brevo", ("textContent",), ..., 400, "missing_parameter"),
    ("brevo", ("replyTo",), "help@example.test", 400, "invalid_parameter"),
    ("brevo", ("headers",), {"X-Number": 1}, 400, "invalid_parameter"),
    ("brevo", ("headers", "idempotencyKey"), "no-uuid", 400, "invalid_parameter"),
    ("sparkpost", ("recipients",), ..., 422, "1400"),
    ("sparkpost", ("recipients", 0, "address"), {"email": "nobody"}, 422, "1300"),
    ("sparkpost", ("recipients", 0, "metadata"), {"send_id": LONG}, 422, "1300"),
    ("sparkpost", ("content",), ..., 422, "1400"),
    ("sparkpost", ("content", "subject"), ..., 422, "1400"),
    ("sparkpost", ("content", "text"), ..., 422, "1400"),
    ("sparkpost", ("content", "headers"), {"To": "eve@example.test"}, 422, "3002"),
    ("mailjet", ("Messages",), ..., 400, "mj-0003"),
    ("mailjet", ("Messages",), [], 400, "mj-0007"),
    ("mailjet", ("Messages", 0, "From"), ..., 400, "mj-0003"),
    ("mailjet", ("Messages", 0, "To"), ADDRESS, 400, "mj-0004"),
    ("mailjet", ("Messages", 0, "To"), [], 400, "mj-0007"),
    ("mailjet", ("Messages", 0, "To"), [{"Email": "nobody"}], 400, "mj-0013"),
    ("mailjet", ("Messages", 0, "To"), [{"Email": ADDRESS}] * 51, 400, "send-0015"),
    ("mailjet", ("Messages", 0, "TextPart"), ..., 400, "send-0003"),
    ("mailjet", ("Messages", 0, "Headers"), {"Reply-To": "help@example.test"}, 400, "send-0011"),
    ("mailjet", ("Messages", 0, "EventPayload"), {"send_id": UUID}, 400, "mj-0004"),
    ("mandrill", ("message",), ..., 500, "ValidationError"),
    ("mandrill", ("message", "to"), [], 500, "ValidationError"),
    ("mandrill", ("message", "to"), [{"email": ADDRESS, "type": "x"}], 500, "ValidationError"),
    ("mandrill", ("message", "from_email"), ..., 500, "ValidationError"),
    ("mandrill", ("message", "metadata"), "x", 500, "ValidationError"),
    ("mandrill", ("message", "subject"), 1, 500, "ValidationError"),
    ("mailtrap", ("from",), ..., 400, "errors"),
    ("mailtrap", ("to",), [], 400, "errors"),
    ("mailtrap", ("to",), [{"email": "nobody"}], 400, "errors"),
    ("mailtrap", ("subject",), "", 400, "errors"),
    ("mailtrap", ("text",), ..., 400, "errors"),
    ("mailtrap", ("custom_variables",), {"send_id": LONG}, 400, "errors"),
]


@every_vendor
def test_a_call_that_breaks_a_documented_rule_is_refused_as_documented(start: Start, vendor: Vendor) -> None:
    sim = start(dialect=vendor.name)
    for name, path, value, status, code in BREACHES:
        if name == vendor.name:
            reply = vendor.call(Client(sim), changed(vendor.body(UUID, ADDRESS), path, value))
            assert (reply.status, vendor.code(reply.json)) == (status, code), (path, value)
    assert vendor.call(Client(sim), b"[").status in (400, 500), "no JSON"
    assert sim.books == []


@every_vendor
def test_every_refusal_of_the_table_can_be_asked_for(start: Start, vendor: Vendor) -> None:
    sim = start(dialect=vendor.name)
    for name, error in DIALECTS[vendor.name].errors.items():
        sim.configure(error=name)
        reply = vendor.send(Client(sim))
        assert reply.status == error.status, name
        if error.name:
            assert error.name in reply.text, name
    assert sim.books == []


def test_what_stands_before_postal_is_not_postal(start: Start) -> None:
    """Its own answers are all HTTP 200; a page comes from elsewhere."""
    sim = start(dialect="postal", error="broken")
    reply = POSTAL.send(Client(sim))
    assert (reply.status, reply.headers["content-type"]) == (500, "text/html")
    sim.configure(error="suspended")
    assert POSTAL.send(Client(sim)).json["data"] == {"code": "ServerSuspended"}


def test_limits_are_told_where_the_documents_tell_them(start: Start) -> None:
    told = {}
    for vendor in VENDORS:
        sim = start(dialect=vendor.name, rate_limit=1, retry_after_seconds=7)
        replies = [vendor.send(Client(sim), our_id=f"{n}") for n in range(3)]
        (limited, *_) = [reply for reply in replies if reply.status == 429]
        told[vendor.name] = {
            name: value for name, value in limited.headers.items() if "limit" in name or name == "retry-after"
        }
    assert {name: sorted(headers) for name, headers in told.items() if headers} == {
        "usesend": ["retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"],
        "brevo": ["x-sib-ratelimit-limit", "x-sib-ratelimit-remaining", "x-sib-ratelimit-reset"],
    }
    assert (told["usesend"]["retry-after"], told["brevo"]["x-sib-ratelimit-reset"]) == ("7", "7")


# ── idempotency keys ─────────────────────────────────────────────────────────────────────────────────────────────────

KEYED: list[tuple[Vendor, Callable[[Any], Any], dict[str, str]]] = [
    (USESEND, lambda body: body, {"idempotency-key": UUID}),
    (SPARKPOST, lambda body: body, {"idempotency-key": UUID}),
    (BREVO, lambda body: changed(body, ("headers", "idempotencyKey"), UUID), {}),
]


@pytest.mark.parametrize(("vendor", "keyed", "headers"), KEYED, ids=lambda value: getattr(value, "name", ""))
def test_a_key_makes_one_message_of_any_number_of_calls(
    start: Start, vendor: Vendor, keyed: Callable[[Any], Any], headers: dict[str, str]
) -> None:
    sim = start(dialect=vendor.name)
    body = keyed(vendor.body(UUID, ADDRESS))
    first, again = (vendor.call(Client(sim), body, headers=headers) for _ in range(2))
    assert [row.key for row in sim.books] == [UUID]
    if vendor is BREVO:
        assert (again.status, vendor.code(again.json)) == (400, "duplicate_parameter")
    else:
        assert (again.status, again.json) == (first.status, first.json)
    replayed = [reply.headers.get("x-idempotent-replayed") for reply in (first, again)]
    assert replayed == ([None, "true"] if vendor is SPARKPOST else [None, None])
    sim.configure(key_window_seconds=0.0)
    assert vendor.call(Client(sim), body, headers=headers).status == vendor.yes
    assert len(sim.books) == 2, "past its window a key is new"


@pytest.mark.parametrize(("vendor", "keyed", "headers"), KEYED, ids=lambda value: getattr(value, "name", ""))
def test_keys_that_are_ignored_protect_nobody(
    start: Start, vendor: Vendor, keyed: Callable[[Any], Any], headers: dict[str, str]
) -> None:
    sim = start(dialect=vendor.name, honour_keys=False)
    for _ in range(2):
        assert vendor.call(Client(sim), keyed(vendor.body(UUID, ADDRESS)), headers=headers).status == vendor.yes
    assert len(sim.books) == 2


def test_another_payload_under_a_used_key_is_a_conflict_and_a_key_of_another_form_none(start: Start) -> None:
    for vendor, code in ((USESEND, "NOT_UNIQUE"), (SPARKPOST, "1600")):
        sim = start(dialect=vendor.name)
        for to in (ADDRESS, "eve@example.test"):
            reply = vendor.call(Client(sim), vendor.body(UUID, to), headers={"idempotency-key": UUID})
        assert (reply.status, vendor.code(reply.json)) == (409, code)
        assert len(sim.books) == 1
    sim = start(dialect="sparkpost")
    bad = SPARKPOST.call(Client(sim), SPARKPOST.body(UUID, ADDRESS), headers={"idempotency-key": "a key"})
    assert (bad.status, SPARKPOST.code(bad.json)) == (400, "1602")
    sim = start(dialect="usesend")
    reordered = dict(reversed(USESEND.body(UUID, ADDRESS).items()))
    first = USESEND.call(Client(sim), USESEND.body(UUID, ADDRESS), headers={"idempotency-key": UUID})
    again = USESEND.call(Client(sim), reordered, headers={"idempotency-key": UUID})
    assert (again.status, again.json) == (200, first.json), "useSend compares what a body says, not its bytes"


# ── looking up ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_usesend_and_postal_find_a_message_by_their_own_id_alone(start: Start) -> None:
    sim = start(dialect="usesend")
    message_id = USESEND.send(Client(sim)).json["emailId"]
    found = Client(sim).call("GET", f"/api/v1/emails/{message_id}").json
    assert (found["id"], found["to"], found["subject"], found["text"]) == (message_id, [ADDRESS], "Hello", "Hi")
    assert UUID not in json.dumps(found)
    assert Client(sim).call("GET", f"/api/v1/emails/{UUID}").status == 404

    sim = start(dialect="postal")
    message_id = POSTAL.message_id(POSTAL.send(Client(sim)).json)

    def ask(**asked: Any) -> Any:
        return Client(sim).call("POST", "/api/v1/messages/message", asked, headers=dict(POSTAL.headers)).json

    found = ask(id=message_id, _expansions=["status", "details"])["data"]
    assert (found["id"], found["details"]["rcpt_to"], found["details"]["tag"]) == (message_id, ADDRESS, UUID)
    assert "details" not in ask(id=message_id)["data"]
    assert ask(id=1)["data"]["code"] == "MessageNotFound"
    assert ask()["status"] == "parameter-error"


# ── events ───────────────────────────────────────────────────────────────────────────────────────────────────────────

SECRET = "user:a secret that both sides know"


def signed_by(name: str, arrival: Arrival, shared: str, url: str) -> bool:
    """An independent check that the request is the vendor's."""
    body, headers = arrival.body, arrival.headers
    match name:
        case "usesend":
            signed = headers["x-usesend-timestamp"].encode() + b"." + body
            return headers["x-usesend-signature"] == "v1=" + hmac.new(SECRET.encode(), signed, "sha256").hexdigest()
        case "postal":
            key = load_der_public_key(base64.b64decode(shared))
            assert isinstance(key, RSAPublicKey)
            algorithms: list[tuple[str, HashAlgorithm]] = [("", SHA1()), ("-256", SHA256())]
            for end, algorithm in algorithms:
                signature = base64.b64decode(headers[f"x-postal-signature{end}"])
                key.verify(signature, body, PKCS1v15(), algorithm)  # raises InvalidSignature
            return True
        case "mandrill":
            (told,) = parse_qs(body.decode())["mandrill_events"]
            signature = hmac.new(SECRET.encode(), f"{url}mandrill_events{told}".encode(), hashlib.sha1).digest()
            return headers["x-mandrill-signature"] == base64.b64encode(signature).decode()
        case "mailtrap":
            return headers["mailtrap-signature"] == hmac.new(SECRET.encode(), body, "sha256").hexdigest()
        case _:
            return authorization(arrival) == SECRET == shared


def one_event(name: str, arrival: Arrival) -> Any:
    """The event in the vendor's container."""
    match name:
        case "mandrill":
            (event,) = json.loads(parse_qs(arrival.body.decode())["mandrill_events"][0])
        case "sparkpost":
            ((kind, event),) = json.loads(arrival.body)[0]["msys"].items()
            assert kind in ("message_event", "track_event", "gen_event")
        case "mailjet":
            (event,) = json.loads(arrival.body)
        case "mailtrap":
            (event,) = json.loads(arrival.body)["events"]
        case _:
            event = json.loads(arrival.body)
    return event


TOLD: dict[str, tuple[str, Callable[[Any], object], Callable[[Any], object], Callable[[Any], float]]] = {
    "usesend": (
        "type", lambda e: e["data"]["id"], lambda e: UUID,
        lambda e: datetime.fromisoformat(e["data"]["occurredAt"]).timestamp(),
    ),
    "postal": (
        "event", lambda e: e["payload"]["message"]["id"], lambda e: e["payload"]["message"]["tag"],
        lambda e: float(e["timestamp"]),
    ),
    "brevo": (
        "event", lambda e: e["message-id"].strip("<>"), lambda e: json.loads(e["X-Mailin-custom"])["send_id"],
        lambda e: e["ts_epoch"] / 1000,
    ),
    "sparkpost": ("type", lambda e: e["transmission_id"], lambda e: e["rcpt_meta"]["send_id"],
                  lambda e: float(e["timestamp"])),
    "mailjet": ("event", lambda e: e["MessageID"], lambda e: json.loads(e["Payload"])["send_id"], lambda e: e["time"]),
    "mandrill": ("event", lambda e: e["_id"], lambda e: e["msg"]["metadata"]["send_id"], lambda e: e["ts"]),
    "mailtrap": ("event", lambda e: e["message_id"], lambda e: e["custom_variables"]["send_id"],
                 lambda e: e["timestamp"]),
}  # fmt: skip
"""Where an event has its word, the vendor's id, our id (useSend shows none), and its time."""

STORIES: dict[str, dict[str, list[str]]] = {
    "usesend": {
        "": ["email.sent", "email.delivered"], "bounce": ["email.sent", "email.bounced"],
        "suppressed": ["email.suppressed"], "delay": ["email.sent", "email.delivery_delayed", "email.delivered"],
        "click": ["email.sent", "email.delivered", "email.opened", "email.clicked"],
    },
    "postal": {
        "": ["MessageSent"], "bounce": ["MessageDeliveryFailed"], "suppressed": ["MessageHeld"],
        "delay": ["MessageDelayed", "MessageSent"], "click": ["MessageSent", "MessageLoaded", "MessageLinkClicked"],
    },
    "brevo": {
        "": ["request", "delivered"], "bounce": ["request", "hard_bounce"], "suppressed": ["blocked"],
        "delay": ["request", "deferred", "delivered"], "click": ["request", "delivered", "opened", "click"],
    },
    "sparkpost": {
        "": ["injection", "delivery"], "bounce": ["injection", "bounce"], "suppressed": ["policy_rejection"],
        "delay": ["injection", "delay", "delivery"], "click": ["injection", "delivery", "open", "click"],
    },
    "mailjet": {
        "": ["sent"], "bounce": ["bounce"], "suppressed": ["blocked"], "delay": ["bounce", "sent"],
        "click": ["sent", "open", "click"],
    },
    "mandrill": {
        "": ["send", "delivered"], "bounce": ["send", "hard_bounce"], "suppressed": ["reject"],
        "delay": ["send", "deferral", "delivered"], "click": ["send", "delivered", "open", "click"],
    },
    "mailtrap": {
        "": ["delivery"], "bounce": ["bounce"], "suppressed": ["reject"], "delay": ["soft bounce", "delivery"],
        "click": ["delivery", "open", "click"],
    },
}  # fmt: skip


@every_vendor
def test_events_are_authentic_and_tell_the_story_in_the_vendors_words(
    start: Start, receiver: Receiver, vendor: Vendor
) -> None:
    sim = start(
        dialect=vendor.name, webhooks={"url": receiver.url, "secret": SECRET, "delay_ms": 1.0, "concurrency": 1}
    )
    receiver.answer = lambda _: 200  # some take nothing else for a yes
    word, message_id, our_id, at = TOLD[vendor.name]
    sent_at = datetime.now(UTC).timestamp()
    for fate, story in STORIES[vendor.name].items():
        receiver.arrivals.clear()
        taken = vendor.message_id(vendor.send(Client(sim), to=f"{fate}+ada@example.test").json)
        assert sim.wait_idle()
        events = [one_event(vendor.name, arrival) for arrival in receiver.arrivals]
        assert [event[word] for event in events] == story, fate
        assert {str(message_id(event)) for event in events} == {str(taken)}
        assert {our_id(event) for event in events} == {UUID}
        assert all(sent_at - 1 <= at(event) <= datetime.now(UTC).timestamp() + 1 for event in events)
        assert all(signed_by(vendor.name, each, sim.webhook_secret, receiver.url) for each in receiver.arrivals)


REACTIONS = {
    "usesend": {200: 1, 204: 1, 302: 6, 400: 6, 401: 6, 503: 6},
    "postal": {200: 1, 204: 1, 302: 6, 401: 6, 503: 6},
    "brevo": {200: 1, 204: 1, 400: 1, 401: 1, 429: 5, 503: 1},
    "sparkpost": {200: 1, 204: 10, 401: 10, 503: 10},
    "mailjet": {200: 1, 204: 11, 401: 11, 503: 11},
    "mandrill": {200: 1, 204: 1, 401: 11, 503: 11},
    "mailtrap": {200: 1, 204: 41, 401: 41, 503: 41},
}
"""How often an event is told, by the status with which every telling is answered."""


@every_vendor
def test_an_event_comes_again_as_often_as_the_documents_say(start: Start, receiver: Receiver, vendor: Vendor) -> None:
    settings = {"url": receiver.url, "secret": SECRET, "delay_ms": 1.0, "time_scale": 0.0}
    sim = start(dialect=vendor.name, fates={"suppressed": 1.0}, webhooks=settings)  # a story of one event
    for status, times in REACTIONS[vendor.name].items():
        receiver.arrivals.clear()
        receiver.answer = lambda _, status=status: status  # type: ignore[misc]
        vendor.send(Client(sim), our_id=f"answered-{status}")
        assert sim.wait_idle(20)
        assert len(receiver.arrivals) == times, status
        assert len({arrival.body for arrival in receiver.arrivals}) == 1, "every telling has the same bytes"


def test_sparkpost_and_mandrill_look_whether_anybody_is_there(start: Start, receiver: Receiver) -> None:
    sim = start(dialect="sparkpost", webhooks={"url": receiver.url, "secret": SECRET, "greet": True})
    assert receiver.wait_for(1)
    assert json.loads(receiver.arrivals[0].body) == [{"msys": {}}]
    assert authorization(receiver.arrivals[0]) == SECRET
    sim.stop()


def test_a_postal_key_is_the_same_for_the_same_secret_and_another_for_another(start: Start) -> None:
    first, again, other = (
        start(dialect="postal", webhooks={"secret": secret}).webhook_secret for secret in ("one", "one", "two")
    )
    assert first == again != other


def test_a_tag_of_mailjet_keeps_all_its_digits(start: Start) -> None:
    sim = start(dialect="mailjet")
    said = MAILJET.send(Client(sim)).text
    assert int(sim.books[0].message_id) > 2**53
    assert f'"MessageID":{sim.books[0].message_id}' in said
    body = without(MAILJET.body(UUID, ADDRESS), "Messages", 0, "EventPayload")
    MAILJET.call(Client(sim), changed(body, ("Messages", 0, "CustomID"), "ours"))
    assert [row.send_id for row in sim.books] == [UUID, "ours"]


def test_a_quota_can_be_set_only_where_its_refusal_is_documented(start: Start) -> None:
    for name in ("usesend", "postal", "mailjet", "mandrill", "mailtrap"):
        with pytest.raises(ValueError, match="daily_quota"):
            start(dialect=name, daily_quota=1)
    for vendor, status, code in ((BREVO, 402, "not_enough_credits"), (SPARKPOST, 420, "2101")):
        sim = start(dialect=vendor.name, daily_quota=1)
        replies = [vendor.send(Client(sim), our_id=f"send-{n}") for n in range(2)]
        assert [reply.status for reply in replies] == [vendor.yes, status]
        assert vendor.code(replies[1].json) == code


def test_every_vendor_of_this_page_is_played() -> None:
    assert set(BY_NAME) <= set(DIALECTS)
