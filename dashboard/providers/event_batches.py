"""Reading webhooks that carry several events, and events to which their provider gives no id."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dashboard.providers.base import ProviderEvent, Unreadable, Webhook
from dashboard.providers.reading import compact, mapping, parsed_json, text


def read_each(parts: Iterable[object], read: Callable[[Mapping[str, Any], bytes], ProviderEvent | None]) -> Webhook:
    """The events of a batch, and what of it could not be understood: a bad part spoils no good one.

    ``read`` gets one part, and the same as bytes. It gives None for what is to be ignored, and raises ValueError for
    what it cannot read.
    """
    events: list[ProviderEvent] = []
    unreadable: list[Unreadable] = []
    for part in parts:
        raw = compact(part)
        try:
            if not isinstance(part, dict):
                raise ValueError("the event is not an object")
            event = read(part, raw)
        except ValueError as error:
            unreadable.append(Unreadable(raw, str(error)))
        else:
            events += [event] if event is not None else []
    return Webhook(tuple(events), tuple(unreadable))


def listed(body: bytes) -> list[object]:
    """The events of a body that is one event, or a list of them. Raises ValueError for anything else."""
    parsed = parsed_json(body)
    if isinstance(parsed, dict):
        return [parsed]
    if not isinstance(parsed, list):
        raise ValueError("the body is neither an event nor a list of events")
    return parsed


def derived_id(part: bytes, *facts: str | None) -> str:
    """The id of an event whose provider gives it none: its facts, or, where one is missing, its content."""
    known = [text(fact) for fact in facts]
    if all(known):
        return ":".join(str(fact) for fact in known)
    return f"{known[0] or 'event'}:sha256:{hashlib.sha256(part).hexdigest()}"


def json_in_text(value: object) -> Mapping[str, Any]:
    """The object that a text holds as JSON, as some providers echo metadata; an empty one for anything else."""
    try:
        return mapping(parsed_json(value) if isinstance(value, str) else value)
    except ValueError:
        return {}
