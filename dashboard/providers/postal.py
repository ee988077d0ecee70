"""Postal (self-hosted): one message a call, our id in its tag; events signed with RSA.

Facts from the sources of postalserver/postal (files named beside them). There is no idempotency key, and a message is
found by Postal's own id only, so an unanswered call is settled by events. The API answers with HTTP 200 whatever
happened: the body's ``status`` says it. Postal makes the Message-ID itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from dashboard.lifecycle import EventType
from dashboard.providers.base import (
    Accepted,
    BounceClass,
    Capabilities,
    Channel,
    NotAuthentic,
    Outcome,
    Outgoing,
    ProviderEvent,
    Scope,
    Setting,
    Settings,
    Webhook,
    WebhookRequest,
    domain_settings,
)
from dashboard.providers.event_batches import derived_id
from dashboard.providers.http_outcomes import Ruling, judge_refusal, judge_result, unreadable
from dashboard.providers.json_api import (
    code_of,
    given,
    is_id,
    judge_error,
    message_headers,
    open_json_channel,
    said,
)
from dashboard.providers.reading import bare_address, epoch, json_object, mapping, text
from dashboard.providers.results import Answer, SendResult
from dashboard.providers.signatures import decoded, public_keys, signed_by_one
from dashboard.providers.wording import mailbox_text, tidy

# ── Postal's words ───────────────────────────────────────────────────────────────────────────────────────────────────

_BASE = "legacy_api/base_controller.rb"
_SEND = "legacy_api/send_controller.rb, outgoing_message_prototype.rb: refused before any message is made"
REFUSALS: Mapping[str, Ruling] = {  # by ``data.code`` of ``status: error``
    "AccessDenied": Ruling("rejected", Scope.ACCOUNT, _BASE),
    "InvalidServerAPIKey": Ruling("rejected", Scope.ACCOUNT, _BASE),
    "ServerSuspended": Ruling("rejected", Scope.ACCOUNT, _BASE),
    "UnauthenticatedFromAddress": Ruling("rejected", Scope.ACCOUNT, _SEND),
}
OTHER_REFUSAL = Ruling("rejected", Scope.MESSAGE, _SEND)
BAD_PARAMETER = Ruling("rejected", Scope.MESSAGE, f"{_BASE}: status parameter-error")

EVENTS: Mapping[str, tuple[EventType, BounceClass | None]] = {  # docs.postalserver.io, "Webhooks"
    "MessageSent": (EventType.DELIVERED, None),
    "MessageDelayed": (EventType.DEFERRED, None),
    "MessageHeld": (EventType.DEFERRED, None),
    "MessageDeliveryFailed": (EventType.BOUNCED, "hard"),
    "MessageBounced": (EventType.BOUNCED, "undetermined"),
    "MessageLinkClicked": (EventType.CLICKED, None),
    "MessageLoaded": (EventType.OPENED, None),
}
GIVE_A_REASON = frozenset({"MessageDelayed", "MessageHeld", "MessageDeliveryFailed"})

# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def fields_of(outgoing: Outgoing) -> dict[str, Any]:
    """The body of one send (send_controller.rb)."""
    message = outgoing.message
    return given(
        {
            "to": [mailbox_text(outgoing.recipient_name or "", outgoing.address)],
            "from": tidy(message.sender),
            "subject": message.subject,
            "reply_to": message.reply_to and tidy(message.reply_to),
            "plain_body": message.text,
            "html_body": message.html,
            "tag": str(outgoing.send_id),
            "headers": message_headers(outgoing),
        }
    )


def judge(answer: Answer) -> Outcome:
    """What an answer means: 200, ``status: success`` and the id of the one message are the only yes."""
    body = said(answer)
    data = mapping(mapping(body).get("data"))
    status, code = mapping(body).get("status"), code_of(text(data.get("code")))
    words = text(data.get("message")) or code or ""
    if answer.status != 200:
        return judge_error(answer, {}, body_read=body is not None, error_code=code, words=words)
    match status:
        case "success":
            messages = list(mapping(data.get("messages")).values())
            message_id = text(mapping(messages[0]).get("id")) if len(messages) == 1 else None
            return Accepted(message_id) if is_id(message_id) else unreadable(answer, "without the id of a message")
        case "error" if code is not None:
            return judge_refusal(answer, REFUSALS.get(code, OTHER_REFUSAL), error_code=code, words=words)
        case "parameter-error":
            return judge_refusal(answer, BAD_PARAMETER, error_code=status, words=words)
        case _:
            return unreadable(answer, "without the documented answer")


# ── read_webhook ─────────────────────────────────────────────────────────────────────────────────────────────────────


def verify(request: WebhookRequest, keys: str) -> None:
    """Check the RSA signature over the raw body, SHA-256 where there is one. Raises NotAuthentic.

    ``keys``: apart by spaces, as ``postal default-dkim-record`` shows them, with ``p=`` or without. Nothing dates the
    signature: a repeated event is known by its id.
    """
    strong = request.headers.get("x-postal-signature-256")
    algorithm: hashes.HashAlgorithm = hashes.SHA256() if strong is not None else hashes.SHA1()  # noqa: S303
    bare = " ".join(one.removeprefix("p=").rstrip(";") for one in keys.split())
    trusted = public_keys(bare, RSAPublicKey)  # type: ignore[type-abstract]
    signature = decoded(strong if strong is not None else request.headers.get("x-postal-signature", ""))
    if not signed_by_one(trusted, lambda key: key.verify(signature, request.body, PKCS1v15(), algorithm)):
        raise NotAuthentic("no signature matches")


def events_of(body: bytes) -> tuple[ProviderEvent, ...]:
    """The one event of a verified request, or none. Raises ValueError for a malformed body."""
    parsed = json_object(body)
    word, payload = parsed.get("event"), mapping(parsed.get("payload"))
    if not isinstance(word, str):
        raise ValueError("the event has no name")
    message = payload.get("original_message" if word == "MessageBounced" else "message")
    if not isinstance(message, dict):
        if word in EVENTS:
            raise ValueError("the event has no message")
        return ()  # about a domain or a limit of the server
    if message.get("direction") == "incoming":
        return ()
    event_type, bounce_class = EVENTS.get(word, (EventType.UNKNOWN, None))
    message_id = text(message.get("id"))
    event = ProviderEvent(
        event_type=event_type,
        event_id=text(parsed.get("uuid")) or derived_id(body, word, message_id, _as_text(parsed.get("timestamp"))),
        provider_message_id=message_id,
        send_id=text(message.get("tag")),
        recipient=bare_address(message.get("to")),
        occurred_at=epoch(parsed.get("timestamp")),
        bounce_class=bounce_class,
        reason=(text(payload.get("output")) or text(payload.get("details"))) if word in GIVE_A_REASON else None,
        url=text(payload.get("url")),
        raw=body,
    )
    return (event,)


def _as_text(timestamp: object) -> str | None:
    return str(timestamp) if isinstance(timestamp, int | float) else text(timestamp)


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Postal:
    """The entry in the list of providers."""

    name: str = "postal"
    title: str = "Postal"
    settings: tuple[Setting, ...] = (
        Setting(name="api_key", help="An API credential of the mail server.", secret=True, required=True),
        Setting(name="base_url", help="Where Postal answers: https://postal.example.com.", required=True),
        Setting(
            name="webhook_secret",
            help="Postal's signing key, public half: what follows p= in its default DKIM record; two apart by a space "
            "while one replaces the other.",
            secret=True,
            for_events=True,
        ),
        *domain_settings(),
    )

    def capabilities(self, settings: Settings) -> Capabilities:
        """Our id comes back in the tag; there are no keys."""
        return Capabilities(metadata=True, webhooks=True)

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account."""
        headers = {"X-Server-API-Key": settings.get("api_key", "").strip()}
        return open_json_channel(
            settings, keys=("api_key",), base_url=None, request_timeout=request_timeout, path="/api/v1/send/message",
            headers=lambda _: headers, fields=fields_of, judge=judge,
        )  # fmt: skip

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Verify the signature over the raw bytes, then read the one event."""
        verify(request, settings.get("webhook_secret", ""))
        return Webhook(events_of(request.body))

    def classify(self, result: SendResult) -> Outcome:
        """Judge one result without a network."""
        return judge_result(self.title, result, judge)
