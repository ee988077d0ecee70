"""Checks what Amazon calls Signature Version 4, from "Create a signed AWS API request" (IAM User Guide)."""

from __future__ import annotations

import hashlib
import hmac
import re
from datetime import UTC, datetime
from urllib.parse import parse_qsl, quote

from dashboard.simulator.connection import Request

ALGORITHM = "AWS4-HMAC-SHA256"
TOLERANCE_SECONDS = 300
_PART = re.compile(r"(Credential|SignedHeaders|Signature)=([^,\s]+)")
_SCOPE = re.compile(r"(?P<key>[^/]+)/(?P<day>\d{8})/(?P<region>[a-z0-9-]+)/(?P<service>[a-z0-9-]+)/aws4_request")


class Unsigned(Exception):
    """The request is not signed as it should be: the name of Amazon's error, and why."""


def check_signature(request: Request, *, service: str, key: tuple[str, str] | None, now: float) -> None:
    """Raise Unsigned unless the request is signed for this service.

    ``key``: the id and the secret that count. Without them everything but the signature itself is checked.
    """
    told = request.headers.get("authorization", "")
    if not told:
        raise Unsigned("MissingAuthenticationTokenException")
    parts = dict(_PART.findall(told))
    scope = _SCOPE.fullmatch(parts.get("Credential", ""))
    if not told.startswith(f"{ALGORITHM} ") or len(parts) != 3 or scope is None or scope["service"] != service:
        raise Unsigned("IncompleteSignatureException")
    names = parts["SignedHeaders"].split(";")
    if "host" not in names or "x-amz-date" not in names or names != sorted(names):
        raise Unsigned("IncompleteSignatureException")
    stamp = request.headers.get("x-amz-date", "")
    try:
        at = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise Unsigned("IncompleteSignatureException") from None
    if abs(now - at) > TOLERANCE_SECONDS or not stamp.startswith(scope["day"]):
        raise Unsigned("InvalidSignatureException")
    if key is None:
        return
    if scope["key"] != key[0]:
        raise Unsigned("UnrecognizedClientException")
    content = "\n".join([ALGORITHM, stamp, parts["Credential"].partition("/")[2], _digest(_canonical(request, names))])
    secret = f"AWS4{key[1]}".encode()
    for step in (scope["day"], scope["region"], service, "aws4_request", content):
        secret = hmac.digest(secret, step.encode(), "sha256")
    if not hmac.compare_digest(secret.hex(), parts["Signature"]):
        raise Unsigned("InvalidSignatureException")


def _canonical(request: Request, names: list[str]) -> str:
    query = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in parse_qsl(request.query, keep_blank_values=True)
    )
    headers = "".join(f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in names)
    return "\n".join(
        [
            request.method,
            quote(request.path, safe="/-_.~"),
            "&".join(f"{name}={value}" for name, value in query),
            headers,
            ";".join(names),
            hashlib.sha256(request.body).hexdigest(),
        ]
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
