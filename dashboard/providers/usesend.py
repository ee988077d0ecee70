"""useSend (self-hosted or app.usesend.com, over Amazon SES): one message a call, settled by its idempotency key.

Facts from the sources of usesend/useSend (files named beside them). A repeat with the same key and body within 24
hours gives the first answer again. The result is stored after the work, under a lock of 60 seconds, so a crash of the
server in between may let a repeat run the work twice; an account that must not take that risk says ``honours_keys``
false. The API takes no metadata: events come back by useSend's own id only. A message is found by that id, or in a
list by recipient and time that shows nothing of ours, so asking settles no unanswered call.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
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
    Scope,
    Setting,
    Settings,
    Webhook,
    WebhookRequest,
    domain_settings,
)
from dashboard.providers.http_outcomes import Ruling, judge_result, unreadable
from dashboard.providers.json_api import (
    code_of,
    given,
    is_id,
    judge_error,
    message_headers,
    open_json_channel,
    said,
    says_yes,
)
from dashboard.providers.reading import first_object, instant, json_object, mapping, only_recipient, text
from dashboard.providers.results import Answer, SendResult
from dashboard.providers.signatures import matches, secrets_of
from dashboard.providers.wording import mailbox_text, tidy

BASE_URL = "https://app.usesend.com"
KEY_WINDOW = timedelta(hours=24)  # idempotency-service.ts: IDEMPOTENCY_RESULT_TTL_SECONDS
TOLERANCE_SECONDS = 300

# ── useSend's words ──────────────────────────────────────────────────────────────────────────────────────────────────

EVENTS = {  # webhook-events.ts: EmailEvents
    "email.queued": EventType.ACCEPTED,
    "email.sent": EventType.ACCEPTED,
    "email.delivery_delayed": EventType.DEFERRED,
    "email.delivered": EventType.DELIVERED,
    "email.bounced": EventType.BOUNCED,
    "email.rejected": EventType.REJECTED,
    "email.suppressed": EventType.REJECTED,
    "email.rendering_failure": EventType.FAILED,
    "email.failed": EventType.FAILED,
    "email.complained": EventType.COMPLAINED,
    "email.opened": EventType.OPENED,
    "email.clicked": EventType.CLICKED,
}
BOUNCES: Mapping[str, BounceClass] = {"Permanent": "hard", "Transient": "soft"}  # webhook-events.ts, as SES has them
NOT_TRIED = frozenset({"Suppressed", "OnAccountSuppressionList"})
"""Bounce sub-types of an address that was not even tried."""

IN_PROGRESS = Ruling("key_in_use", Scope.MESSAGE, "idempotency-service.ts: the first request with the key is running")
OTHER_PAYLOAD = Ruling("ambiguous", Scope.MESSAGE, "idempotency-service.ts: a request with the key was taken")
"""Both are 409 NOT_UNIQUE; only the words tell them apart. In doubt it is this one: it proves no refusal."""

WRONG_DOMAIN = Ruling("rejected", Scope.ACCOUNT, "domain-service.ts: validateDomainFromEmail")
"""400 BAD_REQUEST, as for any bad field; only its words, which begin with "Domain", say that it is the sender's."""

# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def fields_of(outgoing: Outgoing) -> dict[str, Any]:
    """The body of one send (email-schema.ts): the same on every attempt."""
    message = outgoing.message
    return given(
        {
            "from": tidy(message.sender),
            "to": mailbox_text(outgoing.recipient_name or "", outgoing.address),
            "subject": message.subject,
            "replyTo": message.reply_to and tidy(message.reply_to),
            "text": message.text or None,  # an empty one breaks the schema
            "html": message.html or None,
            "headers": message_headers(outgoing),
        }
    )


def judge(answer: Answer) -> Outcome:
    """What an answer means: 200 with an ``emailId`` is the only yes (send-email.ts, api-error.ts)."""
    body = said(answer)
    if answer.status == 200:
        message_id = text(mapping(body).get("emailId"))
        return Accepted(message_id) if is_id(message_id) else unreadable(answer, "without an emailId")
    error = mapping(mapping(body).get("error"))
    # What breaks the schema is refused by the framework, in a shape of its own: a list of issues.
    words = text(error.get("message")) or text(first_object(error.get("issues")).get("message")) or ""
    rulings = {(409, "NOT_UNIQUE"): IN_PROGRESS if "in progress" in words.lower() else OTHER_PAYLOAD}
    if words.startswith("Domain"):
        rulings[400, "BAD_REQUEST"] = WRONG_DOMAIN
    return judge_error(
        answer,
        rulings,
        body_read=body is not None,
        error_code=code_of(text(error.get("code"))),
        words=words,
    )


