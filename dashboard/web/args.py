"""Reading what came in the query or the form. What cannot be read is answered with 400 and a reason."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar

from flask import abort, request

Word = TypeVar("Word", bound=StrEnum)


def text(name: str, *, limit: int = 500) -> str | None:
    """A parameter of the query, trimmed; None where it is absent or empty."""
    value = request.args.get(name, "").strip()
    if len(value) > limit or "\0" in value:
        abort(400, f"{name} has more than {limit} characters, or one that no text has.")
    return value or None


def word(name: str, kind: type[Word]) -> Word | None:
    """A parameter that is one of a closed set of words."""
    return one_of(name, text(name), kind)


def one_of(name: str, value: str | None, kind: type[Word]) -> Word | None:
    """A value that is one of a closed set of words; None where it is empty."""
    if not value:
        return None
    try:
        return kind(value)
    except ValueError:
        abort(400, f"{name} is one of: {', '.join(kind)}.")


def moment(name: str) -> datetime | None:
    """A parameter that is a time with its zone, of the form ``2026-11-30T14:00Z``."""
    value = text(name)
    if value is None:
        return None
    try:
        at = datetime.fromisoformat(value)
        if at.tzinfo is None:
            raise ValueError
        return at.astimezone(UTC)
    except (ValueError, OverflowError):
        abort(400, f"{name} is a time with its zone, such as 2026-11-30T14:00Z.")


def number(name: str) -> int | None:
    """A parameter that is a whole number of the size of an id."""
    value = text(name)
    return None if value is None else whole(value, f"{name} is a whole number.")


def whole(text: str, otherwise: str) -> int:
    """A whole number of the size of an id; what is none is answered with 400 and these words."""
    if not text.isdecimal() or not text.isascii() or len(text) > 18:
        abort(400, otherwise)
    return int(text)


def posted(name: str, *, limit: int = 2_000) -> str:
    """A field of the form, trimmed."""
    value = request.form.get(name, "").strip()
    if len(value) > limit or "\0" in value:
        abort(400, f"{name} has more than {limit} characters, or one that no text has.")
    return value
