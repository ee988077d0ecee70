"""The timeline as it is drawn: anchors for proof to link to, silence, and what can be unfolded."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from dashboard.insight.folding import Entry, Lane, silences
from dashboard.insight.timeline import timeline
from dashboard.insight.wording import reference
from dashboard.ledger.rows import Rows
from dashboard.ledger.trace import Trace

UNFOLDED = 20
"""So many of what is folded are shown in place; a page of their own has all."""

_ROWS = {Lane.DELIVERY: Rows.DELIVERIES, Lane.EVENT: Rows.EVENTS}


@dataclass(frozen=True, slots=True)
class Mark:
    """An entry as it is drawn. ``anchor`` is where proof links to; ``raw_event`` has a payload to look at.

    ``silence`` lies before it. ``rows``: the kind of row that it is one of.
    """

    entry: Entry
    since_last: timedelta | None
    silence: timedelta | None
    new_day: bool
    anchor: str | None
    raw_event: int | None
    rows: Rows


@dataclass(frozen=True, slots=True)
class Line:
    """All marks, the silence since the last one, where each row of evidence is found, and which replies can be read."""

    marks: list[Mark]
    silence: timedelta | None
    places: dict[str, Mark]
    replies: dict[str, int]


def line(trace: Trace, now: datetime) -> Line:
    """The whole timeline of a trace."""
    entries = timeline(trace)
    *before, after = silences(entries, now)
    raws = raw_events(trace)
    marks: list[Mark] = []
    places: dict[str, Mark] = {}
    for entry, silence in zip(entries, before, strict=True):
        last = marks[-1].entry if marks else None
        mark = Mark(
            entry,
            since_last=entry.at - last.at if last and entry.at > last.at else None,
            silence=silence,
            new_day=last is None or entry.at.date() != last.at.date(),
            anchor=anchor(entry) if entry.evidence and entry.evidence not in places else None,
            raw_event=None if entry.folded else raws.get(entry.evidence),
            rows=_ROWS.get(entry.lane, Rows.MOVES),
        )
        marks.append(mark)
        for one in (entry, *entry.folded):
            if one.evidence:
                places.setdefault(one.evidence, mark)
    return Line(marks, after, places, {reference(reply): reply.id for reply in trace.replies if reply.has_content})


def anchor(entry: Entry) -> str:
    """The name of its place in the page."""
    return entry.evidence.replace(" ", "-")


def raw_events(trace: Trace) -> dict[str, int]:
    """Which entries have a payload to look at, by their evidence."""
    return {f"event {event.id}": event.id for event in trace.events if event.has_raw}