# ── read_webhook ─────────────────────────────────────────────────────────────────────────────────────────────────────


def verify(request: WebhookRequest, secrets: str) -> None:
    """Check ``X-UseSend-Signature`` over ``timestamp.body`` (webhook-service.ts). Raises NotAuthentic.

    ``secrets``: one secret, or several apart by spaces while one replaces another. Timestamps are in milliseconds.
    """
    keys = secrets_of(secrets)
    timestamp = request.headers.get("x-usesend-timestamp", "")
    if not re.fullmatch(r"[0-9]{1,15}", timestamp):
        raise NotAuthentic("the timestamp is missing, or cannot be one")
    if abs(request.now.timestamp() - int(timestamp) / 1000) > TOLERANCE_SECONDS:
        raise NotAuthentic("the timestamp is more than five minutes off")
    content = f"{timestamp}.".encode() + request.body
    right = [f"v1={hmac.digest(key, content, hashlib.sha256).hex()}".encode() for key in keys]
    if not matches([request.headers.get("x-usesend-signature", "")], right):
        raise NotAuthentic("no signature matches")


def events_of(body: bytes) -> tuple[ProviderEvent, ...]:
    """The one event of a verified request, or none. Raises ValueError for a malformed body."""
    parsed = json_object(body)
    word = parsed.get("type")
    if not isinstance(word, str):
        raise ValueError("the event has no type")
    if not word.startswith("email."):
        return ()
    data, call_id = parsed.get("data"), text(parsed.get("id"))
    if not isinstance(data, dict) or call_id is None:
        raise ValueError("the event has no id, or no data")
    event_type, bounce_class, reason = _meaning(word, data)
    event = ProviderEvent(
        event_type=event_type,
        event_id=call_id,
        provider_message_id=text(data.get("id")),
        recipient=only_recipient(data.get("to")),
        occurred_at=instant(data.get("occurredAt")) or instant(parsed.get("createdAt")),
        bounce_class=bounce_class,
        reason=reason,
        url=text(mapping(data.get("click")).get("url")),
        raw=body,
    )
    return (event,)


def _meaning(word: str, data: Mapping[str, Any]) -> tuple[EventType, BounceClass | None, str | None]:
    event_type = EVENTS.get(word, EventType.UNKNOWN)
    match word:
        case "email.bounced":
            bounce = mapping(data.get("bounce"))
            message = text(bounce.get("message"))
            if text(bounce.get("subType")) in NOT_TRIED:
                return EventType.REJECTED, "suppressed", message
            return event_type, BOUNCES.get(text(bounce.get("type")) or "", "undetermined"), message
        case "email.suppressed":
            return event_type, "suppressed", text(mapping(data.get("suppression")).get("reason"))
        case "email.failed":
            return event_type, None, text(mapping(data.get("failed")).get("reason"))
        case _:
            return event_type, None, None


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class UseSend:
    """The entry in the list of providers."""

    name: str = "usesend"
    title: str = "useSend"
    settings: tuple[Setting, ...] = (
        Setting(name="api_key", help="An API key that may send.", secret=True, required=True),
        Setting(name="base_url", help="Where the API answers, without /api.", default=BASE_URL),
        Setting(
            name="webhook_secret",
            help="The signing secret of the webhook; two apart by a space while one replaces the other.",
            secret=True,
            for_events=True,
        ),
        Setting(
            name="honours_keys",
            help="false where Idempotency-Key is ignored: an unknown send is then never repeated by policy.",
            default="true",
        ),
        *domain_settings(),
    )

    def capabilities(self, settings: Settings) -> Capabilities:
        """Keys count for 24 hours unless the account says that they do not."""
        return Capabilities(key_window=KEY_WINDOW if _honours_keys(settings) else None, webhooks=True)

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account."""
        authorization = {"Authorization": f"Bearer {settings.get('api_key', '').strip()}"}
        honours_keys = _honours_keys(settings)

        def headers(outgoing: Outgoing | None) -> dict[str, str]:
            return authorization | ({"Idempotency-Key": str(outgoing.send_id)} if outgoing and honours_keys else {})

        return open_json_channel(
            settings, keys=("api_key",), base_url=BASE_URL, request_timeout=request_timeout, path="/api/v1/emails",
            headers=headers, fields=fields_of, judge=judge,
        )  # fmt: skip

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Verify the signature over the raw bytes, then read the one event."""
        verify(request, settings.get("webhook_secret", ""))
        return Webhook(events_of(request.body))

    def classify(self, result: SendResult) -> Outcome:
        """Judge one result without a network."""
        return judge_result(self.title, result, judge)


def _honours_keys(settings: Settings) -> bool:
    return says_yes(settings.get("honours_keys") or "true")
