"""What the simulator does and how often it misbehaves: frozen values, from options or a JSON file."""

from __future__ import annotations

import dataclasses
import json
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, get_args, get_type_hints

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Shares between 0 and 1 of which at most one happens: their sum is at most 1."""

    def __post_init__(self) -> None:
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        for name, value in values.items():
            if not 0 <= value <= 1:
                raise ValueError(f"{name} is {value}: a share is a number between 0 and 1")
        if sum(values.values()) > 1 + 1e-9:
            raise ValueError(f"the shares of {type(self).__name__} add up to more than 1: {sum(values.values()):.3f}")

    def pick(self, rolled: float) -> str | None:
        """The kind that a roll in [0, 1) falls on, or None: what the shares leave of 1."""
        for each in dataclasses.fields(self):
            rolled -= getattr(self, each.name)
            if rolled < 0:
                return each.name
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpFaults(Shares):
    """Shares of the HTTP send calls that go wrong. A call is counted per message identity, see `Simulator`."""

    accept_then_timeout: float = 0.0
    """Accepted; no answer until the client gives up."""
    reset_after: float = 0.0
    """Accepted; the connection is reset instead of an answer."""
    reset_before: float = 0.0
    """The request is read, then the connection is reset: nothing is accepted."""
    timeout_before: float = 0.0
    """The request is read; no answer until the client gives up: nothing is accepted."""
    http_500_taken: float = 0.0
    """Accepted; the answer is 500."""
    http_500_not_taken: float = 0.0
    """500, and nothing is accepted."""
    http_429: float = 0.0
    """429 with Retry-After; nothing is accepted."""
    slow: float = 0.0
    """Accepted; the answer comes after `Config.slow_ms`."""
    garbage: float = 0.0
    """Accepted; the answer is 200 with an HTML page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpFaults(Shares):
    """Shares of the SMTP messages that go wrong, all between the final dot and its reply."""

    accept_then_timeout: float = 0.0
    """Accepted; no reply until the client gives up."""
    drop_after_dot_taken: float = 0.0
    """Accepted; the connection is reset instead of a reply."""
    timeout_before: float = 0.0
    """No reply until the client gives up; nothing is accepted."""
    drop_after_dot_not_taken: float = 0.0
    """The connection is reset instead of a reply; nothing is accepted."""
    reply_451: float = 0.0
    """451; nothing is accepted."""
    reply_421: float = 0.0
    """421 and the connection is closed; nothing is accepted."""
    slow: float = 0.0
    """Accepted; the reply comes after `Config.slow_ms`."""
    garbage: float = 0.0
    """Accepted; the reply is not SMTP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fates(Shares):
    """Shares of the messages accepted by HTTP whose story is not plainly "sent, delivered"."""

    bounce: float = 0.0
    softbounce: float = 0.0
    suppressed: float = 0.0
    failed: float = 0.0
    complain: float = 0.0
    delay: float = 0.0
    open: float = 0.0
    click: float = 0.0
    double: float = 0.0
    """Delivered twice."""
    quiet: float = 0.0
    """No event is ever sent about the message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    """Where events go, and how badly they travel. The four shares are independent of each other."""

    url: str | None = None
    """Without one, no events are made."""
    replies_url: str | None = None
    """Where mail that comes in is handed in; a name and a password in it become Basic authentication."""
    secret: str = "whsec_c2ltdWxhdG9yLXdlYmhvb2stc2VjcmV0LTAwMDE="
    """What events are signed with, in the vendor's form; see `Dialect.shared_secret` for what the receiver needs."""
    greet: bool = False
    """Greets a new address as the vendor does (confirmation, tests), and tells nothing there before it may."""
    delay_ms: float = 50.0
    """Mean of the (exponential) time between an event and its first delivery."""
    repeat: float = 0.0
    """Share of the events that are delivered once more with the same event id, though acknowledged."""
    other_id: float = 0.0
    """Share of the events whose fact is told once more under another event id."""
    out_of_order: float = 0.0
    """Share of the messages whose events are delivered last first."""
    overtake: float = 0.0
    """Share of the accepted calls whose first event is delivered before the call is answered."""
    paused: bool = False
    """Events are kept back until this is false again."""
    concurrency: int = 8
    """Deliveries in flight at once; cannot be changed while running."""
    timeout_seconds: float = 15.0
    """Without an answer in this time a delivery has failed."""
    time_scale: float = 1.0
    """Factor on the vendor's retry schedule."""

    def __post_init__(self) -> None:
        for name in ("repeat", "other_id", "out_of_order", "overtake"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name)}: a share is a number between 0 and 1")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError("the webhook url must begin with http:// or https://")
        if self.concurrency < 1:
            raise ValueError("concurrency must be at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Everything about one simulator. Rates count in shares, times in the unit that their name ends with."""

    seed: int = 0
    dialect: str = "resend"
    """The vendor whose HTTP API is spoken, see `DIALECTS`."""
    host: str = "127.0.0.1"
    http_port: int = 0
    """0 takes any free port."""
    smtp_port: int = 0
    data: Path | None = None
    """Folder for the books; without one they live in memory."""
    keep_content: int = 10_000
    """Of so many of the newest messages, subject and text are kept to look at."""

    api_key: str | None = None
    """The one credential that is taken, in the vendor's form; None takes any, but still demands one."""
    smtp_password: str | None = None
    """The one SMTP password that is taken; None takes any, and mail without log-in."""
    honour_keys: bool = True
    """False: idempotency keys are ignored, each request is new."""
    key_window_seconds: float | None = None
    """None: as the vendor documents it."""
    error: str | None = None
    """Every send call is refused with this documented error, see `Dialect.errors`."""
    rate_limit: int | None = None
    """Send calls taken in each second; those above are answered with 429."""
    daily_quota: int | None = None
    """Messages taken before `daily_quota_exceeded`; raise or clear it to let the day begin anew."""
    retry_after_seconds: int = 1
    slow_ms: float = 500.0
    cut_requests: bool = False
    """Resets the connection of every send call when its head was read, while its body is still being written."""
    look_up_delay_ms: float = 0.0
    """How long an accepted message stays hidden from look-ups."""
    hold_answers: bool = False
    """Accepts, but answers no send call (HTTP or SMTP) until this is false again."""

    http: HttpFaults = field(default_factory=HttpFaults)
    smtp: SmtpFaults = field(default_factory=SmtpFaults)
    fates: Fates = field(default_factory=Fates)
    webhooks: Webhooks = field(default_factory=Webhooks)

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """A copy with these settings changed; nested groups may be given in part.

        Raises ValueError for a setting that does not exist or a value that it cannot have.
        """
        return _changed(self, changes, where="")


FIXED_WHILE_RUNNING = frozenset({"seed", "dialect", "host", "http_port", "smtp_port", "data"})


def read_config(text: str, base: Config | None = None) -> Config:
    """The configuration that a JSON document describes, over ``base``. Raises ValueError with what is wrong."""
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    if not isinstance(document, dict):
        raise ValueError("the configuration must be one JSON object")
    return (base or Config()).changed(document)


def _changed(value: T, changes: Mapping[str, Any], *, where: str) -> T:
    kinds = get_type_hints(type(value))
    new: dict[str, Any] = {}
    for name, wanted in changes.items():
        if name not in kinds:
            raise ValueError(f"unknown setting {where}{name}; there are: {', '.join(kinds)}")
        old = getattr(value, name)
        if dataclasses.is_dataclass(old) and not isinstance(old, type):
            if not isinstance(wanted, Mapping):
                raise ValueError(f"{where}{name} must be an object")
            new[name] = _changed(old, wanted, where=f"{where}{name}.")
        else:
            new[name] = _converted(wanted, kinds[name], f"{where}{name}")
    return dataclasses.replace(value, **new)


def _converted(value: Any, kind: Any, name: str) -> Any:
    kinds = get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    if value is None and types.NoneType in kinds:
        return None
    if Path in kinds and isinstance(value, str | Path):
        return Path(value)
    if float in kinds and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) not in kinds:
        words = " or ".join("nothing" if each is types.NoneType else each.__name__ for each in kinds)
        raise ValueError(f"{name} must be {words}, not {value!r}")
    return value
