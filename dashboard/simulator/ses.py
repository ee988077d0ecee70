"""Amazon SES's API (version 2) and its events by SNS: the API's model (SendEmail, SendBulkEmail, common errors), the
SES Developer Guide (Contents and Examples of event data published to SNS, Using templates). The sentences in
``message`` are ours.

There is nothing to look up by anything but SES's own id. Of templates only those are played that travel with the call.
"""

from __future__ import annotations

import json
import re
import secrets
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.simulator import recipients, sns
from dashboard.simulator.config import Config, Webhooks
from dashboard.simulator.connection import Answer, Request
from dashboard.simulator.dialect import Call, Dialect, Draft, Error, Greeting, Refused, as_json, bare_address
from dashboard.simulator.dialect import fingerprint as of_body
from dashboard.simulator.dialect import header as header_of
from dashboard.simulator.events import Fact, Mail, iso
from dashboard.simulator.replies import HandIn, Letter, pairs
from dashboard.simulator.sigv4 import Unsigned, check_signature

PATH = "/v2/email/outbound-emails"
BULK_PATH = "/v2/email/outbound-bulk-emails"
MAX_RECIPIENTS = 50
MAX_BULK = 50
"""Entries of one call."""
MAX_BULK_BYTES = 1_000_000
"""Of the JSON of a call that brings its template."""
MAX_DATA = 262_144
"""Characters of the values for a template."""
MAX_HEADERS = 15
_TAG = re.compile(r"[A-Za-z0-9_:-]{1,256}", re.ASCII)
_NAME = re.compile(r"[!-9;-@A-~]{1,126}")
_VALUE = re.compile(r"[ -~]{1,995}")
_ADDRESS = re.compile(r"[!-~]+@[!-~]+")
_EXPRESSION = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_PLACE = re.compile(r"\s*[A-Za-z0-9_.-]+\s*")

ERRORS = {
    "rejected": Error(400, "MessageRejected", "Email address is not verified."),
    "bad_request": Error(400, "BadRequestException", "Invalid email address."),
    "busy": Error(429, "TooManyRequestsException", "Maximum sending rate exceeded."),
    "broken": Error(500, "InternalFailure", ""),
    "unavailable": Error(503, "ServiceUnavailable", "Come again later."),
    "limit_exceeded": Error(400, "LimitExceededException", "There are too many of something."),
    "suspended": Error(400, "AccountSuspendedException", "Account is suspended."),
    "paused": Error(400, "SendingPausedException", "Sending is paused for this account."),
    "mail_from": Error(400, "MailFromDomainNotVerifiedException", "The MAIL FROM domain is not verified."),
    "not_found": Error(404, "NotFoundException", "The configuration set does not exist."),
    "throttled": Error(400, "ThrottlingException", "Rate exceeded."),
    "wrong_key": Error(403, "UnrecognizedClientException", "The security token is invalid."),
    "wrong_signature": Error(403, "InvalidSignatureException", "The signature does not match."),
    "not_permitted": Error(403, "AccessDeniedException", "User is not authorized to perform ses:SendEmail."),
}


# ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────────────


def authenticate(request: Request, config: Config) -> None:
    """Signature Version 4. `Config.api_key` is ``access key id:secret``; without one, any signature is taken."""
    key_id, _, secret = (config.api_key or "").partition(":")
    try:
        check_signature(request, service="ses", key=(key_id, secret) if key_id else None, now=time.time())
    except Unsigned as error:
        raise Refused(403, str(error), "The request is not signed as it should be.") from None


def read_call(request: Request) -> Call | None:
    """``POST /v2/email/outbound-emails``, and ``outbound-bulk-emails``."""
    if request.path not in (PATH, BULK_PATH) or request.method != "POST":
        return None
    if request.path == BULK_PATH:
        return _bulk(request)
    return Call(drafts=(_draft(_object(request.body)),), answer=_accepted, fingerprint=of_body(request.body))


def _accepted(ids: Sequence[str]) -> Answer:
    return as_json(200, {"MessageId": ids[0]}, {"x-amzn-requestid": str(uuid.uuid4())})


def _bulk(request: Request) -> Call:
    """One result an entry, also for those that are refused."""
    email = _object(request.body)
    entries = email.get("BulkEmailEntries")
    if not isinstance(entries, list) or not 1 <= len(entries) <= MAX_BULK:
        raise _bad(f"There are 1 to {MAX_BULK} bulk email entries.")
    template = _template(email.get("DefaultContent"))
    if template is not None and len(request.body) > MAX_BULK_BYTES:
        raise _bad(f"At most {MAX_BULK_BYTES} bytes with a template.")
    _check_senders(email)
    read = [_entry(email, template, each) for each in entries]

    def answer(ids: Sequence[str]) -> Answer:
        left = iter(ids)
        results = [
            {"Status": each.name, "Error": each.message, "MessageId": None}
            if isinstance(each, Error)
            else {"Status": "SUCCESS", "Error": None, "MessageId": next(left)}
            for each in read
        ]
        return as_json(200, {"BulkEmailEntryResults": results}, {"x-amzn-requestid": str(uuid.uuid4())})

    drafts = [each for each in read if isinstance(each, Draft)]
    return Call(drafts=drafts, answer=answer, fingerprint=of_body(request.body))


