"""Postmark: one message a call or up to 500, no idempotency key; events one a request, which nobody signs.

Facts from postmarkapp.com (pages named beside them). Its webhooks are as authentic as the password in their address,
and as the networks they come from, where the account names those. Any 4xx but 408 and 429 drops an event for good.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from dashboard.lifecycle import EventType
from dashboard.providers.base import (
    Accepted,
    Ambiguous,
    BounceClass,
    Capabilities,
    Channel,
    Deadline,
    NeverWritten,
    Outcome,
    Outgoing,
    ProviderEvent,
    Question,
    Reply,
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
    judge_by_table,
    judge_result,
    listed,
    outcome_of,
    readable,
    told_to_each,
    unreadable,
)
from dashboard.providers.inbound import header_pairs, read_mail
from dashboard.providers.json_api import code_of, given, is_id, json_bytes, said
from dashboard.providers.reading import (
    bare_address,
    compact,
    instant,
    json_object,
    mapping,
    text,
    whole_number,
)
from dashboard.providers.results import Answer, NoAnswer, SendResult
from dashboard.providers.shared_calls import parted
from dashboard.providers.unsigned import NETWORKS, PASSWORDS, check_sender
from dashboard.providers.wire import credential, refusing
from dashboard.providers.wording import mailbox_text, message_id, tidy

BASE_URL = "https://api.postmarkapp.com"
MOST_TOGETHER = 500  # "Batch emails"
ROOM = 50_000_000
"""Bytes of a call's body ("Size limits"). A call that turns out too large is refused whole, and each goes alone."""

# ── Postmark's words ─────────────────────────────────────────────────────────────────────────────────────────────────

Meaning = tuple[EventType, BounceClass | None]

EVENTS: Mapping[str, Meaning] = {  # "Webhooks overview"
    "Delivery": (EventType.DELIVERED, None),
    "Open": (EventType.OPENED, None),
    "Click": (EventType.CLICKED, None),
    "SpamComplaint": (EventType.COMPLAINED, None),
}
BOUNCES: Mapping[str, Meaning] = {  # "Bounce API: bounce types"; by ``Type``, since the tables of ``TypeCode`` disagree
    "HardBounce": (EventType.BOUNCED, "hard"),
    "SoftBounce": (EventType.BOUNCED, "soft"),
    "Transient": (EventType.DEFERRED, None),
    "DnsError": (EventType.DEFERRED, None),
    "Unsubscribe": (EventType.UNSUBSCRIBED, None),
    "Subscribe": (EventType.RESUBSCRIBED, None),
    "AutoResponder": (EventType.AUTO_REPLY, None),
    "AddressChange": (EventType.AUTO_REPLY, None),
    "ChallengeVerification": (EventType.AUTO_REPLY, None),
    "SpamNotification": (EventType.BOUNCED, "block"),
    "VirusNotification": (EventType.BOUNCED, "block"),
    "Blocked": (EventType.BOUNCED, "block"),
    "DMARCPolicy": (EventType.BOUNCED, "block"),
    "BadEmailAddress": (EventType.REJECTED, None),
    "Unconfirmed": (EventType.REJECTED, None),
    "ManuallyDeactivated": (EventType.REJECTED, "suppressed"),
    "SMTPApiError": (EventType.FAILED, None),
    "TemplateRenderingFailed": (EventType.FAILED, None),
    "SpamComplaint": (EventType.COMPLAINED, None),
    "Unknown": (EventType.BOUNCED, "undetermined"),
}
CHANGES: Mapping[str, Meaning] = {  # "Subscription change webhook", by ``SuppressionReason``; any other: unsubscribed
    "HardBounce": (EventType.BOUNCED, "hard"),
    "SpamComplaint": (EventType.COMPLAINED, None),
}
INBOUND = "Inbound"
WITH_REASON = frozenset({"Bounce", "SpamComplaint"})

