"""Checking signatures. Every provider signs something of its own; what makes a signature count is the same for all.

An account may hold several secrets or keys, apart by spaces, while one replaces another: any of them will do.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Callable, Iterable
from typing import TypeVar

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_der_public_key

from dashboard.providers.base import CannotVerify, NotAuthentic

Key = TypeVar("Key")


def secrets_of(written: str) -> list[bytes]:
    """The account's secrets. Raises CannotVerify where it has none."""
    secrets = [secret.encode(errors="replace") for secret in written.split()]
    if not secrets:
        raise CannotVerify("the account has no webhook secret")
    return secrets


def matches(given: Iterable[str], right: Iterable[bytes]) -> bool:
    """Whether one of the signatures given is one of the right ones. As bytes: what is given may be any text."""
    expected = list(right)
    return any(hmac.compare_digest(one.encode(errors="replace"), each) for one in given for each in expected)


def public_keys(written: str, kind: type[Key]) -> list[Key]:
    """The account's public keys, each the base64 of its DER form. Raises CannotVerify where none is of this kind."""
    keys = [key for encoded in written.split() if isinstance(key := _public_key(encoded), kind)]
    if not keys:
        raise CannotVerify("the account has no usable webhook key")
    return keys


def _public_key(encoded: str) -> object:
    try:
        return load_der_public_key(base64.b64decode(encoded, validate=True))
    except (binascii.Error, ValueError, UnsupportedAlgorithm):
        return None


def decoded(signature: str) -> bytes:
    """A signature that travels as base64. Raises NotAuthentic for what is none."""
    try:
        return base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        raise NotAuthentic("the signature is not base64") from None


def signed_by_one(keys: Iterable[Key], verify: Callable[[Key], None]) -> bool:
    """Whether ``verify`` passes for one of the keys, which is to raise no InvalidSignature."""
    for key in keys:
        try:
            verify(key)
        except (InvalidSignature, ValueError):
            continue
        return True
    return False
