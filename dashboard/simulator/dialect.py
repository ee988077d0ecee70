"""What a provider's dialect says, so that the simulator can play that provider; everything else is common to all.

One file each (``resend.py``, ``sendgrid.py`` …), ending in a ``Dialect``, and one line in ``dialects.py``. What goes
wrong, what is accepted, what is told when and how often is decided elsewhere, once (``api.py``, ``webhooks.py``); a
dialect only reads requests, shapes answers and writes events, as its vendor's documents have them.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, NamedTuple, Protocol

from dashboard.simulator.config import Config, Webhooks
from dashboard.simulator.connection import Answer, Request
from dashboard.simulator.events import Fact, Mail
from dashboard.simulator.replies import HandIn, Letter


class Error(NamedTuple):
    """One documented refusal: HTTP status, the vendor's name or code for it, and a sentence of ours."""

    status: int
    name: str
    message: str


class Refused(Exception):
    """The call is definitely refused, and nothing was accepted."""

    def __init__(self, status: int, name: str, message: str) -> None:
        super().__init__(message)
        self.error = Error(status, name, message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One message that a client asks to have sent."""

    sender: str
    to: Sequence[str]
    address: str
    """The bare address of the first recipient."""
    subject: str
    reply_to: str | None = None
    text: str | None = None
    html: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    """Whatever the vendor calls it: tags, custom arguments, variables. It comes back in events."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """The message's own, where events or answers show them."""
    send_id: str | None = None
    """Our id, from the metadata or the header ``X-Send-Id``."""
    fate: str | None = None
    """What becomes of it (`events.STORIES`), whatever its recipient asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One well-formed send call: what it brings, and the success that it will be told."""

    drafts: Sequence[Draft]
    answer: Callable[[Sequence[str]], Answer]
    """The documented success, for the ids of the drafts in their order."""
    endpoint: str = ""
    """Keys count for one endpoint each."""
    key: str | None = None
    fingerprint: str = ""
    """Of the body: what a repeat under the same key is compared with, see :func:`fingerprint`."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How this call stands to the rate limit and the quota of the account."""

    limit: int
    remaining: int
    retry_after: int | None = None
    """Seconds; where the call is over the limit."""
    quota_used: int | None = None
    """Messages taken, where a daily quota is set."""


class Reaction(Enum):
    """What the vendor does after an answer to its webhook call."""

    DONE = auto()
    REPEAT = auto()
    DROP = auto()
    """It gives the event up at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """A call that the vendor makes to a webhook address before it tells anything there."""

    headers: Mapping[str, str]
    body: bytes
    method: str = "POST"
    awaits_confirmation: bool = False
    """Nothing is told until the receiver has confirmed (`Account.confirm`)."""


class Account(Protocol):
    """What a dialect may ask of the simulator when it answers what is no send call."""

    config: Config

    def shown(self, now: float) -> list[Mail]:
        """The accepted messages that a look-up can find at this time, oldest first."""

    def confirm(self) -> None:
        """The receiver of webhooks has confirmed that it wants to be told."""


def uuids(drafts: Sequence[Draft]) -> list[str]:
    """An id of a message each."""
    return [str(uuid.uuid4()) for _ in drafts]


def hex_id() -> str:
    """An id of an event."""
    return secrets.token_hex(13)


def no_limits(limits: Limits, now: float) -> dict[str, str]:
    """For a vendor that tells its limits in no header."""
    return {}


def takes_2xx(status: int | None, fact: Fact) -> Reaction:
    """Any 2xx is good; all else, and no answer (None), is repeated."""
    return Reaction.DONE if status is not None and 200 <= status < 300 else Reaction.REPEAT


def own_message_id(mail: Mail) -> str:
    """For a vendor that keeps the Message-ID of its client; without its brackets."""
    return (header(mail.headers, "message-id") or f"{mail.message_id}@vendor.example.test").strip("<> ")


def any_secret(webhooks: Webhooks) -> None:
    """Every secret will do."""


def the_secret(webhooks: Webhooks) -> str:
    """The receiver needs what the sender has."""
    return webhooks.secret


def nothing_else(request: Request, account: Account) -> Answer:
    """For a vendor of whom nothing but sending is played."""
    raise Refused(404, "not_found", "There is no such endpoint.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One vendor. Only what has no default must be said."""

    name: str
    """As in ``--provider``, and in the books."""
    title: str

    # ── requests and answers ─────────────────────────────────────────────────────────────────────────────────────

    errors: Mapping[str, Error]
    """The documented refusals of a well-formed send call, by a name of ours. ``Config.error`` picks one for every call.

    Always: ``rejected`` (the word ``reject``), ``busy`` (rate limit), ``broken`` (500). Where they exist: ``quota``;
    ``other_body`` and ``in_progress`` (keys); ``repeated`` (the vendor refuses the repeat of a key that it honours).
    """
    authenticate: Callable[[Request, Config], None]
    """Raises Refused. Where no `Config.api_key` is set, any credential of the right form is taken."""
    read_call: Callable[[Request], Call | None]
    """None if the request is no send call. Raises Refused for one that breaks the documented rules."""
    refusal: Callable[[Error], Answer]
    """An error in the vendor's shape."""
    other: Callable[[Request, Account], Answer] = nothing_else
    """Answers whatever is no send call, look-ups above all. Raises Refused."""
    public: Callable[[Request, Account], Answer | None] = lambda request, account: None
    """Answers what the vendor shows to anybody, without credentials; None for all else."""
    limit_headers: Callable[[Limits, float], Mapping[str, str]] = no_limits
    """On every answer to a send call; at this time, in seconds since the epoch."""
    key_window_seconds: float = 86_400.0
    """How long a key counts, unless the configuration says otherwise."""
    replay_headers: Mapping[str, str] = field(default_factory=dict)
    """On the first answer of a key when it is given again."""
    new_ids: Callable[[Sequence[Draft]], list[str]] = uuids
    """The ids that the success tells, one a draft."""

    # ── webhooks ─────────────────────────────────────────────────────────────────────────────────────────────────

    words: Mapping[str, str]
    """The vendor's word for what happens (`events.STORIES`); what has none here is told to nobody."""
    event_body: Callable[[Mail, Fact, str, Webhooks, float], bytes]
    """The body about one fact under one event id, signed as of now where it holds a signature. Made once: every repeat
    has the same bytes."""
    event_headers: Callable[[str, bytes, Webhooks, float], Mapping[str, str]]
    """The headers of one delivery (event id, body, …), made anew for each: ``content-type``, signature, …"""
    retries: Sequence[float]
    """Seconds to wait after each failure in turn; after the last the event is given up."""
    reaction: Callable[[int | None, Fact], Reaction] = takes_2xx
    """To a status; None for no answer."""
    new_event_id: Callable[[], str] = hex_id
    check_secret: Callable[[Webhooks], None] = any_secret
    """Raises ValueError for a webhook secret that the vendor could not have."""
    shared_secret: Callable[[Webhooks], str] = the_secret
    """What the receiver needs in order to verify: the secret itself, or the public half of its key."""
    greetings: Callable[[Webhooks, float], Sequence[Greeting]] = lambda webhooks, now: ()
    """Made to a new webhook address where `Webhooks.greet` is on."""

    # ── mail that comes in ───────────────────────────────────────────────────────────────────────────────────────

    seen_as: Callable[[Mail], str] = own_message_id
    """The Message-ID under which the recipient saw it, without its brackets."""
    hand_in: Callable[[Letter, Webhooks, float], HandIn] | None = None
    """How the vendor hands in a mail that came to its mail server; None for one of whom that is not played."""

    def check(self, config: Config) -> None:
        """Raise ValueError for settings that this vendor cannot have."""
        self.check_secret(config.webhooks)
        if config.error is not None and config.error not in self.errors:
            raise ValueError(f"error must be one of {', '.join(sorted(self.errors))} for {self.title}")
        if config.daily_quota is not None and "quota" not in self.errors:
            raise ValueError(f"daily_quota: {self.title} documents no refusal for a quota that is used up")


def as_json(status: int, document: Any, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer with this document."""
    body = json.dumps(document, separators=(",", ":")).encode()
    return Answer(status=status, body=body, headers=headers or {})


def bare_address(text: str) -> str:
    """The address of ``Name <address>`` or of a bare one, without checking it."""
    return text.rpartition("<")[2].rstrip("> ").strip()


def fingerprint(body: bytes) -> str:
    """What tells one body from another."""
    return hashlib.sha256(body).hexdigest()


def header(headers: Mapping[str, str], name: str) -> str | None:
    """The header of that name, in any case."""
    return next((value for each, value in headers.items() if each.lower() == name.lower()), None)
