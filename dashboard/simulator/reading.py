"""Reading the JSON of send calls, and what events need that are not signed: the same for every vendor that has it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from dashboard.simulator.config import Webhooks
from dashboard.simulator.connection import Request
from dashboard.simulator.dialect import Error, Refused, bare_address, header

_ADDRESS = re.compile(r"[^\s@<>]+@[^\s@<>]+")


def json_body(request: Request, malformed: Error) -> Any:
    """What the body says. Raises Refused with ``malformed`` where it is no JSON."""
    try:
        return json.loads(request.body)
    except (ValueError, RecursionError):
        raise Refused(*malformed) from None


def json_object(request: Request, malformed: Error) -> dict[str, Any]:
    """The object that the body is. Raises Refused with ``malformed`` for anything else."""
    body = json_body(request, malformed)
    if not isinstance(body, dict):
        raise Refused(*malformed)
    return body


def is_address(value: Any) -> bool:
    """Whether this is a bare address."""
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def is_mailbox(value: Any) -> bool:
    """Whether this is an address, or ``Name <address>``."""
    return isinstance(value, str) and is_address(bare_address(value))


def texts(value: Any) -> dict[str, str]:
    """The texts of an object by their names; what is no text is left out."""
    found = value if isinstance(value, dict) else {}
    return {name: each for name, each in found.items() if isinstance(each, str)}


def our_id(metadata: Mapping[str, str], headers: Mapping[str, str]) -> str | None:
    """Our id: ``send_id`` in the metadata, else the header ``X-Send-Id``."""
    return metadata.get("send_id") or header(headers, "x-send-id")


def metadata_in(text: Any) -> dict[str, str]:
    """The texts of an object that a text holds as JSON; none for any other text."""
    try:
        return texts(json.loads(text)) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}


def bearer(request: Request) -> str:
    """The token of ``Authorization: Bearer`` (RFC 6750); empty without one."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def basic(request: Request) -> str:
    """``user:password`` of ``Authorization: Basic`` (RFC 7617); empty without them."""
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return ""
    try:
        return base64.b64decode(encoded.strip(), validate=True).decode()
    except ValueError:
        return ""


def password(webhooks: Webhooks) -> str:
    """``user:password`` with which a vendor that signs nothing calls; a secret without a colon is a password."""
    return webhooks.secret if ":" in webhooks.secret else f"simulator:{webhooks.secret}"


def unsigned(event_id: str, body: bytes, webhooks: Webhooks, now: float) -> dict[str, str]:
    """The headers of a delivery that nothing but a password makes authentic."""
    encoded = base64.b64encode(password(webhooks).encode()).decode()
    return {"content-type": "application/json", "authorization": f"Basic {encoded}"}
