"""Postal's HTTP API and webhooks, from the sources of postalserver/postal (files named beside what is theirs): the
legacy API, its outgoing messages, its webhooks and their signatures. Codes and shapes are Postal's; the sentences are
ours.
"""

from __future__ import annotations

import base64
import functools
import json
import random
import secrets
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import (
    RSAPrivateKey,
    RSAPrivateNumbers,
    RSAPublicNumbers,
    rsa_crt_dmp1,
    rsa_crt_dmq1,
    rsa_crt_iqmp,
)
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dashboard.simulator.config import Config, Webhooks
from dashboard.simulator.connection import Answer, Request
from dashboard.simulator.dialect import Account, Call, Dialect, Draft, Error, Refused, as_json, bare_address
from dashboard.simulator.events import Fact, Mail
from dashboard.simulator.reading import json_object, our_id, texts

ENDPOINT, LOOK_UPS = "/api/v1/send/message", "/api/v1/messages/message"
MAX_RECIPIENTS = 50
PARAMETER, NOT_OURS = "parameter-error", ""
ERRORS = {
    "rejected": Error(200, "NoRecipients", "There is nobody to send this to."),
    "no_content": Error(200, "NoContent", "There is neither a plain nor an HTML body."),
    "too_many": Error(200, "TooManyToAddresses", f"More than {MAX_RECIPIENTS} addresses in `to`."),
    "no_sender": Error(200, "FromAddressMissing", "There is no `from`."),
    "unauthenticated": Error(200, "UnauthenticatedFromAddress", "This server may not send from that address."),
    "no_key": Error(200, "AccessDenied", "There is no X-Server-API-Key."),
    "unknown_key": Error(200, "InvalidServerAPIKey", "This key is not known."),
    "suspended": Error(200, "ServerSuspended", ""),
    "parameter": Error(200, PARAMETER, "`id` is required but missing"),
    # Postal limits no calls, and answers 200 whatever happens; these come from what stands before it, or is left of it.
    "busy": Error(429, NOT_OURS, "Too Many Requests"),
    "broken": Error(500, NOT_OURS, "We're sorry, but something went wrong."),
}
RETRY_AFTER_SECONDS = (120, 180, 360, 600, 900)
"""webhook_request.rb"""


# ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────────────


def authenticate(request: Request, config: Config) -> None:
    """legacy_api/base_controller.rb"""
    key = request.headers.get("x-server-api-key", "")
    if not key.strip():
        raise Refused(*ERRORS["no_key"])
    if config.api_key is not None and key != config.api_key:
        raise Refused(*ERRORS["unknown_key"])


def read_call(request: Request) -> Call | None:
    """legacy_api/send_controller.rb; the method is not looked at."""
    if request.path != ENDPOINT:
        return None
    draft = _draft(_parameters(request))
    return Call(drafts=[draft], answer=lambda ids: _accepted(draft, ids[0]), endpoint=request.path)


def _parameters(request: Request) -> dict[str, Any]:
    """Without the content type of JSON, a JSON body is not read at all."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        return {}
    return json_object(request, Error(400, NOT_OURS, "Bad Request"))


def _draft(said: Mapping[str, Any]) -> Draft:
    """outgoing_message_prototype.rb: the first of the errors, in its order."""
    to = said.get("to") or []
    to = [each.strip() for each in to.split(",")] if isinstance(to, str) else to
    sender, text, html = said.get("from"), said.get("plain_body"), said.get("html_body")
    if not isinstance(to, list) or not to:
        raise Refused(*ERRORS["rejected"])
    if len(to) > MAX_RECIPIENTS:
        raise Refused(*ERRORS["too_many"])
    if _is_blank(text) and _is_blank(html):
        raise Refused(*ERRORS["no_content"])
    if _is_blank(sender):
        raise Refused(*ERRORS["no_sender"])
    if "@" not in bare_address(str(sender)):
        raise Refused(*ERRORS["unauthenticated"])
    tag = said.get("tag")
    metadata = {"tag": tag} if isinstance(tag, str) else {}
    headers = texts(said.get("headers"))
    return Draft(
        sender=str(sender),
        to=[str(each) for each in to],
        address=bare_address(str(to[0])),
        subject=str(said.get("subject") or ""),
        text=text,
        html=html,
        metadata=metadata,
        headers=headers,
        send_id=our_id({"send_id": metadata.get("tag", "")}, headers),
    )


def _is_blank(value: Any) -> bool:
    return not isinstance(value, str) or not value.strip()


def _accepted(draft: Draft, message_id: str) -> Answer:
    message = {"id": int(message_id), "token": secrets.token_hex(6)}
    return _told("success", {"message_id": f"{uuid.uuid4()}@rp.postal.example", "messages": {draft.address: message}})


def _told(status: str, data: Any) -> Answer:
    return as_json(200, {"status": status, "time": 0.01, "flags": {}, "data": data})


def refusal(error: Error) -> Answer:
    """HTTP 200, and the status within; what is not Postal's own is a page."""
    if error.name == NOT_OURS:
        page = f"<!doctype html><title>{error.message}</title><p>{error.message}</p>".encode()
        return Answer(status=error.status, body=page, content_type="text/html")
    if error.name == PARAMETER:
        return _told(PARAMETER, {"message": error.message})
    return _told("error", {"code": error.name} | ({"message": error.message} if error.message else {}))


