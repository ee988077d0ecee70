"""Mandrill's HTTP API and webhooks, from mailchimp.com/developer/transactional ("Messages: send" and its errors, "Track
and respond to activity with webhooks", "Authenticating webhook requests"). Names and shapes are the vendor's; the
sentences are ours. That errors come with HTTP 500 is told by its clients' users, not by the documents.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

from dashboard.simulator.config import Config, Webhooks
from dashboard.simulator.connection import Answer, Request
from dashboard.simulator.dialect import Call, Dialect, Draft, Error, Greeting, Refused, as_json
from dashboard.simulator.events import Fact, Mail
from dashboard.simulator.reading import is_address, json_object, our_id, texts

ENDPOINT = "/api/1.0/messages/send"
_TAKEN = 200
ERRORS = {
    # Within a 200: the reason of a rejection, or that the recipient is invalid.
    "rejected": Error(_TAKEN, "hard-bounce", ""),
    "invalid": Error(_TAKEN, "invalid", ""),
    "spam": Error(_TAKEN, "spam", ""),
    "unsubscribed": Error(_TAKEN, "unsub", ""),
    "unsigned": Error(_TAKEN, "unsigned", ""),
    "wrong_sender": Error(_TAKEN, "invalid-sender", ""),
    "test_limit": Error(_TAKEN, "test-mode-limit", ""),
    "no_key": Error(500, "Invalid_Key", "The API key is not known."),
    "validation": Error(500, "ValidationError", "A parameter is missing, or wrong."),
    "payment": Error(500, "PaymentRequired", "Only paid accounts may do that."),
    "reputation": Error(500, "PoorReputation", "The reputation of the account is too poor."),
    "subaccount": Error(500, "Unknown_Subaccount", "There is no such subaccount."),
    "unavailable": Error(500, "ServiceUnavailable", "A part of the service is down."),
    "broken": Error(500, "GeneralError", "Something broke."),
    "busy": Error(429, "", "Too Many Requests"),  # in no document of Mandrill's: from what stands before it
}
CODES = {"Invalid_Key": -1, "ValidationError": -2, "GeneralError": -99, "Unknown_Subaccount": 12}
RETRY_AFTER_SECONDS = (60, 120, 240, 480, 960, 1_920, 3_600, 3_600, 3_600, 3_600)
"""That failed batches come again is documented, when is not."""


# ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────────────


def authenticate(request: Request, config: Config) -> None:
    """The key is a field of the body."""
    key = json_object(request, ERRORS["validation"]).get("key")
    if not isinstance(key, str) or not key or (config.api_key is not None and key != config.api_key):
        raise Refused(*ERRORS["no_key"])


def read_call(request: Request) -> Call | None:
    """``messages/send``; every call is a POST, and ``.json`` may stand behind its name."""
    if request.path.removesuffix(".json") != ENDPOINT:
        return None
    message = json_object(request, ERRORS["validation"]).get("message")
    if not isinstance(message, dict):
        raise _invalid("message must be an object")
    draft = _draft(message)
    return Call(drafts=[draft], answer=lambda ids: _accepted(draft, ids[0]), endpoint=ENDPOINT)


def _draft(message: Mapping[str, Any]) -> Draft:
    to = message.get("to")
    if not isinstance(to, list) or not to or not all(isinstance(each, dict) for each in to):
        raise _invalid("message.to must be a list of recipients")
    if any(each.get("type", "to") not in ("to", "cc", "bcc") for each in to):
        raise _invalid("message.to.type must be to, cc or bcc")
    if not all(isinstance(each.get("email"), str) for each in to) or not is_address(message.get("from_email")):
        raise _invalid("an address is missing, or wrong")
    for name in ("headers", "metadata"):
        if not isinstance(message.get(name, {}), dict):
            raise _invalid(f"message.{name} must be an object")
    for name in ("subject", "text", "html", "from_name"):
        if message.get(name) is not None and not isinstance(message[name], str):
            raise _invalid(f"message.{name} must be a text")
    metadata, headers = texts(message.get("metadata")), texts(message.get("headers"))
    return Draft(
        sender=message["from_email"],
        to=[each["email"] for each in to],
        address=to[0]["email"],
        subject=message.get("subject") or "",
        text=message.get("text"),
        html=message.get("html"),
        metadata=metadata,
        headers=headers,
        send_id=our_id(metadata, headers),
    )


def _invalid(message: str) -> Refused:
    return Refused(500, "ValidationError", message)


def _accepted(draft: Draft, message_id: str) -> Answer:
    """A message to one recipient is sent at once, to several it is queued."""
    status = "sent" if len(draft.to) == 1 else "queued"
    return as_json(
        200,
        [{"email": draft.address, "status": status, "_id": message_id, "reject_reason": None, "queued_reason": None}],
    )


def refusal(error: Error) -> Answer:
    """Within a 200 for one recipient, or an error of the call."""
    if error.status == _TAKEN:
        status, reason = ("invalid", None) if error.name == "invalid" else ("rejected", error.name)
        told = {"email": "", "status": status, "_id": secrets.token_hex(16), "reject_reason": reason}
        return as_json(200, [told])
    if not error.name:
        return Answer(status=error.status, body=error.message.encode(), content_type="text/plain")
    code = CODES.get(error.name, -50)
    return as_json(error.status, {"status": "error", "code": code, "name": error.name, "message": error.message})


def new_ids(drafts: Sequence[Draft]) -> list[str]:
    """Hexadecimal, 32 characters."""
    return [secrets.token_hex(16) for _ in drafts]


# ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = {
    "sent": "send",
    "delayed": "deferral",
    "delivered": "delivered",
    "bounced": "hard_bounce",
    "soft_bounced": "soft_bounce",
    "suppressed": "reject",
    "complained": "spam",
    "opened": "open",
    "clicked": "click",
}
_STATES = {"bounced": "bounced", "soft_bounced": "soft-bounced", "suppressed": "rejected", "complained": "spam"}
_STATES |= {"delayed": "deferred"}
DETAILS: Mapping[str, dict[str, Any]] = {
    "delayed": {"diag": "smtp;451 4.7.1 greylisted"},
    "bounced": {"bounce_description": "bad_mailbox", "bgtools_code": 10, "diag": "smtp;550 5.1.1 no such user"},
    "soft_bounced": {"bounce_description": "mailbox_full", "bgtools_code": 22, "diag": "smtp;452 4.2.2 mailbox full"},
}


def event_body(mail: Mail, fact: Fact, event_id: str, webhooks: Webhooks, now: float) -> bytes:
    """A form with a batch of one. There is no event id; times are whole seconds."""
    message = {
        "ts": int(mail.accepted_at),
        "subject": mail.subject,
        "email": mail.address,
        "sender": mail.sender,
        "tags": [],
        "metadata": dict(mail.metadata),
        "_id": mail.message_id,
        "state": _STATES.get(fact.word, "sent"),
        **DETAILS.get(fact.word, {}),
    }
    event: dict[str, Any] = {"event": fact.name, "msg": message, "_id": mail.message_id, "ts": int(fact.at)}
    if fact.word in ("opened", "clicked"):
        event |= {"ip": "198.51.100.7", "user_agent": "simulator"}
    if fact.word == "clicked":
        event["url"] = "https://shop.example.test/"
    return _form([event])


def _form(events: Sequence[Any]) -> bytes:
    return urlencode({"mandrill_events": json.dumps(events)}).encode()


def event_headers(event_id: str, body: bytes, webhooks: Webhooks, now: float) -> dict[str, str]:
    """HMAC-SHA1 over the address of the webhook, and the name and value of each field in order of the names."""
    fields = sorted(parse_qsl(body.decode(), keep_blank_values=True))
    signed = (webhooks.url or "") + "".join(name + value for name, value in fields)
    signature = hmac.digest(webhooks.secret.encode(), signed.encode(), "sha1")
    return {
        "content-type": "application/x-www-form-urlencoded",
        "user-agent": "Mandrill-Webhook/1.0",
        "x-mandrill-signature": base64.b64encode(signature).decode(),
    }


def greetings(webhooks: Webhooks, now: float) -> Sequence[Greeting]:
    """Whether anybody is there, and a batch of nothing."""
    body = _form([])
    return [
        Greeting(method="HEAD", headers={"user-agent": "Mandrill-Webhook/1.0"}, body=b""),
        Greeting(headers=event_headers("", body, webhooks, now), body=body),
    ]


DIALECT = Dialect(
    name="mandrill",
    title="Mandrill",
    errors=ERRORS,
    authenticate=authenticate,
    read_call=read_call,
    refusal=refusal,
    new_ids=new_ids,
    words=WORDS,
    event_body=event_body,
    event_headers=event_headers,
    retries=RETRY_AFTER_SECONDS,
    greetings=greetings,
)
