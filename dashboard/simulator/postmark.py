"""Postmark's HTTP API and webhooks, from its documents: Email API, Batch Emails, API Overview (error codes), Messages
API, Custom Metadata FAQ, Webhooks Overview. The sentences in ``Message`` are ours.
"""

from __future__ import annotations

import base64
import json
import re
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parseaddr
from typing import Any
from urllib.parse import parse_qs

from dashboard.simulator.config import Config, Webhooks
from dashboard.simulator.connection import Answer, Request
from dashboard.simulator.dialect import (
    Account,
    Call,
    Dialect,
    Draft,
    Error,
    Greeting,
    Reaction,
    Refused,
    as_json,
    bare_address,
    fingerprint,
    header,
)
from dashboard.simulator.events import Fact, Mail
from dashboard.simulator.replies import HandIn, Letter, own_words, pairs, plain_text

MAX_RECIPIENTS = 50
MAX_BATCH = 500
LONGEST_NAME, LONGEST_VALUE = 20, 80
"""Of metadata."""
_ADDRESS = re.compile(r"[^\s@<>]+@[^\s@<>]+")

ERRORS = {  # by status and ErrorCode
    "rejected": Error(422, "300", "Invalid 'To' address."),
    "no_token": Error(401, "10", "The server token is missing or wrong."),
    "no_sender": Error(422, "400", "The sender signature was not found."),
    "unconfirmed_sender": Error(422, "401", "The sender signature is not confirmed."),
    "not_allowed": Error(422, "405", "You are out of credits."),
    "inactive": Error(422, "406", "The recipient is inactive."),
    "pending": Error(422, "412", "The account is pending approval."),
    "may_not_send": Error(422, "413", "The account may not send."),
    "not_found": Error(404, "404", "There is no such resource."),
    "too_large": Error(413, "413", "The request is too large."),
    "busy": Error(429, "429", "Rate limit exceeded."),
    "broken": Error(500, "500", "Internal server error."),
    "maintenance": Error(503, "100", "Maintenance."),
}
RETRY_AFTER_SECONDS = (60, 300, 600, 600, 600, 900)
"""Six more tries."""


# ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────────────


def authenticate(request: Request, config: Config) -> None:
    """The token of a server, in a header of its own."""
    token = request.headers.get("x-postmark-server-token", "").strip()
    if not token or config.api_key not in (None, token):
        raise Refused(*ERRORS["no_token"])


def read_call(request: Request) -> Call | None:
    """``POST /email`` and ``POST /email/batch``."""
    if request.path not in ("/email", "/email/batch"):
        return None
    if request.method != "POST":
        raise Refused(405, "405", "This endpoint takes POST.")
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise Refused(415, "415", "The content must be application/json.")
    if "application/json" not in request.headers.get("accept", "*/*").replace("*/*", "application/json"):
        raise Refused(422, "402", "The answer will be JSON: accept it.")
    parsed = _json(request.body)
    if request.path == "/email/batch":
        return _batch(request, parsed)
    draft = _draft(parsed)
    return Call(
        drafts=(draft,), answer=lambda ids: as_json(200, _taken(draft, ids[0])), fingerprint=fingerprint(request.body)
    )


def _batch(request: Request, items: Any) -> Call:
    """One result an item, also for those that are refused."""
    if not isinstance(items, list) or not 1 <= len(items) <= MAX_BATCH:
        raise Refused(422, "410", f"A batch holds 1 to {MAX_BATCH} messages.")
    read: list[Draft | Error] = []
    for item in items:
        try:
            read.append(_draft(item))
        except Refused as refused:
            read.append(refused.error)

    def answer(ids: Sequence[str]) -> Answer:
        left = iter(ids)
        return as_json(200, [_taken(each, next(left)) if isinstance(each, Draft) else _told(each) for each in read])

    drafts = [each for each in read if isinstance(each, Draft)]
    return Call(drafts=drafts, answer=answer, fingerprint=fingerprint(request.body))


def _taken(draft: Draft, message_id: str) -> dict[str, Any]:
    return {
        "To": ", ".join(draft.to),
        "SubmittedAt": _moment(time.time()),
        "MessageID": message_id,
        "ErrorCode": 0,
        "Message": "OK",
    }


