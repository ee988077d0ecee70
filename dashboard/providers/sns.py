"""Amazon SNS as the carrier of events: whose message it is, and how a subscription is confirmed.

Facts from the SNS Developer Guide (pages named beside them). A good signature only says that *some* topic sent the
message, and anybody may own one: what makes it ours is the topic's name on the account's list. A message's certificate,
and the address that confirms a subscription, are fetched from Amazon's own hosts and nowhere else.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA1, SHA256, HashAlgorithm
from cryptography.x509 import load_pem_x509_certificates

from dashboard.providers.base import CannotVerify, NotAuthentic, Unverifiable, WebhookRequest
from dashboard.providers.fetch import Unreachable
from dashboard.providers.reading import instant, json_object, text
from dashboard.providers.signatures import decoded, signed_by_one

NOTIFICATION = "Notification"
SUBSCRIPTION = "SubscriptionConfirmation"
SIGNED: Mapping[str, tuple[str, ...]] = {  # "Verifying the signatures of Amazon SNS messages"
    NOTIFICATION: ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    SUBSCRIPTION: ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
    "UnsubscribeConfirmation": ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
}
HASHES: Mapping[str, HashAlgorithm] = {"1": SHA1(), "2": SHA256()}  # noqa: S303 - version 1 is what topics start with
AMAZON = re.compile(r"sns\.[a-z0-9-]{3,40}\.amazonaws\.com(\.cn)?")

TOLERANCE_SECONDS = 300
LONGEST_DELAY_SECONDS = 2 * 3600
"""How old a message may be: the signed time is that of its publication, and SNS repeats for an hour at most ("Message
delivery retries")."""
MOST_CERTIFICATES = 50

Fetch = Callable[[str], bytes]


class Certificates:
    """The keys behind ``SigningCertURL``, each fetched once, for the threads of one process."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._known: dict[str, tuple[RSAPublicKey, ...]] = {}
        self._lock = threading.Lock()

    def keys(self, url: str) -> tuple[RSAPublicKey, ...]:
        """The keys there. Raises NotAuthentic for an address that is not Amazon's, CannotVerify where none is had."""
        if not is_amazons(url) or not urlsplit(url).path.endswith(".pem"):
            raise NotAuthentic("the certificate is not at an address of Amazon's")
        if url not in self._known:
            try:
                keys = rsa_keys(self._fetch(url))
            except (Unreachable, ValueError) as error:
                raise CannotVerify(f"the certificate cannot be had: {type(error).__name__}") from None
            with self._lock:
                if len(self._known) >= MOST_CERTIFICATES:
                    self._known.clear()
                self._known[url] = keys
        return self._known[url]


def rsa_keys(pem: bytes) -> tuple[RSAPublicKey, ...]:
    """The RSA keys of some certificates. Raises ValueError where there is none."""
    keys = tuple(key for one in load_pem_x509_certificates(pem) if isinstance(key := one.public_key(), RSAPublicKey))
    if not keys:
        raise ValueError("no certificate with an RSA key")
    return keys


def is_amazons(url: str) -> bool:
    """Whether an address is on a host of SNS itself, by https, without port or password."""
    try:
        parts = urlsplit(url)
        return parts.scheme == "https" and AMAZON.fullmatch(parts.netloc) is not None
    except ValueError:
        return False


def verified(request: WebhookRequest, *, topics: str, pinned: str, certificates: Certificates) -> Mapping[str, Any]:
    """The SNS message that the request holds, its signature and topic checked.

    ``topics``: the ARNs that count, apart by spaces. ``pinned``: PEM certificates that count instead of those that
    messages name, where it is not empty. Raises NotAuthentic with the reason.
    """
    try:
        message = json_object(request.body)
    except ValueError as error:
        raise Unverifiable(str(error)) from None
    kind = message.get("Type")
    if not isinstance(kind, str) or kind not in SIGNED:
        raise Unverifiable("the body is no SNS message; raw message delivery is not signed")  # "Raw message delivery"
    if not topics.split():
        raise CannotVerify("the account names no topic_arns")
    if message.get("TopicArn") not in topics.split():
        raise NotAuthentic("the topic is not one of the account's")
    if request.headers.get("x-amz-sns-message-type", kind) != kind:
        raise NotAuthentic("header and body name different types")
    _check_age(instant(message.get("Timestamp")), request.now)
    method = HASHES.get(text(message.get("SignatureVersion")) or "")
    if method is None:
        raise NotAuthentic("the signature is of an unknown version")
    signature = decoded(text(message.get("Signature")) or "")
    content = b"".join(_signed_text(message, SIGNED[kind]))
    keys = _pinned(pinned) if pinned else certificates.keys(text(message.get("SigningCertURL")) or "")
    if not signed_by_one(keys, lambda key: key.verify(signature, content, PKCS1v15(), method)):
        raise NotAuthentic("no signature matches")
    return message


def _check_age(at: datetime | None, now: datetime) -> None:
    if at is None or not -TOLERANCE_SECONDS <= (now - at).total_seconds() <= LONGEST_DELAY_SECONDS:
        raise NotAuthentic("the message is more than two hours old, in the future, or without a time")


def _signed_text(message: Mapping[str, Any], names: tuple[str, ...]) -> Iterator[bytes]:
    for name in names:
        value = message.get(name)
        if value is None and name == "Subject":
            continue
        if not isinstance(value, str):
            raise NotAuthentic(f"the signed {name} is missing")
        yield f"{name}\n{value}\n".encode(errors="replace")


def _pinned(pem: str) -> tuple[RSAPublicKey, ...]:
    try:
        return rsa_keys(pem.encode())
    except ValueError:
        raise CannotVerify("signing_certificate holds no certificate with an RSA key") from None


def confirmation(message: Mapping[str, Any], fetch: Fetch) -> Callable[[], None] | None:
    """What confirms the subscription that a verified message asks about, if it asks ("HTTP/S subscription").

    Raises NotAuthentic for an address that is not Amazon's.
    """
    if message.get("Type") != SUBSCRIPTION:
        return None
    url = text(message.get("SubscribeURL")) or ""
    if not is_amazons(url):
        raise NotAuthentic("the confirmation would go elsewhere than to Amazon")

    def confirm() -> None:
        try:
            fetch(url)
        except Unreachable as error:
            raise CannotVerify(f"the subscription could not be confirmed: {error}") from None

    return confirm
