"""SendGrid's HTTP API and event webhook, from its documents: the API description of Mail Send and Email Logs (v3),
Rate Limits, Event Webhook Reference, Event Webhook Security Features. The sentences in ``message`` are ours.

A success is 202 with nothing in it but ``X-Message-Id``, which is one for the whole call; events and logs name it with
a routing part behind a dot.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dashboard.simulator.config import Config, Webhooks
from dashboard.simulator.connection import Answer, Request
from dashboard.simulator.dialect import Account, Call, Dialect, Draft, Error, Limits, Refused, as_json, header
from dashboard.simulator.dialect import fingerprint as of_body
from dashboard.simulator.events import Fact, Mail
from dashboard.simulator.replies import HandIn, Letter, pairs, plain_text

MAX_PERSONALIZATIONS = 1_000
MAX_CUSTOM_ARGS = 10_000
"""Bytes of all custom arguments together."""
MAX_SUBSTITUTIONS = 10_000
"""Bytes of the substitutions of one personalization."""
RESERVED_HEADERS = frozenset(
    {
        "x-sg-id", "x-sg-eid", "received", "dkim-signature", "content-type", "content-transfer-encoding",
        "to", "from", "subject", "reply-to", "cc", "bcc",
    }
)  # fmt: skip
_ADDRESS = re.compile(r"[^\s@<>]+@[^\s@<>]+")

ERRORS = {  # the names are fields, or nothing
    "rejected": Error(400, "personalizations.0.to.0.email", "Does not contain a valid address."),
    "unauthorized": Error(401, "", "authorization required"),
    "sender_not_verified": Error(403, "from", "The from address does not match a verified sender identity."),
    "not_found": Error(404, "", "not found"),
    "not_allowed": Error(405, "", "method not allowed"),
    "too_large": Error(413, "", "content too large"),
    "busy": Error(429, "", "too many requests"),
    "broken": Error(500, "", "internal server error"),
    "unavailable": Error(503, "", "come again later"),
    "gateway_timeout": Error(504, "", "upstream timed out"),
}
RETRY_AFTER_SECONDS = (60, 180, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 28_800)
"""Growing, for 24 hours in all; the steps themselves are documented nowhere."""


# ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────────────


def authenticate(request: Request, config: Config) -> None:
    """A bearer token."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip() or config.api_key not in (None, key.strip()):
        raise Refused(*ERRORS["unauthorized"])


def read_call(request: Request) -> Call | None:
    """``POST /v3/mail/send``."""
    if request.path != "/v3/mail/send":
        return None
    if request.method != "POST":
        raise Refused(*ERRORS["not_allowed"])
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise Refused(415, "", "Content-Type should be application/json.")
    return Call(drafts=_drafts(_object(request.body)), answer=_accepted, fingerprint=of_body(request.body))


def _accepted(ids: Sequence[str]) -> Answer:
    return Answer(status=202, content_type="text/plain; charset=utf-8", headers={"x-message-id": ids[0]})


def refusal(error: Error) -> Answer:
    """Errors: a list; there are no codes."""
    return as_json(error.status, {"errors": [{"message": error.message, "field": error.name or None, "help": None}]})


def limit_headers(limits: Limits, now: float) -> dict[str, str]:
    """Rate limits: the reset is a second since the epoch."""
    return {
        "x-ratelimit-limit": str(limits.limit),
        "x-ratelimit-remaining": str(limits.remaining),
        "x-ratelimit-reset": str(int(now) + (limits.retry_after or 1)),
    }


def new_ids(drafts: Sequence[Draft]) -> list[str]:
    """One for all."""
    return [secrets.token_urlsafe(16).strip("-_")] * len(drafts)


