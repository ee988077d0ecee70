"""What every provider adapter speaks: the message that goes out, the possible outcomes, the events that come back.

An outcome is a value, never an exception, because the third one matters most: *ambiguous* means that the provider
may have taken the message, and only evidence, the provider's own idempotency key or a person may resolve it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal, Protocol, runtime_checkable
from uuid import UUID

from dashboard.lifecycle import EventType
from dashboard.providers.results import SendResult

BounceClass = Literal["hard", "soft", "block", "suppressed", "undetermined"]


# ── what goes out ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """The frozen, rendered content of one send. The same value is submitted by every attempt (DESIGN §4.8)."""

    sender: str
    """The From header: a bare address, or ``Name <address>``."""
    subject: str
    reply_to: str | None = None
    text: str | None = None
    html: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    date: datetime
    """When the send was recorded: a Date header that changed between attempts would break the provider's key check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """One send as it goes out, alone or with others in one call."""

    send_id: UUID
    attempt: int
    address: str
    recipient_name: str | None
    message: Message
    deadline: Deadline
    """Submit deadline: no byte of the request may be written after it (DESIGN §5.9)."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant on ``CLOCK_BOOTTIME``, which, unlike the monotonic clock, goes on while the machine is suspended."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """The instant ``seconds`` from now."""
        return cls(boot_time() + seconds)

    @property
    def passed(self) -> bool:
        """True once the instant is over."""
        return boot_time() >= self.at


def boot_time() -> float:
    """Seconds on ``CLOCK_BOOTTIME`` (on systems without it, the monotonic clock)."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


# ── what came of it ──────────────────────────────────────────────────────────────────────────────────────────────────


class Scope(StrEnum):
    """Whose fault a refusal is."""

    MESSAGE = "message"
    ACCOUNT = "account"


@dataclass(frozen=True, slots=True)
class Accepted:
    """The provider gave its documented yes. The id is None only where it promises none."""

    provider_message_id: str | None
    request_id: str | None = None
    """What the provider's support would ask for (SMTP: its last reply, which usually names a queue id)."""
    phase: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A definite no: nothing was taken. ``retryable`` means that a later repeat may succeed."""

    scope: Scope | None = Scope.MESSAGE
    retryable: bool = False
    key_in_use: bool = False
    """Another call under our idempotency key is running. Only this one was not taken: that one may be a copy of it,
    repeated by a client library or a proxy, so that to the ledger the send is in doubt."""
    retry_after_seconds: float | None = None
    error_code: str | None = None
    reason: str = ""
    """What the provider said, without addresses, for people. At most a few hundred characters."""
    phase: str | None = None
    """How far the call came, in the adapter's own words (SMTP: the command)."""
    request_id: str | None = None
    provider_message_id: str | None = None
    """The id that the provider gave even to what it refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ambiguous:
    """The provider may have taken it. ``error_class`` groups alike failures: ``read_timeout``, ``http_502``."""

    error_class: str
    reason: str = ""
    error_code: str | None = None
    phase: str | None = None
    request_id: str | None = None


@dataclass(frozen=True, slots=True)
class NeverWritten:
    """Proof, by ourselves, that no byte of the request was written (deadline over, body refused by the adapter).

    ``permanent``: the message can never be written by this adapter, so that the send fails.
    """

    reason: str
    permanent: bool = False


Outcome = Accepted | Rejected | Ambiguous | NeverWritten


# ── what the provider tells later ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEvent:
    """One fact that a provider told us, in the common vocabulary of all providers."""

    event_type: EventType
    event_id: str
    event_day: str = ""
    """The day (YYYY-MM-DD, UTC) within which the event id is unique; empty where it is unique for ever."""
    provider_message_id: str | None = None
    send_id: str | None = None
    """Our id as the provider echoed it, unchecked."""
    attempt: int | None = None
    """Our attempt number as the provider echoed it, where it travels."""
    recipient: str | None = None
    occurred_at: datetime | None = None
    bounce_class: BounceClass | None = None
    reason: str | None = None
    machine: bool | None = None
    url: str | None = None
    raw: bytes = b""
    """This event's own part of the request body, for people to look at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """One mail that came in at the provider for this account. Whoever wrote it chose every word of it."""

    message_id: str | None
    """Its own, without angle brackets."""
    sender: str | None
    """The bare address of its From, in lower case."""
    recipients: tuple[str, ...]
    """Bare addresses that it came to, those of the envelope first."""
    answers: tuple[str, ...]
    """The Message-IDs that it says it answers, without angle brackets, the likeliest first."""
    written_at: datetime | None
    automatic: bool
    """No person wrote it, by what it says of itself (RFC 3834)."""
    subject: str
    text: str | None
    """What it says, where the provider tells that; without what it quotes, where the provider takes that away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """One request to an account's webhook address, before anybody knows whether it is the provider's."""

    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    """As received: signatures are over these bytes."""
    url: str = ""
    """The public address that was called; one provider signs it."""
    remote_address: str | None = None
    """Whence it came, for providers that sign nothing. None: not known, and then on no list of addresses."""
    now: datetime
    """The time against which timestamps are judged, with its zone."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A part of an authentic webhook request that could not be understood, with the reason."""

    raw: bytes
    reason: str