def _template(content: Any) -> Mapping[str, Any] | None:
    """The template that the call brings; None for one that it only names."""
    template = _mapping(_mapping(content).get("Template"))
    if len(template.keys() & {"TemplateName", "TemplateArn", "TemplateContent"}) != 1:
        raise _bad("DefaultContent has a template, by name or with its content.")
    parts = template.get("TemplateContent")
    if parts is None:
        return None
    if not isinstance(parts, dict) or not parts.keys() <= {"Subject", "Text", "Html"} or len(parts) < 2:
        raise _bad("A template has a subject, and text, HTML, or both.")
    if not all(isinstance(part, str) for part in parts.values()):
        raise _bad("The parts of a template are text.")
    if not all(_PLACE.fullmatch(each) for part in parts.values() for each in _EXPRESSION.findall(part)):
        raise _bad("Template contains unsupported operations.")
    return template


def _entry(email: Mapping[str, Any], template: Mapping[str, Any] | None, entry: Any) -> Draft | Error:
    """What one entry asks to have sent, or its status with what was wrong about it."""
    if template is None:
        return Error(200, "TEMPLATE_NOT_FOUND", "The template does not exist.")
    entry = _mapping(entry)
    replacement = _mapping(_mapping(entry.get("ReplacementEmailContent")).get("ReplacementTemplate"))
    try:
        to = _recipients(entry.get("Destination"))
        values = _values(template.get("TemplateData"))
        values |= _values(replacement.get("ReplacementTemplateData"))
        headers = _pairs(template.get("Headers", []), _NAME, _VALUE, "header", most=MAX_HEADERS)
        headers |= _pairs(entry.get("ReplacementHeaders", []), _NAME, _VALUE, "header", most=MAX_HEADERS)
        tags = _pairs(email.get("DefaultEmailTags", []), _TAG, _TAG, "tag", most=50)
        tags |= _pairs(entry.get("ReplacementTags", []), _TAG, _TAG, "tag", most=50)
    except Refused as refused:
        return Error(200, "INVALID_PARAMETER", refused.error.message)
    if "reject" in recipients.words_of(bare_address(to[0])):
        return Error(200, "MESSAGE_REJECTED", "The message contained a virus.")
    if (configuration_set := email.get("ConfigurationSetName")) is not None:
        tags = {"ses:configuration-set": str(configuration_set), **tags}
    parts = {name: _rendered(part, values) for name, part in template["TemplateContent"].items()}
    return Draft(
        sender=email["FromEmailAddress"],
        to=to,
        address=bare_address(to[0]),
        subject=parts.get("Subject") or "",
        text=parts.get("Text"),
        html=parts.get("Html"),
        metadata=tags,
        headers=headers,
        send_id=tags.get("send_id") or header_of(headers, "x-send-id"),
        fate="failed" if None in parts.values() else None,
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _values(data: Any) -> dict[str, Any]:
    if data is None:
        return {}
    if not isinstance(data, str) or len(data) > MAX_DATA:
        raise _bad(f"Template data is text of at most {MAX_DATA} characters.")
    try:
        read = json.loads(data)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise _bad("Template data is a JSON object.")
    return read


def _rendered(part: str, values: Mapping[str, Any]) -> str | None:
    """The part with its values as they are, since nothing is escaped; None where one is missing."""
    places = [each.strip() for each in _EXPRESSION.findall(part)]
    if not all(place in values for place in places):
        return None
    return _EXPRESSION.sub(lambda found: str(values[found.group(1).strip()]), part)


def _check_senders(email: Mapping[str, Any]) -> None:
    sender = email.get("FromEmailAddress")
    if not isinstance(sender, str) or not _is_address(sender):
        raise _bad("Missing or invalid FromEmailAddress.")
    for each in email.get("ReplyToAddresses", []):
        if not isinstance(each, str) or not _is_address(each):
            raise _bad("Invalid reply-to address.")


def refusal(error: Error) -> Answer:
    """The type in a header, with or without an address behind it."""
    told = {"x-amzn-errortype": f"{error.name}:http://internal.amazon.com/", "x-amzn-requestid": str(uuid.uuid4())}
    return as_json(error.status, {"message": error.message or None}, told)


def new_ids(drafts: Sequence[Draft]) -> list[str]:
    """Longer than a uuid."""
    return [f"0107{secrets.token_hex(6)}-{uuid.uuid4()}-000000" for _ in drafts]


def _bad(message: str) -> Refused:
    return Refused(400, "BadRequestException", message)


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise Refused(400, "SerializationException", "The body is no JSON object.")
    return parsed


def _draft(email: Mapping[str, Any]) -> Draft:
    content = email.get("Content")
    if not isinstance(content, dict) or len(content) != 1:
        raise _bad("Content has exactly one of Simple, Raw, Template.")
    simple = content.get("Simple")
    if not isinstance(simple, dict):
        raise _bad("Only simple content is played here.")
    to = _recipients(email.get("Destination"))
    _check_senders(email)
    parts = simple.get("Body")
    if not isinstance(parts, dict) or not parts or not parts.keys() <= {"Text", "Html"}:
        raise _bad("The body has text, HTML, or both.")
    body = {name: _text(part, name) for name, part in parts.items()}
    headers = _pairs(simple.get("Headers", []), _NAME, _VALUE, "header", most=MAX_HEADERS)
    tags = _pairs(email.get("EmailTags", []), _TAG, _TAG, "tag", most=50)
    configuration_set = email.get("ConfigurationSetName")
    if configuration_set is not None:
        tags = {"ses:configuration-set": str(configuration_set), **tags}
    return Draft(
        sender=email["FromEmailAddress"],
        to=to,
        address=bare_address(to[0]),
        subject=_text(simple.get("Subject"), "Subject"),
        reply_to=next(iter(email.get("ReplyToAddresses", [])), None),
        text=body.get("Text"),
        html=body.get("Html"),
        metadata=tags,
        headers=headers,
        send_id=tags.get("send_id") or header_of(headers, "x-send-id"),
    )


def _recipients(destination: Any) -> list[str]:
    lists = destination if isinstance(destination, dict) else {}
    to = [each for name in ("ToAddresses", "CcAddresses", "BccAddresses") for each in lists.get(name, [])]
    if not 1 <= len(to) <= MAX_RECIPIENTS or not all(isinstance(each, str) and _is_address(each) for each in to):
        raise _bad(f"The destination has 1 to {MAX_RECIPIENTS} valid addresses.")
    return to


def _is_address(text: str) -> bool:
    """In ASCII as a whole, since SES speaks no SMTPUTF8; a name that is not needs encoded words."""
    return text.isascii() and _ADDRESS.fullmatch(bare_address(text)) is not None


def _text(content: Any, where: str) -> str:
    said = content.get("Data") if isinstance(content, dict) else None
    if not isinstance(said, str):
        raise _bad(f"{where}.Data is missing.")
    if not said.isascii() and not content.get("Charset"):
        raise _bad(f"{where} is not ASCII: name its character set.")
    return said


def _pairs(
    items: Any, name_form: re.Pattern[str], value_form: re.Pattern[str], what: str, *, most: int
) -> dict[str, str]:
    """A list of Name and Value, each in its form."""
    if not isinstance(items, list) or len(items) > most:
        raise _bad(f"At most {most} of a {what}.")
    read = {}
    for each in items:
        name, value = (each.get("Name"), each.get("Value")) if isinstance(each, dict) else (None, None)
        if not isinstance(name, str) or not name_form.fullmatch(name):
            raise _bad(f"Invalid {what} name.")
        if not isinstance(value, str) or not value_form.fullmatch(value):
            raise _bad(f"Invalid {what} value.")
        read[name] = value
    return read


# ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = {
    "sent": "Send",
    "delayed": "DeliveryDelay",
    "delivered": "Delivery",
    "bounced": "Bounce",
    "soft_bounced": "Bounce",
    "suppressed": "Bounce",
    "failed": "Rendering Failure",
    "complained": "Complaint",
    "opened": "Open",
    "clicked": "Click",
}


