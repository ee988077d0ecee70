"""SendGrid: one message a call, or up to 1,000 of one text; no idempotency key; events in batches, signed with ECDSA.

What a personalization may say for itself is the recipient, the subject, the headers and the custom arguments, but not
the text ("Personalizations"). A text of one's own would have to come by substitution tags, of which one document says
that they hold 10,000 bytes and another 50,000, and none whether a value is looked through for tags again. So only
messages with the same text share a call. All of them have one id: see ``together.member_id``.

Facts from twilio.com/docs/sendgrid (pages named beside them). Its own library is not used: what a failed
call proves depends on whether a byte of it was written, which a library does not tell.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, timedelta
from typing import Any
from urllib.parse import quote
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from dashboard.lifecycle import EventType
from dashboard.providers.base import (
    Accepted,
    BounceClass,
    Capabilities,
    Channel,
    Deadline,
    Message,
    NeverWritten,
    NotAuthentic,
    Outcome,
    Outgoing,
    ProviderEvent,
    Question,
    Rejected,
    Reply,
    Setting,
    Settings,
    Webhook,
    WebhookRequest,
    domain_settings,
)
from dashboard.providers.event_batches import read_each
from dashboard.providers.http import NO_DEADLINE, HttpClient
from dashboard.providers.http_outcomes import (
    LONGEST_WAIT,
    call_for_all,
    call_once,
    judge_by_table,
    judge_result,
    listed,
    object_of,
    outcome_of,
    readable,
    told_to_each,
    unreadable,
)
from dashboard.providers.inbound import decoded_text, form_fields, header_lines, read_mail, read_mime
from dashboard.providers.json_api import given, is_id, json_bytes, named, split_mailbox
from dashboard.providers.reading import (
    bare_address,
    compact,
    epoch,
    first_object,
    flag,
    json_list,
    json_object,
    mapping,
    text,
    whole_number,
)
from dashboard.providers.results import Answer, NoAnswer, SendResult
from dashboard.providers.shared_calls import member_id, parted
from dashboard.providers.signatures import decoded, public_keys, signed_by_one
from dashboard.providers.unsigned import REPLY_PASSWORDS, check_sender
from dashboard.providers.wire import credential, refusing
from dashboard.providers.wording import ascii_domain, message_id

BASE_URL = "https://api.sendgrid.com"

# ── SendGrid's words ─────────────────────────────────────────────────────────────────────────────────────────────────

EVENTS = {  # "Event Webhook reference"
    "processed": EventType.ACCEPTED,
    "deferred": EventType.DEFERRED,
    "delivered": EventType.DELIVERED,
    "bounce": EventType.BOUNCED,
    "dropped": EventType.REJECTED,
    "open": EventType.OPENED,
    "click": EventType.CLICKED,
    "spamreport": EventType.COMPLAINED,
    "unsubscribe": EventType.UNSUBSCRIBED,
    "group_unsubscribe": EventType.UNSUBSCRIBED,
    "group_resubscribe": EventType.RESUBSCRIBED,
}
NOT_ABOUT_A_MESSAGE = frozenset({"account_status_change"})
NOT_TRIED = frozenset({"Bounced Address", "Unsubscribed Address", "Spam Reporting Address"})
"""Reasons of a drop that stand on a list of the account's."""
WITH_REASON = frozenset({EventType.DEFERRED, EventType.BOUNCED, EventType.REJECTED})

ATTEMPT = "send_attempt"
"""Custom arguments come back beside the event's own fields, one of which is called ``attempt``."""
BATCH = "send_batch"
"""Marks a message that shares its call, and so its id, with others."""
MOST_TOGETHER = 1_000  # "Mail Send: limitations"

TOLERANCE_SECONDS = 300
LONGEST_DELAY_SECONDS = 25 * 3600
"""How old a signed timestamp may be. Deliveries are repeated for 24 hours, and no document says whether a repeat is
signed anew; a replayed one changes nothing, since its events are known already."""

MOST_LISTED, MOST_ASKED = 100, 10
"""Messages to one recipient since the call: how many are listed, and how many of them looked at one by one."""

_ROUTING = re.compile(r"\.(?:filter|recvd)")

# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SendGridChannel:
    """One account's connections."""

    client: HttpClient
    api_key: str

    def submit(self, outgoing: Outgoing) -> Outcome:
        """``POST /v3/mail/send``, once ("Mail Send")."""
        return call_once(
            outgoing, write=request_body, post=lambda body: self._post(body, outgoing.deadline), judge=judge
        )

    def batches(self, members: Sequence[Outgoing]) -> list[list[Outgoing]]:
        """Messages of one sender and one text go together."""
        return parted(members, size=MOST_TOGETHER, alike=in_common)

    def submit_batch(self, batch: UUID, members: Sequence[Outgoing]) -> list[Outcome]:
        """The same POST, once, with a personalization for each ("Personalizations")."""
        return call_for_all(
            members,
            entry=lambda outgoing: personalization(outgoing, batch),
            write=batch_body,
            post=self._post,
            judge=judge_batch,
        )

    def try_out(self) -> Outcome:
        """The same POST, without a message."""
        return outcome_of(self._post(b"{}", NO_DEADLINE), judge)

    def look_up(self, question: Question) -> tuple[ProviderEvent, ...]:
        """``POST /v3/logs``, by recipient and time, then ``GET /v3/logs/<id>``, which shows our id ("Email Logs")."""
        body = compact({"query": query_of(question), "limit": MOST_LISTED})
        listing = self.client.post("/v3/logs", headers=self._headers(), body=body, submit_by=NO_DEADLINE)
        ids = candidates_of(listed(listing, "messages"))
        answers = (self.client.get(f"/v3/logs/{quote(one, safe='')}", headers=self._headers()) for one in ids)
        events = (found_of(question, object_of(answer)) for answer in answers)
        return tuple(event for event in events if event is not None)

    def _post(self, body: bytes, submit_by: Deadline) -> Answer | NoAnswer | NeverWritten:
        return self.client.post("/v3/mail/send", headers=self._headers(), body=body, submit_by=submit_by)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.api_key}", "Content-Type": "application/json"}

    def close(self) -> None:
        """Drop idle connections."""
        self.client.close()


def request_body(outgoing: Outgoing) -> bytes:
    """The JSON of one send. Raises ValueError for a domain that cannot be one."""
    own = {"personalizations": [_recipient(outgoing, _identity(outgoing))]}
    subject, headers = {"subject": outgoing.message.subject}, {"headers": _own_headers(outgoing)}
    return json_bytes(own | _shared(outgoing.message) | subject | headers)


def personalization(outgoing: Outgoing, batch: UUID) -> dict[str, Any]:
    """What is one member's own in a call for several. Raises ValueError for a domain that cannot be one."""
    own = {"subject": outgoing.message.subject, "headers": _own_headers(outgoing)}
    return _recipient(outgoing, _identity(outgoing) | {BATCH: str(batch)}) | own


def batch_body(members: Sequence[Outgoing], personalizations: Sequence[Mapping[str, Any]]) -> bytes:
    """The JSON of several sends that have the rest in common."""
    return json_bytes({"personalizations": personalizations} | _shared(members[0].message))


def in_common(outgoing: Outgoing) -> Hashable:
    """What messages of one call share."""
    message = outgoing.message
    return message.sender, message.reply_to, message.text, message.html


def _shared(message: Message) -> dict[str, Any]:
    content = [("text/plain", message.text), ("text/html", message.html)]  # "Mail Send": text comes first
    fields = {
        "from": _parsed(message.sender),
        "reply_to": message.reply_to and _parsed(message.reply_to),
        "content": [{"type": kind, "value": value} for kind, value in content if value],  # an empty one is refused
    }
    return given(fields)


def _recipient(outgoing: Outgoing, custom_args: dict[str, str]) -> dict[str, Any]:
    return {"to": [_person(outgoing.recipient_name or "", outgoing.address)], "custom_args": custom_args}


def _identity(outgoing: Outgoing) -> dict[str, str]:
    return {"send_id": str(outgoing.send_id), ATTEMPT: str(outgoing.attempt)}


def _own_headers(outgoing: Outgoing) -> dict[str, str]:
    ours = {"Message-ID": message_id(outgoing), "X-Send-Id": str(outgoing.send_id)}
    return dict(sorted(outgoing.message.headers.items())) | ours


def _parsed(sender: str) -> dict[str, str]:
    return _person(*split_mailbox(sender))


def _person(name: str, address: str) -> dict[str, str]:
    return named(name, ascii_domain(address))


def judge(answer: Answer) -> Outcome:
    """What an answer means: 202 is the only yes; its body is empty ("Mail Send"). There are no error codes."""
    told = text(answer.headers.get("x-message-id"))
    if answer.status == 202:
        return Accepted(told if is_id(told) else None)
    if 200 <= answer.status < 300:
        return unreadable(answer, "in place of 202")
    body = readable(answer)
    error = first_object(mapping(body).get("errors"))
    outcome = judge_by_table(
        answer,
        {},
        body_read=body is not None,
        error_code=str(answer.status),
        words=text(error.get("message")) or "",
    )
    if isinstance(outcome, Rejected) and outcome.retryable and outcome.retry_after_seconds is None:
        return replace(outcome, retry_after_seconds=_until_reset(answer))
    return outcome


