"""Resend: one message a call, settled by its idempotency key; events over Svix.

Facts from resend.com/docs (pages named beside them). A repeat with the same key and the same bytes within 24 hours
gives the first answer again and sends nothing, which makes Resend's ambiguous boundary the best one there is.
There is no look-up: a message is found by Resend's own id only, never by ours, so asking proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from dashboard.lifecycle import EventType
from dashboard.providers.base import (
    Accepted,
    Ambiguous,
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
from dashboard.providers.http_outcomes import (
    Ruling,
    http_date,
    judge_by_table,
    judge_result,
    readable,
    unreadable,
)
from dashboard.providers.json_api import (
    code_of,
    given,
    is_id,
    marks,
    message_headers,
    open_json_channel,
    says_yes,
)
from dashboard.providers.reading import (
    instant,
    json_object,
    mapping,
    named_values,
    only_recipient,
    text,
    whole_number,
)
from dashboard.providers.results import Answer, SendResult
from dashboard.providers.standard_webhooks import verified_id
from dashboard.providers.wording import mailbox_text, tidy

BASE_URL = "https://api.resend.com"
KEY_WINDOW = timedelta(hours=24)  # "Idempotency keys"

# ── Resend's words ───────────────────────────────────────────────────────────────────────────────────────────────────

EVENTS = {  # "Webhooks: event types"
    "email.scheduled": EventType.ACCEPTED,
    "email.sent": EventType.ACCEPTED,
    "email.delivery_delayed": EventType.DEFERRED,
    "email.delivered": EventType.DELIVERED,
    "email.bounced": EventType.BOUNCED,
    "email.suppressed": EventType.REJECTED,
    "email.failed": EventType.FAILED,
    "email.complained": EventType.COMPLAINED,
    "email.opened": EventType.OPENED,
    "email.clicked": EventType.CLICKED,
}
INBOUND = "email.received"
BOUNCES: Mapping[str, BounceClass] = {"Permanent": "hard", "Transient": "soft", "Temporary": "soft"}  # "Email bounces"
NOT_TRIED = frozenset({"Suppressed", "OnAccountSuppressionList"})
"""Bounce sub-types of an address that Resend did not even try."""

ANSWERS: Mapping[tuple[int, str], Ruling] = {  # by status and the ``name`` in the body; any other: by the status
    (409, "concurrent_idempotent_requests"): Ruling(
        "key_in_use", Scope.MESSAGE, "Idempotency keys: the first is running"
    ),
    # The body differs from one that may have been sent. It is no proof that nothing was.
    (409, "invalid_idempotent_request"): Ruling("ambiguous", Scope.MESSAGE, "Idempotency keys; Errors"),
    (400, "invalid_idempotency_key"): Ruling("rejected", Scope.MESSAGE, "Errors"),
    (429, "daily_quota_exceeded"): Ruling("retryable", Scope.ACCOUNT, "Rate limit: ends at midnight UTC"),
    (429, "monthly_quota_exceeded"): Ruling("retryable", Scope.ACCOUNT, "Rate limit"),
}
MONTHLY_QUOTA_WAIT = 3600.0
"""Seconds between two tries while the quota of a month is used up: when that month ends is not documented."""
# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def fields_of(outgoing: Outgoing, *, honours_keys: bool) -> dict[str, Any]:
    """The body of one send ("Send email"). Under a key it is the same on every attempt."""
    message = outgoing.message
    return given(
        {
            "from": tidy(message.sender),
            "to": [mailbox_text(outgoing.recipient_name or "", outgoing.address)],
            "subject": message.subject,
            "reply_to": message.reply_to and tidy(message.reply_to),
            "text": message.text,
            "html": message.html,
            "headers": message_headers(outgoing),
            "tags": [
                {"name": name, "value": value} for name, value in marks(outgoing, attempt=not honours_keys).items()
            ],
        }
    )


def judge(answer: Answer) -> Outcome:
    """What an answer to one message means: 200 with an id is the only yes ("Send email", "Errors")."""
    body = readable(answer)
    request_id = code_of(answer.headers.get("x-request-id"))
    if answer.status == 200:
        message_id = text(mapping(body).get("id"))
        if is_id(message_id):
            return Accepted(message_id, request_id)
        return unreadable(answer, "without a message id", request_id)
    return judge_by_table(
        answer,
        ANSWERS,
        body_read=body is not None,
        error_code=code_of(text(mapping(body).get("name"))),
        words=text(mapping(body).get("message")) or "",
        request_id=request_id,
    )


def judge_and_wait(answer: Answer) -> Outcome:
    """The same for a call that was made just now."""
    return until_its_quota_ends(judge(answer), answer)


def until_its_quota_ends(outcome: Outcome, answer: Answer, now: datetime | None = None) -> Outcome:
    """A refusal for a used-up quota with the time for which no further call makes sense ("Rate limit").

    A day ends at midnight UTC by the provider's clock, as the answer tells it; else by ours (``now``).
    """
    if not isinstance(outcome, Rejected) or outcome.retry_after_seconds is not None:
        return outcome
    match outcome.error_code:
        case "daily_quota_exceeded":
            told = http_date(answer.headers.get("date", "")) or now or datetime.now(UTC)
            midnight = told.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
            return replace(outcome, retry_after_seconds=(midnight - told).total_seconds())
        case "monthly_quota_exceeded":
            return replace(outcome, retry_after_seconds=MONTHLY_QUOTA_WAIT)
        case _:
            return outcome


def judge_batch(answer: Answer) -> list[Outcome]:
    """What a 200 to ``POST /emails/batch`` means: one id a message, in order ("Send batch emails")."""
    body = mapping(readable(answer))
    ids = [text(mapping(entry).get("id")) for entry in body["data"]]
    in_doubt = Ambiguous(error_class="unreadable_answer", reason="a batch whose answer does not name every message")
    return [Accepted(message_id) if message_id and not body.get("errors") else in_doubt for message_id in ids]


# ── read_webhook ─────────────────────────────────────────────────────────────────────────────────────────────────────


def events_of(event_id: str, body: bytes) -> tuple[ProviderEvent, ...]:
    """The one event of a verified request, or none. Raises ValueError for a malformed body."""
    parsed = json_object(body)
    word = parsed.get("type")
    if not isinstance(word, str):
        raise ValueError("the event has no type")
    if not word.startswith("email.") or word == INBOUND:
        return ()
    data = parsed.get("data")
    if not isinstance(data, dict):
        raise ValueError("the event has no data")
    event_type, bounce_class, reason = _meaning(word, data)
    click = mapping(data.get("click"))
    tags = named_values(data.get("tags"))
    event = ProviderEvent(
        event_type=event_type,
        event_id=event_id,
        provider_message_id=text(data.get("email_id")),
        send_id=text(tags.get("send_id")) or text(named_values(data.get("headers")).get("x-send-id")),
        attempt=whole_number(tags.get("attempt")),
        recipient=only_recipient(data.get("to")),
        # ``data.created_at`` is the message's own creation.
        occurred_at=instant(click.get("timestamp")) or instant(parsed.get("created_at")),
        bounce_class=bounce_class,
        reason=reason,
        url=text(click.get("link")),
        raw=body,
    )
    return (event,)


def _meaning(word: str, data: Mapping[str, Any]) -> tuple[EventType, BounceClass | None, str | None]:
    event_type = EVENTS.get(word, EventType.UNKNOWN)
    match word:
        case "email.bounced":
            bounce = mapping(data.get("bounce"))
            message = text(bounce.get("message"))
            kind, sub_kind = text(bounce.get("type")), text(bounce.get("subType"))
            not_tried = sub_kind in NOT_TRIED if sub_kind else (message or "").startswith("Resend has suppressed")
            if not_tried:
                return EventType.REJECTED, "suppressed", message
            return event_type, BOUNCES.get(kind or "", "undetermined"), message
        case "email.suppressed":
            return event_type, "suppressed", text(mapping(data.get("suppressed")).get("message"))
        case "email.failed":
            return event_type, None, text(mapping(data.get("failed")).get("reason"))
        case _:
            return event_type, None, None


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Resend:
    """The entry in the list of providers."""

    name: str = "resend"
    title: str = "Resend"
    settings: tuple[Setting, ...] = (
        Setting(name="api_key", help="An API key that may send.", secret=True, required=True),
        Setting(name="base_url", help="Where the API answers.", default=BASE_URL),
        Setting(
            name="webhook_secret",
            help="The signing secret of the webhook (whsec_…); two apart by a space while one replaces the other.",
            secret=True,
            for_events=True,
        ),
        Setting(
            name="honours_keys",
            help="false where Idempotency-Key is ignored: an unknown send is then never repeated by policy.",
            default="true",
        ),
        *domain_settings("resend"),
    )

    def capabilities(self, settings: Settings) -> Capabilities:
        """Keys count for 24 hours unless the account says that they do not."""
        window = KEY_WINDOW if _honours_keys(settings) else None
        return Capabilities(key_window=window, metadata=True, webhooks=True)

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account."""
        authorization = {"Authorization": f"Bearer {settings.get('api_key', '').strip()}"}
        honours_keys = _honours_keys(settings)

        def headers(outgoing: Outgoing | None) -> dict[str, str]:
            return authorization | ({"Idempotency-Key": str(outgoing.send_id)} if outgoing and honours_keys else {})

        return open_json_channel(
            settings, keys=("api_key",), base_url=BASE_URL, request_timeout=request_timeout, path="/emails",
            headers=headers, fields=lambda outgoing: fields_of(outgoing, honours_keys=honours_keys),
            judge=judge_and_wait,
        )  # fmt: skip

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Verify the Svix signature over the raw bytes ("Verify webhooks"), then read the one event."""
        event_id = verified_id(request, secrets=settings.get("webhook_secret", ""))
        return Webhook(events_of(event_id, request.body))

    def classify(self, result: SendResult) -> Outcome | list[Outcome]:
        """Judge one result without a network; a list for the answer to a batch."""
        match result:
            case Answer(status=200) if isinstance(mapping(readable(result)).get("data"), list):
                return judge_batch(result)
            case _:
                return judge_result(self.title, result, judge)


def _honours_keys(settings: Settings) -> bool:
    return says_yes(settings.get("honours_keys", "true"))