_CODES = "API overview: error codes"
ANSWERS: Mapping[tuple[int, str], Ruling] = {  # by status and ``ErrorCode``; any other: by the status
    (401, "10"): Ruling("rejected", Scope.ACCOUNT, f"{_CODES}: bad or missing token"),
    (422, "300"): Ruling("rejected", Scope.MESSAGE, f"{_CODES}: invalid email request"),
    (422, "400"): Ruling("rejected", Scope.ACCOUNT, f"{_CODES}: sender signature not found"),
    (422, "401"): Ruling("rejected", Scope.ACCOUNT, f"{_CODES}: sender signature not confirmed"),
    (422, "405"): Ruling("rejected", Scope.ACCOUNT, f"{_CODES}: not allowed to send, out of credits"),
    (422, "406"): Ruling("rejected", Scope.MESSAGE, f"{_CODES}: inactive recipient"),
    (422, "412"): Ruling("rejected", Scope.ACCOUNT, f"{_CODES}: account is pending"),
    (422, "413"): Ruling("rejected", Scope.ACCOUNT, f"{_CODES}: account may not send"),
    (503, "100"): Ruling("retryable", Scope.ACCOUNT, f"{_CODES}: maintenance, nothing is processed"),
}

# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class PostmarkChannel:
    """One account's connections."""

    client: HttpClient
    token: str
    stream: str

    def submit(self, outgoing: Outgoing) -> Outcome:
        """``POST /email``, once ("Email API")."""
        return call_once(
            outgoing,
            write=lambda outgoing: json_bytes(fields_of(outgoing, stream=self.stream)),
            post=lambda body: self._post("/email", body, outgoing.deadline),
            judge=judge,
        )

    def batches(self, members: Sequence[Outgoing]) -> list[list[Outgoing]]:
        """Any messages go together, as long as there is room for them."""
        return parted(members, size=MOST_TOGETHER, weight=_weight, room=ROOM)

    def submit_batch(self, batch: UUID, members: Sequence[Outgoing]) -> list[Outcome]:
        """``POST /email/batch``, once ("Batch emails")."""
        return call_for_all(
            members,
            entry=lambda outgoing: fields_of(outgoing, stream=self.stream),
            write=lambda _, entries: json_bytes(entries),
            post=lambda body, by: self._post("/email/batch", body, by),
            judge=judge_batch,
        )

    def try_out(self) -> Outcome:
        """The POST of one message, without a message."""
        return outcome_of(self._post("/email", b"{}", NO_DEADLINE), judge)

    def _post(self, path: str, body: bytes, submit_by: Deadline) -> Answer | NoAnswer | NeverWritten:
        headers = {**self._headers(), "Content-Type": "application/json"}
        return self.client.post(path, headers=headers, body=body, submit_by=submit_by)

    def look_up(self, question: Question) -> tuple[ProviderEvent, ...]:
        """``GET /messages/outbound``, by our id in the metadata ("Messages API", "Custom metadata FAQ")."""
        asked = urlencode({"metadata_send_id": str(question.send_id), "count": 50, "offset": 0})
        return found_of(
            question, listed(self.client.get(f"/messages/outbound?{asked}", headers=self._headers()), "Messages")
        )

    def _headers(self) -> dict[str, str]:
        return {"X-Postmark-Server-Token": self.token, "Accept": "application/json"}

    def close(self) -> None:
        """Drop idle connections."""
        self.client.close()


def fields_of(outgoing: Outgoing, *, stream: str) -> dict[str, Any]:
    """The body of one send. Raises ValueError for a domain that cannot be one."""
    message, send_id = outgoing.message, str(outgoing.send_id)
    # Without X-PM-KeepID, Postmark writes a Message-ID of its own ("Custom headers").
    headers = dict(sorted(message.headers.items())) | {
        "Message-ID": message_id(outgoing),
        "X-PM-KeepID": "true",
        "X-Send-Id": send_id,
    }
    fields = {
        "From": tidy(message.sender),
        "To": mailbox_text(outgoing.recipient_name or "", outgoing.address),
        "Subject": message.subject,
        "ReplyTo": message.reply_to and tidy(message.reply_to),
        "TextBody": message.text,
        "HtmlBody": message.html,
        "MessageStream": stream,
        "Metadata": {"send_id": send_id, "attempt": str(outgoing.attempt)},  # names up to 20 characters, values 80
        "Headers": [{"Name": name, "Value": value} for name, value in headers.items()],
    }
    return given(fields)