@dataclass(frozen=True, slots=True)
class SignedToken:
    """What was signed in place of the body: whoever reads a request could put another body under its signature."""

    token: str
    good_until: datetime
    """When the signature ends to count."""
    content: bytes | None = None
    """What it is believed with, where that is not the body as it came: a form is written anew on every try."""


@dataclass(frozen=True, slots=True)
class Webhook:
    """A verified webhook request, normalised."""

    events: tuple[ProviderEvent, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    signed_token: SignedToken | None = None
    """Where the signature leaves the body out. Believe it with one body only: whoever stores the events has to look."""
    confirm: Callable[[], None] | None = None
    """Answers a provider that wants this address confirmed elsewhere than in the response, over the network. Raises
    :class:`CannotVerify` where that fails."""
    replies: tuple[Reply, ...] = ()
    """Only of the address for replies, see :class:`ReadsReplies`."""


class NotAuthentic(Exception):
    """The request is not from the provider of this account: 401, and nothing of it is stored."""


class Unverifiable(NotAuthentic, ValueError):
    """The body is so malformed that its signature cannot even be found."""


class CannotVerify(NotAuthentic):
    """Nobody can tell, and that is our own trouble (no secret configured, no certificate): 503, come again."""


# ── what can be asked ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A send whose call was not answered: has the provider taken it?"""

    send_id: UUID
    address: str
    since: datetime
    """Start of the first unanswered attempt."""


class CannotLookUp(Exception):
    """The provider gave no usable answer to a question, with the reason. It proves nothing."""


# ── what an adapter can do ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a provider offers at the ambiguous boundary; read by the reconciler and the hold page."""

    key_window: timedelta | None = None
    """How long the provider honours our idempotency key. None: it knows none."""
    metadata: bool = False
    """Our send id travels with the message and comes back in events."""
    webhooks: bool = False
    message_id: Literal["ours", "theirs"] | None = None
    """Whose Message-ID the recipient sees, where we know it: a reply names it. None: only a reply address tells."""
    message_id_domain: str | None = None
    """The end of what stands behind the @ of a Message-ID of the provider's, where the id of its answer alone stands
    before it."""
    replies: bool = False
    """It hands in mail that comes in: it is :class:`ReadsReplies`."""
    look_up: bool = False
    """Its channels are :class:`LooksUp`."""
    settling_time: timedelta | None = None
    """After which a look-up without a hit is proof that nothing was taken. None: it never is (DESIGN §5.6)."""
    batch_size: int = 1
    """How many messages one call takes. More than one: its channels are :class:`SendsBatches`."""
    own_return_path: bool = False
    """Mail leaves with the sender's own address as its return path, so that SPF is looked up at the sender's domain."""
    come_again: int = 503
    """The answer to a webhook after which the provider tells the same again."""


Settings = Mapping[str, str]
"""An account's settings as configured (base URL, API key, signing secret, …); secrets are decrypted by the ledger."""


class Provider(Protocol):
    """One provider. Stateless: what a connection pool needs is kept by the :class:`Channel` it opens."""

    @property
    def name(self) -> str:
        """The word in the configuration and in the database."""
        ...

    @property
    def title(self) -> str:
        """The provider's name as people write it."""
        ...

    @property
    def settings(self) -> tuple[Setting, ...]:
        """What an account of this provider can be told."""
        ...

    def capabilities(self, settings: Settings) -> Capabilities:
        """What this account can do; an account may declare less than its provider (no key window, for instance)."""
        ...

    def open_channel(self, settings: Settings, *, request_timeout: float) -> Channel:
        """A thread-safe sender that keeps connections."""
        ...

    def read_webhook(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Verify the raw bytes and normalise. Raises :class:`NotAuthentic`, or ValueError for a malformed body."""
        ...

    def classify(self, result: SendResult) -> Outcome | list[Outcome]:
        """Judge one recorded result without a network. Raises ValueError for a result of another protocol."""
        ...


@runtime_checkable
class ReadsReplies(Protocol):
    """A provider that also receives mail, and hands it in at the address for replies."""

    def read_reply(self, request: WebhookRequest, settings: Settings) -> Webhook:
        """Verify the request, and read the mail in it. Raises like :meth:`Provider.read_webhook`."""
        ...


def endpoint(provider: Provider, settings: Settings) -> str:
    """Where the calls of an account go, and as whom: its settings, but for those that do not say that. Holds secrets.

    Only there does the provider know the idempotency keys of earlier calls (DESIGN §5.3).
    """
    said = {
        s.name: settings.get(s.name) or s.default or ""
        for s in provider.settings
        if not (s.for_events or s.for_checks) and (settings.get(s.name) or not s.for_batches)
    }
    return json.dumps([provider.name, said], sort_keys=True)


class Channel(Protocol):
    """An account's way to its provider, shared by the threads of one worker."""

    def submit(self, outgoing: Outgoing) -> Outcome:
        """Hand over one message. Never raises for what a network or a provider may do; never repeats by itself."""
        ...

    def try_out(self) -> Outcome:
        """Make the call of a send that has no sender, no recipient and no content, which nobody can take.

        A refusal of the message, or NeverWritten, says that the account may send; what else comes of it would meet
        every send. Never raises, like :meth:`submit`.
        """
        ...

    def close(self) -> None:
        """Drop idle connections."""
        ...


@runtime_checkable
class SendsBatches(Protocol):
    """A channel that can hand over several messages with one call."""

    def batches(self, members: Sequence[Outgoing]) -> list[list[Outgoing]]:
        """Part these into calls: who is alone in a list goes by :meth:`Channel.submit`, the others together.

        Together are only messages that one call carries without changing a byte of any. Some providers take one sender
        or one text for all, and none is asked to tell two messages to one address apart. A message that is tried again
        goes alone, so that whoever spoils a call spoils it for the others once only. Needs no network; the same for the
        same members.
        """
        ...

    def submit_batch(self, batch: UUID, members: Sequence[Outgoing]) -> list[Outcome]:
        """Hand over these, one list of :meth:`batches`, with one call. Returns one outcome each, in order.

        A call whose end nobody knows leaves every member in doubt. One that was refused for one of them, nobody says
        which, leaves each refused for now: it goes alone the next time. ``batch`` names the call: where the provider
        honours keys it is its idempotency key, so that a repeat has the same members in the same order. Never raises,
        and never repeats, like :meth:`Channel.submit`.
        """
        ...


@runtime_checkable
class LooksUp(Protocol):
    """A channel that can ask its provider about a send."""

    def look_up(self, question: Question) -> tuple[ProviderEvent, ...]:
        """What the provider knows of this send, told as events: each shows our own id (DESIGN §5.6), or is not told.

        None is no proof of anything, but for a provider that declares a settling time. Raises :class:`CannotLookUp`.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One configurable value of an account."""

    name: str
    help: str
    secret: bool = False
    default: str | None = None
    required: bool = False
    for_events: bool = False
    """Only read to verify what the provider reports: a call is the same, whatever it says."""
    for_checks: bool = False
    """Only read to check the account: likewise."""
    for_batches: bool = False
    """Says whether messages share calls. Set, it is a part of the endpoint: a worker opens a channel for each."""


SENDING_DOMAINS, DKIM_SELECTORS = "sending_domains", "dkim_selectors"


def domain_settings(selectors: str | None = None) -> tuple[Setting, Setting]:
    """What the check of an account needs to know of its DNS. ``selectors``: the provider's usual ones for DKIM."""
    return (
        Setting(
            name=SENDING_DOMAINS,
            help="Domains whose DNS is checked, apart by spaces; empty: those that the newest mail came from.",
            for_checks=True,
        ),
        Setting(
            name=DKIM_SELECTORS,
            help="What stands before ._domainkey in its DKIM records, apart by spaces.",
            default=selectors,
            for_checks=True,
        ),
    )
