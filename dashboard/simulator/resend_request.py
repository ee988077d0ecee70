"""Reads and checks the body of a Resend send call, as "Send Email", "Send Batch Emails" and "Errors" describe it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from dashboard.simulator.dialect import Draft, Refused, bare_address, header

MAX_RECIPIENTS = 50
MAX_BATCH = 100
_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")
_ADDRESS = re.compile(r"[^\s@<>]+@[^\s@<>]+")


def read_email(body: bytes) -> Draft:
    """The message of ``POST /emails``. Raises Refused."""
    return _draft(_json(body))


def read_batch(body: bytes, *, permissive: bool) -> tuple[list[Draft], list[dict[str, Any]]]:
    """The messages of ``POST /emails/batch``, and the errors of those left out. Raises Refused.

    Strict (the vendor's default): one bad item refuses all.
    """
    items = _json(body)
    if not isinstance(items, list):
        raise Refused(422, "validation_error", "The body must be an array of emails.")
    if not 1 <= len(items) <= MAX_BATCH:
        raise Refused(422, "validation_error", f"A batch holds 1 to {MAX_BATCH} emails, not {len(items)}.")
    drafts, errors = [], []
    for index, item in enumerate(items):
        try:
            drafts.append(_draft(item, batch=True))
        except Refused as refused:
            if not permissive:
                raise
            errors.append({"index": index, "message": refused.error.message})
    return drafts, errors


def _draft(email: Any, *, batch: bool = False) -> Draft:
    if not isinstance(email, dict):
        raise Refused(422, "validation_error", "An email must be an object.")
    for name in ("from", "to", "subject"):
        if not email.get(name):
            raise Refused(422, "missing_required_field", f"Missing `{name}` field.")
    if not email.get("html") and not email.get("text"):
        raise Refused(422, "missing_required_field", "Missing `html` or `text` field.")
    if batch and (email.get("attachments") or email.get("scheduled_at")):
        raise Refused(422, "validation_error", "A batch takes neither attachments nor `scheduled_at`.")
    to = [email["to"]] if isinstance(email["to"], str) else email["to"]
    if not isinstance(to, list) or len(to) > MAX_RECIPIENTS or not all(_is_address(each) for each in to):
        raise Refused(422, "validation_error", f"Invalid `to` field: 1 to {MAX_RECIPIENTS} addresses are taken.")
    if not _is_address(email["from"]):
        raise Refused(422, "invalid_from_address", "Invalid `from` field.")
    for name in ("subject", "text", "html"):
        if email.get(name) is not None and not isinstance(email[name], str):
            raise Refused(422, "validation_error", f"The `{name}` field must be text.")
    tags, headers = _tags(email.get("tags") or []), _headers(email.get("headers") or {})
    return Draft(
        sender=email["from"],
        to=to,
        address=bare_address(to[0]),
        subject=email["subject"],
        text=email.get("text"),
        html=email.get("html"),
        metadata=tags,
        headers=headers,
        send_id=tags.get("send_id") or header(headers, "x-send-id"),
    )


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        raise Refused(400, "validation_error", "The body is not JSON.") from None


def _is_address(text: Any) -> bool:
    return isinstance(text, str) and _ADDRESS.fullmatch(bare_address(text)) is not None


def _tags(tags: Any) -> dict[str, str]:
    """``[{"name", "value"}]``: both of ASCII letters, digits, ``_`` and ``-``, at most 256 characters."""
    if not isinstance(tags, Sequence) or not all(isinstance(tag, Mapping) for tag in tags):
        raise Refused(422, "validation_error", "The `tags` field must be a list of name and value.")
    read = {}
    for tag in tags:
        name, value = tag.get("name"), tag.get("value")
        if not (isinstance(name, str) and _TAG.fullmatch(name) and isinstance(value, str) and _TAG.fullmatch(value)):
            raise Refused(400, "validation_error", "Tags take only ASCII letters, digits, underscores and dashes.")
        read[name] = value
    return read


def _headers(headers: Any) -> dict[str, str]:
    if not isinstance(headers, Mapping):
        raise Refused(422, "validation_error", "The `headers` field must be an object.")
    return {str(name): str(value) for name, value in headers.items()}