def judge_batch(answer: Answer, members: Sequence[Outgoing]) -> list[Outcome]:
    """What an answer to several messages means to each: all are taken, or none is ("Mail Send": one id, no results)."""
    outcome = judge(answer)
    if isinstance(outcome, Accepted):
        told = outcome.provider_message_id
        return [Accepted(member_id(told, one.send_id), request_id=told) for one in members]
    return told_to_each(outcome, members)


def _until_reset(answer: Answer) -> float | None:
    """Seconds until the second that ``X-RateLimit-Reset`` names ("Rate limits"), never negative."""
    reset = epoch(answer.headers.get("x-ratelimit-reset"))
    if reset is None:
        return None
    return min(max((reset - answer.received_at).total_seconds(), 0.0), LONGEST_WAIT)


# ── read_webhook ─────────────────────────────────────────────────────────────────────────────────────────────────────


def check_signature(request: WebhookRequest, keys: str) -> None:
    """Raise NotAuthentic unless one of the account's keys signed timestamp and raw body ("Security features").

    ``keys``: base64 of DER, as SendGrid shows them, apart by spaces: switching signing off and on makes a new one.
    """
    known = public_keys(keys, ec.EllipticCurvePublicKey)  # type: ignore[type-abstract]
    timestamp = request.headers.get("x-twilio-email-event-webhook-timestamp", "")
    given = request.headers.get("x-twilio-email-event-webhook-signature", "")
    if not timestamp or not given:
        raise NotAuthentic("the signature headers are missing")
    if not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise NotAuthentic("the timestamp cannot be one")
    if not -TOLERANCE_SECONDS <= request.now.timestamp() - int(timestamp) <= LONGEST_DELAY_SECONDS:
        raise NotAuthentic("the timestamp is more than 25 hours old, or in the future")
    signature, content = decoded(given), timestamp.encode() + request.body
    if not signed_by_one(known, lambda key: key.verify(signature, content, ec.ECDSA(SHA256()))):
        raise NotAuthentic("no signature matches")


def event_of(entry: Mapping[str, Any], raw: bytes) -> ProviderEvent | None:
    """One event; None for what is about no message. Raises ValueError for what is no event."""
    word = text(entry.get("event"))
    if word is None:
        raise ValueError("the event has no type")
    if word in NOT_ABOUT_A_MESSAGE:
        return None
    event_type = EVENTS.get(word, EventType.UNKNOWN)
    recipient, provider_id = bare_address(entry.get("email")), text(entry.get("sg_message_id"))
    derived = f"{word}:{provider_id or ''}:{recipient or ''}:{text(entry.get('timestamp')) or ''}"
    return ProviderEvent(
        event_type=event_type,
        event_id=text(entry.get("sg_event_id")) or derived,
        provider_message_id=_id_of(entry, provider_id, text(entry.get("smtp-id"))),
        send_id=text(entry.get("send_id")),
        attempt=whole_number(entry.get(ATTEMPT)),
        recipient=recipient,
        occurred_at=epoch(entry.get("timestamp")),
        bounce_class=_bounce_class(event_type, entry),
        reason=(text(entry.get("reason")) or text(entry.get("response"))) if event_type in WITH_REASON else None,
        machine=flag(entry.get("sg_machine_open")) if event_type is EventType.OPENED else None,
        url=text(entry.get("url")) if event_type is EventType.CLICKED else None,
        raw=raw,
    )


def _id_of(arguments: Mapping[str, Any], told: str | None, smtp_id: str | None = None) -> str | None:
    """The id of one message: that of its call, unless it shared that with others."""
    call_id = _message_id(told, smtp_id)
    return member_id(call_id, text(arguments.get("send_id"))) if arguments.get(BATCH) else call_id


def _message_id(told: str | None, smtp_id: str | None) -> str | None:
    """What ``X-Message-Id`` said: the part before the routing, which ids that hold dots themselves must keep.

    Some drops name the routing alone; then the message's own header says it, unless that header is ours.
    """
    if told is not None and not told.startswith(("filter", "recvd", ".")):
        routing = _ROUTING.search(told)
        return told[: routing.start()] if routing else told.partition(".")[0]
    local, _, domain = (smtp_id or "").strip("<>").partition("@")
    return (local or None) if "ismtpd" in domain else None


def _bounce_class(event_type: EventType, entry: Mapping[str, Any]) -> BounceClass | None:
    if event_type is EventType.REJECTED:
        return "suppressed" if text(entry.get("reason")) in NOT_TRIED else None
    if event_type is not EventType.BOUNCED:
        return None
    if entry.get("type") == "blocked":
        return "block"
    return "soft" if (text(entry.get("status")) or "").startswith("4") else "hard"


