"""useSend's HTTP API and webhooks, from the sources of usesend/useSend (files named beside what is theirs): the public
API, its idempotency service, its webhook service. Codes and shapes are the vendor's; the sentences are ours, but for
the few words by which alone its errors can be told apart.
"""

from __future__ import annotations

import hmac
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.simulator.config import Config, Webhooks
from dashboard.simulator.connection import Answer, Request
from dashboard.simulator.dialect import (
    Account,
    Call,
    Dialect,
    Draft,
    Error,
    Limits,
    Refused,
    as_json,
    bare_address,
    fingerprint,
)
from dashboard.simulator.events import Fact, Mail, iso
from dashboard.simulator.reading import json_body, our_id, texts

ENDPOINT = "/api/v1/emails"
ERRORS = {
    "rejected": Error(400, "BAD_REQUEST", "The `to` address is refused, as its name asks for."),
    "invalid": Error(400, "ZodError", "A field is not what the schema says."),
    "busy": Error(429, "RATE_LIMITED", "Rate limit exceeded."),
    "broken": Error(500, "INTERNAL_SERVER_ERROR", "something unexpected happened"),
    "other_body": Error(409, "NOT_UNIQUE", "This Idempotency-Key came with a different payload before."),
    "in_progress": Error(409, "NOT_UNIQUE", "A request with this Idempotency-Key is in progress."),
    "no_key": Error(401, "UNAUTHORIZED", "The Authorization header is missing."),
    "unknown_key": Error(403, "FORBIDDEN", "This API token is not known."),
    "other_domain": Error(403, "FORBIDDEN", "The API key is for another domain."),
    "wrong_domain": Error(400, "BAD_REQUEST", "Domain: example.test of from email is wrong."),
    "unverified_domain": Error(400, "BAD_REQUEST", "Domain: example.test is not verified"),
    "not_found": Error(404, "NOT_FOUND", "There is no such thing."),
    "method": Error(405, "METHOD_NOT_ALLOWED", "This endpoint takes POST."),
}
RETRY_AFTER_SECONDS = (5, 10, 20, 40, 80)
"""Six attempts, five seconds doubled each time (webhook-service.ts)."""


# ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────────────


def authenticate(request: Request, config: Config) -> None:
    """A bearer token; the scheme's word is not looked at (auth.ts)."""
    _, _, token = request.headers.get("authorization", "").partition(" ")
    if not token:
        raise Refused(*ERRORS["no_key"])
    if config.api_key is not None and token != config.api_key:
        raise Refused(*ERRORS["unknown_key"])


def read_call(request: Request) -> Call | None:
    """``POST /api/v1/emails`` (send-email.ts)."""
    if request.path != ENDPOINT or request.method == "GET":
        return None
    if request.method != "POST":
        raise Refused(*ERRORS["method"])
    key = request.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key) <= 256:
        raise Refused(400, "BAD_REQUEST", "The key must have 1 to 256 characters.")
    email = json_body(request, Error(400, "BAD_REQUEST", "The body is not JSON."))
    return Call(
        drafts=[_draft(email)],
        answer=lambda ids: as_json(200, {"emailId": ids[0]}),
        endpoint=request.path,
        key=key,
        fingerprint=fingerprint(json.dumps(email, sort_keys=True).encode()),  # what it says, not its bytes
    )


def _draft(email: Any) -> Draft:
    """email-schema.ts; what the service checks after it needs a database, and is in `ERRORS`."""
    if not isinstance(email, dict):
        raise _invalid("body", "an object")
    to = [email["to"]] if isinstance(email.get("to"), str) else email.get("to")
    if not isinstance(to, list) or not to or not all(isinstance(each, str) for each in to):
        raise _invalid("to", "a text, or a list of texts")
    if not isinstance(email.get("from"), str):
        raise _invalid("from", "a text")
    for name in ("subject", "text", "html"):
        value = email.get(name)
        if (name in email or name == "subject") and (name == "subject" or value is not None) and not _filled(value):
            raise _invalid(name, "a text of at least one character")
    if not email.get("text") and not email.get("html"):
        raise _invalid("text", "there, or html")
    headers = email.get("headers", {})
    if not isinstance(headers, dict) or not all(map(_filled, headers.values())):
        raise _invalid("headers", "texts of at least one character")
    domain = bare_address(email["from"]).rpartition("@")[2]
    if not domain or "@" not in email["from"]:
        raise Refused(400, "BAD_REQUEST", "The from address is none.")
    return Draft(
        sender=email["from"],
        to=to,
        address=bare_address(to[0]),
        subject=email["subject"],
        text=email.get("text"),
        html=email.get("html"),
        headers=texts(headers),
        send_id=our_id({}, texts(headers)),
    )


