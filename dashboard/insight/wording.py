"""How verdicts and timelines put things: times, spans, numbers, reasons. One place, so that all say it alike."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta, tzinfo

from dashboard.identity import discreet
from dashboard.ledger.trace import Attempt, Duplicate, Event, HistoricMove, Hold, MailReply
from dashboard.lifecycle import AttemptStatus, Reason

REASONS: dict[Reason, str] = {
    Reason.DUE: "it is due",
    Reason.SCHEDULED: "it was asked for with a later time",
    Reason.REFUSED_FOR_NOW: "the provider refused it for now",
    Reason.PROVIDER_PAUSED: "the provider account is paused",
    Reason.NO_CAPACITY: "no slot was free to submit it",
    Reason.STREAM_PAUSED: "its mailstream is paused",
    Reason.WORKER_STOPPED: "its worker stopped before any attempt",
    Reason.NEVER_WRITTEN: "the attempt is proved not to have left",
    Reason.RELEASED_BY_KEY: "the provider recognises a repeat by its key",
    Reason.RELEASED_BY_PERSON: "a person decided to submit it again",
    Reason.PROVED_NOT_TAKEN: "it is proved that no attempt was taken",
    Reason.REPLAYED: "a person asked for it again",
    Reason.WAITS_FOR_CALLER: "its caller submits it with its next delivery",
    Reason.CLAIMED: "a worker has it",
    Reason.NO_ANSWER: "the provider did not answer",
    Reason.WORKER_LOST: "the worker stopped while its call was running",
    Reason.EARLIER_DOUBT: "an earlier attempt got no answer",
    Reason.UNCONFIRMED: "nobody could tell in time whether the provider took it",
    Reason.WENT_IN_A_BATCH: "its unanswered call carried others too, so that the provider would not recognise a repeat",
    Reason.KEY_ENDED: "the provider no longer recognises a repeat",
    Reason.LATE: "it is later than its mailstream allows",
    Reason.WORKERS_STOP_ON_IT: "several workers stopped on it",
    Reason.ATTEMPTS_USED_UP: "all allowed attempts were refused",
    Reason.MESSAGE_GONE: "its content is gone or cannot be decrypted",
    Reason.LEDGER_MOVED: "the ledger was restored or copied since",
    Reason.REFUSED: "the provider refused it for good",
    Reason.CANNOT_RENDER: "its template could not be filled in",
    Reason.CANNOT_BE_WRITTEN: "the provider has no way to take such a message",
    Reason.BOUNCED_BEFORE: "an earlier email to this address bounced for good",
    Reason.COMPLAINED_BEFORE: "the recipient reported an earlier email as spam",
    Reason.UNSUBSCRIBED: "the recipient unsubscribed",
    Reason.SUPPRESSED_BY_PERSON: "a person suppressed this address",
    Reason.CANCELLED_BY_PERSON: "a person cancelled it",
    Reason.STILL_UNKNOWN: "it was still unknown, and its mailstream prefers none to two",
    Reason.ANSWERED: "the provider answered yes",
    Reason.EVENT: "an event of the provider proves it",
    Reason.LATE_ANSWER: "the provider's yes came after the claim had ended",
    Reason.MARKED_BY_PERSON: "a person counted it as accepted",
}
"""Each reason as the end of a sentence that begins with *because*."""


def because(reason: str | None) -> str:
    """A reason as words; one that this version does not know is shown as it is."""
    if reason is None:
        return "no reason was recorded"
    known = REASONS.get(Reason(reason)) if reason in Reason.__members__.values() else None
    return known or reason.replace("_", " ")


def provider(name: str) -> str:
    """A provider as a sentence names it."""
    return PROVIDERS.get(name) or name.capitalize() or "the provider"


PROVIDERS = {
    "smtp": "the SMTP server",
    "ses": "Amazon SES",
    "sendgrid": "SendGrid",
    "sparkpost": "SparkPost",
    "usesend": "useSend",
}
"""Those whose names are not written as ours are."""


def in_zone(time: datetime, zone: tzinfo) -> datetime:
    """A time in this zone; in UTC where the zone's own clock would leave the calendar."""
    try:
        return time.astimezone(zone)
    except OverflowError:
        return time.astimezone(UTC)


def at(time: datetime, now: datetime) -> str:
    """A time in the zone of ``now``: ``at 14:03:22``, or with its day where that is another one."""
    time = in_zone(time, now.tzinfo or UTC)
    if time.date() == now.date():
        return f"at {time:%H:%M:%S}"
    year = f" {time.year}" if time.year != now.year else ""
    return f"on {time.day} {time:%b}{year} at {time:%H:%M:%S}"


def since(time: datetime, now: datetime) -> str:
    """``since 14:03:22``, or ``since 29 Nov at 14:03:22``."""
    return "since " + at(time, now).removeprefix("at ").removeprefix("on ")


def until(time: datetime, now: datetime) -> str:
    """``until 14:03:22``, or ``until 2 Dec at 14:03:22``."""
    return "until " + at(time, now).removeprefix("at ").removeprefix("on ")


def span(length: timedelta) -> str:
    """A length of time in one or two units: ``2 s``, ``3 min``, ``1 h 5 min``, ``2 days``."""
    seconds = int(length.total_seconds())
    if seconds < 1:
        return "less than 1 s"
    if seconds < 120:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} days"


def number(count: int, one: str, many: str | None = None) -> str:
    """``1 attempt``, ``3 attempts``."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def listed(words: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def upper_first(text: str) -> str:
    """The text as the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def quoted(text: str | None) -> str:
    """What somebody else said, after a colon and in quotation marks; nothing where they said nothing."""
    said = isolated((text or "").strip().rstrip("."))
    return f': "{said}"' if said else ""


_DIRECTIONS = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C))


def isolated(text: str) -> str:
    """Somebody else's words within a sentence: they neither turn its direction round nor break its line, and addresses
    in them are masked.

    What is written from right to left stands in an isolate of its own (UAX #9).
    """
    text = discreet(" ".join(text.translate(_DIRECTIONS).split()))
    backwards = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in text)
    return f"\u2068{text}\u2069" if backwards else text


def how_it_failed(attempt: Attempt) -> str:
    """Why an attempt is not simply accepted: ``read timeout``, ``error 422``, …"""
    words = attempt.error_class or attempt.error_code
    return words.replace("_", " ") if words else "no answer" if attempt.status == AttemptStatus.AMBIGUOUS else ""


def in_a_batch(attempt: Attempt) -> str:
    """What to say of an attempt that shared its call with others; nothing where it went alone."""
    if attempt.batch is None:
        return ""
    return f"in one call with {number((attempt.together or 1) - 1, 'other')}"


def reference(row: Attempt | Duplicate | Event | Hold | HistoricMove | MailReply) -> str:
    """The name of a row of evidence, the same in verdicts and timelines."""
    return f"attempt {row.n}" if isinstance(row, Attempt) else f"{_KINDS[type(row)]} {row.id}"


_KINDS: dict[type, str] = {
    Duplicate: "duplicate", Event: "event", Hold: "hold", HistoricMove: "move", MailReply: "reply",
}  # fmt: skip
