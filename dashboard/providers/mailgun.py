"""Mailgun: one message a call, or up to 1,000 of one text; no idempotency key; events one a request, under a signature
that leaves them out.

Facts from documentation.mailgun.com (pages named beside them). What Mailgun signs is a timestamp and a random token,
never the event itself: whoever reads one request could put another event under its signature. So each token is to be
believed with one body only, and the address of the webhook is to be kept like a secret.

In a call for several, recipient variables put what is each one's own in the place of ``%recipient.‹name›%`` ("Batch
sending"). How such a value is written into a subject or a body (its character set, its encoding, whether it is looked
through for variables again) no document says, so that only messages with the same subject and text share a call, and
variables carry plain ASCII: our ids, and headers such as List-Unsubscribe. Mailgun then gives all one Message-Id, in
place of ours: see ``together.member_id``.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode
from uuid import UUID

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
    Scope,
    Setting,
    Settings,
    SignedToken,
    Unverifiable,
    Webhook,
    WebhookRequest,
    domain_settings,
)
from dashboard.providers.http import NO_DEADLINE, HttpClient
from dashboard.providers.http_outcomes import (
    call_for_all,
    call_once,
    judge_by_table,
    judge_result,
    listed,
    outcome_of,
    readable,
    told_to_each,
    unreadable,
)
from dashboard.providers.inbound import decoded_text, form_fields, header_pairs, read_mail
from dashboard.providers.json_api import basic
from dashboard.providers.reading import (
    bare_address,
    compact,
    epoch,
    json_list,
    json_object,
    mapping,
    text,
    whole_number,
)
from dashboard.providers.results import Answer, NoAnswer, SendResult
from dashboard.providers.shared_calls import member_id, parted
from dashboard.providers.signatures import matches, secrets_of
from dashboard.providers.wire import credential, refusing
from dashboard.providers.wording import mailbox_text, message_id, tidy

BASE_URL = "https://api.mailgun.net"

# ── Mailgun's words ──────────────────────────────────────────────────────────────────────────────────────────────────

EVENTS = {  # "Events: event types"
    "accepted": EventType.ACCEPTED,
    "delivered": EventType.DELIVERED,
    "failed": EventType.BOUNCED,  # if it is permanent
    "rejected": EventType.REJECTED,
    "opened": EventType.OPENED,
    "clicked": EventType.CLICKED,
    "unsubscribed": EventType.UNSUBSCRIBED,
    "complained": EventType.COMPLAINED,
}
NOT_ABOUT_A_MESSAGE = ("stored", "list_")
NOT_TRIED = "suppress-"
"""How the reason of a failure begins that stands on a list of the account's."""
NOT_THE_API = b"Mailgun Magnificent API"
"""What a wrong path answers, with 200."""

TOLERANCE_SECONDS = 300
LONGEST_DELAY_SECONDS = 9 * 3600
"""How old a signed timestamp may be. Requests are repeated for 8 hours ("Webhook retries"), and no document says
whether a repeat is signed anew; others have seen that it is not."""

BATCH = "batch"
"""Marks a message that shares its call, and so its id, with others."""
MOST_TOGETHER = 1_000  # "Batch sending"
VARIABLE = "%recipient"
"""How a reference to a recipient begins, which Mailgun replaces wherever it stands in a call for several."""

_LONGEST_ID = 250
_PLAIN = re.compile(r"[ -~]{1,900}")
"""What a header may be to come by a variable: on one line whatever its name, and in no need of an encoding."""
_DOMAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})")

# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class MailgunChannel:
    """One account's connections."""

    client: HttpClient
    authorization: str
    domain: str

    def submit(self, outgoing: Outgoing) -> Outcome:
        """``POST /v3/<domain>/messages``, once ("Send an email")."""
        return call_once(
            outgoing, write=request_body, post=lambda body: self._post(body, outgoing.deadline), judge=judge
        )

    def batches(self, members: Sequence[Outgoing]) -> list[list[Outgoing]]:
        """Messages of one sender, subject and text go together."""
        return parted(members, size=MOST_TOGETHER, alike=in_common)

    def submit_batch(self, batch: UUID, members: Sequence[Outgoing]) -> list[Outcome]:
        """The same POST, once, with recipient variables ("Batch sending")."""
        return call_for_all(
            members,
            entry=own_variables,
            write=lambda sent, each: batch_body(batch, sent, each),
            post=self._post,
            judge=judge_batch,
        )

    def try_out(self) -> Outcome:
        """The same POST, without a message."""
        return outcome_of(self._post(b"", NO_DEADLINE), judge)

    def _post(self, body: bytes, submit_by: Deadline) -> Answer | NoAnswer | NeverWritten:
        headers = {"Authorization": self.authorization, "Content-Type": "application/x-www-form-urlencoded"}
        return self.client.post(f"{self.domain}/messages", headers=headers, body=body, submit_by=submit_by)

    def look_up(self, question: Question) -> tuple[ProviderEvent, ...]:
        """``GET /v3/<domain>/events``, by recipient and time ("Events"); our id is no filter, but it is shown."""
        begin = int(question.since.timestamp()) - TOLERANCE_SECONDS
        asked = urlencode({"recipient": question.address, "begin": begin, "ascending": "yes", "limit": 300})
        answer = self.client.get(f"{self.domain}/events?{asked}", headers={"Authorization": self.authorization})
        return found_of(question, listed(answer, "items"))

    def close(self) -> None:
        """Drop idle connections."""
        self.client.close()


