"""What makes a long timeline readable: what comes again and again is folded, and silence is told. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

FEW = 5
"""So many entries of one kind stand beside each other with their differences; more become one."""

QUIET = timedelta(minutes=10)
"""A shorter time without anything is no silence."""


class Lane(StrEnum):
    """Where on the way something happened. Of two things at one moment, the one in the earlier lane comes first."""

    TRIGGER = "trigger"
    DELIVERY = "delivery"
    CLAIM = "claim"
    ATTEMPT = "attempt"
    EVENT = "event"
    REPLY = "reply"
    RECONCILE = "reconcile"
    PERSON = "person"


class Phase(NamedTuple):
    """A part of an attempt, and how long it took."""

    name: str
    length: timedelta

    @property
    def seconds(self) -> float:
        """Its length as a number."""
        return self.length.total_seconds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One mark on the timeline.

    ``what`` is a short sentence, ``who`` made it (a worker, provider, person), ``detail`` says more or is empty,
    ``evidence`` names the row that proves it (``attempt 1``, ``event 17``), ``count`` how many alike are folded,
    ``folded`` has the single ones. ``again``: its kind may come any number of times. ``phases`` are those of an
    attempt. ``left_out``: it stands for rows of this kind (``events``, …) that were not read.
    """

    at: datetime
    lane: Lane
    what: str
    who: str = ""
    detail: str = ""
    evidence: str = ""
    trouble: bool = False
    count: int = 1
    until: datetime | None = None  # the time of the last one, where several are folded
    folded: tuple[Entry, ...] = ()
    again: bool = False
    phases: tuple[Phase, ...] = ()
    left_out: str = ""
    placed_at: datetime | None = field(default=None, compare=False)
    """Where it stands in the order, if not at its time: a clock of whole seconds tells too early."""

    @property
    def end(self) -> datetime:
        """When the last of it happened."""
        return self.until or self.at


def in_order(entries: Iterable[Entry]) -> list[Entry]:
    """Oldest first; of one moment, in the order of the lanes."""
    lanes = list(Lane)
    return sorted(entries, key=lambda entry: (entry.placed_at or entry.at, lanes.index(entry.lane)))


def folded(entries: Iterable[Entry]) -> list[Entry]:
    """Entries in their order, where those that say the same are one, with their count.

    What may come again and again is also folded over others of that sort: opens and clicks that take turns become one
    of each. Anything else stands between.
    """
    result: list[Entry] = []
    stretch: list[Entry] = []
    for entry in entries:
        if entry.again:
            stretch.append(entry)
            continue
        result += _fold_stretch(stretch)
        stretch = []
        if result and not result[-1].left_out and _says(result[-1]) == _says(entry):
            result[-1] = _one([*(result[-1].folded or (result[-1],)), entry])
        else:
            result.append(entry)
    return result + _fold_stretch(stretch)


def _fold_stretch(stretch: Sequence[Entry]) -> list[Entry]:
    kinds: dict[tuple[Lane, str, bool], dict[tuple[object, ...], list[Entry]]] = {}
    for entry in stretch:
        kinds.setdefault((entry.lane, entry.what, entry.trouble), {}).setdefault(_says(entry), []).append(entry)
    found = []
    for alike in kinds.values():
        groups = list(alike.values())
        if len(groups) > FEW:
            groups = [in_order(entry for group in groups for entry in group)]
        found += [_one(group) for group in groups]
    return in_order(found)


def _says(entry: Entry) -> tuple[object, ...]:
    return (entry.lane, entry.what, entry.who, entry.detail, entry.trouble)


def _one(entries: Sequence[Entry]) -> Entry:
    """Several entries as one; a single one stays as it is."""
    first = entries[0]
    if len(entries) == 1:
        return first
    return replace(
        first,
        who=_common({entry.who for entry in entries}, _MAKERS.get(first.lane, "workers")),
        detail=_common({entry.detail for entry in entries}, "different details"),
        count=sum(entry.count for entry in entries),
        until=max(entry.end for entry in entries),
        folded=tuple(entries),
    )


_MAKERS = {Lane.DELIVERY: "triggers", Lane.EVENT: "providers", Lane.REPLY: "senders"}
"""Who makes what comes again and again; the rest is made by workers."""


def _common(texts: set[str], words: str) -> str:
    """What they all say, or how many they are."""
    return next(iter(texts)) if len(texts) == 1 else f"{len(texts)} {words}"


def silences(entries: Sequence[Entry], now: datetime | None = None) -> Iterator[timedelta | None]:
    """For each entry the silence before it, and at last the one until now; None where there was none to speak of."""
    end: datetime | None = None
    for entry in entries:
        past = entry.at if now is None else min(entry.at, now)
        yield past - end if end is not None and past - end >= QUIET else None
        end = entry.end if end is None else max(end, entry.end)
    yield now - end if now is not None and end is not None and now - end >= QUIET else None