def _weight(outgoing: Outgoing) -> int:
    """About how many bytes a message takes of a body, rather too many: JSON writes some characters as two."""
    return 2 * sum(len((part or "").encode()) for part in (outgoing.message.text, outgoing.message.html)) + 4_000


def judge(answer: Answer) -> Outcome:
    """What an answer to one message means: 200 with an id and no other error code than 0 is the only yes."""
    body = readable(answer)
    if answer.status == 200:
        # "Message accepted, but delivery may be delayed" comes without an ErrorCode.
        taken = body is not None and body.get("ErrorCode", 0) == 0
        message_id = _message_id(body) if taken else None
        if message_id:
            return Accepted(message_id)
        return unreadable(answer, "without a message id")
    return _judge_error(answer, body)


def judge_batch(answer: Answer, members: Sequence[Outgoing]) -> list[Outcome]:
    """What an answer to several messages means to each."""
    if answer.status != 200:
        return told_to_each(judge(answer), members)
    return results_of(answer, len(members))


def results_of(answer: Answer, number: int) -> list[Outcome]:
    """What a 200 says of each of so many messages: one result a message, in order ("Batch emails")."""
    results = said(answer)
    if not isinstance(results, list) or len(results) != number:
        return [unreadable(answer, "without a result for every message")] * number
    return [_judge_result(answer, mapping(result)) for result in results]


def _judge_result(answer: Answer, result: Mapping[str, Any]) -> Outcome:
    code = whole_number(result.get("ErrorCode", 0))
    if code == 0 and (message_id := _message_id(result)):
        return Accepted(message_id)
    if code:
        # A message that a batch refuses is refused as it would be alone, with 422.
        return _judge_error(replace(answer, status=422), result)
    return Ambiguous(error_class="unreadable_answer", reason="a batch whose answer does not name every message")


def _judge_error(answer: Answer, body: Mapping[str, Any] | None) -> Outcome:
    told = mapping(body)
    return judge_by_table(
        answer,
        ANSWERS,
        body_read=body is not None,
        error_code=code_of(text(told.get("ErrorCode"))),
        words=text(told.get("Message")) or "",
    )


def _message_id(result: Mapping[str, Any] | None) -> str | None:
    told = text(mapping(result).get("MessageID"))
    return told if is_id(told) else None


# ── read_webhook ─────────────────────────────────────────────────────────────────────────────────────────────────────


def events_of(trace_id: str | None, body: bytes) -> tuple[ProviderEvent, ...]:
    """The one event of a request, or none. Raises ValueError for a malformed body.

    ``trace_id``: ``X-PM-Webhook-Trace-Id``, equal over repeats; without it an id is made of what the event says.
    """
    parsed = json_object(body)
    kind = text(parsed.get("RecordType"))
    if kind == INBOUND or (kind is None and "FromFull" in parsed):
        return ()
    if kind is None:
        raise ValueError("the event has no RecordType")
    (event_type, bounce_class), reason = _meaning(kind, parsed)
    recipient = bare_address(parsed.get("Recipient")) or bare_address(parsed.get("Email"))
    message_id = text(parsed.get("MessageID"))
    at = next((told for name in _TIMES if (told := text(parsed.get(name)))), None)
    own_id = text(parsed.get("ID"))
    derived = f"{kind}:{own_id}" if own_id else f"{kind}:{message_id or ''}:{recipient or ''}:{at or ''}"
    metadata = mapping(parsed.get("Metadata"))
    event = ProviderEvent(
        event_type=event_type,
        event_id=trace_id or derived,
        provider_message_id=message_id,
        send_id=text(metadata.get("send_id")),
        attempt=whole_number(metadata.get("attempt")),
        recipient=recipient,
        occurred_at=instant(at),
        bounce_class=bounce_class,
        reason=reason,
        url=text(parsed.get("OriginalLink")),
        raw=body,
    )
    return (event,)


_TIMES = ("DeliveredAt", "BouncedAt", "ReceivedAt", "ChangedAt")


