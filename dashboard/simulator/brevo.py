"""Brevo's HTTP API and webhooks, from developers.brevo.com: "Send a transactional email" and its error codes, "Batch
email idempotency", "Rate limit headers", "Transactional webhooks", "Retry mechanism", "Secure webhook calls". Codes and
shapes are the vendor's; the sentences are ours.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from dashboard.simulator.config import Config, Webhooks
from dashboard.simulator.connection import Answer, Request
from dashboard.simulator.dialect import Call, Dialect, Draft, Error, Limits, Reaction, Refused, as_json
from dashboard.simulator.events import Fact, Mail
from dashboard.simulator.reading import (
    is_address,
    json_object,
    metadata_in,
    our_id,
    password,
    texts,
    unsigned,
)

ENDPOINT = "/v3/smtp/email"
_USED = Error(400, "duplicate_parameter", "This idempotencyKey was used before.")
ERRORS = {
    "rejected": Error(400, "invalid_parameter", "The address in `to` is refused, as its name asks for."),
    "missing": Error(400, "missing_parameter", "A field is missing."),
    "busy": Error(429, "too_many_requests", "The rate limit is exceeded."),
    "broken": Error(500, "internal_error", "Something broke."),
    "quota": Error(402, "not_enough_credits", "There are no credits left."),
    "no_key": Error(401, "unauthorized", "The api-key is missing, or not known."),
    "permission": Error(403, "permission_denied", "This key may not do that."),
    "validation": Error(402, "account_under_validation", "The account is being looked at."),
    "not_found": Error(404, "document_not_found", "There is no such thing."),
    "method": Error(405, "method_not_allowed", "This endpoint takes POST."),
    "not_acceptable": Error(406, "not_acceptable", "Only JSON is taken."),
    # "The endpoint accepts one key only once": whatever the body says, and however far the first request is.
    "repeated": _USED,
    "other_body": _USED,
    "in_progress": _USED,
}
KEY_WINDOW_SECONDS = 15 * 60.0
"""The changelog says 15 minutes, the guide 30: who relies on the shorter one is right by both."""
RETRY_AFTER_SECONDS = (600, 3_600, 7_200, 28_800)
"""Four tries after the first ("Retry mechanism")."""
ACCOUNT_ZONE = timedelta(hours=-8)
"""``ts``, ``ts_event`` and ``date`` are in the zone of the account; only ``ts_epoch`` is in UTC."""
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


# ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────────────


def authenticate(request: Request, config: Config) -> None:
    """The header ``api-key``."""
    key = request.headers.get("api-key", "")
    if not key or (config.api_key is not None and key != config.api_key):
        raise Refused(*ERRORS["no_key"])


def read_call(request: Request) -> Call | None:
    """``POST /v3/smtp/email``."""
    if request.path != ENDPOINT:
        return None
    if request.method != "POST":
        raise Refused(*ERRORS["method"])
    email = json_object(request, Error(400, "bad_request", "The body is no JSON object."))
    headers = email.get("headers", {})
    if not isinstance(headers, dict) or len(texts(headers)) < len(headers):
        raise _invalid("headers must be an object of texts")
    key = headers.get("idempotencyKey")
    if key is not None and not _UUID.fullmatch(key):
        raise _invalid("idempotencyKey must be a UUID")
    return Call(
        drafts=[_draft(email, headers)],
        answer=lambda ids: as_json(201, {"messageId": f"<{ids[0]}>"}),
        endpoint=request.path,
        key=key,
    )


def _draft(email: Mapping[str, Any], headers: Mapping[str, str]) -> Draft:
    for name in ("sender", "to", "subject"):
        if not email.get(name):
            raise Refused(400, "missing_parameter", f"{name} is missing")
    if not email.get("htmlContent") and not email.get("textContent"):
        raise Refused(400, "missing_parameter", "htmlContent or textContent is missing")
    sender, to = email["sender"], email["to"]
    if not isinstance(sender, dict) or not is_address(sender.get("email")):
        raise _invalid("sender.email is not valid")
    if not isinstance(to, list) or not all(isinstance(each, dict) and is_address(each.get("email")) for each in to):
        raise _invalid("email is not valid in to")
    reply_to = email.get("replyTo")
    if reply_to is not None and (not isinstance(reply_to, dict) or not is_address(reply_to.get("email"))):
        raise _invalid("replyTo.email is not valid")
    custom = {name: value for name, value in headers.items() if name.lower() == "x-mailin-custom"}
    return Draft(
        sender=sender["email"],
        to=[each["email"] for each in to],
        address=to[0]["email"],
        subject=str(email["subject"]),
        text=email.get("textContent"),
        html=email.get("htmlContent"),
        metadata=custom,
        headers=headers,
        send_id=our_id(metadata_in("".join(custom.values())), headers),
    )


def _invalid(message: str) -> Refused:
    return Refused(400, "invalid_parameter", message)


def refusal(error: Error) -> Answer:
    """A code and a message."""
    return as_json(error.status, {"code": error.name, "message": error.message})


def limit_headers(limits: Limits, now: float) -> dict[str, str]:
    """ "Rate limit headers": there is no Retry-After."""
    reset = 1 if limits.retry_after is None else limits.retry_after
    told = {"limit": limits.limit, "remaining": limits.remaining, "reset": reset}
    return {f"x-sib-ratelimit-{name}": str(value) for name, value in told.items()}


def new_ids(drafts: Sequence[Draft]) -> list[str]:
    """The Message-ID that Brevo makes, without its brackets."""
    minute = datetime.now(UTC).strftime("%Y%m%d%H%M")
    return [f"{minute}.{secrets.randbelow(10**11):011}@smtp-relay.mailin.fr" for _ in drafts]


# ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = {
    "sent": "request",
    "delayed": "deferred",
    "delivered": "delivered",
    "bounced": "hard_bounce",
    "soft_bounced": "soft_bounce",
    "suppressed": "blocked",
    "failed": "error",
    "complained": "spam",
    "opened": "opened",
    "clicked": "click",
}
_REASONS = {
    "delayed": "451 4.7.1 greylisted",
    "bounced": " 550 5.1.1 no such user",  # some begin with a blank
    "soft_bounced": "452 4.2.2 mailbox full",
    "suppressed": "blocked : due to blacklist user",
    "failed": "The sender is not valid.",  # so it is told, after a 201, of a sender that was never verified
}


def event_body(mail: Mail, fact: Fact, event_id: str, webhooks: Webhooks, now: float) -> bytes:
    """One event a request; it has no id, and ``id`` is the webhook's. To the second, but for ``ts_epoch``."""
    local = datetime.fromtimestamp(fact.at, UTC) + ACCOUNT_ZONE
    said = {
        "id": 998877,
        "event": fact.name,
        "email": mail.address,
        "subject": mail.subject,
        "message-id": f"<{mail.message_id}>",
        "date": local.strftime("%Y-%m-%d %H:%M:%S"),
        "ts": int(local.timestamp()),
        "ts_event": int(local.timestamp()),
        "ts_epoch": int(fact.at * 1000),
        "sending_ip": "192.0.2.60",
        **mail.metadata,
    }
    if fact.word in _REASONS:
        said["reason"] = _REASONS[fact.word]
    if fact.word == "clicked":
        said["link"] = "https://shop.example.test/"
    return json.dumps(said, separators=(",", ":")).encode()


def reaction(status: int | None, fact: Fact) -> Reaction:
    """ "Retry mechanism": 429 and silence are repeated, any other 4xx and any 5xx discard the event."""
    if status is None or status == 429:
        return Reaction.REPEAT
    return Reaction.DONE if 200 <= status < 300 else Reaction.DROP


DIALECT = Dialect(
    name="brevo",
    title="Brevo",
    errors=ERRORS,
    authenticate=authenticate,
    read_call=read_call,
    refusal=refusal,
    limit_headers=limit_headers,
    key_window_seconds=KEY_WINDOW_SECONDS,
    new_ids=new_ids,
    words=WORDS,
    event_body=event_body,
    event_headers=unsigned,
    retries=RETRY_AFTER_SECONDS,
    reaction=reaction,
    shared_secret=password,
)
