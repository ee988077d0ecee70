"""Brevo (once Sendinblue): one message a call, a key that counts for minutes, our id in a header; unsigned events.

Facts from developers.brevo.com (pages named beside them) and from django-anymail's ``brevo`` modules. A repeat under
the same ``idempotencyKey`` is not answered with the first answer but refused with ``duplicate_parameter``, which says
that the key was used, not that its message was taken: the repeat is safe, and its refusal settles nothing. Brevo
makes the Message-ID itself. It replaces ``{{ }}`` in subject and content by its own template language (help.brevo.com,
"Personalize your messages with dynamic content"), and nothing turns that off.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from dashboard.lifecycle import EventType
from dashboard.providers.base import (
    Accepted,
    BounceClass,
    Capabilities,
    Channel,
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
from dashboard.providers.event_batches import derived_id, json_in_text, listed, read_each
from dashboard.providers.http_outcomes import Ruling, judge_result, unreadable
from dashboard.providers.json_api import (
    code_of,
    given,
    is_id,
    judge_error,
    marks,
    message_headers,
    named,
    open_json_channel,
    said,
    says_yes,
    split_mailbox,
)
from dashboard.providers.reading import bare_address, epoch, mapping, text, whole_number
from dashboard.providers.results import Answer, SendResult
from dashboard.providers.unsigned import NETWORKS, PASSWORDS, check_sender

BASE_URL = "https://api.brevo.com"
KEY_WINDOW = timedelta(minutes=15)
"""The changelog "Email API now supports idempotency" says 15 minutes, the guide 30: the shorter one is safe."""

# ── Brevo's words ────────────────────────────────────────────────────────────────────────────────────────────────────

_KEYS = "Idempotency for batch emails: the key was used within its window"
_CODES = "API reference: error codes"
RULINGS: Mapping[tuple[int, str], Ruling] = {  # by status and ``code``; any other: by the status
    **{
        (status, code): Ruling("ambiguous", Scope.MESSAGE, _KEYS)
        for status in (400, 409, 422)
        for code in ("duplicate_parameter", "duplicate_request")
    },
    **{
        (400, code): Ruling("rejected", Scope.ACCOUNT, _CODES)
        for code in (
            *("not_enough_credits", "unauthorized", "permission_denied"),
            *("reseller_permission_denied", "account_under_validation"),
        )
    },
}

EVENTS: Mapping[str, tuple[EventType, BounceClass | None, bool | None]] = {  # "Transactional webhooks"; machine: opens
    "request": (EventType.ACCEPTED, None, None),
    "delivered": (EventType.DELIVERED, None, None),
    "deferred": (EventType.DEFERRED, None, None),
    "soft_bounce": (EventType.BOUNCED, "soft", None),
    "hard_bounce": (EventType.BOUNCED, "hard", None),
    "invalid_email": (EventType.BOUNCED, "hard", None),
    "blocked": (EventType.REJECTED, "suppressed", None),
    "error": (EventType.FAILED, None, None),
    "spam": (EventType.COMPLAINED, None, None),
    "complaint": (EventType.COMPLAINED, None, None),
    "unsubscribe": (EventType.UNSUBSCRIBED, None, None),
    "unsubscribed": (EventType.UNSUBSCRIBED, None, None),
    "opened": (EventType.OPENED, None, False),
    "unique_opened": (EventType.OPENED, None, False),
    "proxy_open": (EventType.OPENED, None, True),
    "unique_proxy_open": (EventType.OPENED, None, True),
    "click": (EventType.CLICKED, None, None),
}
NOT_ABOUT_A_MESSAGE = frozenset({"list_addition", "contact_updated", "contact_deleted"})  # "Marketing webhooks"
GIVE_A_REASON = frozenset({EventType.DEFERRED, EventType.BOUNCED, EventType.REJECTED, EventType.FAILED})
MARKS = "X-Mailin-custom"
"""The header whose content comes back in events."""

# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def fields_of(outgoing: Outgoing, *, honours_keys: bool) -> dict[str, Any]:
    """The body of one send ("Send a transactional email"). Under a key it is the same on every attempt."""
    message = outgoing.message
    ours = {MARKS: json.dumps(marks(outgoing, attempt=not honours_keys))}
    if honours_keys:
        ours["idempotencyKey"] = str(outgoing.send_id)
    return given(
        {
            "sender": named(*split_mailbox(message.sender)),
            "to": [named(outgoing.recipient_name, outgoing.address)],
            "subject": message.subject,
            "replyTo": named(*split_mailbox(message.reply_to)) if message.reply_to else None,
            "textContent": message.text,
            "htmlContent": message.html,
            "headers": message_headers(outgoing) | ours,
        }
    )


def judge(answer: Answer) -> Outcome:
    """What an answer means: 201 with a ``messageId`` is the only yes."""
    body = said(answer)
    if answer.status == 201:
        message_id = _bare_id(mapping(body).get("messageId"))
        return Accepted(message_id) if is_id(message_id) else unreadable(answer, "without a messageId")
    code, words = code_of(text(mapping(body).get("code"))), text(mapping(body).get("message")) or ""
    return judge_error(_dated(answer), RULINGS, body_read=body is not None, error_code=code, words=words)


def _dated(answer: Answer) -> Answer:
    """The answer with Brevo's own header for when its limit ends, in seconds ("Rate limit headers"), as Retry-After."""
    reset = answer.headers.get("x-sib-ratelimit-reset")
    return answer if reset is None else replace(answer, headers={"retry-after": reset, **answer.headers})


