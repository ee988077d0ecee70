"""Mailgun: one message a call, no idempotency key; events one a request, under a signature that leaves them out.

Facts from documentation.mailgun.com (pages named beside them). What Mailgun signs is a timestamp and a random token,
never the event itself: whoever reads one request could put another event under its signature. So each token is to be
believed with one body only, and the address of the webhook is to be kept like a secret.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

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
    call_once,
    judge_by_table,
    judge_result,
    listed,
    outcome_of,
    readable,
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
from dashboard.providers.results import Answer, SendResult
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

_LONGEST_ID = 250
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
        headers = {"Authorization": self.authorization, "Content-Type": "application/x-www-form-urlencoded"}
        return call_once(
            outgoing,
            write=request_body,
            post=lambda body: self.client.post(
                f"{self.domain}/messages", headers=headers, body=body, submit_by=outgoing.deadline
            ),
            judge=judge,
        )

    def try_out(self) -> Outcome:
        """The same POST, without a message."""
        headers = {"Authorization": self.authorization, "Content-Type": "application/x-www-form-urlencoded"}
        result = self.client.post(f"{self.domain}/messages", headers=headers, body=b"", submit_by=NO_DEADLINE)
        return outcome_of(result, judge)

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
        provider_message_id=(text(headers.get("message-id")) or "").strip("<>") or None,
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
        return Capabilities(metadata=True, webhooks=True, look_up=True, message_id="ours", replies=True)

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