def _object(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        raise Refused(400, "", "Bad Request") from None
    if not isinstance(parsed, dict):
        raise Refused(400, "", "Bad Request")
    return parsed


def _drafts(body: Mapping[str, Any]) -> list[Draft]:
    personalizations = body.get("personalizations")
    if not isinstance(personalizations, list) or not 1 <= len(personalizations) <= MAX_PERSONALIZATIONS:
        raise Refused(400, "personalizations", f"1 to {MAX_PERSONALIZATIONS} personalizations are taken.")
    sender = _address(body.get("from"), "from")
    if body.get("reply_to") is not None:
        _address(body["reply_to"], "reply_to")
    content = _content(body)
    headers = _headers(body, "headers")
    drafts = []
    for place, given in enumerate(personalizations):
        where, each = f"personalizations.{place}", given if isinstance(given, dict) else {}
        to = each.get("to")
        if not isinstance(to, list) or not to:
            raise Refused(400, f"{where}.to", "The to array is required, and must have at least one email object.")
        addresses = [_address(one, f"{where}.to.{number}") for number, one in enumerate(to)]
        subject = each.get("subject", body.get("subject"))
        if not isinstance(subject, str) or not subject:
            raise Refused(400, "subject", "The subject is required.")
        arguments = _texts(body.get("custom_args"), "custom_args")
        arguments |= _texts(each.get("custom_args"), f"{where}.custom_args")
        if len(json.dumps(arguments).encode()) > MAX_CUSTOM_ARGS:
            raise Refused(400, f"{where}.custom_args", f"At most {MAX_CUSTOM_ARGS} bytes of custom arguments.")
        tags = _texts(each.get("substitutions"), f"{where}.substitutions")
        if len(json.dumps(tags).encode()) > MAX_SUBSTITUTIONS:
            raise Refused(400, f"{where}.substitutions", f"At most {MAX_SUBSTITUTIONS} bytes of substitutions.")
        own_headers = headers | _headers(each, where)
        drafts.append(
            Draft(
                sender=sender,
                to=addresses,
                address=addresses[0],
                subject=_substituted(subject, tags) or "",
                reply_to=(body.get("reply_to") or {}).get("email"),
                text=_substituted(content.get("text/plain"), tags),
                html=_substituted(content.get("text/html"), tags),
                metadata=arguments,
                headers=own_headers,
                send_id=arguments.get("send_id") or header(own_headers, "x-send-id"),
            )
        )
    _check_recipients([address.lower() for draft in drafts for address in draft.to])
    return drafts


def _headers(body: Mapping[str, Any], field: str) -> dict[str, str]:
    headers = _texts(body.get("headers"), field)
    if reserved := RESERVED_HEADERS & {name.lower() for name in headers}:
        raise Refused(400, field, f"The header {min(reserved)} is reserved.")
    return headers


def _substituted(said: str | None, tags: Mapping[str, str]) -> str | None:
    """The text with each tag replaced ("Substitution tags"), one after the other."""
    for tag, value in tags.items():
        said = said and said.replace(tag, value)
    return said


def _check_recipients(addresses: Sequence[str]) -> None:
    """Of the whole call ("Errors: personalizations")."""
    if len(addresses) > MAX_PERSONALIZATIONS:
        raise Refused(400, "personalizations", f"There is a limit of {MAX_PERSONALIZATIONS} recipients a request.")
    if len(set(addresses)) < len(addresses):
        raise Refused(400, "personalizations", "Each unique email address should only be included once.")


def _address(person: Any, field: str) -> str:
    email = person.get("email") if isinstance(person, dict) else None
    if not isinstance(email, str) or not _ADDRESS.fullmatch(email):
        raise Refused(400, f"{field}.email", "Does not contain a valid address.")
    if not isinstance(person.get("name", ""), str):
        raise Refused(400, f"{field}.name", "The name must be text.")
    return email


def _content(body: Mapping[str, Any]) -> dict[str, str]:
    """Type to value: plain text, if there is any, comes first."""
    parts = body.get("content")
    if not isinstance(parts, list) or not parts:
        raise Refused(400, "content", "Unless a template is used, at least one content is required.")
    read = {}
    for place, part in enumerate(parts):
        kind, value = (part.get("type"), part.get("value")) if isinstance(part, dict) else (None, None)
        if not isinstance(kind, str) or not kind or not isinstance(value, str) or not value:
            raise Refused(400, f"content.{place}", "Content has a type and a value of at least one character.")
        if kind == "text/plain" and place > 0:
            raise Refused(400, "content", "text/plain must come first, then text/html.")
        read[kind] = value
    return read


def _texts(value: Any, field: str) -> dict[str, str]:
    value = {} if value is None else value
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise Refused(400, field, "Must be an object of texts.")
    return dict(value)


# ── the logs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_CONDITION = re.compile(
    r'\s*(?:(?P<field>sg_message_id|subject|to_email|reason)\s*=\s*"(?P<text>[^"]*)"'
    r'|sg_message_id_created_at\s*(?P<operator>>=|<=|>|<)\s*TIMESTAMP\s*"(?P<moment>[^"]*)")\s*'
)
STATUSES = {
    "sent": "processed",
    "delayed": "deferred",
    "delivered": "delivered",
    "bounced": "bounced",
    "soft_bounced": "bounced",
    "suppressed": "dropped",
    "failed": "dropped",
}


