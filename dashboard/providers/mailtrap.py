"""Mailtrap (Email Sending): one message a call, our id in its custom variables; signed events in batches.

Facts from docs.mailtrap.io by way of django-anymail's ``mailtrap`` modules and the types of the npm package mailtrap
3.4.0; the signature from mailtrap/mailtrap-ruby pull request 110. No idempotency key is documented, so an unanswered
call is settled by events.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    Setting,
    Settings,
    Webhook,
    WebhookRequest,
    domain_settings,
)
from dashboard.providers.event_batches import derived_id, read_each
from dashboard.providers.http_outcomes import judge_result, unreadable
from dashboard.providers.json_api import (
    given,
    is_id,
    judge_error,
    marks,
    message_headers,
    named,
    open_json_channel,
    said,
    split_mailbox,
)
from dashboard.providers.reading import bare_address, epoch, json_object, mapping, parsed_json, text, whole_number
from dashboard.providers.results import Answer, SendResult
from dashboard.providers.signatures import matches, secrets_of
from dashboard.providers.wording import tidy

BASE_URL = "https://send.api.mailtrap.io"

# ── Mailtrap's words ─────────────────────────────────────────────────────────────────────────────────────────────────

EVENTS: Mapping[str, tuple[EventType, BounceClass | None]] = {  # "Webhooks", "Statuses and events"
    "delivery": (EventType.DELIVERED, None),
    "open": (EventType.OPENED, None),
    "click": (EventType.CLICKED, None),
    "bounce": (EventType.BOUNCED, "hard"),
    "soft bounce": (EventType.DEFERRED, None),  # Mailtrap tries again
    "suspension": (EventType.DEFERRED, None),
    "reject": (EventType.REJECTED, None),
    "spam": (EventType.COMPLAINED, None),
    "unsubscribe": (EventType.UNSUBSCRIBED, None),
}
GIVE_A_REASON = frozenset({EventType.DEFERRED, EventType.BOUNCED, EventType.REJECTED})

# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def fields_of(outgoing: Outgoing) -> dict[str, Any]:
    """The body of one send ("Send email")."""
    message = outgoing.message
    reply_to = {"Reply-To": tidy(message.reply_to)} if message.reply_to else {}
    return given(
        {
            "from": named(*split_mailbox(message.sender)),
            "to": [named(outgoing.recipient_name, outgoing.address)],
            "subject": message.subject,
            "text": message.text,
            "html": message.html,
            "headers": message_headers(outgoing) | reply_to,
            "custom_variables": marks(outgoing, attempt=True),
        }
    )


def judge(answer: Answer) -> Outcome:
    """What an answer means: 200, ``success`` and the id of the one message are the only yes. Errors have no codes."""
    body = mapping(said(answer))
    if answer.status == 200:
        ids = body.get("message_ids")
        message_id = text(ids[0]) if isinstance(ids, list) and len(ids) == 1 else None
        if body.get("success") is True and is_id(message_id):
            return Accepted(message_id)
        return unreadable(answer, "without a success and its message id")
    errors = body.get("errors")
    words = errors if isinstance(errors, list) else [body.get("error")]
    return judge_error(
        answer,
        {},
        body_read=bool(body),
        error_code=str(answer.status) if body else None,
        words=" ".join(filter(None, map(text, words))),
    )


# ── read_webhook ─────────────────────────────────────────────────────────────────────────────────────────────────────


def verify(request: WebhookRequest, secrets: str) -> None:
    """Check ``Mailtrap-Signature``: HMAC-SHA256 of the raw body, in hex. Raises NotAuthentic.

    ``secrets``: one secret, or several apart by spaces while one replaces another. Nothing dates the signature: a
    repeated event is known by its id.
    """
    right = [hmac.digest(key, request.body, hashlib.sha256).hex().encode() for key in secrets_of(secrets)]
    if not matches([request.headers.get("mailtrap-signature", "").strip().lower()], right):
        raise NotAuthentic("no signature matches")


def webhook_of(body: bytes) -> Webhook:
    """The events of a verified request, in either "Payload format". Raises ValueError for a malformed body."""
    try:
        parsed = json_object(body)
    except ValueError:
        lines = [line for line in body.split(b"\n") if line.strip()]
        if len(lines) < 2:
            raise
        return read_each(map(_of_line, lines), event_of)
    parts = [parsed] if "event" in parsed else parsed.get("events")
    if not isinstance(parts, list):
        raise ValueError("the body has no list of events")
    return read_each(parts, event_of)


def _of_line(line: bytes) -> object:
    """What one line of JSON Lines says; one that cannot be read as the text that it is."""
    try:
        return parsed_json(line)
    except ValueError:
        return line.decode(errors="replace")


def event_of(part: Mapping[str, Any], raw: bytes) -> ProviderEvent | None:
    """One event; None for inbound mail. Raises ValueError for what is no event."""
    word = part.get("event")
    if not isinstance(word, str):
        raise ValueError("the event has no name")
    if word.startswith("inbound"):
        return None
    event_type, bounce_class = EVENTS.get(word, (EventType.UNKNOWN, None))
    message_id, recipient = text(part.get("message_id")), bare_address(part.get("email"))
    ours = mapping(part.get("custom_variables"))
    return ProviderEvent(
        event_type=event_type,
        event_id=text(part.get("event_id"))
        or derived_id(raw, word, message_id, recipient, text(part.get("timestamp"))),
        provider_message_id=message_id,
        send_id=text(ours.get("send_id")),
        attempt=whole_number(ours.get("attempt")),
        recipient=recipient,
        occurred_at=epoch(part.get("timestamp")),
        bounce_class=bounce_class,
        reason=(text(part.get("response")) or text(part.get("reason"))) if event_type in GIVE_A_REASON else None,
        url=text(part.get("url")),
        raw=raw,
    )


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Mailtrap:
    """The entry in the list of providers."""

    name: str = "mailtrap"
    title: str = "Mailtrap"
    settings: tuple[Setting, ...] = (
        Setting(name="api_key", help="An API token of the sending domain.", secret=True, required=True),
        Setting(
            name="base_url",
            help="Where the API answers, without /api; https://bulk.api.mailtrap.io for campaign mail.",
            default=BASE_URL,
        ),
        Setting(
            name="webhook_secret",
            help="The signing secret of the webhook; two apart by a space while one replaces the other.",
            secret=True,
            for_events=True,
        ),
        *domain_settings("rwmt1 rwmt2"),
    )

    def capabilities(self, settings: Settings) -> Capabilities:
        """Our id comes back in the custom variables; there are no keys."""
        return Capabilities(metadata=True, webhooks=True)

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account."""
        headers = {"Authorization": f"Bearer {settings.get('api_key', '').strip()}"}
        return open_json_channel(
            settings, keys=("api_key",), base_url=BASE_URL, request_timeout=request_timeout, path="/api/send",
            headers=lambda _: headers, fields=fields_of, judge=judge,
        )  # fmt: skip

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Verify the signature over the raw bytes, then read the events."""
        verify(request, settings.get("webhook_secret", ""))
        return webhook_of(request.body)

    def classify(self, result: SendResult) -> Outcome:
        """Judge one result without a network."""
        return judge_result(self.title, result, judge)
