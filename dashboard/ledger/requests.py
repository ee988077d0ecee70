"""A request for a send, as it comes from an outbox row, the API or a file, checked field by field."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import UUID

from dashboard import identity

MAX_TEXT = 512
"""Characters of a name, an id or a trigger."""

MAX_REQUEST = 10_000_000
"""Bytes of one request as JSON, wherever it comes from."""

_CONTROL = re.compile(r"[\x00-\x1f]")

RECIPIENT_FIELDS = frozenset({"id", "address", "name"})
TRIGGER_FIELDS = frozenset({"type", "id", "at", "endpoint"})
MESSAGE_FIELDS = frozenset(identity.SEEN_BY_RECIPIENT)
REQUEST_FIELDS = frozenset(
    {"workspace", "mailstream", "key", "recipient", "trigger", "message", "not_before", "metadata"}
)
CALLER_FIELDS = frozenset({"mailstream", "key", "recipient", "trigger"})


class BadRequest(ValueError):
    """A field that cannot be taken. ``field`` is its path, the text says what to do; neither repeats the value."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


class Request(NamedTuple):
    """One checked request. ``message`` is as it came; it is rendered when it is recorded.

    A tuple: one is made for every row of the outbox, and a frozen dataclass takes four times as long to make.
    """

    workspace_id: UUID
    mailstream: str
    key: str
    send_id: UUID
    recipient_id: str
    address: str
    trigger_type: str
    trigger_id: str
    message: Mapping[str, Any]
    fingerprint: bytes
    source: str
    asked_at: datetime
    triggered_at: datetime | None = None
    recipient_name: str | None = None
    not_before: datetime | None = None
    metadata: Mapping[str, str] | None = None
    outbox_id: UUID | None = None
    endpoint: str | None = None
    """Where the trigger came in: a webhook address, a queue, a job of the producer's own."""


def read_request(
    raw: object,
    *,
    workspace_id: UUID,
    source: str,
    asked_at: datetime,
    outbox_id: UUID | None = None,
) -> Request:
    """Check one request. Raises :class:`BadRequest` for the first field that cannot be taken.

    ``outbox_id``: of the outbox row that it was read from. What a ``jsonb`` column held can be stored again.
    """
    fields = _object(raw, "request", REQUEST_FIELDS)
    if outbox_id is None:
        _check_storable(fields)
    about = _about(fields, workspace_id)
    _optional_text(fields, "workspace", "workspace")
    recipient = fields["recipient"]
    message = _message(fields.get("message"))
    address = _address(recipient)
    try:
        fingerprint = identity.fingerprint(message, about["recipient_id"])
    except ValueError as error:
        raise BadRequest("message", str(error)) from None
    return Request(
        **about,
        address=address,
        recipient_name=_optional_text(recipient, "name", "recipient.name"),
        message=message,
        fingerprint=fingerprint,
        not_before=_time(fields.get("not_before"), "not_before"),
        metadata=_text_map(fields.get("metadata"), "metadata"),
        source=source,
        asked_at=asked_at,
        outbox_id=outbox_id,
    )


def read_outbox_text(text: str, *, workspace_id: UUID, source: str, asked_at: datetime, outbox_id: UUID) -> Request:
    """Read what stood in the outbox. Raises :class:`BadRequest`."""
    if len(text) > MAX_REQUEST:  # put in past ``enqueue``, which refuses it
        raise BadRequest("request", f"has {len(text)} characters; at most {MAX_REQUEST} are taken")
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raise BadRequest("request", "holds a number, or a depth, that cannot be read") from None
    return read_request(raw, workspace_id=workspace_id, source=source, asked_at=asked_at, outbox_id=outbox_id)


def read_caller_request(raw: object, *, workspace_id: UUID, fingerprint: bytes, asked_at: datetime) -> Request:
    """Check a request of somebody who makes the provider call himself: without a message, and perhaps an address.

    Raises :class:`BadRequest`.
    """
    fields = _object(raw, "request", CALLER_FIELDS)
    _check_storable(fields)
    about = _about(fields, workspace_id)
    address = "" if fields["recipient"].get("address") is None else _address(fields["recipient"])
    return Request(**about, address=address, message={}, fingerprint=fingerprint, source="queue", asked_at=asked_at)


def _about(fields: Mapping[str, Any], workspace_id: UUID) -> dict[str, Any]:
    """What every request says: which email it is, for whom, and what asked for it."""
    try:
        key = identity.check_key(fields.get("key"))
    except identity.BadKey as error:
        raise BadRequest("key", str(error)) from None
    mailstream = _text(fields, "mailstream")
    recipient = _object(fields.get("recipient"), "recipient", RECIPIENT_FIELDS)
    trigger = _object(fields.get("trigger"), "trigger", TRIGGER_FIELDS)
    return {
        "workspace_id": workspace_id,
        "mailstream": mailstream,
        "key": key,
        "send_id": identity.send_id(workspace_id, mailstream, key),
        "recipient_id": _text(recipient, "id", "recipient.id"),
        "trigger_type": _text(trigger, "type", "trigger.type"),
        "trigger_id": _text(trigger, "id", "trigger.id"),
        "triggered_at": _time(trigger.get("at"), "trigger.at"),
        "endpoint": _endpoint(trigger),
    }