def _told(error: Error) -> dict[str, Any]:
    return {"ErrorCode": int(error.name), "Message": error.message}


def refusal(error: Error) -> Answer:
    """An error code beside the status."""
    return as_json(error.status, _told(error))


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        raise Refused(422, "402", "The body is not JSON.") from None


def _draft(email: Any) -> Draft:
    if not isinstance(email, dict):
        raise Refused(422, "402", "A message must be an object.")
    sender, to = email.get("From"), email.get("To")
    if not isinstance(sender, str) or not _ADDRESS.fullmatch(bare_address(sender)):
        raise Refused(422, "300", "Invalid 'From' address.")
    addresses = _addresses(to)
    if not 1 <= len(addresses) <= MAX_RECIPIENTS or not all(_ADDRESS.fullmatch(each) for each in addresses):
        raise Refused(422, "300", f"Invalid 'To' address: 1 to {MAX_RECIPIENTS} are taken.")
    for name in ("Subject", "TextBody", "HtmlBody", "ReplyTo", "Tag", "MessageStream"):
        if not isinstance(email.get(name, ""), str):
            raise Refused(422, "403", f"'{name}' must be text.")
    if not email.get("TextBody") and not email.get("HtmlBody"):
        raise Refused(422, "300", "Provide either 'TextBody' or 'HtmlBody', or both.")
    headers = _headers(email.get("Headers", []))
    metadata = _metadata(email.get("Metadata", {}))
    return Draft(
        sender=sender,
        to=addresses,
        address=addresses[0],
        subject=email.get("Subject", ""),
        reply_to=email.get("ReplyTo"),
        text=email.get("TextBody"),
        html=email.get("HtmlBody"),
        metadata=metadata,
        headers=headers,
        send_id=metadata.get("send_id") or header(headers, "x-send-id"),
    )


def _addresses(to: Any) -> list[str]:
    """Bare ones, of a list that may hold quoted names with commas in them."""
    if not isinstance(to, str):
        return []
    return [bare_address(each) for each in re.sub(r'"(?:[^"\\]|\\.)*"', "", to).split(",") if each.strip()]


def _headers(headers: Any) -> dict[str, str]:
    if not isinstance(headers, list):
        raise Refused(422, "403", "'Headers' must be a list of Name and Value.")
    read = {}
    for each in headers:
        name, value = (each.get("Name"), each.get("Value")) if isinstance(each, dict) else (None, None)
        if not isinstance(name, str) or not name or not isinstance(value, str):
            raise Refused(422, "403", "'Headers' must be a list of Name and Value.")
        read[name] = value
    return read


def _metadata(metadata: Any) -> dict[str, str]:
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise Refused(422, "403", "'Metadata' must be an object of texts.")
    if len({name.lower() for name in metadata}) < len(metadata):
        raise Refused(422, "300", "Names of metadata are unique regardless of case.")
    if any(len(name) > LONGEST_NAME or len(value) > LONGEST_VALUE for name, value in metadata.items()):
        raise Refused(422, "300", f"Metadata: names up to {LONGEST_NAME}, values up to {LONGEST_VALUE} characters.")
    return dict(metadata)


# ── the messages API ─────────────────────────────────────────────────────────────────────────────────────────────────


def messages(request: Request, account: Account) -> Answer:
    """``GET /messages/outbound``, with one metadata field as a filter among others, and the details of one."""
    if request.method != "GET" or not request.path.startswith("/messages/outbound"):
        raise Refused(*ERRORS["not_found"])
    now = time.time()
    shown = account.shown(now)
    if request.path == "/messages/outbound":
        asked = {name: values[-1] for name, values in parse_qs(request.query).items()}
        return as_json(200, _listing(shown, asked, now))
    message_id = request.path.removeprefix("/messages/outbound/").removesuffix("/details")
    mail = next((mail for mail in shown if mail.message_id == message_id), None)
    if mail is None:
        raise Refused(422, "701", "This message was not found.")
    return as_json(200, _row(mail, now))


