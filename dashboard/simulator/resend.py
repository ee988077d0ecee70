"""Resend's HTTP API and webhooks, from its documents: Send Email, Send Batch Emails, Retrieve Email, Errors,
Idempotency Keys, Rate Limit, Webhooks, Email Bounces; Svix "Verifying payloads" for the signature. Names, codes and
shapes are the vendor's; the sentences in ``message`` are ours.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
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
    fingerprint,
    hex_id,
)
from dashboard.simulator.events import Fact, Mail, iso
from dashboard.simulator.resend_request import read_batch, read_email

SEND_ENDPOINTS = ("/emails", "/emails/batch")
ERRORS = {
    "rejected": Error(422, "validation_error", "The `to` address is refused, as its name asks for."),
    "busy": Error(429, "rate_limit_exceeded", "Too many requests in this second."),
    "broken": Error(500, "application_error", "Something broke."),
    "unavailable": Error(503, "service_unavailable", "Come again later."),
    "quota": Error(429, "daily_quota_exceeded", "The quota of the day is used up."),
    "monthly_quota": Error(429, "monthly_quota_exceeded", "The quota of the month is used up."),
    "other_body": Error(409, "invalid_idempotent_request", "The key was used with another body before."),
    "in_progress": Error(409, "concurrent_idempotent_requests", "A request with this key is being worked on."),
    "restricted_key": Error(401, "restricted_api_key", "This API key may not do that."),
    "unverified_domain": Error(403, "validation_error", "The domain of `from` is not verified."),
}
RETRY_AFTER_SECONDS = (5, 300, 1_800, 7_200, 18_000, 36_000, 36_000)
"""After each failure in turn ("Retries and Replays")."""


# ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────────────


def authenticate(request: Request, config: Config) -> None:
    """A bearer token ("Errors": missing_api_key, invalid_api_key)."""
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise Refused(401, "missing_api_key", "The Authorization header carries no API key.")
    if config.api_key is not None and key.strip() != config.api_key:
        raise Refused(403, "invalid_api_key", "This API key is not known.")


def read_call(request: Request) -> Call | None:
    """``POST /emails`` and ``POST /emails/batch``."""
    if request.path not in SEND_ENDPOINTS:
        return None
    if request.method != "POST":
        raise Refused(405, "method_not_allowed", "This endpoint takes POST.")
    drafts, errors = _drafts(request)
    return Call(
        drafts=drafts,
        answer=lambda ids: _accepted(request.path, ids, errors),
        endpoint=request.path,
        key=_key(request),
        fingerprint=fingerprint(request.body),
    )


def retrieve(request: Request, account: Account) -> Answer:
    """``GET /emails/{id}``, the only look-up there is."""
    if not request.path.startswith("/emails/"):
        raise Refused(404, "not_found", "There is no such endpoint.")
    if request.method != "GET":
        raise Refused(405, "method_not_allowed", "This endpoint takes GET.")
    message_id, now = request.path.removeprefix("/emails/"), time.time()
    mail = next((mail for mail in account.shown(now) if mail.message_id == message_id), None)
    if mail is None:
        raise Refused(404, "not_found", "There is no email with this id.")
    return as_json(200, _described(mail, now))


def refusal(error: Error) -> Answer:
    """An error in the vendor's shape."""
    return as_json(error.status, {"statusCode": error.status, "name": error.name, "message": error.message})


def limit_headers(limits: Limits, now: float) -> dict[str, str]:
    """Rate Limit: the current second, and the quota of the day."""
    told = {"ratelimit-limit": limits.limit, "ratelimit-remaining": limits.remaining, "ratelimit-reset": 1}
    if limits.retry_after is not None:
        told["retry-after"] = limits.retry_after
    if limits.quota_used is not None:
        told["x-resend-daily-quota"] = limits.quota_used
    return {name: str(value) for name, value in told.items()}


def _drafts(request: Request) -> tuple[list[Draft], list[dict[str, Any]]]:
    if request.path == "/emails":
        return [read_email(request.body)], []
    return read_batch(request.body, permissive=request.headers.get("x-batch-validation") == "permissive")


def _key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key) <= 256:
        raise Refused(400, "invalid_idempotency_key", "The key must have 1 to 256 characters.")
    return key


