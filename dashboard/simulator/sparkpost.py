"""SparkPost's HTTP API and webhooks, from SparkPost's repositories developers.sparkpost.com ("Transmissions", with its
pull request 590 on idempotent requests, and "Webhooks") and support-docs ("Extended error codes", "Bounce
classification codes"). Codes and shapes are the vendor's; the sentences are ours.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.simulator.config import Config, Webhooks
from dashboard.simulator.connection import Answer, Request
from dashboard.simulator.dialect import (
    Call,
    Dialect,
    Draft,
    Error,
    Greeting,
    Reaction,
    Refused,
    as_json,
    fingerprint,
    hex_id,
)
from dashboard.simulator.events import Fact, Mail
from dashboard.simulator.reading import (
    basic,
    is_address,
    is_mailbox,
    json_object,
    our_id,
    password,
    texts,
    unsigned,
)

ENDPOINT = "/api/v1/transmissions"
MAX_METADATA, MAX_CONTENT = 1_000, 20 * 1024 * 1024
ERRORS = {
    "rejected": Error(400, "5002", "No recipient of the list is valid."),
    "invalid": Error(422, "1300", "The data is of another type or length."),
    "missing": Error(422, "1400", "A field is missing."),
    "busy": Error(429, "", "Too many requests."),
    "broken": Error(500, "1500", "The database failed."),
    "unavailable": Error(503, "1900", "No messages can be generated."),
    "quota": Error(420, "2101", "The sending limit of the hour is exceeded."),
    "sandbox_quota": Error(420, "2103", "The sending limit of the sandbox is exceeded."),
    "no_key": Error(401, "", "Unauthorized."),
    "permission": Error(403, "1100", "Permission denied."),
    "no_license": Error(403, "1601", "There is no license for that."),
    "wrong_domain": Error(400, "7001", "The sending domain is not configured, or not verified."),
    "blacklisted": Error(400, "7000", "The sending domain is blacklisted."),
    "no_resources": Error(400, "1502", "The server has no resources."),
    "not_generated": Error(400, "1901", "The message could not be generated."),
    "generation_rejected": Error(400, "1902", "The generation of the message was rejected."),
    "syntax": Error(422, "3000", "The content's template language is wrong."),
    "header": Error(422, "3002", "A header is not allowed."),
    "content_type": Error(415, "1700", "The content type is not supported."),
    "not_found": Error(404, "1101", "There is no such endpoint."),
    "method": Error(405, "1102", "This endpoint takes POST."),
    "other_body": Error(409, "1600", "The key was used with another payload."),
    "in_progress": Error(409, "1601", "A request with this key is in progress."),
    "bad_key": Error(400, "1602", "The key cannot be one."),
}
RETRY_AFTER_SECONDS = (60, 120, 240, 480, 960, 1_920, 3_840, 7_680, 13_500)
"""Eight hours in all are documented; how they are divided is ours."""
_KEY = re.compile(r"[A-Za-z0-9._-]{1,255}")


# ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────────────


def authenticate(request: Request, config: Config) -> None:
    """The key alone in ``Authorization``, or as the user of Basic without a password ("Authentication")."""
    key = basic(request).partition(":")[0] or request.headers.get("authorization", "")
    if not key or (config.api_key is not None and key != config.api_key):
        raise Refused(*ERRORS["no_key"])


def read_call(request: Request) -> Call | None:
    """``POST /api/v1/transmissions``, with a slash at its end or without ("API Conventions")."""
    if request.path.rstrip("/") != ENDPOINT:
        return None
    if request.method != "POST":
        raise Refused(*ERRORS["method"])
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise Refused(*ERRORS["content_type"])
    key = request.headers.get("idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise Refused(*ERRORS["bad_key"])
    said = json_object(request, Error(400, "1300", "The body is no JSON object."))
    recipients = said.get("recipients")
    if not isinstance(recipients, list) or not recipients:
        raise _missing("recipients")
    return Call(
        drafts=[_draft(said, each) for each in recipients],
        answer=_accepted,
        endpoint=ENDPOINT,
        key=key,
        fingerprint=fingerprint(request.body),
    )


def _draft(said: Mapping[str, Any], recipient: Any) -> Draft:
    content = said.get("content")
    if not isinstance(content, dict):
        raise _missing("content")
    for name in ("from", "subject"):
        if not content.get(name):
            raise _missing(f"content.{name}")
    if not content.get("text") and not content.get("html"):
        raise _missing("content.text or content.html")
    if len(str(content.get("text") or "")) + len(str(content.get("html") or "")) > MAX_CONTENT:
        raise Refused(*ERRORS["invalid"])
    sender = content["from"]["email"] if isinstance(content["from"], dict) else content["from"]
    address = _address(recipient)
    if not is_mailbox(sender) or not is_address(address):
        raise Refused(*ERRORS["invalid"])
    headers = content.get("headers", {})
    if not isinstance(headers, dict) or len(texts(headers)) < len(headers):
        raise Refused(*ERRORS["invalid"])
    if {"to", "subject", "from", "reply-to", "content-type", "content-transfer-encoding"} & {
        n.lower() for n in headers
    }:
        raise Refused(*ERRORS["header"])
    metadata = {**(said.get("metadata") or {}), **(recipient.get("metadata") or {})}
    if len(json.dumps(metadata).encode()) > MAX_METADATA:
        raise Refused(*ERRORS["invalid"])
    return Draft(
        sender=sender,
        to=[address],
        address=address,
        subject=content["subject"],
        text=content.get("text"),
        html=content.get("html"),
        metadata=texts(metadata),
        headers=headers,
        send_id=our_id(texts(metadata), headers),
    )


def _address(recipient: Any) -> Any:
    address = recipient.get("address") if isinstance(recipient, dict) else None
    return address.get("email") if isinstance(address, dict) else address


def _missing(field: str) -> Refused:
    return Refused(422, "1400", f"{field} is required")


def _accepted(ids: Sequence[str]) -> Answer:
    """One id for the whole transmission."""
    return as_json(
        200,
        {"results": {"total_rejected_recipients": 0, "total_accepted_recipients": len(ids), "id": ids[0]}},
    )


def refusal(error: Error) -> Answer:
    """A list of errors; some have no code."""
    told = {"message": error.message} | ({"code": error.name} if error.name else {})
    return as_json(error.status, {"errors": [told]})


def new_ids(drafts: Sequence[Draft]) -> list[str]:
    """Of the transmission: a number as text."""
    return [str(10**17 + secrets.randbelow(10**17))] * len(drafts)


# ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = {
    "sent": "injection",
    "delayed": "delay",
    "delivered": "delivery",
    "bounced": "bounce",
    "soft_bounced": "bounce",
    "suppressed": "policy_rejection",
    "failed": "generation_failure",
    "complained": "spam_complaint",
    "opened": "open",
    "clicked": "click",
}
_CLASSES = {"opened": "track_event", "clicked": "track_event", "failed": "gen_event"}
DETAILS: Mapping[str, dict[str, str]] = {
    "delayed": {"bounce_class": "70", "error_code": "451", "raw_reason": "451 4.7.1 greylisted"},
    "bounced": {"bounce_class": "10", "error_code": "550", "raw_reason": "550 5.1.1 no such user"},
    "soft_bounced": {"bounce_class": "22", "error_code": "452", "raw_reason": "452 4.2.2 mailbox full"},
    "suppressed": {"bounce_class": "25", "error_code": "554", "raw_reason": "554 5.7.1 recipient suppressed"},
    "failed": {"error_code": "554", "raw_reason": "the message could not be generated"},
    "clicked": {"target_link_url": "https://shop.example.test/"},
}


def event_body(mail: Mail, fact: Fact, event_id: str, webhooks: Webhooks, now: float) -> bytes:
    """A batch of one. Times are whole seconds, as text."""
    event = {
        "type": fact.name,
        "event_id": event_id,
        "timestamp": str(int(fact.at)),
        "transmission_id": mail.message_id,
        "message_id": f"{mail.message_id}ab",
        "rcpt_to": mail.address.lower(),
        "raw_rcpt_to": mail.address,
        "rcpt_meta": dict(mail.metadata),
        **DETAILS.get(fact.word, {}),
    }
    return _batch([{"msys": {_CLASSES.get(fact.word, "message_event"): event}}])


def _batch(events: Sequence[Any]) -> bytes:
    return json.dumps(events, separators=(",", ":")).encode()


def event_headers(event_id: str, body: bytes, webhooks: Webhooks, now: float) -> dict[str, str]:
    """Basic, and an id of the batch."""
    return unsigned(event_id, body, webhooks, now) | {"x-messagesystems-batch-id": event_id}


def reaction(status: int | None, fact: Fact) -> Reaction:
    """ "Batch information": what is not answered with 200 comes again."""
    return Reaction.DONE if status == 200 else Reaction.REPEAT


def greetings(webhooks: Webhooks, now: float) -> Sequence[Greeting]:
    """The test POST when a webhook is made ("Create a webhook")."""
    body = _batch([{"msys": {}}])
    return [Greeting(headers=event_headers(hex_id(), body, webhooks, now), body=body)]


DIALECT = Dialect(
    name="sparkpost",
    title="SparkPost",
    errors=ERRORS,
    authenticate=authenticate,
    read_call=read_call,
    refusal=refusal,
    replay_headers={"x-idempotent-replayed": "true"},
    new_ids=new_ids,
    words=WORDS,
    event_body=event_body,
    event_headers=event_headers,
    retries=RETRY_AFTER_SECONDS,
    reaction=reaction,
    new_event_id=lambda: str(10**16 + secrets.randbelow(10**16)),
    shared_secret=password,
    greetings=greetings,
)