def _listing(shown: Sequence[Mail], asked: Mapping[str, str], now: float) -> dict[str, Any]:
    count, offset = asked.get("count", ""), asked.get("offset", "")
    if not count.isdigit() or not offset.isdigit() or not 1 <= int(count) <= 500 or int(count) + int(offset) > 10_000:
        raise Refused(422, "700", "'count' (at most 500) and 'offset' are required, together at most 10,000.")
    by_metadata = {name.removeprefix("metadata_"): value for name, value in asked.items() if name[:9] == "metadata_"}
    if len(by_metadata) > 1:
        raise Refused(422, "700", "One metadata field a query.")
    wanted = [
        mail
        for mail in reversed(shown)
        if all(mail.metadata.get(name) == value for name, value in by_metadata.items())
        and asked.get("recipient", mail.address) == mail.address
    ]
    page = wanted[int(offset) : int(offset) + int(count)]
    return {"TotalCount": len(wanted), "Messages": [_row(mail, now) for mail in page]}


def _row(mail: Mail, now: float) -> dict[str, Any]:
    return {
        "Tag": "",
        "MessageID": mail.message_id,
        "MessageStream": "outbound",
        "To": [{"Email": address, "Name": None} for address in mail.to],
        "Cc": [],
        "Bcc": [],
        "Recipients": list(mail.to),
        "ReceivedAt": _moment(mail.accepted_at),
        "From": mail.sender,
        "Subject": mail.subject,
        "Attachments": [],
        "Status": "Sent" if mail.happened(now) else "Queued",
        "Metadata": dict(mail.metadata),
    }


def _moment(at: float) -> str:
    """US Eastern time (here without its summer), with seven digits of fraction."""
    eastern = datetime.fromtimestamp(at - 5 * 3600, UTC)
    return eastern.strftime("%Y-%m-%dT%H:%M:%S.%f") + "0-05:00"


# ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = {  # that a message was taken is told by nobody
    "delayed": "Bounce",
    "delivered": "Delivery",
    "bounced": "Bounce",
    "soft_bounced": "Bounce",
    "suppressed": "Bounce",
    "failed": "Bounce",
    "complained": "SpamComplaint",
    "opened": "Open",
    "clicked": "Click",
}
BOUNCES: Mapping[str, tuple[str, int, str]] = {  # Type, TypeCode, Details
    "delayed": ("Transient", 2, "smtp;421 4.7.0 try again later"),
    "bounced": ("HardBounce", 1, "smtp;550 5.1.1 no such user"),
    "soft_bounced": ("SoftBounce", 4096, "smtp;452 4.2.2 mailbox full"),
    "suppressed": ("ManuallyDeactivated", 100007, "The address is deactivated."),
    "failed": ("SMTPApiError", 100003, "The message could not be built."),
    "complained": ("SpamComplaint", 100001, "Spam complaint reported"),
}


