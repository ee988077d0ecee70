"""What happens to an accepted message, and when it is told. Pure: the same seed tells the same story.

How a vendor words it is the dialect's part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from dashboard.simulator import recipients
from dashboard.simulator.config import Config
from dashboard.simulator.dice import lasting, roll

STEP_SECONDS = 0.1
"""About how long a message takes from one happening to the next."""

STORIES: Mapping[str | None, tuple[str, ...]] = {
    None: ("sent", "delivered"),
    "quiet": (),
    "bounce": ("sent", "bounced"),
    "softbounce": ("sent", "soft_bounced"),
    "suppressed": ("suppressed",),
    "failed": ("failed",),
    "complain": ("sent", "delivered", "complained"),
    "delay": ("sent", "delayed", "delivered"),
    "open": ("sent", "delivered", "opened"),
    "double": ("sent", "delivered", "delivered"),
    "click": ("sent", "delivered", "opened", "clicked"),
}
"""What happens, by the fate of the message."""


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
    reply_to: str | None = None
    text: str | None = None
    html: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    story: Sequence[Fact] = ()

    def happened(self, now: float) -> list[Fact]:
        """The part of its story that lies behind it."""
        return [fact for fact in self.story if fact.at <= now]


@dataclass(slots=True)
class Fact:
    """One happening of one message."""

    word: str
    """One of those in `STORIES`."""
    name: str
    """The vendor's word for it."""
    at: float
    """Seconds since the epoch at which it happens."""
    event_id: str
    """Under which it is told, and listed."""
    bodies: dict[str, bytes] = field(default_factory=dict)
    """By event id: every delivery under one id carries the same bytes."""


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


def story_of(
    mail: Mail, config: Config, words: Mapping[str, str], new_event_id: Callable[[], str], fate: str | None = None
) -> list[Fact]:
    """What happens to this message, in order: by its fate, else its recipient's words, else the seeded shares."""
    fate = fate or recipients.fate(recipients.words_of(mail.address))
    if fate is None:
        fate = config.fates.pick(roll(config.seed, "fate", mail.identity))
    story, at = [], mail.accepted_at
    for place, word in enumerate(STORIES[fate]):
        if word in words:
            story.append(Fact(word, words[word], at, new_event_id()))
        at += STEP_SECONDS * (0.5 + roll(config.seed, "step", mail.identity, mail.copy, place))
    return story


def deliveries_of(mail: Mail, config: Config, new_event_id: Callable[[], str]) -> list[Delivery]:
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
        calls.append(Delivery(mail, fact, fact.event_id, due))
        if rolled("repeat", place) < rates.repeat:
            calls.append(Delivery(mail, fact, fact.event_id, due + late("repeated", place), "repeat"))
        if rolled("other_id", place) < rates.other_id:
            calls.append(Delivery(mail, fact, new_event_id(), due + late("told_again", place), "other_id"))
    return calls


def is_disordered(mail: Mail, config: Config) -> bool:
    """Whether the events of this message are told last first."""
    rolled = roll(config.seed, "out_of_order", mail.identity, mail.copy)
    return len(mail.story) > 1 and rolled < config.webhooks.out_of_order


def iso(at: float) -> str:
    """A time in UTC with milliseconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