def _details(mail: Mail, fact: Fact) -> dict[str, Any]:
    """The part of the event that its type is named after."""
    at, who = {"timestamp": iso(fact.at)}, {"emailAddress": mail.address}
    seen = {**at, "ipAddress": "198.51.100.7", "userAgent": "simulator"}
    match fact.word:
        case "sent":
            return {"send": {}}
        case "delivered":
            return {"delivery": {**at, "recipients": [mail.address], "smtpResponse": "250 2.0.0 OK"}}
        case "delayed":
            late = [{**who, "status": "4.7.0", "diagnosticCode": "smtp; 421 4.7.0 try again later"}]
            return {"deliveryDelay": {**at, "delayType": "TransientCommunicationFailure", "delayedRecipients": late}}
        case "bounced":
            gone = [{**who, "action": "failed", "status": "5.1.1", "diagnosticCode": "smtp; 550 5.1.1 no such user"}]
            return {"bounce": {**at, "bounceType": "Permanent", "bounceSubType": "General", "bouncedRecipients": gone}}
        case "soft_bounced":
            full = [{**who, "action": "failed", "status": "4.2.2", "diagnosticCode": "smtp; 452 4.2.2 mailbox full"}]
            kind = {"bounceType": "Transient", "bounceSubType": "MailboxFull"}
            return {"bounce": {**at, **kind, "bouncedRecipients": full}}
        case "suppressed":
            kind = {"bounceType": "Permanent", "bounceSubType": "OnAccountSuppressionList"}
            return {"bounce": {**at, **kind, "bouncedRecipients": [who]}}
        case "failed":
            return {"failure": {"errorMessage": "Attribute is not present in the rendering data.", "templateName": "t"}}
        case "complained":
            return {"complaint": {**at, "complainedRecipients": [who], "complaintFeedbackType": "abuse"}}
        case "opened":
            return {"open": seen}
        case _:
            return {"click": {**seen, "link": "https://shop.example.test/", "linkTags": None}}


