"""What happens at the company of the demo, email by email: the ordinary, and the scenes that an agent gets to see.

Pure: the same seed and number tell the same story. Recipients whose address begins with words such as ``bounce+`` make
the simulator play along (``simulator/recipients.py``).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from dashboard.demo.company import Intent, intent, intent_of

Trigger = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One trigger asks for one email. ``after``: so many seconds after the email's turn has come."""

    intent: Intent
    trigger: Trigger
    message: Mapping[str, Any]
    after: float = 0.0
    not_before: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """The warehouse's queue delivers a job of its own, twice."""

    parcel: str
    address: str
    after: float = 0.0


Happening = Asked | Job
Scene = Callable[[int, random.Random], list[Happening]]


def happenings(seed: int, number: int) -> list[Happening]:
    """What happens when email ``number`` has its turn."""
    dice = random.Random(f"{seed}/{number}")  # noqa: S311  # a story, not a secret
    scene = _RARE.get(number % RARELY) or _SCENES.get(number % OFTEN)
    if scene is not None:
        return scene(number, dice)
    wave = number // OFTEN % 8 == 7  # now and then, more triggers overlap: a rise that the overview shows
    return asked_for(intent(dice, number), dice, overlapping=1.0 if wave else 0.3)


def asked_for(wanted: Intent, dice: random.Random, *, overlapping: float = 1.0) -> list[Happening]:
    """Its first trigger asks at once; one that overlaps comes a little behind, in this share of the cases."""
    triggers = wanted.triggers if dice.random() < overlapping else wanted.triggers[:1]
    return [
        Asked(intent=wanted, trigger=trigger, message=wanted.message, after=place * dice.uniform(1, 5))
        for place, trigger in enumerate(triggers)
    ]


# ── scenes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _to(words: str, stream: str) -> Scene:
    """An email of one mailstream to somebody with a story."""

    def scene(number: int, dice: random.Random) -> list[Happening]:
        wanted = intent_of(stream, dice, number)
        return asked_for(replace(wanted, address=f"{words}+{number}@example.test"), dice)

    return scene


def _never_again(words: str, first: str, second: str) -> Scene:
    """Two emails to somebody whose first one tells that there must be no second."""

    def scene(number: int, dice: random.Random) -> list[Happening]:
        person = dice.random()
        once, again = (
            replace(
                intent_of(stream, random.Random(person), number),  # noqa: S311
                address=f"{words}+{number}@example.test",
            )
            for stream in (first, second)
        )
        later = Asked(intent=again, trigger=again.triggers[0], message=again.message, after=8)
        return [*asked_for(replace(once, triggers=once.triggers[:1]), dice), later]

    return scene


def _other_content(number: int, dice: random.Random) -> list[Happening]:
    """The same receipt is asked for again with another total: a mismatch, and never sent."""
    wanted = intent_of("receipts", dice, number)
    other = {**wanted.message, "variables": {**wanted.message["variables"], "total": "0.00 EUR"}}
    trigger = ("billing.recalculated", wanted.triggers[0][1])
    return [*asked_for(wanted, dice), Asked(intent=wanted, trigger=trigger, message=other, after=4)]


def _for_later(number: int, dice: random.Random) -> list[Happening]:
    """A statement that is not to leave before its time."""
    wanted = intent_of("monthly-statement", dice, number)
    wait = timedelta(minutes=dice.randint(5, 45))
    return [Asked(intent=wanted, trigger=wanted.triggers[0], message=wanted.message, not_before=wait)]


def _parcel(number: int, dice: random.Random) -> list[Happening]:
    """A parcel leaves the warehouse."""
    return [Job(parcel=f"parcel_{number}", address=intent_of("receipts", dice, number).address)]


OFTEN = 60
_SCENES: dict[int, Scene] = {
    4: _parcel,
    9: _to("timeout-quiet", "receipts"),  # unknown, until the provider's own key lets it be asked again
    15: _never_again("bounce", "trial-day-7", "receipts"),
    22: _parcel,
    27: _other_content,
    33: _for_later,
    38: _to("reject", "password-reset"),
    46: _to("delay", "receipts"),
    51: _never_again("complain", "product-news", "trial-day-7"),
    56: _to("error", "receipts"),
}
"""By the number's place among :data:`OFTEN`: about one each a minute."""

RARELY = 1200
_RARE: dict[int, Scene] = {
    11: _to("timeout-quiet", "trial-day-7"),
    24: _to("lost-quiet", "product-news"),
    35: _to("timeout-quiet", "trial-day-7"),
    48: _to("timeout", "monthly-statement"),  # SMTP tells nothing later
}
"""By the number's place among :data:`RARELY`: nobody will ever know what became of these, so a person has to decide."""
