"""Reading what providers send, whose every field may be missing, of another type, or hostile."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

_NOT_STORABLE = re.compile(r"[\x00\ud800-\udfff]")
_LATEST_SECOND, _LATEST_MILLISECOND = 10**11, 10**14


def lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers by their names in lower case."""
    return {name.lower(): value for name, value in headers.items()}


def json_object(body: bytes) -> dict[str, Any]:
    """The object that a body holds. Raises ValueError for anything else."""
    parsed = parsed_json(body)
    if not isinstance(parsed, dict):
        raise ValueError("the body is not a JSON object")
    return parsed


def json_list(body: bytes | str) -> list[Any]:
    """The list that a body holds. Raises ValueError for anything else."""
    parsed = parsed_json(body)
    if not isinstance(parsed, list):
        raise ValueError("the body is not a JSON list")
    return parsed


def parsed_json(body: bytes | str) -> Any:
    """What a body holds. Raises ValueError where it is no JSON.

    Events quote mail servers, whose answers are in any encoding and have any control character: that spoils the one
    text, never the whole body with all its other events.
    """
    text = body if isinstance(body, str) else body.decode(json.detect_encoding(body), "replace")
    try:
        return json.loads(text, strict=False, parse_int=_integer)
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None


def _integer(digits: str) -> int | float:
    """Python refuses to turn some thousands of digits into an integer; nobody's id or count has a hundred."""
    return int(digits) if len(digits) <= 100 else float(digits)


def mapping(value: object) -> Mapping[str, Any]:
    """An object as it is; anything else as an empty one."""
    return value if isinstance(value, dict) else {}


def first_object(value: object) -> Mapping[str, Any]:
    """The first of a list, if it is an object; an empty one otherwise."""
    return mapping(value[0]) if isinstance(value, list) and value else {}


def text(value: object) -> str | None:
    """Text that a database can hold, numbers as text; None for what is neither, or empty."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    try:
        return _NOT_STORABLE.sub("\N{REPLACEMENT CHARACTER}", str(value)).strip() or None
    except ValueError:  # an integer beyond what Python turns into text
        return None


def bare_address(value: object) -> str | None:
    """``Name <Address>`` or an address, as the bare address in lower case."""
    address = text(value)
    if address and address.endswith(">") and "<" in address:
        address = address[address.rindex("<") + 1 : -1].strip()
    return address.lower() if address and "@" in address else None


def only_recipient(to: object) -> str | None:
    """The address of the only recipient; of several, nobody knows which one an event is about."""
    if isinstance(to, list):
        return bare_address(to[0]) if len(to) == 1 else None
    return bare_address(to)


def named_values(value: object) -> dict[str, Any]:
    """An object, or a list of ``{"name", "value"}``, as one mapping by names in lower case."""
    if isinstance(value, list):
        pairs = [(entry.get("name"), entry.get("value")) for entry in value if isinstance(entry, dict)]
    else:
        pairs = list(mapping(value).items())
    return {name.lower(): content for name, content in pairs if isinstance(name, str)}


def instant(value: object) -> datetime | None:
    """An ISO 8601 time in UTC, to the millisecond; one without a zone is taken as UTC. None if it cannot be read."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value.strip())
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        return at.replace(microsecond=at.microsecond // 1000 * 1000)
    except (ValueError, OverflowError):
        return None


def epoch(value: object) -> datetime | None:
    """Seconds since 1970, as number or text, to the millisecond; None if it cannot be read.

    A number far beyond any date in seconds is one in milliseconds.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        seconds = Decimal(str(value).strip())
        if not seconds.is_finite() or abs(seconds) > _LATEST_MILLISECOND:
            return None
        milliseconds = int(seconds if abs(seconds) > _LATEST_SECOND else seconds * 1000)
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    except (ArithmeticError, ValueError):
        return None


def whole_number(value: object) -> int | None:
    """A small whole number, such as our attempt number."""
    digits = text(value) or ""
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 10 else None


def flag(value: object) -> bool | None:
    """True or false; None for anything else."""
    return value if isinstance(value, bool) else None


def compact(value: object) -> bytes:
    """A part of a parsed body as JSON again."""
    try:
        return json.dumps(value, separators=(",", ":")).encode()
    except (RecursionError, ValueError):
        return b""
