"""DKIM: the public keys by which a receiver verifies a domain's signatures (RFC 6376).

Which key signs stands in the message alone; here the selectors have to be known beforehand.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from dataclasses import replace

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_der_public_key

from dashboard.providers.findings import Finding, Verdict
from dashboard.providers.names import Names, Unanswered

LEAST_BITS, GOOD_BITS = 1024, 2048
"""Of an RSA key: below the first, signatures count for nothing; from the second on it is strong (RFC 8301 §3.2)."""


def check_dkim(names: Names, domain: str, selectors: Sequence[str], *, title: str, each: bool) -> list[Finding]:
    """The keys of a domain under its selectors.

    ``each``: somebody named these selectors, so each has to be right; else they are the provider's usual ones, of which
    one is enough.
    """
    if not selectors:
        return [
            Finding(
                "dkim", "unknown",
                "Whether there is a key is not known, since its selector is not: set dkim_selectors to what stands"
                f" before ._domainkey in the record that {title} shows, or after s= in the DKIM-Signature of a mail.",
                about=domain, rule="RFC 6376 §3.1",
            )
        ]  # fmt: skip
    findings = [_check_key(names, domain, selector, title) for selector in selectors]
    usable = [one for one in findings if one.verdict in ("good", "weak")]
    unanswered = [one for one in findings if one.verdict == "unknown"]
    if each or usable or unanswered:
        return findings if each else usable or unanswered
    other = f"{findings[0].words} If {title} shows another selector for this domain, set dkim_selectors to it."
    return [replace(findings[0], words=other)]


def tags(record: str) -> dict[str, str]:
    """The tags of a record (§3.2), names in lower case; of one that stands twice, the first."""
    found: dict[str, str] = {}
    for part in record.split(";"):
        name, sign, value = part.partition("=")
        if sign:
            found.setdefault(name.strip().lower(), value.strip())
    return found


def _check_key(names: Names, domain: str, selector: str, title: str) -> Finding:
    name = f"{selector}._domainkey.{domain}"

    def say(verdict: Verdict, words: str, rule: str = "", publish: str = "") -> Finding:
        return Finding("dkim", verdict, words, about=domain, rule=rule, publish=publish)

    texts = names.texts(name)
    if isinstance(texts, Unanswered):
        return say("unknown", f"{name} could not be looked up: {texts.why}.")
    publish = f"{name}, as {title} shows it for this domain"
    if not texts:
        return say("wrong", f"There is no key at {name}: signatures cannot be verified.", "RFC 6376 §3.6.2", publish)
    if len(texts) > 1:
        return say(
            "wrong", f"{name} has {len(texts)} TXT records; which one counts is left open. Keep the newest.",
            "RFC 6376 §3.6.2.2",
        )  # fmt: skip
    record = tags(texts[0])
    if record.get("v", "DKIM1") != "DKIM1" or "p" not in record:
        return say("wrong", f"What stands at {name} is no key record.", "RFC 6376 §3.6.1", publish)
    if not record["p"]:
        return say("wrong", f"The key at {name} is revoked: p= is empty.", "RFC 6376 §3.6.1", publish)
    if "h" in record and "sha256" not in _words(record["h"]):
        return say(
            "wrong", f"The key at {name} allows no SHA-256, and nobody verifies others.", "RFC 8301 §3.1", publish
        )
    if "s" in record and not {"*", "email"} & _words(record["s"]):
        return say("wrong", f"The key at {name} is not for mail (s=).", "RFC 6376 §3.6.1", publish)
    bits = _bits(record.get("k", "rsa").lower(), record["p"])
    if bits is None:
        return say(
            "wrong", f"The key at {name} is damaged, or not of a kind that is known.", "RFC 6376 §3.6.1", publish
        )
    if bits < LEAST_BITS:
        return say("wrong", f"The key at {name} has {bits} bits, and is not believed.", "RFC 8301 §3.2", publish)
    if "y" in _words(record.get("t", "")):
        return say(
            "weak", f"The key at {name} says that it is being tested (t=y): a broken signature counts as none. Take t=y"
            " out.", "RFC 6376 §3.6.1",
        )  # fmt: skip
    if bits < GOOD_BITS:
        return say("weak", f"The key at {name} has {bits} bits; signers should have {GOOD_BITS}.", "RFC 8301 §3.2")
    return say("good", f"There is a key at {name}.")


def _words(value: str) -> set[str]:
    return {word.strip().lower() for word in value.split(":")}


def _bits(kind: str, encoded: str) -> int | None:
    """How long a key is, an elliptic one as RSA counts; None for one that cannot be read."""
    try:
        raw = base64.b64decode("".join(encoded.split()), validate=True)
        if kind == "ed25519":  # RFC 8463 §4.2: the bare 32 bytes
            return 3072 if len(raw) == 32 else None
        key = load_der_public_key(raw) if kind == "rsa" else None
    except (binascii.Error, ValueError, UnsupportedAlgorithm):
        return None
    return key.key_size if isinstance(key, RSAPublicKey) else None
