"""Recipients that choose their own story, as vendors' sandboxes have them.

The words stand before the ``+`` of the local part, several joined by ``-``: ``bounce+ada@example.test``,
``timeout-quiet+42@example.test``. A local part with any other word in it is an ordinary recipient.

| word | HTTP send call | SMTP | events afterwards (HTTP only) |
|---|---|---|---|
| ``timeout`` | accepted, never answered (first time) | the same after the final dot | as usual |
| ``lost`` | accepted, then reset (first time) | the same after the final dot | as usual |
| ``silent`` | never answered, nothing accepted (first time) | the same after the final dot | none of that call |
| ``reset`` | reset, nothing accepted (first time) | the same after the final dot | none of that call |
| ``error`` | 500, nothing accepted (first time) | 451 after the final dot | none of that call |
| ``busy`` | 429 with Retry-After (first time) | 421 after the final dot | none of that call |
| ``slow`` | answered after ``slow_ms`` (each time) | the same after the final dot | as usual |
| ``garbage`` | accepted, 200 with an HTML page (first time) | accepted, unreadable reply | as usual |
| ``reject`` | refused for good (each time) | 550 at RCPT (each time) | none |
| ``greylist`` | – | 451 at RCPT (first time) | – |
| ``bounce`` ``softbounce`` | – | – | sent, bounced (for good, or given up) |
| ``suppressed`` ``failed`` | – | – | suppressed; failed |
| ``complain`` | – | – | sent, delivered, complained |
| ``delay`` | – | – | sent, delivery delayed, delivered |
| ``open`` ``click`` | – | – | sent, delivered, opened (and clicked) |
| ``double`` | – | – | sent, delivered, delivered again |
| ``quiet`` | – | – | none at all |

"First time" is the first call with this message identity (send id, else idempotency key, else content); for
``greylist`` the first RCPT of this address.
"""

from __future__ import annotations

from dataclasses import fields

from dashboard.simulator.config import Fates

_HTTP = {
    "timeout": "accept_then_timeout",
    "lost": "reset_after",
    "silent": "timeout_before",
    "reset": "reset_before",
    "error": "http_500_not_taken",
    "busy": "http_429",
    "slow": "slow",
    "garbage": "garbage",
}
_SMTP = _HTTP | {
    "lost": "drop_after_dot_taken",
    "reset": "drop_after_dot_not_taken",
    "error": "reply_451",
    "busy": "reply_421",
}
_FATES = {each.name for each in fields(Fates)}
_WORDS = _HTTP.keys() | _FATES | {"reject", "greylist"}


def words_of(address: str) -> frozenset[str]:
    """The words that this bare address is made of; empty for an ordinary one."""
    words = frozenset(address.rpartition("@")[0].partition("+")[0].lower().split("-"))
    return words if words <= _WORDS else frozenset()


def http_fault(words: frozenset[str], occurrence: int) -> str | None:
    """The field of `HttpFaults` that the words ask for on this occurrence, counted from 1."""
    return _fault(_HTTP, words, occurrence)


def smtp_fault(words: frozenset[str], occurrence: int) -> str | None:
    """The field of `SmtpFaults` that the words ask for on this occurrence, counted from 1."""
    return _fault(_SMTP, words, occurrence)


def fate(words: frozenset[str]) -> str | None:
    """The field of `Fates` that the words ask for; ``quiet`` goes before all others."""
    asked = words & _FATES
    return "quiet" if "quiet" in asked else next(iter(sorted(asked)), None)


def _fault(table: dict[str, str], words: frozenset[str], occurrence: int) -> str | None:
    for word, fault in table.items():
        if word in words and (occurrence == 1 or word == "slow"):
            return fault
    return None