# ── read_reply ───────────────────────────────────────────────────────────────────────────────────────────────────────


def reply_of(fields: Mapping[str, bytes]) -> Reply:
    """The mail of a form, parsed or raw ("Inbound Parse webhook"). Raises ValueError for what is none."""
    if not {"headers", "email", "from"} & fields.keys():
        raise ValueError("the form holds no mail")
    envelope = _json_field(fields, "envelope")
    receivers = envelope.get("to")
    recipients = receivers if isinstance(receivers, list) else [receivers]
    if "email" in fields:
        return read_mime(fields["email"], recipients=recipients)
    charsets = _json_field(fields, "charsets")

    def field(name: str) -> str | None:
        return text(decoded_text(fields.get(name, b""), text(charsets.get(name))))

    told = [(name.title(), field(name) or "") for name in ("from", "to", "cc", "subject")]
    return read_mail(
        [*header_lines(fields.get("headers", b"")), *told],
        recipients=recipients,
        said=field("text"),
        html=field("html"),
    )


def _json_field(fields: Mapping[str, bytes], name: str) -> Mapping[str, Any]:
    """What a field holds as JSON; an empty object where it is none."""
    try:
        return json_object(fields.get(name, b"{}"))
    except ValueError:
        return {}


# ── look_up ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def query_of(question: Question) -> str:
    """The messages to this recipient since shortly before the call. An address holds no quotes (``why_unsendable``)."""
    since = (question.since - timedelta(seconds=TOLERANCE_SECONDS)).astimezone(UTC)
    moment = since.strftime("%Y-%m-%dT%H:%M:%SZ")
    return f'to_email = "{question.address}" AND sg_message_id_created_at >= TIMESTAMP "{moment}"'


def candidates_of(messages: list[Any]) -> list[str]:
    """Their ids, the oldest first: ours is the next one after the call."""
    entries = [mapping(message) for message in messages]
    rows = [(text(one.get("sg_message_id_created_at")), text(one.get("sg_message_id"))) for one in entries]
    return [message_id for _, message_id in sorted((at or "", one) for at, one in rows if one)][:MOST_ASKED]


def found_of(question: Question, message: Mapping[str, Any]) -> ProviderEvent | None:
    """A message that shows our id, as the event that SendGrid took it."""
    arguments, full_id = mapping(message.get("custom_args")), text(message.get("sg_message_id"))
    if arguments.get("send_id") != str(question.send_id) or full_id is None:
        return None
    return ProviderEvent(
        event_type=EventType.ACCEPTED,
        event_id=f"look-up:{full_id}",
        provider_message_id=_id_of(arguments, full_id),
        send_id=str(question.send_id),
        attempt=whole_number(arguments.get(ATTEMPT)),
        recipient=bare_address(message.get("to_email")),
        raw=compact(message),
    )


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SendGrid:
    """The entry in the list of providers."""

    name: str = "sendgrid"
    title: str = "SendGrid"
    settings: tuple[Setting, ...] = (
        Setting(
            name="api_key",
            help="An API key with the scope Mail Send, and Email Logs for look-ups.",
            secret=True,
            required=True,
        ),
        Setting(
            name="base_url",
            help="Where the API answers; https://api.eu.sendgrid.com in the EU.",
            default=BASE_URL,
        ),
        Setting(
            name="webhook_secret",
            help="The verification key of the signed event webhook; two apart by a space while one replaces the other.",
            secret=True,
            for_events=True,
        ),
        REPLY_PASSWORDS,
        *domain_settings("s1 s2"),
    )

    def capabilities(self, settings: Settings) -> Capabilities:
        """No keys; the send id comes back in every event, and the logs show it.

        How soon a message is in the logs is documented nowhere, so that *not found* is never proof.
        """
        return Capabilities(
            metadata=True, webhooks=True, look_up=True, batch_size=MOST_TOGETHER, message_id="ours", replies=True
        )

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account; with settings that cannot work, a channel that says so to every message."""
        try:
            api_key = credential(settings, "api_key")
            client = HttpClient(settings.get("base_url") or BASE_URL, request_timeout=request_timeout)
        except ValueError as error:
            return refusing(str(error))
        return SendGridChannel(client, api_key)

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Verify the signature over the raw bytes, then read the batch."""
        check_signature(request, settings.get("webhook_secret", ""))
        return read_each(json_list(request.body), event_of)

    def read_reply(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Check the password in the address, for Inbound Parse signs nothing, then read the one mail."""
        check_sender(request, settings, REPLY_PASSWORDS)
        return Webhook(replies=(reply_of(form_fields(request)),))

    def classify(self, result: SendResult) -> Outcome:
        """Judge one result without a network."""
        return judge_result(self.title, result, judge)