def logs(request: Request, account: Account) -> Answer:
    """Email Logs: ``POST /v3/logs`` with a query, and ``GET /v3/logs/{sg_message_id}``."""
    now = time.time()
    shown = account.shown(now)
    if request.path == "/v3/logs" and request.method == "POST":
        asked = _object(request.body)
        limit = asked.get("limit", 10)
        if not isinstance(limit, int) or not 1 <= limit <= 1_000:
            raise Refused(400, "limit", "The limit is 1 to 1000.")
        found = [mail for mail in shown if _matches(mail, asked.get("query", ""))]
        return as_json(200, {"messages": [_row(mail, now) for mail in reversed(found)][:limit]})
    if request.path.startswith("/v3/logs/") and request.method == "GET":
        wanted = request.path.removeprefix("/v3/logs/")
        mail = next((mail for mail in shown if full_id(mail) == wanted), None)
        if mail is not None:
            return as_json(200, _row(mail, now) | _detail(mail, now))
    raise Refused(*ERRORS["not_found"])


def _matches(mail: Mail, query: Any) -> bool:
    conditions = [_CONDITION.fullmatch(each) for each in query.split(" AND ")] if isinstance(query, str) else []
    if not conditions or None in conditions:
        raise Refused(400, "query", "The query cannot be read.")
    return all(_holds(mail, condition) for condition in conditions if condition is not None)


def _holds(mail: Mail, condition: re.Match[str]) -> bool:
    if field := condition["field"]:
        shown = {"sg_message_id": full_id(mail), "subject": mail.subject, "to_email": mail.address, "reason": ""}
        return shown[field] == condition["text"]
    try:
        moment = datetime.fromisoformat(condition["moment"]).timestamp()
    except ValueError:
        raise Refused(400, "query", "The timestamp cannot be read.") from None
    at = int(mail.accepted_at)
    return {">": at > moment, "<": at < moment, ">=": at >= moment, "<=": at <= moment}[condition["operator"]]


def full_id(mail: Mail) -> str:
    """The id as events and logs show it: the recipient's routing behind that of the call."""
    return f"{mail.message_id}.recvd-{sha256(mail.address.encode()).hexdigest()[:10]}-1-{int(mail.accepted_at):X}-10.0"


