"""Reading what providers send, whose every field may be missing, of another type, or hostile."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_NOT_STORABLE = re.compile(r"[\x00\ud800-\udfff]")


def lower_names(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers by their names in lower case."""
    return {name.lower(): value for name, value in headers.items()}


def json_object(body: bytes) -> dict[str, Any]:
    """The object that a body holds. Raises ValueError for anything else."""
    try:
        parsed = json.loads(body)
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None
    if not isinstance(parsed, dict):
        raise ValueError("the body is not a JSON object")
    return parsed


def mapping(value: object) -> Mapping[str, Any]:
    """An object as it is; anything else as an empty one."""
    return value if isinstance(value, dict) else {}


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


def named_values(value: object) -> dict[str, Any]:
    """An object, or a list of ``{"name", "value"}``, as one mapping by names in lower case."""
    if isinstance(value, list):
        pairs = [(entry.get("name"), entry.get("value")) for entry in value if isinstance(entry, dict)]
    else:
        pairs = list(mapping(value).items())
    return {name.lower(): content for name, content in pairs if isinstance(name, str)}


def instant(value: object) -> datetime | None:
    """An ISO 8601 time in UTC; one without a zone is taken as UTC. None if it cannot be read."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value.strip())
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