def _accepted(endpoint: str, ids: Sequence[str], errors: Sequence[dict[str, Any]] = ()) -> Answer:
    if endpoint == "/emails":
        return as_json(200, {"id": ids[0]})
    document: dict[str, Any] = {"data": [{"id": each} for each in ids]}
    return as_json(200, document | ({"errors": list(errors)} if errors else {}))


def _described(mail: Mail, now: float) -> dict[str, Any]:
    """The resource of Retrieve Email; its time has a blank instead of the ``T``."""
    happened = mail.happened(now)
    return {
        "object": "email",
        "id": mail.message_id,
        "from": mail.sender,
        "to": list(mail.to),
        "cc": [],
        "bcc": [],
        "reply_to": [],
        "subject": mail.subject,
        "text": mail.text,
        "html": mail.html,
        "created_at": datetime.fromtimestamp(mail.accepted_at, UTC).isoformat(" ", "microseconds"),
        "scheduled_at": None,
        "last_event": happened[-1].name.removeprefix("email.") if happened else "queued",
        "tags": [{"name": name, "value": value} for name, value in mail.metadata.items()],
    }


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
    "bounced": {
        "bounce": {
            "type": "Permanent",
            "subType": "General",
            "message": "The receiving server refused the recipient for good.",
            "diagnosticCode": ["smtp; 550 5.1.1 no such user"],
        }
    },
    "soft_bounced": {
        "bounce": {
            "type": "Transient",
            "subType": "MailboxFull",
            "message": "The mailbox stayed full.",
            "diagnosticCode": ["smtp; 452 4.2.2 mailbox full"],
        }
    },
    "suppressed": {
        "suppressed": {"type": "OnAccountSuppressionList", "message": "The address is on the suppression list."}
    },
    "failed": {"failed": {"reason": "internal_failure"}},
}


def event_body(mail: Mail, fact: Fact, event_id: str, webhooks: Webhooks, now: float) -> bytes:
    """One event a request."""
    at = iso(fact.at)
    details = dict(DETAILS.get(fact.word, {}))
    if fact.word == "clicked":
        details["click"] = {
            "ipAddress": "198.51.100.7",
            "timestamp": at,
            "userAgent": "simulator",
            "link": "https://shop.example.test/",
        }
    domain = mail.sender.rpartition("@")[2].rstrip(">") or "example.test"
    data = {
        "created_at": iso(mail.accepted_at),
        "email_id": mail.message_id,
        "message_id": f"<{mail.message_id}@{domain}>",
        "from": mail.sender,
        "to": list(mail.to),
        "subject": mail.subject,
        "tags": dict(mail.metadata),
        **details,
    }
    return json.dumps({"type": fact.name, "created_at": at, "data": data}, separators=(",", ":")).encode()


def event_headers(event_id: str, body: bytes, webhooks: Webhooks, now: float) -> dict[str, str]:
    """The headers of a delivery, signed."""
    return {
        "content-type": "application/json",
        "user-agent": "Svix-Webhooks/simulator",
        **signed_headers(webhooks, event_id, body, now),
    }


def signed_headers(webhooks: Webhooks, event_id: str, body: bytes, now: float) -> dict[str, str]:
    """The three Svix headers: HMAC-SHA256 over id, whole seconds and raw body, joined by full stops."""
    stamp = str(int(now))
    encoded = webhooks.secret.removeprefix("whsec_")
    key = base64.b64decode(encoded + "=" * (-len(encoded) % 4))
    signature = base64.b64encode(hmac.digest(key, f"{event_id}.{stamp}.".encode() + body, "sha256")).decode()
    return {"svix-id": event_id, "svix-timestamp": stamp, "svix-signature": f"v1,{signature}"}


def check_secret(webhooks: Webhooks) -> None:
    """Svix shows secrets in this shape."""
    if not webhooks.secret.startswith("whsec_"):
        raise ValueError("the webhook secret must look like whsec_<base64>")


DIALECT = Dialect(
    name="resend",
    title="Resend",
    errors=ERRORS,
    authenticate=authenticate,
    read_call=read_call,
    refusal=refusal,
    other=retrieve,
    limit_headers=limit_headers,
    words=WORDS,
    event_body=event_body,
    event_headers=event_headers,
    retries=RETRY_AFTER_SECONDS,
    new_event_id=lambda: f"msg_{hex_id()}",
    check_secret=check_secret,
)
