"""Reading a small public document over HTTPS, once: no redirects, no retries, no proxies from the environment."""

from __future__ import annotations

import ssl

import urllib3

LARGEST = 1 << 16
SECONDS = 5.0
"""To connect, and to read: whoever waits for this has a provider waiting."""


class Unreachable(Exception):
    """There was no such answer as was wanted."""


def fetch(url: str) -> bytes:
    """The body of a 200. Raises :class:`Unreachable` for anything else. The caller has judged the address."""
    with urllib3.PoolManager(ssl_context=ssl.create_default_context(), timeout=SECONDS, retries=False) as pool:
        try:
            answer = pool.request("GET", url, redirect=False, preload_content=False)
            body = answer.read(LARGEST + 1)
            answer.close()
        except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
            raise Unreachable(type(error).__name__) from None
    if answer.status != 200 or len(body) > LARGEST:
        raise Unreachable(f"HTTP {answer.status}")
    return body