def _filled(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= 1


def _invalid(field: str, wanted: str) -> Refused:
    return Refused(400, "ZodError", f"{field} must be {wanted}")


def refusal(error: Error) -> Answer:
    """api-error.ts; what breaks the schema is answered by the framework, in a shape of its own."""
    if error.name == "ZodError":
        issue = {"code": "custom", "path": [error.message.split()[0]], "message": error.message}
        return as_json(error.status, {"success": False, "error": {"issues": [issue], "name": error.name}})
    return as_json(error.status, {"error": {"code": error.name, "message": error.message}})


def limit_headers(limits: Limits, now: float) -> dict[str, str]:
    """hono.ts: the current second."""
    told = {
        "x-ratelimit-limit": limits.limit,
        "x-ratelimit-remaining": limits.remaining,
        "x-ratelimit-reset": int(now) + 1,
    }
    if limits.retry_after is not None:
        told["retry-after"] = limits.retry_after
    return {name: str(value) for name, value in told.items()}


def retrieve(request: Request, account: Account) -> Answer:
    """``GET /api/v1/emails/{emailId}`` (get-email.ts): found by useSend's own id alone, which shows nothing of ours."""
    message_id, now = request.path.removeprefix(f"{ENDPOINT}/"), time.time()
    mail = next((mail for mail in account.shown(now) if mail.message_id == message_id), None)
    if request.method != "GET" or mail is None:
        raise Refused(*ERRORS["not_found"])
    events = [
        {"emailId": message_id, "status": _status(fact), "createdAt": iso(fact.at)} for fact in mail.happened(now)
    ]
    return as_json(
        200,
        {
            "id": message_id,
            "teamId": 1,
            "to": list(mail.to),
            "from": mail.sender,
            "subject": mail.subject,
            "html": mail.html,
            "text": mail.text,
            "createdAt": iso(mail.accepted_at),
            "updatedAt": iso(mail.accepted_at),
            "emailEvents": events,
        },
    )


def _status(fact: Fact) -> str:
    return fact.name.removeprefix("email.").upper()


def new_ids(drafts: Sequence[Draft]) -> list[str]:
    """In the shape of its database's ids."""
    return [f"cm{secrets.token_hex(12)}" for _ in drafts]


# ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = {
    "sent": "email.sent",
    "delayed": "email.delivery_delayed",
    "delivered": "email.delivered",
    "bounced": "email.bounced",
    "soft_bounced": "email.bounced",
    "suppressed": "email.suppressed",
    "failed": "email.failed",
    "complained": "email.complained",
    "opened": "email.opened",
    "clicked": "email.clicked",
}
DETAILS: Mapping[str, dict[str, Any]] = {
    "bounced": {"bounce": {"type": "Permanent", "subType": "General", "message": "550 5.1.1 no such user"}},
    "soft_bounced": {"bounce": {"type": "Transient", "subType": "MailboxFull", "message": "452 4.2.2 mailbox full"}},
    "suppressed": {"suppression": {"type": "Bounce", "reason": "an earlier hard bounce"}},
    "failed": {"failed": {"reason": "internal_failure"}},
}


def event_body(mail: Mail, fact: Fact, event_id: str, webhooks: Webhooks, now: float) -> bytes:
    """webhook-events.ts and buildPayload; the number of the attempt is 1 on every repeat here, where useSend counts."""
    at = iso(fact.at)
    details = dict(DETAILS.get(fact.word, {}))
    if fact.word == "opened":
        details["open"] = {"timestamp": at, "userAgent": "simulator", "ip": "198.51.100.7"}
    if fact.word == "clicked":
        details["click"] = {"timestamp": at, "url": "https://shop.example.test/", "ip": "198.51.100.7"}
    data = {
        "id": mail.message_id,
        "status": _status(fact),
        "from": mail.sender,
        "to": list(mail.to),
        "occurredAt": at,
        "subject": mail.subject,
        **details,
    }
    said = {
        "id": event_id,
        "type": fact.name,
        "version": "2026-01-18",
        "createdAt": at,
        "teamId": 1,
        "data": data,
        "attempt": 1,
    }
    return json.dumps(said, separators=(",", ":")).encode()


def event_headers(event_id: str, body: bytes, webhooks: Webhooks, now: float) -> dict[str, str]:
    """postWebhook and signBody: HMAC-SHA256 over milliseconds, a full stop and the raw body."""
    stamp = str(int(now * 1000))
    signature = hmac.digest(webhooks.secret.encode(), f"{stamp}.".encode() + body, "sha256").hex()
    return {
        "content-type": "application/json",
        "user-agent": "UseSend-Webhook/1.0",
        "x-usesend-event": json.loads(body)["type"],
        "x-usesend-call": event_id,
        "x-usesend-timestamp": stamp,
        "x-usesend-signature": f"v1={signature}",
        "x-usesend-retry": "false",
    }


DIALECT = Dialect(
    name="usesend",
    title="useSend",
    errors=ERRORS,
    authenticate=authenticate,
    read_call=read_call,
    refusal=refusal,
    other=retrieve,
    limit_headers=limit_headers,
    new_ids=new_ids,
    words=WORDS,
    event_body=event_body,
    event_headers=event_headers,
    retries=RETRY_AFTER_SECONDS,
    new_event_id=lambda: f"cm{secrets.token_hex(12)}",
)
