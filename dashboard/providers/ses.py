"""Amazon SES, API version 2: one message a call, or up to 50; no idempotency key; events by SNS.

Facts from the SES Developer Guide and the API's model (pages named beside them). Of botocore only the signature is
used: its client repeats by itself after 500, 502, 503, 504 and *read time-outs*, which is a silent second send.

A call for several renders a template ("SendBulkEmail"). Ours travels with the call and holds nothing but the names of
three values, whose content each entry brings; values are not escaped ("Advanced email personalization"), and with a
template in the call nothing but simple substitution is done ("Template"). No document says outright that a value is not
looked through for names again, so that a message with ``{{`` in it goes alone. It takes a permission of its own
(``ses:SendBulkEmail``), which is why an account has to ask for it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from email.header import Header
from email.utils import formataddr
from typing import TYPE_CHECKING, Any
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
    Outcome,
    Outgoing,
    ProviderEvent,
    Reply,
    Scope,
    Setting,
    Settings,
    Webhook,
    WebhookRequest,
    domain_settings,
)
from dashboard.providers.fetch import fetch
from dashboard.providers.http import NO_DEADLINE, HttpClient
from dashboard.providers.http_outcomes import (
    Ruling,
    call_for_all,
    call_once,
    judge_by_table,
    judge_refusal,
    judge_result,
    outcome_of,
    readable,
    told_to_each,
    unreadable,
)
from dashboard.providers.inbound import from_base64, header_pairs, read_mail, read_mime
from dashboard.providers.json_api import (
    code_of,
    given,
    is_id,
    json_bytes,
    message_headers,
    says_yes,
    split_mailbox,
)
from dashboard.providers.reading import (
    bare_address,
    instant,
    json_object,
    mapping,
    named_values,
    text,
    whole_number,
)
from dashboard.providers.results import Answer, NoAnswer, SendResult
from dashboard.providers.shared_calls import parted
from dashboard.providers.sns import NOTIFICATION, Certificates, Fetch, confirmation, verified
from dashboard.providers.wire import credential, refusing
from dashboard.providers.wording import ascii_domain

if TYPE_CHECKING:
    from botocore.auth import SigV4Auth

# ── Amazon's words ───────────────────────────────────────────────────────────────────────────────────────────────────

EVENTS = {  # "Contents of event data": eventType, or notificationType from an identity's own topics
    "Send": EventType.ACCEPTED,
    "Delivery": EventType.DELIVERED,
    "Bounce": EventType.BOUNCED,
    "Complaint": EventType.COMPLAINED,
    "DeliveryDelay": EventType.DEFERRED,
    "Reject": EventType.REJECTED,
    "Rendering Failure": EventType.FAILED,
    "Open": EventType.OPENED,
    "Click": EventType.CLICKED,
    "Subscription": EventType.UNSUBSCRIBED,  # if it says so
}
INBOUND = "Received"
DETAILS = {"DeliveryDelay": "deliveryDelay", "Rendering Failure": "failure"}
"""Under which key an event's own part stands; for the others, the type with a small first letter."""
RECIPIENTS = {"Bounce": "bouncedRecipients", "Complaint": "complainedRecipients", "DeliveryDelay": "delayedRecipients"}
BOUNCES: Mapping[str, BounceClass] = {"Permanent": "hard", "Transient": "soft"}
NOT_TRIED = frozenset({"Suppressed", "OnAccountSuppressionList"})
"""Sub-types of a bounce or a complaint about an address that SES did not even try."""
VALIDATED = "Successfully validated SNS topic"

