"""Amazon SNS as the carrier of SES's events: signed envelopes, and a subscription that has to be confirmed. From the
SNS Developer Guide: Verifying the signatures of Amazon SNS messages, HTTP/S subscription, Message delivery retries.

Every process has a topic's key of its own, whose certificate it serves under the path that messages name; the host in
them is Amazon's, as a receiver must demand.
"""

from __future__ import annotations

import base64
import datetime
import functools
import hashlib
import json
import secrets
import uuid
from collections.abc import Mapping
from urllib.parse import parse_qs, urlencode

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from dashboard.simulator.connection import Answer, Request
from dashboard.simulator.dialect import Account, Greeting
from dashboard.simulator.events import iso

TOPIC = "arn:aws:sns:eu-west-1:123456789012:ses-events"
HOST = "https://sns.eu-west-1.amazonaws.com"
RETRY_AFTER_SECONDS = (20, 20, 20)
"""The default: three tries more, then the message is lost."""
SIGNED = {
    "Notification": ("Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"),
    "SubscriptionConfirmation": ("Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"),
}


@functools.cache
def _key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@functools.cache
def certificate() -> bytes:
    """The topic's certificate, as PEM."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sns.amazonaws.com")])
    today = datetime.datetime.now(datetime.UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(_key().public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=365))
        .sign(_key(), SHA256())
        .public_bytes(Encoding.PEM)
    )


def certificate_path() -> str:
    """Where it is served."""
    return f"/SimpleNotificationService-{hashlib.md5(certificate(), usedforsecurity=False).hexdigest()}.pem"


@functools.cache
def _token() -> str:
    return secrets.token_hex(40)


def envelope(kind: str, message_id: str, message: str, now: float) -> bytes:
    """The message in a signed envelope (signature version 2)."""
    fields = {"Type": kind, "MessageId": message_id, "TopicArn": TOPIC, "Message": message, "Timestamp": iso(now)}
    if kind == "SubscriptionConfirmation":
        asked = {"Action": "ConfirmSubscription", "TopicArn": TOPIC, "Token": _token()}
        fields |= {"Token": _token(), "SubscribeURL": f"{HOST}/?{urlencode(asked)}"}
    else:
        fields["Subject"] = "Amazon SES Email Event Notification"
        fields["UnsubscribeURL"] = f"{HOST}/?{urlencode({'Action': 'Unsubscribe', 'SubscriptionArn': TOPIC + ':1'})}"
    content = "".join(f"{name}\n{fields[name]}\n" for name in SIGNED[kind]).encode()
    signature = _key().sign(content, padding.PKCS1v15(), SHA256())
    fields |= {
        "SignatureVersion": "2",
        "Signature": base64.b64encode(signature).decode(),
        "SigningCertURL": HOST + certificate_path(),
    }
    return json.dumps(fields).encode()


def headers(kind: str, message_id: str) -> Mapping[str, str]:
    """Those of a delivery."""
    return {
        "content-type": "text/plain; charset=UTF-8",
        "user-agent": "Amazon Simple Notification Service Agent",
        "x-amz-sns-message-type": kind,
        "x-amz-sns-message-id": message_id,
        "x-amz-sns-topic-arn": TOPIC,
    }


def subscription(now: float) -> Greeting:
    """The request to confirm the subscription, by a visit to its ``SubscribeURL``."""
    kind, message_id = "SubscriptionConfirmation", str(uuid.uuid4())
    words = "You have chosen to subscribe. To confirm the subscription, visit the SubscribeURL in this message."
    body = envelope(kind, message_id, words, now)
    return Greeting(headers=headers(kind, message_id), body=body, awaits_confirmation=True)


def answer(request: Request, account: Account) -> Answer | None:
    """What SNS shows to anybody: the certificate, and the confirmation of a subscription."""
    if request.method != "GET":
        return None
    if request.path == certificate_path():
        return Answer(body=certificate(), content_type="application/x-pem-file")
    asked = {name: values[-1] for name, values in parse_qs(request.query).items()}
    if request.path == "/" and asked.get("Action") == "ConfirmSubscription":
        if asked.get("Token") != _token() or asked.get("TopicArn") != TOPIC:
            return Answer(status=400, body=b"<ErrorResponse/>", content_type="text/xml")
        account.confirm()
        return Answer(body=b"<ConfirmSubscriptionResponse/>", content_type="text/xml")
    return None