def request_body(outgoing: Outgoing) -> bytes:
    """The form of one send. Raises ValueError for a domain that cannot be one."""
    message, send_id = outgoing.message, str(outgoing.send_id)
    headers = dict(sorted(message.headers.items())) | {
        "Reply-To": message.reply_to and tidy(message.reply_to),
        "Message-Id": message_id(outgoing),
        "X-Send-Id": send_id,
    }
    fields = {
        "from": tidy(message.sender),
        "to": mailbox_text(outgoing.recipient_name or "", outgoing.address),
        "subject": message.subject,
        "text": message.text,
        "html": message.html,
        "v:send_id": send_id,
        "v:attempt": str(outgoing.attempt),
        **{f"h:{name}": value for name, value in headers.items()},
    }
    return urlencode([(name, value) for name, value in fields.items() if value is not None]).encode()


def in_common(outgoing: Outgoing) -> Hashable:
    """What messages of one call share; None for one that a call for several could change.

    Variables are kept by address: only one that is spelled as every server spells it is sure to find its own.
    """
    message, address = outgoing.message, outgoing.address
    shared = message.sender, message.reply_to, message.subject, message.text, message.html
    said = [*shared, address, outgoing.recipient_name, *message.headers.values()]
    if any(VARIABLE in (each or "").lower() for each in said) or not address.isascii() or address != address.lower():
        return None
    return shared, tuple((name, None if _by_variable(value) else value) for name, value in _headers(message))


def own_variables(outgoing: Outgoing) -> dict[str, str]:
    """What is one member's own in a call for several. Raises ValueError for a domain that cannot be one."""
    message_id(outgoing)  # ours does not travel, but a sender that can have none is no sender
    own = {
        f"header{place}": value for place, (_, value) in enumerate(_headers(outgoing.message)) if _by_variable(value)
    }
    return own | {"send_id": str(outgoing.send_id), "attempt": str(outgoing.attempt)}


def batch_body(batch: UUID, members: Sequence[Outgoing], each: Sequence[Mapping[str, str]]) -> bytes:
    """The form of several sends that have the rest in common. ``each``: their variables."""
    message = members[0].message
    headers = [
        (name, f"{VARIABLE}.header{place}%" if _by_variable(value) else value)
        for place, (name, value) in enumerate(_headers(message))
    ]
    fields = [
        ("from", tidy(message.sender)),
        *(("to", mailbox_text(one.recipient_name or "", one.address)) for one in members),
        ("subject", message.subject),
        ("text", message.text),
        ("html", message.html),
        ("v:send_id", f"{VARIABLE}.send_id%"),
        ("v:attempt", f"{VARIABLE}.attempt%"),
        (f"v:{BATCH}", str(batch)),
        *((f"h:{name}", value) for name, value in headers),
        ("h:Reply-To", message.reply_to and tidy(message.reply_to)),
        ("h:X-Send-Id", f"{VARIABLE}.send_id%"),
        ("recipient-variables", json.dumps({one.address: own for one, own in zip(members, each, strict=True)})),
    ]
    return urlencode([(name, value) for name, value in fields if value is not None]).encode()


def _headers(message: Message) -> list[tuple[str, str]]:
    return sorted(message.headers.items())


def _by_variable(value: str) -> bool:
    return _PLAIN.fullmatch(value) is not None


def judge(answer: Answer) -> Outcome:
    """What an answer means: 200 with an id is the only yes ("Send an email"). There are no error codes."""
    body = readable(answer)
    if answer.status == 200:
        if answer.body.strip().startswith(NOT_THE_API):
            return Rejected(scope=Scope.ACCOUNT, error_code="200", reason="base_url does not lead to the API")
        told = (text(mapping(body).get("id")) or "").strip("<>")
        if told and len(told) <= _LONGEST_ID:
            return Accepted(told)
        return unreadable(answer, "without a message id")
    words = text(mapping(body).get("message")) or ""
    return judge_by_table(answer, {}, body_read=body is not None, error_code=str(answer.status), words=words)


