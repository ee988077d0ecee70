"""The Standard Webhooks signature, as Svix and others send it (github.com/standard-webhooks, docs.svix.com).

Signed is ``id.timestamp.body`` over the body's raw bytes, with HMAC-SHA256 under the bytes that follow ``whsec_``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Iterator

from dashboard.providers.base import CannotVerify, NotAuthentic, WebhookRequest
from dashboard.providers.signatures import matches

HEADER_FAMILIES = ("svix", "webhook")
TOLERANCE_SECONDS = 300
"""Both ways; the reference library still takes exactly five minutes."""


def verified_id(request: WebhookRequest, *, secrets: str) -> str:
    """The id of an authentic request, equal over its redeliveries. Raises NotAuthentic with the reason.

    ``secrets``: one secret, or several apart by spaces while one replaces another.
    """
    keys = tuple(_keys(secrets))
    if not keys:
        raise CannotVerify("the account has no usable webhook secret")
    headers, seconds = request.headers, request.now.timestamp()
    reason = "the signature headers are missing"
    for family in HEADER_FAMILIES:
        message_id, timestamp, given = (
            headers.get(f"{family}-{name}", "") for name in ("id", "timestamp", "signature")
        )
        if not (message_id and timestamp and given):
            continue
        if "." in message_id or not re.fullmatch(r"[0-9]{1,12}", timestamp):
            reason = "the id or the timestamp cannot be one"
        elif abs(seconds - int(timestamp)) > TOLERANCE_SECONDS:
            reason = "the timestamp is more than five minutes off"
        elif _matches(given, keys, f"{message_id}.{timestamp}.".encode(errors="replace") + request.body):
            return message_id
        else:
            reason = "no signature matches"
    raise NotAuthentic(reason)


def _matches(given: str, keys: tuple[bytes, ...], content: bytes) -> bool:
    """True if any ``v1`` signature fits any key; other versions never count."""
    right = [base64.b64encode(hmac.digest(key, content, hashlib.sha256)) for key in keys]
    return matches([part[3:] for part in given.split(" ") if part.startswith("v1,")], right)


def _keys(secrets: str) -> Iterator[bytes]:
    for secret in secrets.split():
        encoded = secret.removeprefix("whsec_")
        try:
            key = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
        except (binascii.Error, ValueError):
            continue
        if key:
            yield key