_MODEL = "SendEmail: errors"
_RETRIES = "botocore: throttling errors"
_PASSING = "botocore: transient errors"
ANSWERS: Mapping[tuple[int, str], Ruling] = {  # by status and the error's type; any other: by the status
    (400, "AccountSuspendedException"): Ruling("rejected", Scope.ACCOUNT, _MODEL),
    (400, "SendingPausedException"): Ruling("rejected", Scope.ACCOUNT, _MODEL),
    (400, "MailFromDomainNotVerifiedException"): Ruling("rejected", Scope.ACCOUNT, _MODEL),
    (400, "LimitExceededException"): Ruling("rejected", Scope.ACCOUNT, _MODEL),
    (400, "BadRequestException"): Ruling("rejected", Scope.MESSAGE, _MODEL),
    (400, "MessageRejected"): Ruling("rejected", Scope.MESSAGE, _MODEL),
    (404, "NotFoundException"): Ruling("rejected", Scope.ACCOUNT, f"{_MODEL}: configuration set or template"),
    (429, "TooManyRequestsException"): Ruling("retryable", Scope.ACCOUNT, _MODEL),
    (400, "Throttling"): Ruling("retryable", Scope.ACCOUNT, _RETRIES),
    (400, "ThrottlingException"): Ruling("retryable", Scope.ACCOUNT, _RETRIES),
    # What botocore repeats as a passing failure of the service may have been carried out.
    **{(400, code): Ruling("ambiguous", None, _PASSING) for code in ("RequestTimeout", "RequestTimeoutException")},
}
_BULK = "SendBulkEmail: BulkEmailStatus"
ENTRIES: Mapping[str, Ruling] = {  # any other, and ``FAILED``, of which nothing is said: ambiguous
    "MESSAGE_REJECTED": Ruling("rejected", Scope.MESSAGE, _BULK),
    "MAIL_FROM_DOMAIN_NOT_VERIFIED": Ruling("rejected", Scope.ACCOUNT, _BULK),
    "CONFIGURATION_SET_NOT_FOUND": Ruling("rejected", Scope.ACCOUNT, _BULK),
    "TEMPLATE_NOT_FOUND": Ruling("rejected", Scope.ACCOUNT, _BULK),
    "ACCOUNT_SUSPENDED": Ruling("rejected", Scope.ACCOUNT, _BULK),
    "ACCOUNT_THROTTLED": Ruling("retryable", Scope.ACCOUNT, _BULK),
    "ACCOUNT_DAILY_QUOTA_EXCEEDED": Ruling("rejected", Scope.ACCOUNT, _BULK),
    "INVALID_SENDING_POOL_NAME": Ruling("rejected", Scope.ACCOUNT, _BULK),
    "ACCOUNT_SENDING_PAUSED": Ruling("rejected", Scope.ACCOUNT, _BULK),
    "CONFIGURATION_SET_SENDING_PAUSED": Ruling("rejected", Scope.ACCOUNT, _BULK),
    "INVALID_PARAMETER": Ruling("rejected", Scope.MESSAGE, _BULK),
    "TRANSIENT_FAILURE": Ruling("retryable", Scope.MESSAGE, _BULK),
}
_DOUBT = Ruling("ambiguous", None, f"{_BULK}: not explained")

PATH = "/v2/email/outbound-emails"
BULK_PATH = "/v2/email/outbound-bulk-emails"
MOST_TOGETHER = 50  # "Using templates": destinations of a call
ROOM = 1_000_000 - 8_000
"""Bytes of all entries of a call, whose JSON may have 1 MB if it holds its template ("Using templates"); the rest of it
takes no 8,000."""
LONGEST_DATA = 262_144
"""Characters of an entry's values ("ReplacementTemplate")."""
MOST_HEADERS, LONGEST_NAME, LONGEST_VALUE, LONGEST_HEADER = 15, 126, 995, 996  # "MessageHeader"

# ── submit ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class SesChannel:
    """One account's connections."""

    client: HttpClient
    base_url: str
    signer: SigV4Auth
    configuration_set: str
    bulk: bool

    def submit(self, outgoing: Outgoing) -> Outcome:
        """``POST /v2/email/outbound-emails``, once ("SendEmail")."""
        return call_once(
            outgoing,
            write=lambda outgoing: request_body(outgoing, configuration_set=self.configuration_set),
            post=lambda body: self._post(PATH, body, outgoing.deadline),
            judge=judge,
        )

    def batches(self, members: Sequence[Outgoing]) -> list[list[Outgoing]]:
        """Messages of one sender go together, if the account asks for that."""
        size = MOST_TOGETHER if self.bulk else 1
        return parted(
            members, size=size, alike=in_common, weight=lambda one: len(json_bytes(bulk_entry(one))), room=ROOM
        )

    def submit_batch(self, batch: UUID, members: Sequence[Outgoing]) -> list[Outcome]:
        """``POST /v2/email/outbound-bulk-emails``, once ("SendBulkEmail")."""
        return call_for_all(
            members,
            entry=bulk_entry,
            write=lambda sent, entries: bulk_body(sent[0].message, entries, configuration_set=self.configuration_set),
            post=lambda body, submit_by: self._post(BULK_PATH, body, submit_by),
            judge=judge_batch,
        )

    def try_out(self) -> Outcome:
        """The same POST, signed, without a message."""
        return outcome_of(self._post(PATH, b"{}", NO_DEADLINE), judge)

    def _post(self, path: str, body: bytes, submit_by: Deadline) -> Answer | NoAnswer | NeverWritten:
        headers = signed_headers(self.signer, self.base_url + path, body)
        return self.client.post(path, headers=headers, body=body, submit_by=submit_by)

    def close(self) -> None:
        """Drop idle connections."""
        self.client.close()