def judge_batch(answer: Answer, members: Sequence[Outgoing]) -> list[Outcome]:
    """What an answer to several messages means to each: all are taken, or none is ("Send an email": no results)."""
    outcome = judge(answer)
    if isinstance(outcome, Accepted):
        told = outcome.provider_message_id
        return [Accepted(member_id(told, one.send_id), request_id=told) for one in members]
    return told_to_each(outcome, members)


# ── read_webhook ─────────────────────────────────────────────────────────────────────────────────────────────────────


def check_signature(signature: Mapping[str, Any], request: WebhookRequest, keys: str) -> SignedToken:
    """The token, if one of the account's keys signed it and its timestamp ("Securing webhooks"); else NotAuthentic.

    ``keys``: HTTP webhook signing keys apart by spaces. For a sub-account ``parent-signature`` counts as well.
    """
    known = secrets_of(keys)
    timestamp, token = text(signature.get("timestamp")) or "", text(signature.get("token")) or ""
    given = [told for name in ("signature", "parent-signature") if (told := text(signature.get(name)))]
    if not token or not re.fullmatch(r"[0-9]{1,12}", timestamp):
        raise NotAuthentic("the token or the timestamp cannot be one")
    if not -TOLERANCE_SECONDS <= request.now.timestamp() - int(timestamp) <= LONGEST_DELAY_SECONDS:
        raise NotAuthentic("the timestamp is more than nine hours old, or in the future")
    content = (timestamp + token).encode()
    if not matches(given, [hmac.digest(key, content, hashlib.sha256).hex().encode() for key in known]):
        raise NotAuthentic("no signature matches")
    return SignedToken(token, datetime.fromtimestamp(int(timestamp) + LONGEST_DELAY_SECONDS, UTC))


def events_of(parsed: Mapping[str, Any], body: bytes) -> tuple[ProviderEvent, ...]:
    """The one event of a verified request, or none. Raises ValueError where there is none to read."""
    event = parsed.get("event-data")
    if not isinstance(event, dict):
        raise ValueError("the request has no event-data")
    word = text(event.get("event"))
    if word is None:
        raise ValueError("the event has no type")
    if word.startswith(NOT_ABOUT_A_MESSAGE):
        return ()
    return (_event(word, event, mapping(parsed.get("signature")), body),)


def _event(word: str, event: Mapping[str, Any], signature: Mapping[str, Any], raw: bytes) -> ProviderEvent:
    event_type, bounce_class, reason = _meaning(word, event)
    variables = mapping(event.get("user-variables"))
    headers = mapping(mapping(event.get("message")).get("headers"))
    at = epoch(event.get("timestamp"))
    day = at or epoch(signature.get("timestamp"))
    return ProviderEvent(
        event_type=event_type,
        event_id=text(event.get("id")) or text(signature.get("token")) or "",
        event_day=day.date().isoformat() if day else "",  # "Events": unique within a day
        provider_message_id=_message_id(text(headers.get("message-id")), variables),
        send_id=text(variables.get("send_id")),
        attempt=whole_number(variables.get("attempt")),
        recipient=bare_address(event.get("recipient")) or _only_address(headers.get("to")),
        occurred_at=at,
        bounce_class=bounce_class,
        reason=reason,
        machine=_machine(event) if event_type in (EventType.OPENED, EventType.CLICKED) else None,
        url=text(event.get("url")),
        raw=raw,
    )


def _message_id(told: str | None, variables: Mapping[str, Any]) -> str | None:
    """The id of one message: that of its call, unless it shared that with others."""
    call_id = (told or "").strip("<>") or None
    return member_id(call_id, text(variables.get("send_id"))) if variables.get(BATCH) else call_id


def _meaning(word: str, event: Mapping[str, Any]) -> tuple[EventType, BounceClass | None, str | None]:
    event_type = EVENTS.get(word, EventType.UNKNOWN)
    if event_type is EventType.REJECTED:
        return event_type, None, text(mapping(event.get("reject")).get("reason"))
    if word != "failed":
        return event_type, None, None
    status, cause = mapping(event.get("delivery-status")), text(event.get("reason"))
    reason = text(status.get("message")) or text(status.get("description")) or cause
    if event.get("severity") == "temporary":
        return EventType.DEFERRED, None, reason
    if cause and cause.startswith(NOT_TRIED):
        return EventType.REJECTED, "suppressed", reason
    return event_type, _bounce_class(whole_number(status.get("code"))), reason


def _bounce_class(code: int | None) -> BounceClass:
    match (code or 0) // 100:
        case 5:
            return "hard"
        case 4:
            return "soft"
        case _:
            return "undetermined"