def _bare_id(value: object) -> str | None:
    return (text(value) or "").removeprefix("<").removesuffix(">") or None


# ── read_webhook ─────────────────────────────────────────────────────────────────────────────────────────────────────


def event_of(part: Mapping[str, Any], raw: bytes) -> ProviderEvent | None:
    """One event; None for changes of contacts and for inbound mail. Raises ValueError for what is no event."""
    word = part.get("event")
    if word is None and "items" in part:  # "Inbound parse webhooks"
        return None
    if not isinstance(word, str):
        raise ValueError("the event has no name")
    if word in NOT_ABOUT_A_MESSAGE:
        return None
    event_type, bounce_class, machine = EVENTS.get(word, (EventType.UNKNOWN, None, None))
    message_id, recipient = _bare_id(part.get("message-id")), bare_address(part.get("email"))
    ours = json_in_text(part.get(MARKS))
    return ProviderEvent(
        event_type=event_type,
        event_id=derived_id(raw, word, message_id, recipient, text(part.get("ts_epoch"))),
        provider_message_id=message_id,
        send_id=text(ours.get("send_id")),
        attempt=whole_number(ours.get("attempt")),
        recipient=recipient,
        occurred_at=epoch(part.get("ts_epoch")),  # ``ts`` and ``ts_event`` are in the account's zone
        bounce_class=bounce_class,
        reason=text(part.get("reason")) if event_type in GIVE_A_REASON else None,
        machine=machine,
        url=text(part.get("link")),
        raw=raw,
    )


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Brevo:
    """The entry in the list of providers."""

    name: str = "brevo"
    title: str = "Brevo"
    settings: tuple[Setting, ...] = (
        Setting(name="api_key", help="An API key (xkeysib-…).", secret=True, required=True),
        Setting(name="base_url", help="Where the API answers, without /v3.", default=BASE_URL),
        PASSWORDS,
        NETWORKS,
        Setting(
            name="honours_keys",
            help="false where idempotencyKey is ignored: an unknown send is then never repeated by policy.",
            default="true",
        ),
        *domain_settings("mail brevo1 brevo2"),
    )

    def capabilities(self, settings: Settings) -> Capabilities:
        """Keys count for 15 minutes unless the account says that they do not.

        An event that is answered with any 5xx is discarded, and told again after 429 alone ("Retry mechanism").
        """
        window = KEY_WINDOW if _honours_keys(settings) else None
        return Capabilities(key_window=window, metadata=True, webhooks=True, message_id="theirs", come_again=429)

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account."""
        headers = {"api-key": settings.get("api_key", "").strip(), "Accept": "application/json"}
        honours_keys = _honours_keys(settings)
        return open_json_channel(
            settings, keys=("api_key",), base_url=BASE_URL, request_timeout=request_timeout, path="/v3/smtp/email",
            headers=lambda _: headers, fields=lambda outgoing: fields_of(outgoing, honours_keys=honours_keys),
            judge=judge,
        )  # fmt: skip

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Check who calls ("Secure webhook calls"), then read the event, or those of a batch ("Batched webhooks")."""
        check_sender(request, settings)
        return read_each(listed(request.body), event_of)

    def classify(self, result: SendResult) -> Outcome:
        """Judge one result without a network."""
        return judge_result(self.title, result, judge)


def _honours_keys(settings: Settings) -> bool:
    return says_yes(settings.get("honours_keys") or "true")
