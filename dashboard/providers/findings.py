"""The answer to one question about an account."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["good", "weak", "wrong", "unknown"]
"""*weak*: it works, and protects less than it could. *unknown*: nobody answered, or nobody but the provider can."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question."""

    what: str
    verdict: Verdict
    words: str
    """What was seen, and what to do about it."""
    about: str = ""
    """The domain, where it is about one."""
    rule: str = ""
    """Which rule says so, such as ``RFC 7208 §4.5``."""
    publish: str = ""
    """The DNS record that would mend it."""
