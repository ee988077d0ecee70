"""Providers as they report: requests to a webhook, signed as each provider signs them."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.hashes import SHA1, SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import NameOID

from dashboard.providers.base import WebhookRequest

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)
SECONDS = int(NOW.timestamp())
TOPIC = "arn:aws:sns:eu-west-1:123456789012:events"
CERTIFICATE_URL = "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-1.pem"

SENDGRID_KEY, OTHER_SENDGRID_KEY = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
SNS_KEY, OTHER_SNS_KEY = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))


def request(body: bytes, headers: dict[str, str] | None = None, **more: Any) -> WebhookRequest:
    lower = {name.lower(): value for name, value in (headers or {}).items()}
    return WebhookRequest(headers=lower, body=body, now=NOW, **more)


def as_json(value: object) -> bytes:
    return json.dumps(value).encode()


# ── SendGrid ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def shown(key: ec.EllipticCurvePrivateKey) -> str:
    """A verification key as SendGrid shows it."""
    return base64.b64encode(key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).decode()


def from_sendgrid(body: bytes, *, key: ec.EllipticCurvePrivateKey = SENDGRID_KEY, age: int = 0) -> WebhookRequest:
    timestamp = str(SECONDS - age)
    signature = base64.b64encode(key.sign(timestamp.encode() + body, ec.ECDSA(SHA256()))).decode()
    prefix = "X-Twilio-Email-Event-Webhook"
    return request(body, {f"{prefix}-Signature": signature, f"{prefix}-Timestamp": timestamp})


# ── Postmark ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def basic(credentials: str) -> str:
    return "Basic " + base64.b64encode(credentials.encode()).decode()


def from_postmark(body: bytes, *, credentials: str = "user:one", remote: str | None = None) -> WebhookRequest:
    return request(body, {"Authorization": basic(credentials)}, remote_address=remote)


# ── Mailgun ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def mailgun_signature(*, key: str = "signing-key", age: int = 0, token: str = "t" * 50) -> dict[str, str]:
    timestamp = str(SECONDS - age)
    signature = hmac.new(key.encode(), (timestamp + token).encode(), hashlib.sha256).hexdigest()
    return {"timestamp": timestamp, "token": token, "signature": signature}


def from_mailgun(event: object, **how: Any) -> WebhookRequest:
    return request(as_json({"signature": mailgun_signature(**how), "event-data": event}))


# ── Amazon SNS ───────────────────────────────────────────────────────────────────────────────────────────────────────


def certificate(key: rsa.RSAPrivateKey) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(NOW - dt.timedelta(days=1))
        .not_valid_after(NOW + dt.timedelta(days=1))
    )
    return builder.sign(key, SHA256()).public_bytes(Encoding.PEM)


CERTIFICATE, OTHER_CERTIFICATE = certificate(SNS_KEY), certificate(OTHER_SNS_KEY)


def sns_message(message: str, **changes: Any) -> dict[str, Any]:
    """An SNS message, not yet signed."""
    stamp = NOW.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {
        "Type": "Notification", "MessageId": "sns-1", "TopicArn": TOPIC, "Message": message, "Timestamp": stamp,
        "SignatureVersion": "2", "SigningCertURL": CERTIFICATE_URL,
    } | changes  # fmt: skip


def from_sns(message: dict[str, Any], *, key: rsa.RSAPrivateKey = SNS_KEY, header: str | None = None) -> WebhookRequest:
    names = ["Message", "MessageId", "Subject", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
    content = "".join(f"{name}\n{message[name]}\n" for name in names if name in message)
    method = SHA1() if message["SignatureVersion"] == "1" else SHA256()
    signature = base64.b64encode(key.sign(content.encode(), PKCS1v15(), method)).decode()
    kind = header or str(message["Type"])
    return request(as_json(message | {"Signature": signature}), {"x-amz-sns-message-type": kind})