def _endpoint(trigger: Mapping[str, Any]) -> str | None:
    endpoint = _optional_text(trigger, "endpoint", "trigger.endpoint")
    if endpoint is not None and identity.holds_address(endpoint):
        raise BadRequest("trigger.endpoint", "contains an email address; leave it out")
    return endpoint


def _address(recipient: Mapping[str, Any]) -> str:
    address = _text(recipient, "address", "recipient.address")
    try:
        identity.normal_address(address)
    except identity.BadAddress as error:
        raise BadRequest("recipient.address", str(error)) from None
    return address.strip()


def storable(text: str) -> bool:
    """False for what neither the database nor a mail can carry: NUL, and half of a surrogate pair."""
    return "\0" not in text and text.encode(errors="replace").decode() == text


def _check_storable(raw: object) -> None:
    """Refuse what neither the database nor a mail can carry. A look at the whole; a closer one only where it fails."""
    try:
        text = _ENCODE(raw)
        text.encode()
        if "\\u0000" not in text:
            return
    except (TypeError, ValueError, RecursionError):
        pass
    _check_characters(raw)


_ENCODE = json.JSONEncoder(ensure_ascii=False).encode


def _check_characters(raw: object, path: str = "") -> None:
    """Refuse what neither the database nor a mail can carry, and say where it stands."""
    try:
        match raw:
            case str():
                if "\0" in raw:
                    raise BadRequest(path, "must not contain a NUL character")
                if not raw.isascii():
                    raw.encode()
            case dict():
                for name, value in raw.items():
                    _check_characters(name, "the name of a field")
                    _check_characters(value, f"{path}.{name}"[-60:].lstrip("."))
            case list() | tuple():
                for value in raw:
                    _check_characters(value, path)
    except UnicodeEncodeError:
        raise BadRequest(path, "contains half of a surrogate pair: send valid Unicode") from None
    except RecursionError:
        raise BadRequest("request", "is nested too deeply") from None


def _message(raw: object) -> dict[str, Any]:
    message = _object(raw, "message", MESSAGE_FIELDS)
    _text(message, "from", "message.from", limit=1000)
    _text(message, "subject", "message.subject", limit=2000)
    for name in ("text", "html", "reply_to", "template", "revision"):
        if message.get(name) is not None and not isinstance(message[name], str):
            raise BadRequest(f"message.{name}", "must be text")
    if not message.get("text") and not message.get("html"):
        raise BadRequest("message", "give text, html, or both")
    for name in ("from", "subject", "reply_to"):
        if _CONTROL.search(message.get(name) or ""):
            raise BadRequest(f"message.{name}", "must be one line without control characters")
    _text_map(message.get("headers"), "message.headers")
    if message.get("variables") is not None and not isinstance(message["variables"], dict):
        raise BadRequest("message.variables", "must be an object")
    if message.get("attachments"):
        raise BadRequest("message.attachments", "attachments are not taken yet: put a link into the message")
    return message


def _object(raw: object, path: str, known: frozenset[str]) -> dict[str, Any]:
    if not isinstance(raw, dict):
        raise BadRequest(path, "is needed, as an object" if raw is None else "must be an object")
    if not raw.keys() <= known:
        name = str(min(raw.keys() - known, key=str))
        place = "" if path == "request" else f"{path}."
        raise BadRequest(f"{place}{name[:60]}", f"is not known here; known are {', '.join(sorted(known))}")
    return raw


def _text(fields: Mapping[str, Any], name: str, path: str | None = None, *, limit: int = MAX_TEXT) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value.strip():
        raise BadRequest(path or name, "is needed, as text")
    if len(value) > limit:
        raise BadRequest(path or name, f"has {len(value)} characters; at most {limit} are allowed")
    return value


def _optional_text(fields: Mapping[str, Any], name: str, path: str) -> str | None:
    return None if fields.get(name) in (None, "") else _text(fields, name, path)


def _text_map(raw: object, path: str) -> dict[str, str]:
    if raw is None:
        return {}
    values = raw if isinstance(raw, dict) else None
    if values is None or not all(isinstance(value, str) for value in values.values()):
        raise BadRequest(path, "must be an object whose values are text")
    for name, value in values.items():
        if "\0" in name + value or len(name) > MAX_TEXT or len(value) > 4000:
            raise BadRequest(f"{path}.{name[:60]}", "is too long or contains a NUL character")
    return values


def _time(raw: object, path: str) -> datetime | None:
    if raw is None:
        return None
    try:
        time = datetime.fromisoformat(raw) if isinstance(raw, str) else None
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise BadRequest(path, "must be an ISO 8601 time with a zone, such as 2026-11-30T09:00:00Z")
    try:
        return time.astimezone(UTC)
    except OverflowError:
        raise BadRequest(path, "lies outside the calendar") from None
