"""What happens to an accepted message, told the way Resend tells it. Pure: the same seed tells the same story.

Facts: Resend "Webhooks" and "Email Bounces"; Svix "Verifying payloads" for the signature.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dashboard.simulator import recipients
from dashboard.simulator.config import Config, Webhooks
from dashboard.simulator.dice import lasting, roll

STEP_SECONDS = 0.1
"""About how long a message takes from one event to the next."""


@dataclass(slots=True, kw_only=True)
class Mail:
    """The content of one accepted message, kept to look at and to tell events about."""

    message_id: str
    protocol: str
    identity: str
    copy: int
    """The how-manieth acceptance of this identity it is, from 1."""
    accepted_at: float
    sender: str
    to: Sequence[str]
    address: str
    """The bare address of the first recipient."""
    subject: str
    text: str | None = None
    html: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    story: Sequence[Fact] = ()


@dataclass(slots=True)
class Fact:
    """One event of one message. Its body is made once: every delivery of it carries the same bytes."""

    type: str
    at: float
    """Seconds since the epoch at which it happens."""
    details: Mapping[str, Any]
    body: bytes | None = None


@dataclass(slots=True)
class Delivery:
    """One webhook call to be made: a fact under an event id, so many seconds from now."""

    mail: Mail
    fact: Fact
    event_id: str
    delay: float
    kind: str = "first"
    """``first``, ``repeat`` (same event id) or ``other_id`` (same fact)."""
    failures: int = 0


_BOUNCES: dict[str, dict[str, Any]] = {
    "bounce": {
        "type": "Permanent",
        "subType": "General",
        "message": "The receiving server refused the recipient for good.",
        "diagnosticCode": ["smtp; 550 5.1.1 no such user"],
    },
    "softbounce": {
        "type": "Transient",
        "subType": "MailboxFull",
        "message": "The mailbox stayed full.",
        "diagnosticCode": ["smtp; 452 4.2.2 mailbox full"],
    },
}
_SENT: tuple[str, dict[str, Any]] = ("sent", {})
_DELIVERED: tuple[str, dict[str, Any]] = ("delivered", {})
_OPENED: tuple[str, dict[str, Any]] = ("opened", {})

_STORIES: dict[str | None, tuple[tuple[str, dict[str, Any]], ...]] = {
    None: (_SENT, _DELIVERED),
    "quiet": (),
    "bounce": (_SENT, ("bounced", {"bounce": _BOUNCES["bounce"]})),
    "softbounce": (_SENT, ("bounced", {"bounce": _BOUNCES["softbounce"]})),
    "suppressed": (
        (
            "suppressed",
            {"suppressed": {"type": "OnAccountSuppressionList", "message": "The address is on the suppression list."}},
        ),
    ),
    "failed": (("failed", {"failed": {"reason": "internal_failure"}}),),
    "complain": (_SENT, _DELIVERED, ("complained", {})),
    "delay": (_SENT, ("delivery_delayed", {}), _DELIVERED),
    "open": (_SENT, _DELIVERED, _OPENED),
    "double": (_SENT, _DELIVERED, _DELIVERED),
    "click": (_SENT, _DELIVERED, _OPENED, ("clicked", {"click": {"link": "https://shop.example.test/"}})),
}


def story_of(mail: Mail, config: Config) -> list[Fact]:
    """What happens to this message, in order: by the words of its recipient, else by the seeded shares."""
    fate = recipients.fate(recipients.words_of(mail.address))
    if fate is None:
        fate = config.fates.pick(roll(config.seed, "fate", mail.identity))
    story, at = [], mail.accepted_at
    for place, (name, details) in enumerate(_STORIES[fate]):
        story.append(Fact(f"email.{name}", at, details))
        at += STEP_SECONDS * (0.5 + roll(config.seed, "step", mail.identity, mail.copy, place))
    return story


def deliveries_of(mail: Mail, config: Config) -> list[Delivery]:
    """The webhook calls about this message: late, disordered and repeated by the seeded shares."""
    rates = config.webhooks

    def rolled(what: str, place: int = 0) -> float:
        return roll(config.seed, what, mail.identity, mail.copy, place)

    def late(what: str, place: int) -> float:
        return lasting(rates.delay_ms / 1000, rolled(what, place))

    dues: list[float] = []
    for place, fact in enumerate(mail.story):
        due = fact.at - mail.accepted_at + late("delay", place)
        dues.append(max(due, dues[-1] + 0.005 if dues else 0.0))
    if is_disordered(mail, config):
        dues = [dues[-1] + 0.005 * (len(dues) - place) for place in range(len(dues))]
    calls = []
    for place, (fact, due) in enumerate(zip(mail.story, dues, strict=True)):
        event_id = new_event_id()
        calls.append(Delivery(mail, fact, event_id, due))
        if rolled("repeat", place) < rates.repeat:
            calls.append(Delivery(mail, fact, event_id, due + late("repeated", place), "repeat"))
        if rolled("other_id", place) < rates.other_id:
            calls.append(Delivery(mail, fact, new_event_id(), due + late("told_again", place), "other_id"))
    return calls


def is_disordered(mail: Mail, config: Config) -> bool:
    """Whether the events of this message are told last first."""
    rolled = roll(config.seed, "out_of_order", mail.identity, mail.copy)
    return len(mail.story) > 1 and rolled < config.webhooks.out_of_order


def new_event_id() -> str:
    """An id in the shape of Svix's."""
    return f"msg_{secrets.token_hex(13)}"


def body_of(mail: Mail, fact: Fact, now: float) -> bytes:
    """The request body. A fact that is told before its time (a flush) has happened by now."""
    if fact.body is None:
        at = iso(min(fact.at, now))
        details = dict(fact.details)
        if "click" in details:
            details["click"] = {
                "ipAddress": "198.51.100.7",
                "timestamp": at,
                "userAgent": "simulator",
                **details["click"],
            }
        domain = mail.sender.rpartition("@")[2].rstrip(">") or "example.test"
        data = {
            "created_at": iso(mail.accepted_at),
            "email_id": mail.message_id,
            "message_id": f"<{mail.message_id}@{domain}>",
            "from": mail.sender,
            "to": list(mail.to),
            "subject": mail.subject,
            "tags": dict(mail.tags),
            **details,
        }
        fact.body = json.dumps({"type": fact.type, "created_at": at, "data": data}, separators=(",", ":")).encode()
    return fact.body


def signed_headers(webhooks: Webhooks, event_id: str, body: bytes, now: float) -> dict[str, str]:
    """The three Svix headers: HMAC-SHA256 over id, whole seconds and raw body, joined by full stops."""
    stamp = str(int(now))
    encoded = webhooks.secret.removeprefix("whsec_")
    key = base64.b64decode(encoded + "=" * (-len(encoded) % 4))
    signature = base64.b64encode(hmac.digest(key, f"{event_id}.{stamp}.".encode() + body, "sha256")).decode()
    return {"svix-id": event_id, "svix-timestamp": stamp, "svix-signature": f"v1,{signature}"}


def iso(at: float) -> str:
    """A time in UTC with milliseconds, as Resend's events write it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