def _row(mail: Mail, now: float) -> dict[str, Any]:
    happened = [STATUSES[fact.word] for fact in mail.happened(now) if fact.word in STATUSES]
    return {
        "from_email": mail.sender,
        "sg_message_id": full_id(mail),
        "subject": mail.subject,
        "to_email": mail.address,
        "status": happened[-1] if happened else "processed",
        "sg_message_id_created_at": datetime.fromtimestamp(int(mail.accepted_at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _detail(mail: Mail, now: float) -> dict[str, Any]:
    events = [{"event": fact.name, "processed": int(fact.at)} for fact in mail.happened(now)]
    return {"api_key_id": "simulator", "client_ip": "", "events": events, "custom_args": dict(mail.metadata)}


# ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = {
    "sent": "processed",
    "delayed": "deferred",
    "delivered": "delivered",
    "bounced": "bounce",
    "soft_bounced": "bounce",
    "suppressed": "dropped",
    "failed": "dropped",
    "complained": "spamreport",
    "opened": "open",
    "clicked": "click",
}
DETAILS: Mapping[str, dict[str, Any]] = {
    "delayed": {"response": "421 4.7.0 try again later", "attempt": "1"},
    "delivered": {"response": "250 2.0.0 OK", "tls": 1},
    "bounced": {
        "type": "bounce",
        "status": "5.1.1",
        "reason": "550 5.1.1 no such user",
        "bounce_classification": "Invalid Address",
    },
    "soft_bounced": {"type": "bounce", "status": "4.2.2", "reason": "452 4.2.2 mailbox full"},
    "suppressed": {"reason": "Bounced Address", "status": "5.0.0"},
    "failed": {"reason": "Invalid SMTPAPI header"},
    "opened": {"useragent": "simulator", "ip": "198.51.100.7", "sg_machine_open": False},
    "clicked": {"useragent": "simulator", "ip": "198.51.100.7", "url": "https://shop.example.test/"},
}


def event_body(mail: Mail, fact: Fact, event_id: str, webhooks: Webhooks, now: float) -> bytes:
    """An array of events, with the line ends that SendGrid sets, and signs."""
    event = {
        "email": mail.address,
        "timestamp": int(fact.at),
        "event": fact.name,
        "sg_event_id": event_id,
        "sg_message_id": full_id(mail),
        "smtp-id": header(mail.headers, "message-id") or f"<{mail.message_id}@geopod-ismtpd-1>",
        **DETAILS.get(fact.word, {}),
        **mail.metadata,
    }
    return b"[" + json.dumps(event, separators=(",", ":")).encode() + b"]\r\n"


def event_headers(event_id: str, body: bytes, webhooks: Webhooks, now: float) -> dict[str, str]:
    """ECDSA over timestamp and raw body."""
    stamp = str(int(now))
    signature = _key(webhooks).sign(stamp.encode() + body, ec.ECDSA(SHA256()))
    return {
        "content-type": "application/json",
        "user-agent": "SendGrid Event API",
        "x-twilio-email-event-webhook-timestamp": stamp,
        "x-twilio-email-event-webhook-signature": base64.b64encode(signature).decode(),
    }


def verification_key(webhooks: Webhooks) -> str:
    """The public half, as SendGrid shows it: base64 of DER."""
    public = _key(webhooks).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(public).decode()


def _key(webhooks: Webhooks) -> ec.EllipticCurvePrivateKey:
    """A key pair made from the secret, so that every start has the same."""
    number = int.from_bytes(sha256(webhooks.secret.encode()).digest()) >> 1
    return ec.derive_private_key(number + 1, ec.SECP256R1())


# ── mail that comes in ───────────────────────────────────────────────────────────────────────────────────────────────


def hand_in(letter: Letter, webhooks: Webhooks, now: float) -> HandIn:
    """Inbound Parse webhook: a form of parts, which nothing signs."""
    mail = letter.mail
    fields = {
        "headers": "".join(f"{name}: {value}\n" for name, value in pairs(mail)),
        "dkim": "{@example.test : pass}",
        "to": str(mail["To"]),
        "from": str(mail["From"]),
        "sender_ip": "198.51.100.7",
        "subject": str(mail["Subject"]),
        "text": plain_text(mail),
        "envelope": json.dumps({"to": [letter.recipient], "from": letter.sender}),
        "attachments": "0",
        "charsets": json.dumps(dict.fromkeys(("to", "from", "subject", "text"), "UTF-8")),
        "SPF": "pass",
    }
    parts = "".join(
        f'--xYzZY\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in fields.items()
    )
    headers = {"content-type": "multipart/form-data; boundary=xYzZY", "user-agent": "Sendlib/1.0"}
    return HandIn(headers, f"{parts}--xYzZY--\r\n".encode())


DIALECT = Dialect(
    name="sendgrid",
    title="SendGrid",
    errors=ERRORS,
    authenticate=authenticate,
    read_call=read_call,
    refusal=refusal,
    other=logs,
    limit_headers=limit_headers,
    new_ids=new_ids,
    words=WORDS,
    event_body=event_body,
    event_headers=event_headers,
    retries=RETRY_AFTER_SECONDS,
    new_event_id=lambda: secrets.token_urlsafe(16),
    shared_secret=verification_key,
    hand_in=hand_in,
)
