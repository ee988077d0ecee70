"""A page, or only the fragment of it that htmx asks for: the same view, the same data, the same template.

The only module that reads or writes the headers of htmx.
"""

from __future__ import annotations

from typing import Any

from flask import make_response, redirect, render_template, request
from htmx_flask import make_response as htmx_response
from werkzeug.wrappers import Response


def show(template: str, /, *, fragment: str | None = None, status: int = 200, **data: Any) -> Response:
    """``pages/<template>.html``, or ``fragments/<fragment>.html`` where htmx asked for a part (``in_part`` is true)."""
    in_part = fragment is not None and wants_fragment()
    name = f"fragments/{fragment}.html" if in_part else f"pages/{template}.html"
    response = make_response(render_template(name, in_part=in_part, **data), status)
    response.vary.add("HX-Request")
    return response


def wants_fragment() -> bool:
    """True where htmx asks for a part of a page; a page restored from history is asked for as a whole."""
    htmx = request.htmx  # type: ignore[attr-defined]
    return bool(htmx) and not htmx.history_restore_request and request.headers.get("HX-Request-Type") != "full"


def go(url: str) -> Response:
    """Go to another page: a redirect, told to htmx in its own way so that no page lands inside another."""
    if wants_fragment():
        return htmx_response("", 200, redirect=url)
    return redirect(url, 303)