def retrieve(request: Request, account: Account) -> Answer:
    """legacy_api/messages_controller.rb: found by Postal's own id alone."""
    if request.path != LOOK_UPS:
        raise Refused(404, NOT_OURS, "Not Found")
    asked, now = _parameters(request), time.time()
    message_id = str(asked.get("id") or "")
    if not message_id:
        raise Refused(*ERRORS["parameter"])
    mail = next((mail for mail in account.shown(now) if mail.message_id == message_id), None)
    if mail is None:
        raise Refused(200, "MessageNotFound", "There is no message with this id.")
    told: dict[str, Any] = {"id": int(message_id), "token": "simulator"}
    expansions = asked.get("_expansions")
    if expansions is True or "status" in (expansions or []):
        happened = mail.happened(now)
        status = _STATUS.get(happened[-1].word, "Sent") if happened else "Pending"
        told["status"] = {"status": status, "last_delivery_attempt": now, "held": status == "Held"}
    if expansions is True or "details" in (expansions or []):
        told["details"] = _described(mail) | {"rcpt_to": mail.address, "mail_from": mail.sender}
    return _told("success", told)


def new_ids(drafts: Sequence[Draft]) -> list[str]:
    """Numbers; Postal's own follow each other."""
    return [str(1 + secrets.randbelow(2**40)) for _ in drafts]


# ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────────────

WORDS = {  # docs.postalserver.io, "Webhooks"; it tells nothing of what it merely took
    "delayed": "MessageDelayed",
    "delivered": "MessageSent",
    "bounced": "MessageDeliveryFailed",
    "soft_bounced": "MessageDeliveryFailed",
    "suppressed": "MessageHeld",
    "opened": "MessageLoaded",
    "clicked": "MessageLinkClicked",
}
_STATUS = {
    "delayed": "SoftFail",
    "delivered": "Sent",
    "bounced": "HardFail",
    "soft_bounced": "HardFail",
    "suppressed": "Held",
}
_SAID = {
    "delayed": ("The receiving server asks to come again.", "451 4.7.1 greylisted"),
    "delivered": ("The receiving server took it.", "250 2.0.0 OK"),
    "bounced": ("The receiving server refused it.", "550 5.1.1 no such user"),
    "soft_bounced": ("The last of all attempts failed.", "452 4.2.2 mailbox full"),
    "suppressed": ("The recipient is on the suppression list.", ""),
}


def event_body(mail: Mail, fact: Fact, event_id: str, webhooks: Webhooks, now: float) -> bytes:
    """webhook_delivery_service.rb around what the message tells of itself."""
    payload: dict[str, Any] = {"message": _described(mail)}
    if fact.word in _SAID:
        details, output = _SAID[fact.word]
        payload |= {"status": _STATUS[fact.word], "details": details, "output": output, "sent_with_ssl": True}
        payload |= {"timestamp": fact.at, "time": 0.5}
    else:
        payload |= {"ip_address": "198.51.100.7", "user_agent": "simulator"}
        payload |= {"url": "https://shop.example.test/", "token": "link"} if fact.word == "clicked" else {}
    said = {"event": fact.name, "timestamp": fact.at, "payload": payload, "uuid": event_id}
    return json.dumps(said, separators=(",", ":")).encode()


def _described(mail: Mail) -> dict[str, Any]:
    return {
        "id": int(mail.message_id),
        "token": "simulator",
        "direction": "outgoing",
        "message_id": f"{mail.message_id}@rp.postal.example",
        "to": mail.address,
        "from": bare_address(mail.sender),
        "subject": mail.subject,
        "timestamp": mail.accepted_at,
        "spam_status": "NotChecked",
        "tag": mail.metadata.get("tag"),
    }


def event_headers(event_id: str, body: bytes, webhooks: Webhooks, now: float) -> dict[str, str]:
    """signer.rb: both signatures over the raw body, SHA-1 and SHA-256."""
    key = signing_key(webhooks.secret)
    weak, strong = (key.sign(body, PKCS1v15(), algorithm) for algorithm in (hashes.SHA1(), hashes.SHA256()))  # noqa: S303
    return {
        "content-type": "application/json",
        "x-postal-signature-kid": "simulator",
        "x-postal-signature": base64.b64encode(weak).decode(),
        "x-postal-signature-256": base64.b64encode(strong).decode(),
    }


def public_key(webhooks: Webhooks) -> str:
    """As ``postal default-dkim-record`` shows it after ``p=``."""
    der = signing_key(webhooks.secret).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(der).decode()


@functools.cache
def signing_key(secret: str) -> RSAPrivateKey:
    """The key of this installation, the same for the same secret: a receiver outlives many a simulator."""
    chance = random.Random(f"postal {secret}")  # noqa: S311 (nothing is secret in a sandbox)
    p, q, e = _prime(chance), _prime(chance), 65_537
    d = pow(e, -1, (p - 1) * (q - 1))
    numbers = RSAPrivateNumbers(
        p, q, d, rsa_crt_dmp1(d, p), rsa_crt_dmq1(d, q), rsa_crt_iqmp(p, q), RSAPublicNumbers(e, p * q)
    )
    return numbers.private_key()


def _prime(chance: random.Random, bits: int = 1024) -> int:
    """A number that passes for a prime: Fermat's test, to two bases."""
    while True:
        found = chance.getrandbits(bits) | 1 | (3 << (bits - 2))
        if found % 65_537 != 1 and all(found % small for small in _SMALL) and _passes(found):
            return found


_SMALL = [n for n in range(3, 1000, 2) if all(n % m for m in range(3, int(n**0.5) + 1, 2))]


def _passes(number: int) -> bool:
    return all(pow(base, number - 1, number) == 1 for base in (2, 3))


DIALECT = Dialect(
    name="postal",
    title="Postal",
    errors=ERRORS,
    authenticate=authenticate,
    read_call=read_call,
    refusal=refusal,
    other=retrieve,
    new_ids=new_ids,
    words=WORDS,
    event_body=event_body,
    event_headers=event_headers,
    retries=RETRY_AFTER_SECONDS,
    new_event_id=lambda: str(uuid.uuid4()),
    shared_secret=public_key,
)