def signed_headers(signer: SigV4Auth, url: str, body: bytes) -> dict[str, str]:
    """The headers of one POST, signed as of now ("Signature Version 4"). The body is the same on every attempt."""
    from botocore.awsrequest import AWSRequest

    request = AWSRequest(method="POST", url=url, data=body, headers={"Content-Type": "application/json"})  # type: ignore[no-untyped-call]
    signer.add_auth(request)  # type: ignore[no-untyped-call]
    return dict(request.headers.items())


def request_body(outgoing: Outgoing, *, configuration_set: str) -> bytes:
    """The JSON of one send. Raises ValueError for a domain that cannot be one.

    SES writes Message-ID and Date itself ("Header fields"), so ours does not travel.
    """
    message = outgoing.message
    parts = {"Text": message.text, "Html": message.html}
    fields = {
        **_sender(message),
        "Destination": _destination(outgoing),
        "ConfigurationSetName": configuration_set or None,
        "EmailTags": _tags(outgoing),
        "Content": {
            "Simple": {
                "Subject": _content(message.subject),
                "Body": {name: _content(part) for name, part in parts.items() if part is not None},
                "Headers": _headers(outgoing),
            }
        },
    }
    return json_bytes(given(fields))


def in_common(outgoing: Outgoing) -> Hashable:
    """What messages of one call share; None for one that cannot go in a call for several, or that it could change."""
    message = outgoing.message
    said = (message.subject, message.text, message.html)
    try:
        entry = bulk_entry(outgoing)
    except ValueError:
        return None
    data = entry["ReplacementEmailContent"]["ReplacementTemplate"]["ReplacementTemplateData"]
    if (
        any("{{" in (each or "") for each in said)
        or len(data) > LONGEST_DATA
        or not _carried(entry["ReplacementHeaders"])
    ):
        return None
    return message.sender, message.reply_to, message.text is None, message.html is None


def bulk_entry(outgoing: Outgoing) -> dict[str, Any]:
    """What is one member's own in a call for several. Raises ValueError for a domain that cannot be one."""
    message = outgoing.message
    data = given({"subject": message.subject, "text": message.text, "html": message.html})
    return {
        "Destination": _destination(outgoing),
        "ReplacementTags": _tags(outgoing),
        "ReplacementHeaders": _headers(outgoing),
        "ReplacementEmailContent": {
            "ReplacementTemplate": {"ReplacementTemplateData": json.dumps(data, ensure_ascii=False)}
        },
    }


def bulk_body(message: Message, entries: Sequence[Mapping[str, Any]], *, configuration_set: str) -> bytes:
    """The JSON of several sends that have the sender of this message, and no other parts than it has."""
    template = {"Subject": "{{subject}}"}
    template |= {"Text": "{{text}}"} if message.text is not None else {}
    template |= {"Html": "{{html}}"} if message.html is not None else {}
    fields = {
        **_sender(message),
        "ConfigurationSetName": configuration_set or None,
        "DefaultContent": {"Template": {"TemplateContent": template, "TemplateData": "{}"}},
        "BulkEmailEntries": entries,
    }
    return json_bytes(given(fields))


def _sender(message: Message) -> dict[str, Any]:
    return {
        "FromEmailAddress": _mailbox(message.sender),
        "ReplyToAddresses": message.reply_to and [_mailbox(message.reply_to)],
    }


def _destination(outgoing: Outgoing) -> dict[str, list[str]]:
    return {"ToAddresses": [_ascii_mailbox(outgoing.recipient_name or "", outgoing.address)]}


def _tags(outgoing: Outgoing) -> list[dict[str, str]]:
    return [
        {"Name": "send_id", "Value": str(outgoing.send_id)},
        {"Name": "attempt", "Value": str(outgoing.attempt)},
    ]


def _headers(outgoing: Outgoing) -> list[dict[str, str]]:
    return [{"Name": name, "Value": _ascii(name, value)} for name, value in message_headers(outgoing).items()]


