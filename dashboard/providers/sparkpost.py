"""SparkPost: one message a call, our id in the recipient's metadata; unsigned events in batches.

Facts from SparkPost's repositories developers.sparkpost.com and support-docs (pages named beside them) and from
django-anymail's ``sparkpost`` modules. Idempotency keys were announced in August 2026 (developers.sparkpost.com, pull
request 590) and may not reach every account: only one that says ``honours_keys`` true sends them and relies on them.
"""

from __future__ import annotations

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
)
from dashboard.providers.reading import bare_address, epoch, first_object, json_list, mapping, text, whole_number
from dashboard.providers.results import Answer, SendResult
from dashboard.providers.unsigned import NETWORKS, PASSWORDS, check_sender
from dashboard.providers.wording import tidy

BASE_URL = "https://api.sparkpost.com"
KEY_WINDOW = timedelta(hours=24)  # developers.sparkpost.com, pull request 590

# ── SparkPost's words ────────────────────────────────────────────────────────────────────────────────────────────────

_KEYS = "developers.sparkpost.com, pull request 590"
_CODES = "support-docs: extended error codes"
RULINGS: Mapping[tuple[int, str], Ruling] = {  # by status and ``errors[0].code``; any other: by the status
    (409, "1600"): Ruling("ambiguous", Scope.MESSAGE, f"{_KEYS}: a request with the key was taken"),
    (409, "1601"): Ruling("key_in_use", Scope.MESSAGE, f"{_KEYS}: the first request with the key is running"),
    (400, "1602"): Ruling("rejected", Scope.MESSAGE, f"{_KEYS}: the key cannot be one"),
    (400, "1502"): Ruling("retryable", Scope.ACCOUNT, f"{_CODES}: server resources unavailable, retry later"),
    (400, "7000"): Ruling("rejected", Scope.ACCOUNT, f"{_CODES}: sending domain blacklisted"),
    (400, "7001"): Ruling("rejected", Scope.ACCOUNT, f"{_CODES}: invalid sending domain"),
    (420, "2101"): Ruling("retryable", Scope.ACCOUNT, f"{_CODES}: exceed sending limit (hourly)"),
    (420, "2102"): Ruling("retryable", Scope.ACCOUNT, f"{_CODES}: exceed sending limit (daily)"),
    (420, "2103"): Ruling("rejected", Scope.ACCOUNT, f"{_CODES}: exceed sending limit (sandbox)"),
}

EVENTS = {  # "Webhooks: message, engagement, generation and unsubscribe events"
    "injection": EventType.ACCEPTED,
    "delivery": EventType.DELIVERED,
    "delay": EventType.DEFERRED,
    "bounce": EventType.BOUNCED,
    "out_of_band": EventType.BOUNCED,
    "policy_rejection": EventType.REJECTED,
    "generation_rejection": EventType.REJECTED,
    "generation_failure": EventType.FAILED,
    "spam_complaint": EventType.COMPLAINED,
    "open": EventType.OPENED,
    "initial_open": EventType.OPENED,
    "amp_open": EventType.OPENED,
    "amp_initial_open": EventType.OPENED,
    "click": EventType.CLICKED,
    "amp_click": EventType.CLICKED,
    "list_unsubscribe": EventType.UNSUBSCRIBED,
    "link_unsubscribe": EventType.UNSUBSCRIBED,
}
BOUNCES: Mapping[str, tuple[EventType, BounceClass | None]] = {  # support-docs: bounce classification codes
    **dict.fromkeys(("10", "30"), (EventType.BOUNCED, "hard")),
    **dict.fromkeys(("20", "21", "22", "23", "24", "40", "70"), (EventType.BOUNCED, "soft")),
    **dict.fromkeys(("50", "51", "52", "53", "54"), (EventType.BOUNCED, "block")),
    "25": (EventType.REJECTED, None),
    "60": (EventType.AUTO_REPLY, None),
    "80": (EventType.RESUBSCRIBED, None),
    "90": (EventType.UNSUBSCRIBED, None),
    "100": (EventType.AUTO_REPLY, None),
}
OTHER_BOUNCE: tuple[EventType, BounceClass] = (EventType.BOUNCED, "undetermined")
GIVE_A_REASON = frozenset({EventType.DEFERRED, EventType.BOUNCED, EventType.REJECTED, EventType.FAILED})
NOT_OURS = frozenset({"relay_message", "relay_event", "ab_test_event", "ingest_event"})
"""Classes of events about inbound mail, tests and imported lists."""

# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def fields_of(outgoing: Outgoing, *, honours_keys: bool) -> dict[str, Any]:
    """The body of one send ("Transmissions: create"). Under a key it is the same on every attempt.

    The content is rendered: ``perform_substitutions`` is off, or SparkPost would evaluate ``{{ }}`` in it.
    """
    message = outgoing.message
    return {
        "recipients": [
            {
                "address": named(outgoing.recipient_name, outgoing.address),
                "metadata": marks(outgoing, attempt=not honours_keys),
            }
        ],
        "content": given(
            {
                "from": tidy(message.sender),
                "subject": message.subject,
                "reply_to": message.reply_to and tidy(message.reply_to),
                "text": message.text,
                "html": message.html,
                "headers": message_headers(outgoing),
            }
        ),
        "options": {"transactional": True, "perform_substitutions": False},
    }


def judge(answer: Answer) -> Outcome:
    """What an answer means: 200 with ``results.id`` and the recipient taken is the only yes."""
    body = said(answer)
    results = mapping(mapping(body).get("results"))
    if answer.status == 200:
        message_id = text(results.get("id"))
        if results.get("total_accepted_recipients") == 0 and results.get("total_rejected_recipients") == 1:
            return Rejected(scope=Scope.MESSAGE, reason="the recipient was rejected", provider_message_id=message_id)
        return Accepted(message_id) if is_id(message_id) else unreadable(answer, "without the id of a transmission")
    error = first_object(mapping(body).get("errors"))
    words = " ".join(filter(None, (text(error.get("message")), text(error.get("description")))))
    return judge_error(
        answer, RULINGS, body_read=body is not None, error_code=code_of(text(error.get("code"))), words=words
    )


# ── read_webhook ─────────────────────────────────────────────────────────────────────────────────────────────────────


def event_of(part: Mapping[str, Any], raw: bytes) -> ProviderEvent | None:
    """One event; None for a ping and for what is not about an outbound message. Raises ValueError for no event."""
    classes = part.get("msys")
    if not isinstance(classes, dict):
        raise ValueError("the event has no msys")
    if not classes or classes.keys() <= NOT_OURS:
        return None
    (event,) = classes.values() if len(classes) == 1 else (None,)
    word = mapping(event).get("type")
    if not isinstance(event, dict) or not isinstance(word, str):
        raise ValueError("the event has no type")
    event_type, bounce_class = EVENTS.get(word, EventType.UNKNOWN), None
    if event_type is EventType.BOUNCED:
        event_type, bounce_class = BOUNCES.get(text(event.get("bounce_class")) or "", OTHER_BOUNCE)
    message_id, recipient = text(event.get("transmission_id")), bare_address(event.get("rcpt_to"))
    ours = mapping(event.get("rcpt_meta"))
    return ProviderEvent(
        event_type=event_type,
        event_id=text(event.get("event_id"))
        or derived_id(raw, word, message_id, recipient, text(event.get("timestamp"))),
        provider_message_id=message_id,
        send_id=text(ours.get("send_id")),
        attempt=whole_number(ours.get("attempt")),
        recipient=recipient,
        occurred_at=epoch(event.get("timestamp")),
        bounce_class=bounce_class,
        reason=(text(event.get("raw_reason")) or text(event.get("reason"))) if event_type in GIVE_A_REASON else None,
        url=text(event.get("target_link_url")),
        raw=raw,
    )


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SparkPost:
    """The entry in the list of providers."""

    name: str = "sparkpost"
    title: str = "SparkPost"
    settings: tuple[Setting, ...] = (
        Setting(name="api_key", help="An API key that may create transmissions.", secret=True, required=True),
        Setting(
            name="base_url",
            help="Where the API answers, without /api; https://api.eu.sparkpost.com in Europe.",
            default=BASE_URL,
        ),
        PASSWORDS,
        NETWORKS,
        Setting(
            name="honours_keys",
            help="true where SparkPost honours Idempotency-Key for this account: an unknown send may then be repeated "
            "by policy.",
            default="false",
        ),
        *domain_settings(),
    )

    def capabilities(self, settings: Settings) -> Capabilities:
        """Keys count for 24 hours where the account says that they do."""
        window = KEY_WINDOW if _honours_keys(settings) else None
        return Capabilities(key_window=window, metadata=True, webhooks=True)

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account."""
        authorization = {"Authorization": settings.get("api_key", "").strip()}
        honours_keys = _honours_keys(settings)

        def headers(outgoing: Outgoing | None) -> dict[str, str]:
            return authorization | ({"Idempotency-Key": str(outgoing.send_id)} if outgoing and honours_keys else {})

        return open_json_channel(
            settings, keys=("api_key",), base_url=BASE_URL, request_timeout=request_timeout,
            path="/api/v1/transmissions/", headers=headers,
            fields=lambda outgoing: fields_of(outgoing, honours_keys=honours_keys), judge=judge,
        )  # fmt: skip

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Check who calls, then read the events."""
        check_sender(request, settings)
        return read_each(json_list(request.body), event_of)

    def classify(self, result: SendResult) -> Outcome:
        """Judge one result without a network."""
        return judge_result(self.title, result, judge)


def _honours_keys(settings: Settings) -> bool:
    return says_yes(settings.get("honours_keys") or "false")
