"""The content of a message: rendered once, when recorded, frozen and encrypted: every attempt sends these bytes."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from dashboard.ledger.requests import Request
from dashboard.ledger.vault import Vault

_TEXT = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
_HTML = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=True)

_CONTROL = re.compile(r"[\x00-\x1f]")
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

MAX_RENDERED = 10_000_000
"""Characters of one rendered part."""


class CannotRender(Exception):
    """A variable is missing or the template is broken; the text says which, without any value."""


def rendered(message: Mapping[str, Any]) -> dict[str, Any]:
    """The message with its variables put in. Raises :class:`CannotRender`.

    Without ``variables`` the text is taken as it is, so that mail *about* templates needs no escaping.
    """
    content: dict[str, Any] = {name: message.get(name) for name in ("from", "reply_to", "subject", "text", "html")}
    content["headers"] = message.get("headers") or {}
    variables = message.get("variables")
    if variables is None:
        return content
    for name, html in (("subject", False), ("text", False), ("html", True)):
        if content[name]:
            content[name] = _render(content[name], html, variables)
    if _CONTROL.search(content["subject"]):
        raise CannotRender("the rendered subject has more than one line")
    return content


def _render(source: str, html: bool, variables: Mapping[str, Any]) -> str:
    try:
        template = _template(source, html)
        # What ``render`` does, without copying the environment's globals into a chain of maps for each message.
        context = template.new_context({**template.environment.globals, **variables}, shared=True)
        text: str = template.environment.concat(template.root_render_func(context))
    except TemplateError as error:
        raise CannotRender(error.message or type(error).__name__) from None
    except Exception as error:  # whatever a template may do with its variables
        raise CannotRender(f"{type(error).__name__} while rendering") from None
    if len(text) > MAX_RENDERED:
        raise CannotRender(f"a rendered part has more than {MAX_RENDERED} characters")
    return text


@functools.lru_cache(maxsize=512)
def _template(source: str, html: bool) -> Any:
    return (_HTML if html else _TEXT).from_string(source)


def sealed(vault: Vault, request: Request, content: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """The encrypted address and body of a request, as ``messages`` stores them."""
    row = request.send_id.bytes
    body = {**content, "name": request.recipient_name}
    return (
        vault.encrypt(request.address.encode(), row),
        vault.encrypt(_ENCODE(body).encode(), row),
    )


def opened(vault: Vault, send_id: UUID, body: bytes) -> dict[str, Any]:
    """A stored body in plain: from, reply_to, subject, text, html, headers, name. Raises vault.Unreadable."""
    content: dict[str, Any] = json.loads(vault.decrypt(body, send_id.bytes))
    return content
