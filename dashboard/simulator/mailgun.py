"""Mailgun's HTTP API and webhooks, from its documents: Sending, Errors, Events, Webhooks (retries, securing). The
sentences in ``message`` are ours.

An id is the Message-Id itself, in angle brackets: the client's own where it sets one. What is signed is a timestamp and
a token, never the event.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from email.parser import BytesParser
from email.policy import HTTP
from email.utils import parseaddr, parsedate_to_datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from dashboard.simulator.config import Config, Webhooks
from dashboard.simulator.connection import Answer, Request
from dashboard.simulator.dialect import (
    Account,
    Call,
    Dialect,
    Draft,
    Error,
    Reaction,
    Refused,
    as_json,
    bare_address,
    fingerprint,
    header,
)
from dashboard.simulator.events import Fact, Mail
from dashboard.simulator.replies import HandIn, Letter, own_words, pairs, plain_text

MAX_RECIPIENTS = 1_000
MAX_SIZE = 25 * 1024 * 1024
MAX_OPTIONS = 16 * 1024
"""Bytes of all ``o:``, ``h:``, ``v:`` and ``t:`` together."""
MAX_TAGS = 3
PAGE = 300
"""Events a page."""

JSON, PLAIN, HTML = "json", "text", "html"
"""The three forms of its errors, which have no codes."""
ERRORS = {
    "rejected": Error(400, JSON, "to parameter is not a valid address. please check documentation"),
    "unauthorized": Error(401, PLAIN, "Forbidden"),
    "request_failed": Error(402, JSON, "Request Failed"),
    "domain_not_found": Error(404, JSON, "Domain not found: mg.example.test"),
    "too_large": Error(413, JSON, "Request Entity Too Large"),
    "busy": Error(429, JSON, "Too many requests"),
    "broken": Error(500, JSON, "Internal Server Error"),
    "bad_gateway": Error(502, HTML, "502"),
    "unavailable": Error(503, HTML, "503"),
    "gateway_timeout": Error(504, HTML, "504"),
    "not_the_api": Error(200, PLAIN, "Mailgun Magnificent API"),
}
RETRY_AFTER_SECONDS = (300, 600, 900, 3_600, 7_200, 14_400)
"""For about eight hours."""


# ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────────────


def elsewhere(request: Request, account: Account) -> Answer | None:
    """A wrong path is greeted with a 200."""
    return None if request.path.startswith("/v3/") else refusal(ERRORS["not_the_api"])


def authenticate(request: Request, config: Config) -> None:
    """Basic, as ``api`` with the key."""
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    try:
        user, _, key = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        user = key = ""
    if scheme.lower() != "basic" or user != "api" or not key or config.api_key not in (None, key):
        raise Refused(*ERRORS["unauthorized"])


def read_call(request: Request) -> Call | None:
    """``POST /v3/<domain>/messages``."""
    if not request.path.endswith("/messages") or request.path.count("/") != 3:
        return None
    if request.method != "POST":
        raise Refused(405, JSON, "Method Not Allowed")
    if len(request.body) > MAX_SIZE:
        raise Refused(*ERRORS["too_large"])
    fields = list(_fields(request))
    drafts = _for_each(_draft(fields, domain=request.path.split("/")[2]), dict(reversed(fields)))
    return Call(drafts=drafts, answer=_queued, endpoint=request.path, fingerprint=fingerprint(request.body))


def _queued(ids: Sequence[str]) -> Answer:
    return as_json(200, {"id": f"<{ids[0]}>", "message": "Queued. Thank you."})


def refusal(error: Error) -> Answer:
    """JSON with a message, plain text, or a page of something in between."""
    match error.name:
        case "text":
            return Answer(status=error.status, body=error.message.encode(), content_type="text/html")
        case "html":
            page = f"<html><title>{error.message}</title></html>"
            return Answer(status=error.status, body=page.encode(), content_type="text/html")
        case _:
            return as_json(error.status, {"message": error.message})


def new_ids(drafts: Sequence[Draft]) -> list[str]:
    """The Message-Id, without its brackets."""
    return [(header(draft.headers, "message-id") or "").strip("<> ") for draft in drafts]


def _fields(request: Request) -> Iterable[tuple[str, str]]:
    """The fields of a form, in either encoding; names may come several times."""
    kind = request.headers.get("content-type", "")
    if kind.startswith("application/x-www-form-urlencoded"):
        try:
            yield from parse_qsl(request.body.decode("ascii"), keep_blank_values=True, errors="strict")
        except ValueError:
            raise Refused(400, JSON, "The form cannot be read.") from None
    elif kind.startswith("multipart/form-data"):
        form = BytesParser(policy=HTTP).parsebytes(f"content-type: {kind}\r\n\r\n".encode() + request.body)
        for part in form.iter_parts():
            name = part.get_param("name", header="content-disposition")
            yield str(name), bytes(part.get_payload(decode=True) or b"").decode("utf-8", "replace")
    else:
        raise Refused(400, JSON, "The body must be a form.")


def _draft(fields: Sequence[tuple[str, str]], *, domain: str) -> Draft:
    given = dict(reversed(fields))  # of several, the first
    sender, to = given.get("from", ""), [each for name, value in fields if name == "to" for each in _list(value)]
    if not _is_address(sender):
        raise Refused(400, JSON, "from parameter is not a valid address. please check documentation")
    if not 1 <= len(to) <= MAX_RECIPIENTS or not all(_is_address(each) for each in to):
        raise Refused(400, JSON, "to parameter is not a valid address. please check documentation")
    if not given.get("subject"):
        raise Refused(400, JSON, "subject parameter is missing")
    if not any(given.get(name) for name in ("text", "html", "amp-html", "template")):
        raise Refused(400, JSON, "Need at least one of 'text', 'html', 'amp-html' or 'template' parameters specified")
    options = [(name, value) for name, value in fields if name[:2] in ("o:", "h:", "v:", "t:")]
    if sum(len(name.encode()) + len(value.encode()) for name, value in options) > MAX_OPTIONS:
        raise Refused(400, JSON, "o:, h:, v: and t: parameters exceed 16 kB")
    if sum(name == "o:tag" for name, _ in options) > MAX_TAGS:
        raise Refused(400, JSON, f"at most {MAX_TAGS} tags")
    headers = {name[2:]: value for name, value in options if name.startswith("h:")}
    variables = {name[2:]: value for name, value in options if name.startswith("v:")}
    if header(headers, "message-id") is None:
        made = f"<{time.strftime('%Y%m%d%H%M%S', time.gmtime())}.{secrets.token_hex(8)}@{domain}>"
        headers["Message-Id"] = made
    return Draft(
        sender=sender,
        to=to,
        address=bare_address(to[0]),
        subject=given["subject"],
        reply_to=header(headers, "reply-to"),
        text=given.get("text"),
        html=given.get("html"),
        metadata=variables,
        headers=headers,
        send_id=variables.get("send_id") or header(headers, "x-send-id"),
    )


_VARIABLE = re.compile(r"%recipient(?:(_email|_name|_fname|_lname)|\.([^%\s]+))?%")


def _for_each(draft: Draft, given: Mapping[str, str]) -> list[Draft]:
    """Batch Sending: with recipient variables each recipient gets a message of their own, all under one id; without
    them all get the same one, with everybody in its ``to``."""
    if "recipient-variables" not in given:
        return [draft]
    variables = _recipient_variables(given["recipient-variables"])
    return [_for_one(draft, to, variables.get(bare_address(to), {})) for to in draft.to]


def _for_one(draft: Draft, to: str, variables: Mapping[str, Any]) -> Draft:
    name, address = parseaddr(to)

    def value(reference: re.Match[str]) -> str:
        """What a reference stands for; one to a variable that this recipient has not stays."""
        known = {"": to, "_email": address, "_name": name, "_fname": name.split(" ")[0], "_lname": name.split(" ")[-1]}
        built_in, own = reference.groups()
        return str(variables.get(own, reference.group())) if own else known[built_in or ""]

    def filled(said: str) -> str:
        return _VARIABLE.sub(value, said)

    headers = {name: filled(said) for name, said in draft.headers.items()}
    metadata = {name: filled(said) for name, said in draft.metadata.items()}
    return replace(
        draft,
        to=[to],
        address=bare_address(to),
        subject=filled(draft.subject),
        text=draft.text and filled(draft.text),
        html=draft.html and filled(draft.html),
        metadata=metadata,
        headers=headers,
        send_id=metadata.get("send_id") or header(headers, "x-send-id"),
    )


def _recipient_variables(text: str) -> Mapping[str, Mapping[str, Any]]:
    try:
        read = json.loads(text)
    except ValueError:
        read = None
    if not isinstance(read, dict) or not all(isinstance(each, dict) for each in read.values()):
        raise Refused(400, JSON, "recipient-variables must be a JSON dictionary of dictionaries")
    return read


def _list(value: str) -> list[str]:
    """The mailboxes of a list; a comma in quotes parts nothing."""
    parts, quoted = [""], False
    for letter in value:
        quoted ^= letter == '"'
        if letter == "," and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


def _is_address(text: str) -> bool:
    local, _, domain = bare_address(text).rpartition("@")
    return bool(local) and bool(domain) and " " not in local + domain


# ── the events API ───────────────────────────────────────────────────────────────────────────────────────────────────


def events(request: Request, account: Account) -> Answer:
    """``GET /v3/<domain>/events``: what happened, one by one, late by the set delay; ours are no filters."""
    if request.method != "GET" or not request.path.endswith("/events") or request.path.count("/") != 3:
        raise Refused(404, JSON, "Not Found")
    asked = dict(parse_qsl(request.query))
    limit = asked.get("limit", "100")
    if not limit.isdigit() or not 1 <= int(limit) <= PAGE:
        raise Refused(400, JSON, f"limit is 1 to {PAGE}")
    begin, end = _moment(asked.get("begin")), _moment(asked.get("end"))
    if begin is not None and end is None and asked.get("ascending") not in ("yes", "no"):
        raise Refused(400, JSON, "a begin without an end needs ascending")
    now = time.time()
    until = min(now - account.config.look_up_delay_ms / 1000, float("inf") if end is None else end)
    found = [
        (fact.at, _event(mail, fact, fact.event_id))
        for mail in account.shown(now)
        if asked.get("recipient", mail.address) == mail.address
        and asked.get("message-id", mail.message_id).strip("<>") == mail.message_id
        for fact in mail.story
        if (begin or 0) <= fact.at <= until and asked.get("event", fact.name) == fact.name
    ]
    found.sort(key=lambda each: each[0], reverse=asked.get("ascending") != "yes")
    base = f"http://{request.headers.get('host', '')}{request.path}"
    paging = {name: f"{base}/{quote(name)}" for name in ("first", "next", "previous", "last")}
    return as_json(200, {"items": [event for _, event in found[: int(limit)]], "paging": paging})


def _moment(text: str | None) -> float | None:
    """Seconds since the epoch, or a date of RFC 2822."""
    if text is None:
        return None
    try:
        return float(text) if text.replace(".", "", 1).isdigit() else parsedate_to_datetime(text).timestamp()
    except ValueError:
        raise Refused(400, JSON, "begin and end are times") from None


# ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = {
    "sent": "accepted",
    "delayed": "failed",
    "delivered": "delivered",
    "bounced": "failed",
    "soft_bounced": "failed",
    "suppressed": "failed",
    "failed": "rejected",
    "complained": "complained",
    "opened": "opened",
    "clicked": "clicked",
}
_CLIENT = {"client-info": {"client-type": "browser", "bot": ""}, "ip": "198.51.100.7"}
DETAILS: Mapping[str, dict[str, Any]] = {
    "delayed": {
        "severity": "temporary",
        "reason": "generic",
        "delivery-status": {"code": 421, "message": "4.7.0 try again later", "retry-seconds": 600, "attempt-no": 1},
    },
    "delivered": {"delivery-status": {"code": 250, "message": "OK", "attempt-no": 1, "tls": True}},
    "bounced": {
        "severity": "permanent",
        "reason": "bounce",
        "delivery-status": {"code": 550, "message": "5.1.1 no such user", "attempt-no": 1},
    },
    "soft_bounced": {
        "severity": "permanent",
        "reason": "old",
        "delivery-status": {"code": 452, "message": "4.2.2 mailbox full", "attempt-no": 9},
    },
    "suppressed": {
        "severity": "permanent",
        "reason": "suppress-bounce",
        "delivery-status": {"code": 605, "message": "", "description": "Not delivering to previously bounced address"},
    },
    "failed": {"reject": {"reason": "Sandbox subdomains are for test purposes only.", "description": ""}},
    "opened": _CLIENT,
    "clicked": {**_CLIENT, "url": "https://shop.example.test/"},
}


def _event(mail: Mail, fact: Fact, event_id: str) -> dict[str, Any]:
    to = ", ".join(mail.to)
    headers = {"message-id": mail.message_id, "to": to, "from": mail.sender, "subject": mail.subject}
    event: dict[str, Any] = {
        "event": fact.name,
        "id": event_id,
        "timestamp": round(fact.at, 6),
        "log-level": "info",
        "recipient": mail.address,
        "recipient-domain": mail.address.rpartition("@")[2],
        "tags": [],
        "user-variables": dict(mail.metadata),
        "flags": {"is-routed": False, "is-authenticated": True, "is-system-test": False, "is-test-mode": False},
        "message": {"headers": headers, "attachments": [], "size": len(mail.text or mail.html or "")},
        **DETAILS.get(fact.word, {}),
    }
    if fact.word == "failed":
        del event["recipient"], event["recipient-domain"]
    return event


def event_body(mail: Mail, fact: Fact, event_id: str, webhooks: Webhooks, now: float) -> bytes:
    """The event beside the signature, which covers timestamp and token alone."""
    stamp, token = str(int(now)), secrets.token_hex(25)
    signature = hmac.digest(webhooks.secret.encode(), f"{stamp}{token}".encode(), "sha256").hex()
    signed = {"timestamp": stamp, "token": token, "signature": signature}
    document = {"signature": signed, "event-data": _event(mail, fact, event_id)}
    return json.dumps(document, separators=(",", ":")).encode()


def event_headers(event_id: str, body: bytes, webhooks: Webhooks, now: float) -> dict[str, str]:
    """Nothing in them."""
    return {"content-type": "application/json", "user-agent": "mailgun/webhooks"}


def reaction(status: int | None, fact: Fact) -> Reaction:
    """200 is good, 406 ends it, anything else is repeated; but a *delivered* is told once only."""
    if status == 200:
        return Reaction.DONE
    return Reaction.DROP if status == 406 or fact.word == "delivered" else Reaction.REPEAT


# ── mail that comes in ───────────────────────────────────────────────────────────────────────────────────────────────


def hand_in(letter: Letter, webhooks: Webhooks, now: float) -> HandIn:
    """Receiving messages via HTTP: what a route forwards is a form, with the signature of webhooks among its fields."""
    mail = letter.mail
    stamp, token = str(int(now)), secrets.token_hex(25)
    fields = {
        "recipient": letter.recipient,
        "sender": letter.sender,
        "from": str(mail["From"]),
        "subject": str(mail["Subject"]),
        "body-plain": plain_text(mail),
        "stripped-text": own_words(mail),
        "stripped-signature": "",
        "message-headers": json.dumps(pairs(mail)),
        **dict(pairs(mail)),
        "timestamp": stamp,
        "token": token,
        "signature": hmac.digest(webhooks.secret.encode(), f"{stamp}{token}".encode(), "sha256").hex(),
    }
    headers = {"content-type": "application/x-www-form-urlencoded", "user-agent": "mailgun/treq"}
    return HandIn(headers, urlencode(fields).encode())


DIALECT = Dialect(
    name="mailgun",
    title="Mailgun",
    errors=ERRORS,
    public=elsewhere,
    authenticate=authenticate,
    read_call=read_call,
    refusal=refusal,
    other=events,
    new_ids=new_ids,
    words=WORDS,
    event_body=event_body,
    event_headers=event_headers,
    retries=RETRY_AFTER_SECONDS,
    reaction=reaction,
    new_event_id=lambda: secrets.token_urlsafe(16),
    hand_in=hand_in,
)
