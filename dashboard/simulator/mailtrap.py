"""Mailtrap's Email Sending API and webhooks, from docs.mailtrap.io (mailtrap/mailtrap-docs: "Send email", "Webhooks"
with "Retry schedule and batches" and "Webhook signature verification", "Rate limits"). Shapes are the vendor's; the
sentences are ours, for its errors have no codes.
"""

from __future__ import annotations

import hmac
import json
import uuid
from collections.abc import Mapping
from typing import Any

from dashboard.simulator.config import Config, Webhooks
from dashboard.simulator.connection import Answer, Request
from dashboard.simulator.dialect import Call, Dialect, Draft, Error, Reaction, Refused, as_json
from dashboard.simulator.events import Fact, Mail
from dashboard.simulator.reading import bearer, is_address, json_object, our_id, texts

ENDPOINT = "/api/send"
MAX_RECIPIENTS, MAX_VARIABLES = 1_000, 1_000
ERRORS = {
    "rejected": Error(400, "", "The address in 'to' is refused, as its name asks for."),
    "no_key": Error(401, "", "Unauthorized"),
    "forbidden": Error(403, "", "Forbidden"),
    "not_found": Error(404, "", "Not Found"),
    "method": Error(405, "", "Method Not Allowed"),
    "too_large": Error(413, "", "The message is too large."),
    "busy": Error(429, "", "Too many requests."),
    "broken": Error(500, "", "Internal Server Error"),
}
RETRY_AFTER_SECONDS = (300,) * 40
""" "Retry schedule": forty times, every five minutes; then the webhook is paused."""


# ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────────────


def authenticate(request: Request, config: Config) -> None:
    """A bearer token, or the header ``Api-Token`` ("Authentication")."""
    token = bearer(request) or request.headers.get("api-token", "")
    if not token or (config.api_key is not None and token != config.api_key):
        raise Refused(*ERRORS["no_key"])


def read_call(request: Request) -> Call | None:
    """``POST /api/send``."""
    if request.path != ENDPOINT:
        return None
    if request.method != "POST":
        raise Refused(*ERRORS["method"])
    email = json_object(request, Error(400, "", "The body is no JSON object."))
    return Call(
        drafts=[_draft(email)],
        answer=lambda ids: as_json(200, {"success": True, "message_ids": list(ids)}),
        endpoint=request.path,
    )


def _draft(email: Mapping[str, Any]) -> Draft:
    sender, to = email.get("from"), email.get("to")
    if not isinstance(sender, dict) or not is_address(sender.get("email")):
        raise _invalid("'from' is required, with a valid address")
    if not isinstance(to, list) or not to or not all(isinstance(e, dict) and is_address(e.get("email")) for e in to):
        raise _invalid("'to' is required, with valid addresses")
    if len(to) > MAX_RECIPIENTS:
        raise _invalid("'to' has too many addresses")
    if not isinstance(email.get("subject"), str) or not email["subject"]:
        raise _invalid("'subject' is required")
    if not email.get("text") and not email.get("html"):
        raise _invalid("'text' or 'html' is required")
    for name in ("headers", "custom_variables"):
        if not isinstance(email.get(name, {}), dict):
            raise _invalid(f"'{name}' must be an object")
    if len(json.dumps(email.get("custom_variables", {}))) > MAX_VARIABLES:
        raise _invalid("'custom_variables' is too long")
    variables, headers = texts(email.get("custom_variables")), texts(email.get("headers"))
    return Draft(
        sender=sender["email"],
        to=[each["email"] for each in to],
        address=to[0]["email"],
        subject=email["subject"],
        text=email.get("text"),
        html=email.get("html"),
        metadata=variables,
        headers=headers,
        send_id=our_id(variables, headers),
    )


def _invalid(message: str) -> Refused:
    return Refused(400, "", message)


def refusal(error: Error) -> Answer:
    """No success, and what was wrong."""
    return as_json(error.status, {"success": False, "errors": [error.message]})


# ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = {  # nothing is told of what was merely taken
    "delayed": "soft bounce",
    "delivered": "delivery",
    "bounced": "bounce",
    "soft_bounced": "bounce",  # once it stops trying
    "suppressed": "reject",
    "complained": "spam",
    "opened": "open",
    "clicked": "click",
}
DETAILS: Mapping[str, dict[str, Any]] = {
    "delayed": {
        "response": "soft bounced (451 4.7.1 greylisted)",
        "response_code": 451,
        "bounce_category": "unavailable",
    },
    "bounced": {"response": "bounced (550 5.1.1 no such user)", "response_code": 550, "bounce_category": "badmailbox"},
    "soft_bounced": {
        "response": "bounced (452 4.2.2 mailbox full)",
        "response_code": 452,
        "bounce_category": "quotaissues",
    },
    "suppressed": {"reason": "the recipient is suppressed"},
    "opened": {"ip": "198.51.100.7", "user_agent": "simulator"},
    "clicked": {"ip": "198.51.100.7", "user_agent": "simulator", "url": "https://shop.example.test/"},
}


def event_body(mail: Mail, fact: Fact, event_id: str, webhooks: Webhooks, now: float) -> bytes:
    """A batch of one, in the format JSON. Times are whole seconds."""
    event = {
        "event": fact.name,
        "event_id": event_id,
        "message_id": mail.message_id,
        "email": mail.address,
        "timestamp": int(fact.at),
        "sending_stream": "transactional",
        "sending_domain_name": mail.sender.rpartition("@")[2],
        "custom_variables": dict(mail.metadata),
        **DETAILS.get(fact.word, {}),
    }
    return json.dumps({"events": [event]}, separators=(",", ":")).encode()


def event_headers(event_id: str, body: bytes, webhooks: Webhooks, now: float) -> dict[str, str]:
    """HMAC-SHA256 over the raw body, in hexadecimal."""
    signature = hmac.digest(webhooks.secret.encode(), body, "sha256").hex()
    return {"content-type": "application/json", "mailtrap-signature": signature}


def reaction(status: int | None, fact: Fact) -> Reaction:
    """ "Retry schedule": what is not answered with 200 comes again."""
    return Reaction.DONE if status == 200 else Reaction.REPEAT


DIALECT = Dialect(
    name="mailtrap",
    title="Mailtrap",
    errors=ERRORS,
    authenticate=authenticate,
    read_call=read_call,
    refusal=refusal,
    words=WORDS,
    event_body=event_body,
    event_headers=event_headers,
    retries=RETRY_AFTER_SECONDS,
    reaction=reaction,
    new_event_id=lambda: str(uuid.uuid4()),
)
