"""The mail that every contestant is given: the same bytes, the same share of repeats."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

REPEATED = 10
"""One in this many keys is asked for twice."""


def asked(count: int) -> Iterator[int]:
    """Numbers 0 to ``count`` - 1, then a tenth of them once more, spread over the whole."""
    yield from range(count)
    for i in range(count // REPEATED):
        yield i * 7919 % count


def key(number: int) -> str:
    """The key of a mail."""
    return f"order-{number:09d}/receipt"


def recipient(number: int) -> str:
    """Whom it goes to."""
    return f"user{number % 50_021}@customer-{number % 977}.example"


def variables(number: int) -> dict[str, Any]:
    """What is put into its text."""
    return {"name": f"Customer {number}", "order": number, "total": f"{number % 900}.95", "currency": "EUR"}


SUBJECT = "Your order {{ order }} has shipped"
TEXT = "Dear {{ name }},\n\nyour order {{ order }} over {{ total }} {{ currency }} is on its way.\n"
