"""When it happened, as people say it: ``yesterday evening``, ``monday 8 pm``, ``30 Nov 20:15``, ``2 hours ago``."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta

Around = tuple[datetime, datetime]
"""From when to when; both the same where one moment was named."""

EXAMPLES = "yesterday evening, today 14:30, monday morning, 30 Nov 20:15, 2 hours ago, 2026-11-30T20:15"


class BadTime(ValueError):
    """What was written is no time that is understood; the message shows some that are."""

    def __init__(self) -> None:
        super().__init__(f"this time is not understood; write it like one of these: {EXAMPLES}")


PARTS = {
    "morning": (5, 12),
    "noon": (11, 14),
    "midday": (11, 14),
    "lunchtime": (11, 14),
    "afternoon": (12, 18),
    "evening": (17, 24),
    "tonight": (17, 24),
    "night": (20, 30),
}
"""Hours of the day; a night ends at six of the next day."""

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
UNITS = {"minute": timedelta(minutes=1), "min": timedelta(minutes=1), "hour": timedelta(hours=1)}
FILLERS = {"at", "on", "in", "the", "about", "around", "ca", "ca.", "last", "this", "of", "oclock", "o'clock"}

_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.h](\d{2})(?::\d{2})?)?\s*([ap])\.?m\b\.?|\b(\d{1,2})[:h](\d{2})(?::\d{2})?\b")
_AGO = re.compile(r"(\d{1,4}|an?)\s+(minute|min|hour|day|week)s?\s+ago")
_ISO_DAY = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_DOTTED = re.compile(r"\b(\d{1,2})\.(\d{1,2})\.(\d{4})?(?!\d)")
_NAMED = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\.?\s+({'|'.join(MONTHS)})[a-z]*\.?(?:\s+(\d{{4}}))?\b")
_NAMED_FIRST = re.compile(rf"\b({'|'.join(MONTHS)})[a-z]*\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(\d{{4}}))?\b")


def read_when(text: str, now: datetime) -> Around | None:
    """What this text means in the zone of ``now``, which has one; None for an empty text. Raises :class:`BadTime`."""
    said = " ".join(text.split()).lower()
    if not said:
        return None
    try:
        return _moment(said, now) or _ago(said, now) or _day(said, now)
    except (ValueError, OverflowError):
        raise BadTime from None


def _moment(said: str, now: datetime) -> Around | None:
    try:
        moment = datetime.fromisoformat(said.upper())
    except ValueError:
        return None
    if len(said) <= len("2026-11-30"):
        return None  # a whole day
    moment = moment if moment.tzinfo else moment.replace(tzinfo=now.tzinfo)
    return moment, moment


def _ago(said: str, now: datetime) -> Around | None:
    found = _AGO.fullmatch(said)
    if found is None:
        return None
    count = int(found[1]) if found[1].isdigit() else 1
    if found[2] in UNITS:
        moment = now - count * UNITS[found[2]]
        return moment, moment
    return _hours(now - timedelta(days=count * (7 if found[2] == "week" else 1)), 0, 24)


def _day(said: str, now: datetime) -> Around:
    said, clock = _take_clock(said)
    said, day = _take_date(said, now)
    part: str | None = None
    for word in filter(None, re.split(r"[ ,]+", said)):
        if word in PARTS and part is None:
            part = word
        elif word in FILLERS:
            continue
        elif day is None and (found := _named_day(word, now)) is not None:
            day = found
        else:
            raise ValueError(word)
    if day is None and "last" in said and part == "night":
        day = now - timedelta(days=1)
    if clock is not None:
        moment = datetime.combine((day or now).date(), clock, now.tzinfo)
        if day is None and moment > now:
            moment -= timedelta(days=1)
        return moment, moment
    if day is None and part is None:
        raise ValueError(said)
    return _hours(day or now, *PARTS[part]) if part else _hours(day or now, 0, 24)


def _take_clock(said: str) -> tuple[str, time | None]:
    """Take the time of day out of the text."""
    found = _CLOCK.search(said)
    if found is None:
        return said, None
    hour, minute = int(found[1] or found[4]), int(found[2] or found[5] or 0)
    if found[3]:
        if not 1 <= hour <= 12:
            raise ValueError(said)
        hour = hour % 12 + (12 if found[3] == "p" else 0)
    return said[: found.start()] + " " + said[found.end() :], time(hour, minute)


def _take_date(said: str, now: datetime) -> tuple[str, datetime | None]:
    """Take the date out of the text; one without a year is the last of its kind."""
    for pattern, order in ((_ISO_DAY, (1, 2, 3)), (_DOTTED, (3, 2, 1)), (_NAMED, (3, 2, 1)), (_NAMED_FIRST, (3, 1, 2))):
        found = pattern.search(said)
        if found is None:
            continue
        year, month, day = (found[group] for group in order)
        number = MONTHS.index(month) + 1 if month in MONTHS else int(month)
        date = now.replace(year=int(year) if year else now.year, month=1, day=1)
        date = date.replace(month=number, day=int(day))
        if not year and date.date() > now.date():
            date = date.replace(year=date.year - 1)
        return said[: found.start()] + " " + said[found.end() :], date
    return said, None


def _named_day(word: str, now: datetime) -> datetime | None:
    if word == "today":
        return now
    if word == "yesterday":
        return now - timedelta(days=1)
    if word in WEEKDAYS:
        return now - timedelta(days=(now.weekday() - WEEKDAYS.index(word)) % 7)
    return None


def _hours(day: datetime, first: int, last: int) -> Around:
    """From one hour of a day to another, counted past midnight."""
    midnight = day.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + timedelta(hours=first), midnight + timedelta(hours=last) - timedelta(seconds=1)