def _meaning(kind: str, event: Mapping[str, Any]) -> tuple[Meaning, str | None]:
    unknown: Meaning = (EventType.UNKNOWN, None)
    if kind == "SubscriptionChange":
        cause = text(event.get("SuppressionReason"))
        if event.get("SuppressSending") is False:
            return (EventType.RESUBSCRIBED, None), cause
        return CHANGES.get(cause or "", (EventType.UNSUBSCRIBED, None)), cause
    reason = text(event.get("Details")) or text(event.get("Description")) if kind in WITH_REASON else None
    if kind == "Bounce":
        return BOUNCES.get(text(event.get("Type")) or "", unknown), reason
    return EVENTS.get(kind, unknown), reason


# ── read_reply ───────────────────────────────────────────────────────────────────────────────────────────────────────


def reply_of(body: bytes) -> Reply:
    """The mail of an inbound request ("Inbound webhook"). Raises ValueError for what is none."""
    mail = json_object(body)
    kind = text(mail.get("RecordType"))
    if kind not in (None, INBOUND):
        raise ValueError(f"{kind} is no mail that came in: it belongs to the webhook address")
    if "FromFull" not in mail and "From" not in mail:
        raise ValueError("the mail has no From")
    people = [one for name in ("ToFull", "CcFull") if isinstance(many := mail.get(name), list) for one in many]
    told = [(name, text(mail.get(name)) or "") for name in ("From", "To", "Cc", "Date", "Subject")]
    return read_mail(
        [*header_pairs(mail.get("Headers")), *told],
        sender=mapping(mail.get("FromFull")).get("Email"),
        recipients=[mail.get("OriginalRecipient"), *(mapping(one).get("Email") for one in people)],
        said=text(mail.get("StrippedTextReply")) or text(mail.get("TextBody")),
        html=text(mail.get("HtmlBody")),
    )


# ── look_up ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def found_of(question: Question, messages: list[Any]) -> tuple[ProviderEvent, ...]:
    """The messages of a listing that show our id, each as the event that Postmark took it."""
    shown = [(message, mapping(mapping(message).get("Metadata"))) for message in messages]
    return tuple(
        ProviderEvent(
            event_type=EventType.ACCEPTED,
            event_id=f"look-up:{message_id}",
            provider_message_id=message_id,
            send_id=str(question.send_id),
            attempt=whole_number(metadata.get("attempt")),
            occurred_at=instant(message.get("ReceivedAt")),
            raw=compact(message),
        )
        for message, metadata in shown
        if metadata.get("send_id") == str(question.send_id) and (message_id := _message_id(message))
    )


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Postmark:
    """The entry in the list of providers."""

    name: str = "postmark"
    title: str = "Postmark"
    settings: tuple[Setting, ...] = (
        Setting(name="server_token", help="The token of the server that sends.", secret=True, required=True),
        Setting(name="base_url", help="Where the API answers.", default=BASE_URL),
        Setting(name="message_stream", help="The message stream that sends.", default="outbound"),
        PASSWORDS,
        NETWORKS,
        *domain_settings(),
    )

    def capabilities(self, settings: Settings) -> Capabilities:
        """No keys; the send id comes back in every event, and can be asked for.

        How soon a message can be found is documented nowhere, so that *not found* is never proof.
        """
        return Capabilities(
            metadata=True, webhooks=True, look_up=True, batch_size=MOST_TOGETHER, message_id="ours",
            message_id_domain="mtasv.net", replies=True,
        )  # fmt: skip

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account; with settings that cannot work, a channel that says so to every message."""
        try:
            token = credential(settings, "server_token")
            client = HttpClient(settings.get("base_url") or BASE_URL, request_timeout=request_timeout)
        except ValueError as error:
            return refusing(str(error))
        return PostmarkChannel(client, token, settings.get("message_stream") or "outbound")

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Check who reports, then read the one event."""
        check_sender(request, settings)
        return Webhook(events_of(text(request.headers.get("x-pm-webhook-trace-id")), request.body))

    def read_reply(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Check who reports, as for events, then read the one mail."""
        check_sender(request, settings)
        return Webhook(replies=(reply_of(request.body),))

    def classify(self, result: SendResult) -> Outcome | list[Outcome]:
        """Judge one result without a network; a list for the answer to a batch."""
        match result:
            case Answer(status=200) if isinstance(results := said(result), list):
                return results_of(result, len(results))
            case _:
                return judge_result(self.title, result, judge)
