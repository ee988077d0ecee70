"""Mailjet's HTTP API and webhooks, from mailjet/api-documentation: "Send API v3.1" and its errors, "Event API" with its
grouping and its table of errors, "Status codes". Codes and shapes are the vendor's; the sentences are ours.
"""

from __future__ import annotations

import json
import secrets
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.simulator.config import Config, Webhooks
from dashboard.simulator.connection import Answer, Request
from dashboard.simulator.dialect import Call, Dialect, Draft, Error, Reaction, Refused, as_json, header
from dashboard.simulator.events import Fact, Mail
from dashboard.simulator.reading import (
    basic,
    is_address,
    json_object,
    metadata_in,
    our_id,
    password,
    texts,
    unsigned,
)

ENDPOINT = "/v3.1/send"
MAX_MESSAGES, MAX_RECIPIENTS = 50, 50
ERRORS = {
    "rejected": Error(400, "mj-0013", "The address in `To` is refused, as its name asks for."),
    "missing": Error(400, "mj-0003", "A property is missing."),
    "mismatch": Error(400, "mj-0004", "A property is of another type."),
    "empty": Error(400, "mj-0007", "An array is empty."),
    "too_large": Error(400, "mj-0011", "The payload is over the limit."),
    "no_content": Error(400, "send-0003", "There is neither HTMLPart nor TextPart."),
    "too_many": Error(400, "send-0015", "There are too many recipients."),
    "header": Error(400, "send-0011", "A header has a property of its own."),
    "sender_header": Error(403, "send-0006", "The key may not use a Sender."),
    "wrong_sender": Error(403, "send-0008", "The address in `From` is not authorized."),
    "malformed": Error(400, "mj-0002", "The JSON is malformed."),
    "no_key": Error(401, "mj-0015", "The keys are missing, or wrong."),
    "suspended": Error(401, "mj-0001", "The API key is suspended."),
    "not_found": Error(404, "", "There is no such resource."),
    "method": Error(405, "", "This resource takes POST."),
    "busy": Error(429, "", "Too many calls in this minute."),
    "broken": Error(500, "", "Something broke."),
}
GLOBAL = frozenset({"mj-0001", "mj-0002", "mj-0015", ""})
"""Errors of the call, not of one message in it."""
RETRY_AFTER_SECONDS = (600,) * 10
""" "Endpoint URL": ten times, every ten minutes."""
_OWN_PROPERTY = frozenset({"from", "sender", "subject", "to", "cc", "bcc", "reply-to", "return-path", "received"})


# ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────────────


def authenticate(request: Request, config: Config) -> None:
    """Basic: the public key and the secret one. `Config.api_key` is both, with a colon between."""
    keys = basic(request)
    if not all(keys.partition(":")) or (config.api_key is not None and keys != config.api_key):
        raise Refused(*ERRORS["no_key"])


def read_call(request: Request) -> Call | None:
    """``POST /v3.1/send``."""
    if request.path != ENDPOINT:
        return None
    if request.method != "POST":
        raise Refused(*ERRORS["method"])
    messages = json_object(request, ERRORS["malformed"]).get("Messages")
    if messages is None:
        raise Refused(*ERRORS["missing"])
    if not isinstance(messages, list):
        raise Refused(*ERRORS["mismatch"])
    if not messages:
        raise Refused(*ERRORS["empty"])
    if len(messages) > MAX_MESSAGES:
        raise Refused(400, "mj-0008", f"More than {MAX_MESSAGES} messages.")
    drafts = [_draft(each) for each in messages]
    return Call(drafts=drafts, answer=lambda ids: _accepted(drafts, ids), endpoint=request.path)


def _draft(message: Any) -> Draft:
    """One message; here one that is wrong refuses all, where Mailjet takes the others."""
    if not isinstance(message, dict):
        raise Refused(*ERRORS["mismatch"])
    sender, to = message.get("From"), message.get("To")
    if sender is None or to is None:
        raise Refused(*ERRORS["missing"])
    if not isinstance(sender, dict) or not isinstance(to, list) or not all(isinstance(each, dict) for each in to):
        raise Refused(*ERRORS["mismatch"])
    if not to:
        raise Refused(*ERRORS["empty"])
    if len(to) > MAX_RECIPIENTS:
        raise Refused(*ERRORS["too_many"])
    if not all(is_address(each.get("Email")) for each in [sender, *to]):
        raise Refused(400, "mj-0013", "An address is not valid.")
    if not message.get("TextPart") and not message.get("HTMLPart"):
        raise Refused(*ERRORS["no_content"])
    headers = message.get("Headers", {})
    if not isinstance(headers, dict) or len(texts(headers)) < len(headers):
        raise Refused(*ERRORS["mismatch"])
    if any(name.lower() in _OWN_PROPERTY or name.lower().startswith(("x-mj-", "x-mailjet-")) for name in headers):
        raise Refused(*ERRORS["header"])
    for name in ("CustomID", "EventPayload", "Subject"):
        if not isinstance(message.get(name, ""), str):
            raise Refused(*ERRORS["mismatch"])
    custom_id, payload = message.get("CustomID", ""), message.get("EventPayload", "")
    return Draft(
        sender=sender["Email"],
        to=[each["Email"] for each in to],
        address=to[0]["Email"],
        subject=message.get("Subject", ""),
        text=message.get("TextPart"),
        html=message.get("HTMLPart"),
        metadata={"CustomID": custom_id, "EventPayload": payload},
        headers=headers,
        send_id=our_id(metadata_in(payload), {}) or custom_id or header(headers, "x-send-id"),
    )