def event_body(mail: Mail, fact: Fact, event_id: str, webhooks: Webhooks, now: float) -> bytes:
    """The event as a text in a signed envelope, whose id is the event's."""
    event = {
        "eventType": fact.name,
        "mail": {
            "timestamp": iso(mail.accepted_at),
            "source": mail.sender,
            "sendingAccountId": "123456789012",
            "messageId": mail.message_id,
            "destination": [bare_address(each) for each in mail.to],
            "headersTruncated": False,
            "headers": [{"name": name, "value": value} for name, value in mail.headers.items()],
            "commonHeaders": {"from": [mail.sender], "messageId": mail.message_id, "subject": mail.subject},
            "tags": {name: [value] for name, value in mail.metadata.items()},
        },
        **_details(mail, fact),
    }
    # What SNS signs as its time is that of the publication, however late it is delivered.
    return sns.envelope("Notification", event_id, json.dumps(event) + "\n", fact.at)


def event_headers(event_id: str, body: bytes, webhooks: Webhooks, now: float) -> Mapping[str, str]:
    """Those of SNS."""
    return sns.headers("Notification", event_id)


def greetings(webhooks: Webhooks, now: float) -> list[Greeting]:
    """The subscription has to be confirmed first."""
    return [sns.subscription(now)]


# ── mail that comes in ───────────────────────────────────────────────────────────────────────────────────────────────


def seen_as(mail: Mail) -> str:
    """Header fields: SES makes the Message-ID itself, of the id of its answer and a domain of the region."""
    return f"{mail.message_id}@eu-west-1.amazonses.com"


def hand_in(letter: Letter, webhooks: Webhooks, now: float) -> HandIn:
    """Notification of an SNS action of a receipt rule: the mail as a text in a signed envelope."""
    mail, passed = letter.mail, {"status": "PASS"}
    document = {
        "notificationType": "Received",
        "receipt": {
            "timestamp": iso(now),
            "processingTimeMillis": 222,
            "recipients": [letter.recipient],
            **{f"{check}Verdict": passed for check in ("spam", "virus", "spf", "dkim", "dmarc")},
            "action": {"type": "SNS", "topicArn": sns.TOPIC, "encoding": "UTF8"},
        },
        "mail": {
            "timestamp": iso(now),
            "source": letter.sender,
            "messageId": secrets.token_hex(14),
            "destination": [letter.recipient],
            "headersTruncated": False,
            "headers": [{"name": name, "value": value} for name, value in pairs(mail)],
            "commonHeaders": {
                "from": [str(mail["From"])],
                "to": [str(mail["To"])],
                "messageId": str(mail["Message-ID"]),
                "subject": str(mail["Subject"]),
            },
        },
        "content": mail.as_string(),
    }
    message_id = str(uuid.uuid4())
    body = sns.envelope("Notification", message_id, json.dumps(document), now)
    return HandIn(sns.headers("Notification", message_id), body)


DIALECT = Dialect(
    name="ses",
    title="Amazon SES",
    errors=ERRORS,
    public=sns.answer,
    authenticate=authenticate,
    read_call=read_call,
    refusal=refusal,
    new_ids=new_ids,
    words=WORDS,
    event_body=event_body,
    event_headers=event_headers,
    retries=sns.RETRY_AFTER_SECONDS,
    new_event_id=lambda: str(uuid.uuid4()),
    shared_secret=lambda webhooks: sns.certificate().decode(),
    greetings=greetings,
    seen_as=seen_as,
    hand_in=hand_in,
)