def _carried(headers: Sequence[Mapping[str, str]]) -> bool:
    """Whether headers keep to the limits: one that does not would spoil the call for all ("MessageHeader")."""
    return len(headers) <= MOST_HEADERS and all(
        len(one["Name"]) <= LONGEST_NAME
        and len(one["Value"]) <= LONGEST_VALUE
        and len(one["Name"]) + len(one["Value"]) <= LONGEST_HEADER
        for one in headers
    )


def _content(said: str) -> dict[str, str]:
    return {"Data": said, "Charset": "UTF-8"}


def _mailbox(said: str) -> str:
    return _ascii_mailbox(*split_mailbox(said))


def _ascii_mailbox(name: str, address: str) -> str:
    """A name that is not ASCII goes in encoded words; a local part that is not cannot go at all ("SendEmail")."""
    address = ascii_domain(address)
    if not address.isascii():
        raise ValueError("Amazon SES takes no address with other letters than ASCII before the @")
    return formataddr((name, address))


def _ascii(name: str, value: str) -> str:
    """A header's value in printable ASCII ("MessageHeader"), in one line."""
    return value if value.isascii() else Header(value, "utf-8", header_name=name).encode(linesep="")


def judge(answer: Answer) -> Outcome:
    """What an answer to one message means: 200 with an id is the only yes ("SendEmail")."""
    body = readable(answer)
    request_id = code_of(answer.headers.get("x-amzn-requestid"))
    if answer.status == 200:
        told = text(mapping(body).get("MessageId"))
        return Accepted(told, request_id) if is_id(told) else unreadable(answer, "without a message id", request_id)
    return judge_by_table(
        answer,
        ANSWERS,
        body_read=body is not None,
        error_code=_error_type(answer, mapping(body)),
        words=text(mapping(body).get("message")) or text(mapping(body).get("Message")) or "",
        request_id=request_id,
    )


def _error_type(answer: Answer, body: Mapping[str, Any]) -> str | None:
    """``Type:link`` in a header, or ``namespace#Type`` in the body, as botocore's parsers read it."""
    told = answer.headers.get("x-amzn-errortype") or text(body.get("__type")) or ""
    return code_of(told.partition(":")[0].rpartition("#")[2])


def judge_batch(answer: Answer, members: Sequence[Outgoing]) -> list[Outcome]:
    """What an answer to several messages means to each: 200 has a result for each, in their order ("SendBulkEmail")."""
    body = mapping(readable(answer))
    if answer.status != 200:
        return told_to_each(judge(answer), members)
    results = body.get("BulkEmailEntryResults")
    if not isinstance(results, list) or len(results) != len(members):
        request_id = code_of(answer.headers.get("x-amzn-requestid"))
        return told_to_each(unreadable(answer, "without a result for each message", request_id), members)
    return judge_bulk(answer, results)


def judge_bulk(answer: Answer, entries: list[Any]) -> list[Outcome]:
    """What a 200 to ``outbound-bulk-emails`` means: one entry a message, in order ("SendBulkEmail")."""
    return [_judge_entry(answer, mapping(entry)) for entry in entries]


def _judge_entry(answer: Answer, entry: Mapping[str, Any]) -> Outcome:
    status, told = text(entry.get("Status")) or "", text(entry.get("MessageId"))
    request_id = code_of(answer.headers.get("x-amzn-requestid"))
    if status == "SUCCESS" and is_id(told):
        return Accepted(told, request_id)
    ruling, words = ENTRIES.get(status, _DOUBT), text(entry.get("Error")) or ""
    return judge_refusal(answer, ruling, error_code=code_of(status), words=words, request_id=request_id)


# ── read_webhook ─────────────────────────────────────────────────────────────────────────────────────────────────────


def events_of(message: Mapping[str, Any], body: bytes) -> tuple[ProviderEvent, ...]:
    """The events of a verified notification: one for each recipient concerned. Raises ValueError for none."""
    said = text(message.get("Message")) or ""
    if said.startswith(VALIDATED):
        return ()
    parsed = json_object(said.encode(errors="replace"))
    word = text(parsed.get("eventType")) or text(parsed.get("notificationType"))
    if word is None:
        raise ValueError("the event has no type")
    if word == INBOUND:
        return ()
    details, mail = mapping(parsed.get(DETAILS.get(word, word[:1].lower() + word[1:]))), mapping(parsed.get("mail"))
    tags, headers = mapping(mail.get("tags")), named_values(mail.get("headers"))
    event_type, bounce_class, reason = _meaning(word, details)
    return tuple(
        ProviderEvent(
            event_type=event_type,
            event_id=text(message.get("MessageId")) or "",
            provider_message_id=text(mail.get("messageId")),
            send_id=_tag(tags, "send_id") or text(headers.get("x-send-id")),
            attempt=whole_number(_tag(tags, "attempt")),
            recipient=recipient,
            occurred_at=_time(word, details, mail) or instant(message.get("Timestamp")),
            bounce_class=bounce_class,
            reason=diagnostic or reason,
            url=text(details.get("link")) if event_type is EventType.CLICKED else None,
            raw=body,
        )
        for recipient, diagnostic in _concerned(word, details, mail)
    )