def _machine(event: Mapping[str, Any]) -> bool | None:
    """``bot`` names the machine, or is empty for none ("Events")."""
    bot = mapping(event.get("client-info")).get("bot")
    return bool(bot.strip()) if isinstance(bot, str) else None


def _only_address(to: object) -> str | None:
    told = text(to)
    return None if told is None or "," in told else bare_address(told)


# ── read_reply ───────────────────────────────────────────────────────────────────────────────────────────────────────

SIGNATURE = ("timestamp", "token", "signature")


def reply_of(fields: Mapping[str, bytes]) -> Reply:
    """The mail of a route's form ("Receiving messages via HTTP"). Raises ValueError for what is none."""
    told = {name: text(decoded_text(value)) for name, value in fields.items()}
    headers = told.get("message-headers")
    if headers is None and not told.get("from"):
        raise ValueError("the form holds no mail")
    return read_mail(
        [
            *header_pairs(_listed(headers)),
            *((name.title(), told.get(name) or "") for name in ("from", "to", "subject")),
        ],
        recipients=[told.get("recipient")],
        said=told.get("stripped-text") or told.get("body-plain"),
        html=told.get("body-html"),
    )


def _listed(headers: str | None) -> list[Any]:
    """The headers, a list of pairs as JSON; none where it is no list."""
    try:
        return json_list(headers or "[]")
    except ValueError:
        return []


def _signed_content(fields: Mapping[str, bytes]) -> bytes:
    """What the token is believed with: every try writes the form anew, perhaps with another boundary."""
    return b"".join(b"%s\0%d\0%s" % (name.encode(), len(fields[name]), fields[name]) for name in sorted(fields))


# ── look_up ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def found_of(question: Question, items: list[Any]) -> tuple[ProviderEvent, ...]:
    """The events of a listing that show our id: the same as a webhook would tell, under the same ids."""
    told = [(item, text(mapping(item).get("event"))) for item in items]
    events = [
        _event(word, item, {}, compact({"event-data": item}))
        for item, word in told
        if word is not None and not word.startswith(NOT_ABOUT_A_MESSAGE)
    ]
    return tuple(event for event in events if event.send_id == str(question.send_id) and event.event_id)


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Mailgun:
    """The entry in the list of providers."""

    name: str = "mailgun"
    title: str = "Mailgun"
    settings: tuple[Setting, ...] = (
        Setting(name="api_key", help="An API key, or a sending key of the domain.", secret=True, required=True),
        Setting(name="domain", help="The sending domain as Mailgun knows it.", required=True),
        Setting(
            name="base_url",
            help="Where the API answers; https://api.eu.mailgun.net in the EU.",
            default=BASE_URL,
        ),
        Setting(
            name="webhook_secret",
            help="The HTTP webhook signing key; two apart by a space while one replaces the other.",
            secret=True,
            for_events=True,
        ),
        *domain_settings(),
    )

    def capabilities(self, settings: Settings) -> Capabilities:
        """No keys; the send id comes back in every event, and events can be listed.

        They are listed late and out of order ("Events"), so that *not found* is never proof.
        """
        return Capabilities(
            metadata=True, webhooks=True, look_up=True, batch_size=MOST_TOGETHER, message_id="ours", replies=True
        )

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account; with settings that cannot work, a channel that says so to every message."""
        domain = settings.get("domain", "").strip()
        if not _DOMAIN.fullmatch(domain):
            return refusing("domain must be the sending domain, in ASCII")
        try:
            key = credential(settings, "api_key")
            client = HttpClient(settings.get("base_url") or BASE_URL, request_timeout=request_timeout)
        except ValueError as error:
            return refusing(str(error))
        return MailgunChannel(client, basic("api", key), f"/v3/{quote(domain)}")

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Verify the signature, which lies in the body, then read the one event."""
        try:
            parsed = json_object(request.body)
        except ValueError as error:
            raise Unverifiable(str(error)) from None
        signed = check_signature(mapping(parsed.get("signature")), request, settings.get("webhook_secret", ""))
        return Webhook(events_of(parsed, request.body), signed_token=signed)

    def read_reply(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Verify the signature, which lies in the form, then read the one mail."""
        try:
            fields = form_fields(request)
        except ValueError as error:
            raise Unverifiable(str(error)) from None
        signature = {name: decoded_text(fields.pop(name, b"")) for name in SIGNATURE}
        signed = check_signature(signature, request, settings.get("webhook_secret", ""))
        return Webhook(replies=(reply_of(fields),), signed_token=replace(signed, content=_signed_content(fields)))

    def classify(self, result: SendResult) -> Outcome:
        """Judge one result without a network."""
        return judge_result(self.title, result, judge)
