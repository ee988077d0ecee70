"""Seven providers that speak JSON over HTTP, as their tests meet them: what they report, and how they sign it."""

from __future__ import annotations

import base64
import functools
import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote_to_bytes, urlencode

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dashboard.providers import read_webhook
from dashboard.providers.base import ProviderEvent, Webhook
from tests.providers.rig import sample

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
URL = "https://hooks.example.com/webhooks/one"
SECRET, OTHER_SECRET = "user:a-secret-of-this-account", "user:another-secret"

Signing = Callable[[bytes, str], Mapping[str, str]]
"""(body, secret) → the headers that make the request authentic."""


@functools.cache
def rsa_key(secret: str) -> rsa.RSAPrivateKey:
    """One key a secret."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def public_key(secret: str) -> str:
    """The public half, as Postal shows it."""
    der = rsa_key(secret).public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return base64.b64encode(der).decode()


def rsa_signature(body: bytes, secret: str, algorithm: hashes.HashAlgorithm) -> str:
    return base64.b64encode(rsa_key(secret).sign(body, PKCS1v15(), algorithm)).decode()


def usesend_headers(body: bytes, secret: str, *, age: float = 0) -> Mapping[str, str]:
    timestamp = str(int((NOW.timestamp() - age) * 1000))
    signature = hmac.digest(secret.encode(), f"{timestamp}.".encode() + body, "sha256").hex()
    return {"X-UseSend-Timestamp": timestamp, "X-UseSend-Signature": f"v1={signature}"}


def postal_headers(body: bytes, secret: str) -> Mapping[str, str]:
    return {"X-Postal-Signature-256": rsa_signature(body, secret, hashes.SHA256())}


def mandrill_headers(body: bytes, secret: str, *, content: bytes = b"") -> Mapping[str, str]:
    fields = content or b"mandrill_events" + form_value(body)
    signature = hmac.digest(secret.encode(), URL.encode() + fields, hashlib.sha1)
    return {"X-Mandrill-Signature": base64.b64encode(signature).decode()}


def form_value(body: bytes) -> bytes:
    """What the only field of a form says."""
    return unquote_to_bytes(body.partition(b"=")[2].replace(b"+", b" "))


def basic_headers(_: bytes, secret: str) -> Mapping[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(secret.encode()).decode()}


def mailtrap_headers(body: bytes, secret: str) -> Mapping[str, str]:
    return {"Mailtrap-Signature": hmac.digest(secret.encode(), body, "sha256").hex()}


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


def as_form(value: object) -> bytes:
    return urlencode({"mandrill_events": json.dumps(value)}).encode()


def is_storable(told: ProviderEvent) -> bool:
    """Whether a database can hold what was read."""
    texts = (told.event_id, told.send_id, told.reason, told.recipient, told.url, told.provider_message_id)
    return all("\0" not in text and text.encode() for text in texts if text is not None) and bool(told.event_id)


@dataclass(frozen=True)
class Api:
    """One provider under test."""

    name: str
    signing: Signing
    good: str
    """The sample with an event that every parser must know."""
    secret_of: Callable[[str], str] = str
    written: Callable[[object], bytes] = as_json
    """The body of a request that says this."""
    alone: Callable[[Any], Any] = lambda body: body
    """The one event within what a sample's body says."""
    batch: Callable[[list[Any]], Any] | None = None
    """What a request with several events says; None where there is always one."""

    @property
    def event(self) -> Any:
        """The sample's event."""
        recorded = sample(self.name, self.good)
        if "body_text" in recorded:
            return json.loads(form_value(recorded["body_text"].encode()))[0]
        return self.alone(recorded["body"])

    @property
    def event_id(self) -> str:
        """The id that its sample expects."""
        return str(sample(self.name, "expected.json")[self.good][0]["event_id"])

    def read(self, body: bytes, *, signed_with: str = SECRET, secrets: str | None = None, **more: str) -> Webhook:
        """What a request says that this body makes authentic."""
        trusted = " ".join(map(self.secret_of, (secrets or SECRET).split()))
        headers = self.signing(body, signed_with)
        return read_webhook(self.name, headers, body, {"webhook_secret": trusted, **more}, NOW, url=URL)

    def parts(self, said: Any) -> list[Any]:
        """The events within what a request says."""
        if isinstance(said, dict) and isinstance(said.get("events"), list):
            return list(said["events"])
        return list(said) if isinstance(said, list) else [said]

    def one(self, event: object) -> bytes:
        """A request with this event."""
        return self.written(event if self.batch is None else self.batch([event]))


APIS = (
    Api("usesend", usesend_headers, "webhook_delivered.json"),
    Api("postal", postal_headers, "webhook_sent.json", secret_of=public_key),
    Api("brevo", basic_headers, "webhook_delivered.json", batch=list),
    Api("sparkpost", basic_headers, "webhook_bounce_hard.json", alone=lambda body: body[0], batch=list),
    Api("mailjet", basic_headers, "webhook_sent_array.json", alone=lambda body: body[0], batch=list),
    Api("mandrill", mandrill_headers, "webhook_hard_bounce.json", written=as_form, batch=list),
    Api(
        "mailtrap",
        mailtrap_headers,
        "webhook_bounce.json",
        alone=lambda body: body["events"][0],
        batch=lambda events: {"events": events},
    ),
)
NAMES = [api.name for api in APIS]
