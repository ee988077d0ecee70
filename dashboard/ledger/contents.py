"""The content of a message: rendered once, when recorded, frozen and encrypted: every attempt sends these bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from dashboard.ledger.rendering import CannotRender, render
from dashboard.ledger.requests import Request
from dashboard.ledger.vault import Vault

_CONTROL = re.compile(r"[\x00-\x1f]")
_ENCODE = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode
_DECODE = json.JSONDecoder().decode


def rendered(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with its variables put in. Raises :class:`~dashboard.ledger.rendering.CannotRender`.

    Without ``variables`` the text is taken as it is, so that mail *about* templates needs no escaping.
    """
    content: dict[str, Any] = {name: message.get(name) for name in ("from", "reply_to", "subject", "text", "html")}
    content["headers"] = message.get("headers") or {}
    variables = message.get("variables")
    if variables is None:
        return content
    for name in ("subject", "text", "html"):
        if content[name]:
            content[name] = render(content[name], variables, html=name == "html")
    if _CONTROL.search(content["subject"]):
        raise CannotRender("the rendered subject has more than one line")
    return content


def sealed(
    vault: Vault, request: Request, content: Mapping[str, Any] | None, reply_domain: str | None = None
) -> bytes | None:
    """The encrypted body of a request, as ``messages`` stores it; None where the caller keeps its own content.

    Where the mailstream takes replies at a domain, a message without a Reply-To of its own gets the address of its send
    there. It is put in here, and frozen with the rest: every attempt has the same bytes, also when the mailstream is
    changed or a key is rotated in between. The fingerprint is over what was asked for, so it says nothing of it.
    """
    if content is None:
        return None
    more: dict[str, Any] = {"name": request.recipient_name}
    if reply_domain and not content.get("reply_to"):
        more["reply_to"] = vault.reply_address(request.send_id, reply_domain)
    return vault.encrypt(_ENCODE({**content, **more}).encode(), request.send_id.bytes)


def opened(vault: Vault, send_id: UUID, body: bytes) -> dict[str, Any]:
    """A stored body in plain: from, reply_to, subject, text, html, headers, name. Raises vault.Unreadable."""
    content: dict[str, Any] = _DECODE(vault.decrypt(body, send_id.bytes).decode())
    return content