def _meaning(word: str, details: Mapping[str, Any]) -> tuple[EventType, BounceClass | None, str | None]:
    event_type = EVENTS.get(word, EventType.UNKNOWN)
    match word:
        case "Bounce":
            kind, sub_kind = text(details.get("bounceType")) or "", text(details.get("bounceSubType")) or ""
            reason = "/".join(part for part in (kind, sub_kind) if part) or None
            if sub_kind in NOT_TRIED:
                return EventType.REJECTED, "suppressed", reason
            return event_type, BOUNCES.get(kind, "undetermined"), reason
        case "Complaint":
            feedback = text(details.get("complaintFeedbackType"))
            if (listed := text(details.get("complaintSubType")) or "") in NOT_TRIED:
                return EventType.REJECTED, "suppressed", listed
            return (EventType.UNKNOWN if feedback == "not-spam" else event_type), None, feedback
        case "DeliveryDelay":
            return event_type, None, text(details.get("delayType"))
        case "Reject":
            return event_type, None, text(details.get("reason"))
        case "Rendering Failure":
            return event_type, None, text(details.get("errorMessage"))
        case "Subscription":
            gone = mapping(details.get("newTopicPreferences")).get("unsubscribeAll") is True
            return (event_type if gone else EventType.UNKNOWN), None, None
        case _:
            return event_type, None, None


def _concerned(
    word: str, details: Mapping[str, Any], mail: Mapping[str, Any]
) -> Iterator[tuple[str | None, str | None]]:
    """(recipient, what their server said) of those whom the event is about; one without a name if it names nobody."""
    everybody = [address for one in _list(mail.get("destination")) if (address := bare_address(one))]
    found: list[tuple[str | None, str | None]] = []
    if key := RECIPIENTS.get(word):
        listed = [mapping(one) for one in _list(details.get(key))]
        found = [(bare_address(one.get("emailAddress")), text(one.get("diagnosticCode"))) for one in listed]
    elif word == "Delivery":
        found = [(bare_address(one), None) for one in _list(details.get("recipients"))]
    elif word in ("Send", "Reject", "Rendering Failure"):
        found = [(address, None) for address in everybody]
    named = list(dict.fromkeys(one for one in found if one[0] is not None))
    yield from named or [(everybody[0] if len(everybody) == 1 else None, found[0][1] if found else None)]


def _time(word: str, details: Mapping[str, Any], mail: Mapping[str, Any]) -> datetime | None:
    return instant(mail.get("timestamp")) if word == "Send" else instant(details.get("timestamp"))


def _tag(tags: Mapping[str, Any], name: str) -> str | None:
    """Tags come as arrays; only event publishing carries them, an identity's notifications do not."""
    value = tags.get(name)
    return text(value[0]) if isinstance(value, list) and value else text(value)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


# ── read_reply ───────────────────────────────────────────────────────────────────────────────────────────────────────


def reply_of(message: Mapping[str, Any]) -> Reply | None:
    """The mail of a verified notification of a receipt rule ("Notifications for email receiving"); None for a greeting.

    An action that only keeps the mail elsewhere (S3) tells its headers, and not what it says. Raises ValueError for
    what is no such notification.
    """
    said = text(message.get("Message")) or ""
    if said.startswith(VALIDATED):
        return None
    parsed = json_object(said.encode(errors="replace"))
    if text(parsed.get("notificationType")) != INBOUND:
        raise ValueError("this is no mail that came in: it belongs to the webhook address")
    mail, receipt = mapping(parsed.get("mail")), mapping(parsed.get("receipt"))
    recipients = [*_list(receipt.get("recipients")), *_list(mail.get("destination"))]
    content = parsed.get("content")
    if isinstance(content, str) and content:
        encoded = text(mapping(receipt.get("action")).get("encoding")) == "BASE64"
        return read_mime(from_base64(content) if encoded else content.encode(errors="replace"), recipients=recipients)
    return read_mail(header_pairs(mail.get("headers")), recipients=recipients)


