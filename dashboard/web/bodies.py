"""The raw body of a request, whole or not at all."""

from __future__ import annotations

from flask import request
from werkzeug.exceptions import RequestEntityTooLarge


def raw_body(limit: int) -> bytes:
    """The bytes of the body, fewer than ``limit``. Raises RequestEntityTooLarge.

    A chunked body tells no length, and what is over the limit is then cut off without a word: a body that reaches the
    limit counts as one that was cut.
    """
    request.max_content_length = limit
    body = request.get_data(cache=False)
    if len(body) >= limit:
        raise RequestEntityTooLarge
    return body
