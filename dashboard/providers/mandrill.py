"""Mandrill (Mailchimp Transactional): one message a call, our id in its metadata; events in signed forms.

Facts from mailchimp.com/developer/transactional (pages named beside them), from django-anymail's ``mandrill`` module
and, for the shape of errors, from Wylio/meteor-mandrill issue 12: the API answers its errors, a wrong key among them,
with HTTP 500 and a body that names them, so the name is judged before the status. No idempotency key is documented,
so an unanswered call is settled by events.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl

from dashboard.lifecycle import EventType
from dashboard.providers.base import (
    Accepted,
    Ambiguous,
    BounceClass,
    CannotVerify,
    Capabilities,
    Channel,
    NotAuthentic,
    Outcome,
    Outgoing,
    ProviderEvent,
    Rejected,
    Scope,
    Setting,
    Settings,
    Webhook,
    WebhookRequest,
    domain_settings,
)
from dashboard.providers.event_batches import derived_id, read_each
from dashboard.providers.http_outcomes import Ruling, judge_refusal, judge_result, unreadable
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
    split_mailbox,
)
from dashboard.providers.reading import bare_address, epoch, json_list, mapping, text, whole_number
from dashboard.providers.results import Answer, SendResult
from dashboard.providers.signatures import matches, secrets_of
from dashboard.providers.wording import tidy

BASE_URL = "https://mandrillapp.com"

# ── Mandrill's words ─────────────────────────────────────────────────────────────────────────────────────────────────

TAKEN = frozenset({"sent", "queued", "scheduled"})  # "Messages: send"
REFUSED = frozenset({"rejected", "invalid"})
ACCOUNT_TROUBLE = frozenset({"unsigned", "invalid-sender", "test-mode-limit"})
"""Reasons of a rejection that every message of the account would meet."""

_ERRORS = "Messages: send, errors"
RULINGS: Mapping[str, Ruling] = {  # by the ``name`` in the body of an error, whatever its status
    "Invalid_Key": Ruling("rejected", Scope.ACCOUNT, _ERRORS),
    "PaymentRequired": Ruling("rejected", Scope.ACCOUNT, _ERRORS),
    "PoorReputation": Ruling("rejected", Scope.ACCOUNT, _ERRORS),
    "Unknown_Subaccount": Ruling("rejected", Scope.ACCOUNT, _ERRORS),
    "ValidationError": Ruling("rejected", Scope.MESSAGE, _ERRORS),
    # "An unexpected error occurred", "the subsystem is down": neither says that nothing was taken.
    "GeneralError": Ruling("ambiguous", None, _ERRORS),
    "ServiceUnavailable": Ruling("ambiguous", None, _ERRORS),
}

EVENTS: Mapping[str, tuple[EventType, BounceClass | None]] = {  # "Track and respond to activity: message events"
    "send": (EventType.ACCEPTED, None),
    "delivered": (EventType.DELIVERED, None),
    "deferral": (EventType.DEFERRED, None),
    "hard_bounce": (EventType.BOUNCED, "hard"),
    "soft_bounce": (EventType.BOUNCED, "soft"),
    "reject": (EventType.REJECTED, "suppressed"),
    "spam": (EventType.COMPLAINED, None),
    "unsub": (EventType.UNSUBSCRIBED, None),
    "open": (EventType.OPENED, None),
    "click": (EventType.CLICKED, None),
}
GIVE_A_REASON = frozenset({EventType.DEFERRED, EventType.BOUNCED, EventType.REJECTED})
FORM_FIELD = b"mandrill_events"

# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def fields_of(outgoing: Outgoing, *, key: str) -> dict[str, Any]:
    """The body of one send ("Messages: send"), not asynchronous, so that the answer says what became of it."""
    message = outgoing.message
    sender_name, sender = split_mailbox(message.sender)
    reply_to = {"Reply-To": tidy(message.reply_to)} if message.reply_to else {}
    return {
        "key": key,
        "message": given(
            {
                **named(sender_name, sender, address_field="from_email", name_field="from_name"),
                "to": [named(outgoing.recipient_name, outgoing.address) | {"type": "to"}],
                "subject": message.subject,
                "text": message.text,
                "html": message.html,
                "headers": message_headers(outgoing) | reply_to,
                "metadata": marks(outgoing, attempt=True),
            }
        ),
        "async": False,
    }


def judge(answer: Answer) -> Outcome:
    """What the answer to one message means: 200 with one recipient taken, and its id, is the only yes."""
    body = said(answer)
    if answer.status == 200 and isinstance(body, list) and len(body) == 1:
        return _judge_recipient(answer, mapping(body[0]))
    error = mapping(body)
    name, words = code_of(text(error.get("name"))), text(error.get("message")) or ""
    if error.get("status") == "error" and (ruling := RULINGS.get(name or "")):
        return judge_refusal(answer, ruling, error_code=name, words=words)
    return judge_error(answer, {}, body_read=body is not None, error_code=name, words=words)


def _judge_recipient(answer: Answer, told: Mapping[str, Any]) -> Outcome:
    status, message_id = text(told.get("status")) or "", text(told.get("_id"))
    known_id = message_id if is_id(message_id) else None
    if status in TAKEN:
        return Accepted(known_id) if known_id else unreadable(answer, "without a message id")
    if status in REFUSED:
        why = code_of(text(told.get("reject_reason"))) or status
        return Rejected(
            scope=Scope.ACCOUNT if why in ACCOUNT_TROUBLE else Scope.MESSAGE,
            error_code=why,
            reason=f"{status}: {why}",
            provider_message_id=known_id,
        )
    return Ambiguous(
        error_class="unreadable_answer", reason="HTTP 200 with an unknown status", error_code=code_of(status)
    )


def judge_each(answer: Answer) -> list[Outcome]:
    """What a 200 means that names several recipients, or one: one outcome a recipient."""
    return [_judge_recipient(answer, mapping(told)) for told in said(answer)]


# ── read_webhook ─────────────────────────────────────────────────────────────────────────────────────────────────────


def verified_form(request: WebhookRequest, *, secrets: str, url: str) -> bytes:
    """What the form of an authentic request says in ``mandrill_events``. Raises NotAuthentic.

    Signed are the public URL of the webhook, exactly as it stands at Mandrill, and each field's name and value in
    order of the names ("Authenticating webhook requests"), as the bytes that they are. ``secrets``: one key, or several
    apart by spaces.
    """
    keys = secrets_of(secrets)
    if not url:
        raise CannotVerify("the public address of the webhook is not known")
    try:
        form = request.body.decode(errors="surrogateescape")
        fields = parse_qsl(form, keep_blank_values=True, max_num_fields=20, errors="surrogateescape")
    except ValueError:
        raise NotAuthentic("the body is not a form") from None
    told = sorted((_bytes(name), _bytes(value)) for name, value in fields)
    content = b"".join([url.encode(errors="replace"), *(name + value for name, value in told)])
    right = [base64.b64encode(hmac.digest(key, content, hashlib.sha1)) for key in keys]
    if not matches([request.headers.get("x-mandrill-signature", "")], right):
        raise NotAuthentic("no signature matches")
    return dict(told).get(FORM_FIELD, b"")


def _bytes(text: str) -> bytes:
    """What was decoded with ``surrogateescape``."""
    return text.encode(errors="surrogateescape")


def event_of(part: Mapping[str, Any], raw: bytes) -> ProviderEvent | None:
    """One event; None for changes of lists, and for inbound mail. Raises ValueError for what is no event."""
    word, message = part.get("event"), mapping(part.get("msg"))
    if word is None and text(part.get("type")):
        return None
    if not isinstance(word, str):
        raise ValueError("the event has no name")
    if word == "inbound":
        return None
    event_type, bounce_class = EVENTS.get(word, (EventType.UNKNOWN, None))
    message_id, metadata = text(part.get("_id")) or text(message.get("_id")), mapping(message.get("metadata"))
    return ProviderEvent(
        event_type=event_type,
        event_id=derived_id(raw, word, message_id, text(part.get("ts"))),
        provider_message_id=message_id,
        send_id=text(metadata.get("send_id")),
        attempt=whole_number(metadata.get("attempt")),
        recipient=bare_address(message.get("email")),
        occurred_at=epoch(part.get("ts")),
        bounce_class=bounce_class,
        reason=text(message.get("diag")) if event_type in GIVE_A_REASON else None,
        url=text(part.get("url")),
        raw=raw,
    )


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Mandrill:
    """The entry in the list of providers."""

    name: str = "mandrill"
    title: str = "Mandrill"
    settings: tuple[Setting, ...] = (
        Setting(name="api_key", help="An API key that may send.", secret=True, required=True),
        Setting(name="base_url", help="Where the API answers, without /api.", default=BASE_URL),
        Setting(
            name="webhook_secret",
            help="The key of the webhook; two apart by a space while one replaces the other.",
            secret=True,
            for_events=True,
        ),
        Setting(
            name="webhook_url",
            help="The webhook's address as it stands at Mandrill, which signs it; only where it is not the one that "
            "Sendonce shows.",
            for_events=True,
        ),
        *domain_settings("mte1 mte2 mandrill"),
    )

    def capabilities(self, settings: Settings) -> Capabilities:
        """Our id comes back in the metadata; there are no keys."""
        return Capabilities(metadata=True, webhooks=True)

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account."""
        key = settings.get("api_key", "").strip()
        return open_json_channel(
            settings, keys=("api_key",), base_url=BASE_URL, request_timeout=request_timeout,
            path="/api/1.0/messages/send.json", headers=lambda _: {},
            fields=lambda outgoing: fields_of(outgoing, key=key), judge=judge, nothing={"key": key, "message": {}},
        )  # fmt: skip

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Verify the signature over address and form, then read the events."""
        url = settings.get("webhook_url") or request.url
        told = verified_form(request, secrets=settings.get("webhook_secret", ""), url=url)
        return read_each(json_list(told), event_of)

    def classify(self, result: SendResult) -> Outcome | list[Outcome]:
        """Judge one result without a network; a list for an answer that names its recipients."""
        if isinstance(result, Answer) and result.status == 200 and isinstance(said(result), list):
            return judge_each(result)
        return judge_result(self.title, result, judge)
