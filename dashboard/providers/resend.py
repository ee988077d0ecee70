"""Resend: one message a call or up to a hundred, settled by its idempotency key; events over Svix.

Facts from resend.com/docs (pages named beside them). A repeat with the same key and the same bytes within 24 hours
gives the first answer again and sends nothing, which makes Resend's ambiguous boundary the best one there is.
There is no look-up: a message is found by Resend's own id only, never by ours, so asking proves nothing.

A call for several is made in the permissive mode: in the strict one, which is Resend's default, one bad message has all
of them refused. What it refuses so comes without a code, so that each goes alone the next time, and is judged by that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from dashboard.lifecycle import EventType
from dashboard.providers.base import (
    Accepted,
    BounceClass,
    Capabilities,
    Channel,
    Deadline,
    NeverWritten,
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
from dashboard.providers.http import NO_DEADLINE, HttpClient
from dashboard.providers.http_outcomes import (
    Ruling,
    call_for_all,
    call_once,
    http_date,
    judge_by_table,
    judge_result,
    outcome_of,
    readable,
    told_to_each,
    unreadable,
)
from dashboard.providers.json_api import code_of, given, is_id, json_bytes, marks, message_headers, says_yes
from dashboard.providers.reading import (
    instant,
    json_object,
    mapping,
    named_values,
    only_recipient,
    text,
    whole_number,
)
from dashboard.providers.results import Answer, NoAnswer, SendResult
from dashboard.providers.shared_calls import parted
from dashboard.providers.standard_webhooks import verified_id
from dashboard.providers.wire import credential, refusing
from dashboard.providers.wording import for_people, mailbox_text, tidy

BASE_URL = "https://api.resend.com"
KEY_WINDOW = timedelta(hours=24)  # "Idempotency keys"
SINGLE, BATCH = "/emails", "/emails/batch"
MOST_TOGETHER = 100  # "Send batch emails"

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


@dataclass(frozen=True, slots=True)
class ResendChannel:
    """One account's connections."""

    client: HttpClient
    api_key: str
    honours_keys: bool

    def submit(self, outgoing: Outgoing) -> Outcome:
        """``POST /emails``, once ("Send email")."""
        return call_once(
            outgoing,
            write=lambda outgoing: json_bytes(fields_of(outgoing, honours_keys=self.honours_keys)),
            post=lambda body: self._post(SINGLE, body, outgoing.deadline, key=outgoing.send_id),
            judge=judge_and_wait,
        )

    def batches(self, members: Sequence[Outgoing]) -> list[list[Outgoing]]:
        """Any messages go together."""
        return parted(members, size=MOST_TOGETHER)

    def submit_batch(self, batch: UUID, members: Sequence[Outgoing]) -> list[Outcome]:
        """``POST /emails/batch``, once ("Send batch emails")."""
        return call_for_all(
            members,
            entry=lambda outgoing: fields_of(outgoing, honours_keys=self.honours_keys),
            write=lambda _, entries: json_bytes(entries),
            post=lambda body, by: self._post(BATCH, body, by, key=batch),
            judge=judge_batch,
        )

    def try_out(self) -> Outcome:
        """The POST of one message, without a message; and without a key, which belongs to one send."""
        return outcome_of(self._post(SINGLE, b"{}", NO_DEADLINE), judge_and_wait)

    def _post(
        self, path: str, body: bytes, submit_by: Deadline, *, key: UUID | None = None
    ) -> Answer | NoAnswer | NeverWritten:
        headers = {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"}
        if key is not None and self.honours_keys:
            headers["Idempotency-Key"] = str(key)
        if path == BATCH:
            headers["x-batch-validation"] = "permissive"
        return self.client.post(path, headers=headers, body=body, submit_by=submit_by)

    def close(self) -> None:
        """Drop idle connections."""
        self.client.close()


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


def judge_batch(answer: Answer, members: Sequence[Outgoing]) -> list[Outcome]:
    """What an answer to several messages means to each."""
    if answer.status != 200:
        return told_to_each(judge_and_wait(answer), members)
    return results_of(answer, len(members))


def results_of(answer: Answer, number: int) -> list[Outcome]:
    """What a 200 says of each of so many messages ("Send batch emails").

    ``errors`` names the refused ones by their place, ``data`` holds an id for each of the others, in order. Where that
    does not add up, nobody knows which were taken.
    """
    body = mapping(readable(answer))
    data, errors = _objects(body.get("data")), _objects(body.get("errors"))
    refused = {whole_number(error.get("index")): text(error.get("message")) or "" for error in errors}
    ids = [message_id for entry in data if is_id(message_id := text(entry.get("id")))]
    if len(refused) != len(errors) or not refused.keys() <= set(range(number)) or len(ids) != number - len(refused):
        return [unreadable(answer, "without an id or a refusal for every message")] * number
    request_id, left = code_of(answer.headers.get("x-request-id")), iter(ids)
    return [
        Rejected(retryable=True, reason=for_people(refused[place])) if place in refused
        else Accepted(next(left), request_id)
        for place in range(number)
    ]  # fmt: skip


def _objects(value: object) -> list[Mapping[str, Any]]:
    return [mapping(entry) for entry in value] if isinstance(value, list) else []


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
        return Capabilities(key_window=window, metadata=True, webhooks=True, batch_size=MOST_TOGETHER)

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account; with settings that cannot work, a channel that says so to every message."""
        try:
            api_key = credential(settings, "api_key")
            client = HttpClient(settings.get("base_url") or BASE_URL, request_timeout=request_timeout)
        except ValueError as error:
            return refusing(str(error))
        return ResendChannel(client, api_key, _honours_keys(settings))

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Verify the Svix signature over the raw bytes ("Verify webhooks"), then read the one event."""
        event_id = verified_id(request, secrets=settings.get("webhook_secret", ""))
        return Webhook(events_of(event_id, request.body))

    def classify(self, result: SendResult) -> Outcome | list[Outcome]:
        """Judge one result without a network; a list for the answer to a batch."""
        match result:
            case Answer(status=200) if isinstance(data := mapping(readable(result)).get("data"), list):
                return results_of(result, len(data) + len(_objects(mapping(readable(result)).get("errors"))))
            case _:
                return judge_result(self.title, result, judge)


def _honours_keys(settings: Settings) -> bool:
    return says_yes(settings.get("honours_keys", "true"))