def _accepted(drafts: Sequence[Draft], ids: Sequence[str]) -> Answer:
    """Ids are numbers that no float can hold."""
    messages = [
        {
            "Status": "success",
            "CustomID": draft.metadata["CustomID"],
            "To": [
                {
                    "Email": draft.address,
                    "MessageUUID": str(uuid.uuid4()),
                    "MessageID": int(message_id),
                    "MessageHref": f"https://api.mailjet.com/v3/REST/message/{message_id}",
                }
            ],
            "Cc": [],
            "Bcc": [],
        }
        for draft, message_id in zip(drafts, ids, strict=True)
    ]
    return as_json(200, {"Messages": messages})


def refusal(error: Error) -> Answer:
    """Of the call, or of a message within it ("Send API errors")."""
    told: dict[str, Any] = {"ErrorIdentifier": str(uuid.uuid4())}
    told |= {"ErrorCode": error.name} if error.name else {}
    told |= {"StatusCode": error.status, "ErrorMessage": error.message}
    if error.name in GLOBAL:
        return as_json(error.status, told)
    return as_json(error.status, {"Messages": [{"Status": "error", "Errors": [told | {"ErrorRelatedTo": []}]}]})


def new_ids(drafts: Sequence[Draft]) -> list[str]:
    """Beyond 2 to the 53rd."""
    return [str(2**60 + secrets.randbelow(2**58)) for _ in drafts]


# ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = {  # nothing is told of what was merely taken
    "delayed": "bounce",
    "delivered": "sent",
    "bounced": "bounce",
    "soft_bounced": "bounce",
    "suppressed": "blocked",
    "complained": "spam",
    "opened": "open",
    "clicked": "click",
}
_ERROR = "error_related_to"
DETAILS: Mapping[str, dict[str, Any]] = {
    "delayed": {"blocked": False, "hard_bounce": False, _ERROR: "domain", "error": "greylisted"},
    "delivered": {"smtp_reply": "sent (250 2.0.0 OK)"},
    "bounced": {"blocked": True, "hard_bounce": True, _ERROR: "recipient", "error": "user unknown"},
    "soft_bounced": {"blocked": False, "hard_bounce": False, _ERROR: "recipient", "error": "quota exceeded"},
    "suppressed": {_ERROR: "mailjet", "error": "preblocked"},
    "complained": {"source": "JMRPP"},
    "opened": {"ip": "198.51.100.7", "geo": "EU", "agent": "simulator"},
    "clicked": {"url": "https://shop.example.test/", "ip": "198.51.100.7", "geo": "EU", "agent": "simulator"},
}


def event_body(mail: Mail, fact: Fact, event_id: str, webhooks: Webhooks, now: float) -> bytes:
    """A group of one (version 2 of the Event API). There is no event id; times are whole seconds."""
    event = {
        "event": fact.name,
        "time": int(fact.at),
        "MessageID": int(mail.message_id),
        "email": mail.address,
        "mj_campaign_id": 7257,
        "mj_contact_id": 4,
        "customcampaign": "",
        "mj_message_id": mail.message_id,
        "CustomID": mail.metadata["CustomID"],
        "Payload": mail.metadata["EventPayload"],
        **DETAILS.get(fact.word, {}),
    }
    return json.dumps([event], separators=(",", ":")).encode()


def reaction(status: int | None, fact: Fact) -> Reaction:
    """ "Endpoint URL": what is not answered with 200 comes again."""
    return Reaction.DONE if status == 200 else Reaction.REPEAT


DIALECT = Dialect(
    name="mailjet",
    title="Mailjet",
    errors=ERRORS,
    authenticate=authenticate,
    read_call=read_call,
    refusal=refusal,
    new_ids=new_ids,
    words=WORDS,
    event_body=event_body,
    event_headers=unsigned,
    retries=RETRY_AFTER_SECONDS,
    reaction=reaction,
    shared_secret=password,
)