def event_body(mail: Mail, fact: Fact, event_id: str, webhooks: Webhooks, now: float) -> bytes:
    """One event a request."""
    event: dict[str, Any] = {
        "RecordType": fact.name,
        "ServerID": 23,
        "MessageStream": "outbound",
        "MessageID": mail.message_id,
        "Tag": "",
        "Metadata": dict(mail.metadata),
    }
    if fact.word in BOUNCES:
        kind, code, details = BOUNCES[fact.word]
        event |= {
            "ID": int(uuid.uuid5(uuid.NAMESPACE_OID, f"{mail.message_id} {fact.word} {fact.at}")) >> 66,
            "Type": kind,
            "TypeCode": code,
            "Name": kind,
            "Description": "As its name asks for.",
            "Details": details,
            "Email": mail.address,
            "From": bare_address(mail.sender),
            "BouncedAt": _moment(fact.at),
            "DumpAvailable": False,
            "Inactive": fact.word in ("bounced", "complained"),
            "CanActivate": fact.word != "complained",
            "Subject": mail.subject,
        }
    elif fact.word == "delivered":
        at = datetime.fromtimestamp(fact.at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        event |= {"Recipient": mail.address, "DeliveredAt": at, "Details": "smtp;250 2.0.0 OK"}
    else:
        event |= {"Recipient": mail.address, "ReceivedAt": _moment(fact.at), "UserAgent": "simulator", "Geo": {}}
        event |= (
            {"FirstOpen": True}
            if fact.word == "opened"
            else {"ClickLocation": "HTML", "OriginalLink": "https://shop.example.test/"}
        )
    return json.dumps(event, separators=(",", ":")).encode()


def event_headers(event_id: str, body: bytes, webhooks: Webhooks, now: float) -> dict[str, str]:
    """Nothing is signed: a password in the address makes Basic authentication (RFC 7617)."""
    return {
        "content-type": "application/json",
        "user-agent": "Postmark",
        "authorization": "Basic " + base64.b64encode(password(webhooks).encode()).decode(),
        "x-pm-webhook-trace-id": event_id,
    }


def reaction(status: int | None, fact: Fact) -> Reaction:
    """2xx is good; no answer, 5xx, 408 and 429 are repeated; any other drops the event for good."""
    if status is None or status >= 500 or status in (408, 429):
        return Reaction.REPEAT
    return Reaction.DONE if 200 <= status < 300 else Reaction.DROP


def greetings(webhooks: Webhooks, now: float) -> list[Greeting]:
    """A new webhook is tried with a made-up event of each kind, and must take all of them."""
    mail = Mail(
        message_id="00000000-0000-0000-0000-000000000000",
        protocol="postmark",
        identity="",
        copy=1,
        accepted_at=now,
        sender="sender@example.com",
        to=("john@example.com",),
        address="john@example.com",
        subject="Test subject",
    )
    greeted = []
    for word in ("delivered", "bounced", "complained", "opened", "clicked"):
        trace = str(uuid.uuid4())
        body = event_body(mail, Fact(word, WORDS[word], now, trace), trace, webhooks, now)
        greeted.append(Greeting(headers=event_headers(trace, body, webhooks, now), body=body))
    return greeted


def password(webhooks: Webhooks) -> str:
    """The name and password that stand in the address."""
    return webhooks.secret if ":" in webhooks.secret else f"postmark:{webhooks.secret}"


# ── mail that comes in ───────────────────────────────────────────────────────────────────────────────────────────────


def hand_in(letter: Letter, webhooks: Webhooks, now: float) -> HandIn:
    """Inbound webhook: the mail as JSON, its main headers apart from the others."""
    mail, plus = letter.mail, letter.recipient.partition("@")[0].partition("+")[2]
    name, address = parseaddr(str(mail["From"]))
    document = {
        "FromName": name,
        "MessageStream": "inbound",
        "From": address,
        "FromFull": {"Email": address, "Name": name, "MailboxHash": ""},
        "To": str(mail["To"]),
        "ToFull": [{"Email": letter.recipient, "Name": "", "MailboxHash": plus}],
        "Cc": "",
        "CcFull": [],
        "Bcc": "",
        "BccFull": [],
        "OriginalRecipient": letter.recipient,
        "Subject": str(mail["Subject"]),
        "MessageID": str(uuid.uuid4()),
        "ReplyTo": "",
        "MailboxHash": plus,
        "Date": str(mail["Date"]),
        "TextBody": plain_text(mail),
        "HtmlBody": "",
        "StrippedTextReply": own_words(mail),
        "Tag": "",
        "Headers": [
            {"Name": name, "Value": value}
            for name, value in pairs(mail)
            if name not in ("From", "To", "Cc", "Subject", "Date")
        ],
        "Attachments": [],
    }
    body = json.dumps(document).encode()
    return HandIn({"content-type": "application/json", "user-agent": "Postmark"}, body)


DIALECT = Dialect(
    name="postmark",
    title="Postmark",
    errors=ERRORS,
    authenticate=authenticate,
    read_call=read_call,
    refusal=refusal,
    other=messages,
    words=WORDS,
    event_body=event_body,
    event_headers=event_headers,
    retries=RETRY_AFTER_SECONDS,
    reaction=reaction,
    new_event_id=lambda: str(uuid.uuid4()),
    shared_secret=password,
    greetings=greetings,
    hand_in=hand_in,
)
