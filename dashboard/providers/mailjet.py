"""Mailjet: one message a call, our id in its payload and as its CustomID; unsigned events.

Facts from mailjet/api-documentation (guides named beside them) and from django-anymail's ``mailjet`` modules. No
idempotency key is documented, so an unanswered call is settled by events. Message ids exceed what a float can hold:
they are read as integers and kept as text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
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
    Setting,
    Settings,
    Webhook,
    WebhookRequest,
    domain_settings,
)
from dashboard.providers.event_batches import derived_id, json_in_text, listed, read_each
from dashboard.providers.http_outcomes import judge_refusal, judge_result, ruling_of, unreadable
from dashboard.providers.json_api import (
    basic,
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
from dashboard.providers.reading import bare_address, epoch, first_object, mapping, text, whole_number
from dashboard.providers.results import Answer, SendResult
from dashboard.providers.unsigned import NETWORKS, PASSWORDS, check_sender

BASE_URL = "https://api.mailjet.com"

# ── Mailjet's words ──────────────────────────────────────────────────────────────────────────────────────────────────

EVENTS = {  # "Event API"
    "sent": EventType.DELIVERED,  # "when the destination SMTP server has accepted the message"
    "open": EventType.OPENED,
    "click": EventType.CLICKED,
    "bounce": EventType.BOUNCED,
    "blocked": EventType.REJECTED,
    "spam": EventType.COMPLAINED,
    "unsub": EventType.UNSUBSCRIBED,
}
TEMPORARY = "greylisted"
"""The one bounce after which Mailjet tries again ("Possible values for errors")."""
GIVE_A_REASON = frozenset({EventType.DEFERRED, EventType.BOUNCED, EventType.REJECTED})

# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _mailbox(name: str | None, address: str) -> dict[str, str]:
    return named(name, address, address_field="Email", name_field="Name")


def fields_of(outgoing: Outgoing) -> dict[str, Any]:
    """The body of one send ("Send API v3.1"): a list of one message."""
    message = outgoing.message
    return {
        "Messages": [
            given(
                {
                    "From": _mailbox(*split_mailbox(message.sender)),
                    "To": [_mailbox(outgoing.recipient_name, outgoing.address)],
                    "Subject": message.subject,
                    "ReplyTo": _mailbox(*split_mailbox(message.reply_to)) if message.reply_to else None,
                    "TextPart": message.text,
                    "HTMLPart": message.html,
                    "Headers": message_headers(outgoing),
                    "CustomID": str(outgoing.send_id),
                    "EventPayload": json.dumps(marks(outgoing, attempt=True)),
                }
            )
        ]
    }


def judge(answer: Answer) -> Outcome:
    """What an answer means: 200, the one message a success, and the id of its one recipient are the only yes.

    A message in error is refused within the answer, with a status of its own ("Send in bulk").
    """
    body = said(answer)
    messages = mapping(body).get("Messages")
    message = mapping(messages[0]) if isinstance(messages, list) and len(messages) == 1 else {}
    if message.get("Status") == "error":
        return _judge_refused(answer, message)
    if answer.status == 200:
        to = message.get("To")
        message_id = text(mapping(to[0]).get("MessageID")) if isinstance(to, list) and len(to) == 1 else None
        if message.get("Status") == "success" and is_id(message_id):
            return Accepted(message_id)
        return unreadable(answer, "without a success and its MessageID")
    return judge_error(
        answer,
        {},
        body_read=body is not None,
        error_code=code_of(text(mapping(body).get("ErrorCode"))),
        words=text(mapping(body).get("ErrorMessage")) or "",
    )


def _judge_refused(answer: Answer, message: Mapping[str, Any]) -> Outcome:
    error = first_object(message.get("Errors"))
    status = error.get("StatusCode")
    return judge_refusal(
        answer,
        ruling_of(status if isinstance(status, int) else 0),
        error_code=code_of(text(error.get("ErrorCode"))),
        words=text(error.get("ErrorMessage")) or "",
    )


# ── read_webhook ─────────────────────────────────────────────────────────────────────────────────────────────────────


def event_of(part: Mapping[str, Any], raw: bytes) -> ProviderEvent:
    """One event. Raises ValueError for what is none."""
    word = part.get("event")
    if not isinstance(word, str):
        raise ValueError("the event has no name")
    event_type, bounce_class = _meaning(word, part)
    # Grouped events may have it under its older name alone ("Grouping events").
    message_id = text(part.get("MessageID")) or text(part.get("mj_message_id"))
    recipient = bare_address(part.get("email"))
    ours = json_in_text(part.get("Payload"))
    return ProviderEvent(
        event_type=event_type,
        event_id=derived_id(raw, word, message_id, recipient, text(part.get("time"))),
        provider_message_id=message_id,
        send_id=text(ours.get("send_id")) or text(part.get("CustomID")),
        attempt=whole_number(ours.get("attempt")),
        recipient=recipient,
        occurred_at=epoch(part.get("time")),
        bounce_class=bounce_class,
        reason=(text(part.get("smtp_reply")) or text(part.get("error"))) if event_type in GIVE_A_REASON else None,
        url=text(part.get("url")),
        raw=raw,
    )


def _meaning(word: str, part: Mapping[str, Any]) -> tuple[EventType, BounceClass | None]:
    event_type = EVENTS.get(word, EventType.UNKNOWN)
    if event_type is not EventType.BOUNCED:
        return event_type, None
    if part.get("hard_bounce") is True:
        return event_type, "hard"
    return (EventType.DEFERRED, None) if part.get("error") == TEMPORARY else (event_type, "soft")


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Mailjet:
    """The entry in the list of providers."""

    name: str = "mailjet"
    title: str = "Mailjet"
    settings: tuple[Setting, ...] = (
        Setting(name="api_key", help="The API key (the public one).", required=True),
        Setting(name="secret_key", help="The secret key that belongs to it.", secret=True, required=True),
        Setting(name="base_url", help="Where the API answers, without /v3.1.", default=BASE_URL),
        PASSWORDS,
        NETWORKS,
        *domain_settings("mailjet"),
    )

    def capabilities(self, settings: Settings) -> Capabilities:
        """Our id comes back in the payload; there are no keys."""
        return Capabilities(metadata=True, webhooks=True)

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account."""
        user, password = settings.get("api_key", "").strip(), settings.get("secret_key", "").strip()
        headers = {"Authorization": basic(user, password)}
        return open_json_channel(
            settings, keys=("api_key", "secret_key"), base_url=BASE_URL, request_timeout=request_timeout,
            path="/v3.1/send", headers=lambda _: headers, fields=fields_of, judge=judge, nothing={"Messages": []},
        )  # fmt: skip

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Check who calls ("Event API: endpoint URL"), then read the event, or the group of them."""
        check_sender(request, settings)
        return read_each(listed(request.body), event_of)

    def classify(self, result: SendResult) -> Outcome:
        """Judge one result without a network."""
        return judge_result(self.title, result, judge)
