"""The providers, and the two questions that can be asked without a network: what does this say, what does this mean.

A new provider is its own file, one line in :data:`PROVIDERS`, and a folder of samples under ``tests/data/providers``.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from dashboard.providers.base import (
    NotAuthentic,
    Outcome,
    Provider,
    ProviderEvent,
    ReadsReplies,
    Settings,
    Webhook,
    WebhookRequest,
)
from dashboard.providers.brevo import Brevo
from dashboard.providers.mailgun import Mailgun
from dashboard.providers.mailjet import Mailjet
from dashboard.providers.mailtrap import Mailtrap
from dashboard.providers.mandrill import Mandrill
from dashboard.providers.postal import Postal
from dashboard.providers.postmark import Postmark
from dashboard.providers.reading import lower_names
from dashboard.providers.resend import Resend
from dashboard.providers.results import Answer, NoAnswer, SendResult, SmtpFailure, SmtpSession, as_result
from dashboard.providers.sendgrid import SendGrid
from dashboard.providers.ses import Ses
from dashboard.providers.smtp import Smtp
from dashboard.providers.sparkpost import SparkPost
from dashboard.providers.usesend import UseSend

PROVIDERS: tuple[Provider, ...] = (
    Resend(),
    SendGrid(),
    Postmark(),
    Mailgun(),
    Ses(),
    Smtp(),
    UseSend(),
    Postal(),
    Brevo(),
    SparkPost(),
    Mailjet(),
    Mandrill(),
    Mailtrap(),
)

__all__ = [
    "PROVIDERS",
    "Answer",
    "NoAnswer",
    "NotAuthentic",
    "SendResult",
    "SmtpFailure",
    "SmtpSession",
    "classify",
    "parse_events",
    "provider",
    "read_reply",
    "read_webhook",
]


def provider(name: str) -> Provider:
    """The provider of that name. Raises ValueError for an unknown one."""
    for known in PROVIDERS:
        if known.name == name:
            return known
    raise ValueError(f"there is no provider {name!r}; known are {', '.join(known.name for known in PROVIDERS)}")


_named = provider  # the functions below take an argument of that name


def read_webhook(
    provider: str,
    headers: Mapping[str, str],
    body: bytes,
    settings: Settings,
    now: datetime | None = None,
    *,
    url: str = "",
    remote_address: str | None = None,
) -> Webhook:
    """Verify and normalise one webhook request without a database.

    ``body``: the bytes as received. ``url``, ``remote_address``: as in :class:`WebhookRequest`. Raises NotAuthentic for
    a request that is not the provider's (as CannotVerify where that is our own trouble), ValueError for a body that is
    malformed as a whole (or an unknown provider); gives no events for what is to be ignored.
    """
    return _named(provider).read_webhook(_request(headers, body, url, remote_address, now), settings)


def read_reply(
    provider: str,
    headers: Mapping[str, str],
    body: bytes,
    settings: Settings,
    now: datetime | None = None,
    *,
    url: str = "",
    remote_address: str | None = None,
) -> Webhook:
    """The same for a request to the address for replies: the mail that came in. Raises ValueError also for a provider
    that hands in none."""
    known = _named(provider)
    if not isinstance(known, ReadsReplies):
        raise ValueError(f"{known.title} hands in no mail here")
    return known.read_reply(_request(headers, body, url, remote_address, now), settings)


def _request(
    headers: Mapping[str, str], body: bytes, url: str, remote_address: str | None, now: datetime | None
) -> WebhookRequest:
    return WebhookRequest(
        headers=lower_names(headers), body=body, url=url, remote_address=remote_address, now=now or datetime.now(UTC)
    )


def parse_events(
    provider: str, headers: Mapping[str, str], body: bytes, settings: Settings, now: datetime | None = None
) -> tuple[ProviderEvent, ...]:
    """The events of :func:`read_webhook`."""
    return read_webhook(provider, headers, body, settings, now).events


def classify(provider: str, result: SendResult | Mapping[str, Any]) -> Outcome | list[Outcome]:
    """Judge one send result without a network; a list for a batch, or for several recipients of one SMTP session.

    ``result``: an Answer, a NoAnswer, an SmtpSession, or a mapping with the same facts (``status, headers, body`` /
    ``error, request_written`` / ``replies, failure, to, protocol``). Raises ValueError for anything else.
    """
    return _named(provider).classify(as_result(result))