# ── the provider ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Ses:
    """The entry in the list of providers."""

    name: str = "ses"
    title: str = "Amazon SES"
    settings: tuple[Setting, ...] = (
        Setting(name="access_key_id", help="Of a user that may ses:SendEmail.", required=True),
        Setting(name="secret_access_key", help="The secret of that key.", secret=True, required=True),
        Setting(name="session_token", help="Only with temporary credentials.", secret=True),
        Setting(name="region", help="Such as eu-west-1.", required=True),
        Setting(name="configuration_set", help="The configuration set whose events are published to SNS."),
        Setting(
            name="bulk",
            help="true: up to 50 campaign messages go with one call; the user then needs ses:SendBulkEmail too.",
            for_batches=True,
        ),
        Setting(name="base_url", help="Where the API answers; empty: https://email.<region>.amazonaws.com."),
        Setting(
            name="topic_arns",
            help="The SNS topics that report, apart by spaces; no other topic is believed.",
            for_events=True,
        ),
        Setting(
            name="signing_certificate",
            help="PEM certificates believed instead of those that messages name, for a machine that cannot reach SNS.",
            for_events=True,
        ),
        *domain_settings(),
    )
    fetch: Fetch = field(default=fetch, repr=False)
    """Reads a certificate, and confirms a subscription; only ever called with an address on a host of Amazon's."""
    certificates: Certificates = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "certificates", Certificates(self.fetch))

    def capabilities(self, settings: Settings) -> Capabilities:
        """No keys; the send id comes back in every published event."""
        bulk = says_yes(settings.get("bulk", ""))
        return Capabilities(
            metadata=True, webhooks=True, batch_size=MOST_TOGETHER if bulk else 1, message_id="theirs",
            message_id_domain="amazonses.com", replies=True,
        )  # fmt: skip

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """Connections for one account; with settings that cannot work, a channel that says so to every message."""
        # Here, since it takes a third of a second that only senders by SES need to wait for.
        from botocore.auth import SigV4Auth
        from botocore.credentials import Credentials

        region = settings.get("region", "").strip()
        if not re.fullmatch(r"[a-z0-9-]{3,40}", region):
            return refusing("region must be one of Amazon's, such as eu-west-1")
        base_url = (settings.get("base_url") or f"https://email.{region}.amazonaws.com").rstrip("/")
        try:
            key, secret = credential(settings, "access_key_id"), credential(settings, "secret_access_key")
            token = credential(settings, "session_token") if settings.get("session_token") else None
            client = HttpClient(base_url, request_timeout=request_timeout)
        except ValueError as error:
            return refusing(str(error))
        signer = SigV4Auth(Credentials(key, secret, token), "ses", region)  # type: ignore[no-untyped-call]
        configuration_set, bulk = settings.get("configuration_set", "").strip(), says_yes(settings.get("bulk", ""))
        return SesChannel(client, base_url, signer, configuration_set, bulk)

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Verify the SNS message, then read its events, or offer to confirm the subscription that it asks about."""
        message = self._verified(request, settings)
        if message["Type"] != NOTIFICATION:
            return Webhook(confirm=confirmation(message, self.fetch))
        return Webhook(events_of(message, request.body))

    def read_reply(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """The same for the topic of a receipt rule, which is to stand among the account's topics too."""
        message = self._verified(request, settings)
        if message["Type"] != NOTIFICATION:
            return Webhook(confirm=confirmation(message, self.fetch))
        reply = reply_of(message)
        return Webhook(replies=() if reply is None else (reply,))

    def _verified(self, request: WebhookRequest, settings: Settings) -> Mapping[str, Any]:
        return verified(
            request,
            topics=settings.get("topic_arns", ""),
            pinned=settings.get("signing_certificate", ""),
            certificates=self.certificates,
        )

    def classify(self, result: SendResult) -> Outcome | list[Outcome]:
        """Judge one result without a network; a list for the answer to a bulk call."""
        match result:
            case Answer(status=200) if isinstance(
                entries := mapping(readable(result)).get("BulkEmailEntryResults"), list
            ):
                return judge_bulk(result, entries)
            case _:
                return judge_result(self.title, result, judge)
