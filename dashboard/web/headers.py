"""What every answer says to the browser: run only what this app serves, keep no page, tell nobody where one was."""

from __future__ import annotations

from flask import Flask, request
from werkzeug.wrappers import Response

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "frame-src": "'self'",  # the preview of a message, which has a stricter policy of its own
    "form-action": "'self'",
    "frame-ancestors": "'none'",
    "base-uri": "'none'",
}

MESSAGE_POLICY = (
    # Somebody's mail: nothing runs, nothing is fetched (an image would count as an open), only its own look is kept.
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; base-uri 'none';"
    " frame-ancestors 'self'; sandbox"
)

A_YEAR = 31_536_000


def install(app: Flask) -> None:
    """Put the headers on every answer that does not bring its own."""
    app.after_request(_add)


def _add(response: Response) -> Response:
    policy = "; ".join(f"{name} {sources}" for name, sources in POLICY.items())
    response.headers.setdefault("Content-Security-Policy", policy)
    if "frame-ancestors 'self'" not in response.headers["Content-Security-Policy"]:
        response.headers.setdefault("X-Frame-Options", "DENY")
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    response.headers.setdefault("Referrer-Policy", "same-origin")
    response.headers.setdefault("Cross-Origin-Opener-Policy", "same-origin")
    response.headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
    response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
    if request.endpoint == "static" and response.status_code in (200, 206, 304):
        # The query carries the content's hash: what is behind such an address never changes.
        forever = f"public, max-age={A_YEAR}, immutable"
        response.headers["Cache-Control"] = forever if "v" in request.args else "no-cache"
    else:
        response.headers.setdefault("Cache-Control", "no-store")
    if request.is_secure:
        response.headers.setdefault("Strict-Transport-Security", f"max-age={A_YEAR}")
    return response
