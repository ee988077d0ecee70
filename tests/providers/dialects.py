"""The providers that the simulator can play, each with an account there and what has to come of it.

What is expected is written from the providers' documents: neither from the adapters nor from the simulator's dialects,
so that it speaks where the two agree in the same mistake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from dashboard.lifecycle import EventType
from dashboard.providers.base import Accepted, Ambiguous, NeverWritten, Outcome, Rejected
from dashboard.simulator import Simulator

Meaning = tuple[EventType, str | None]

MEANINGS: Mapping[str, Meaning] = {
    "sent": (EventType.ACCEPTED, None),
    "delayed": (EventType.DEFERRED, None),
    "delivered": (EventType.DELIVERED, None),
    "bounced": (EventType.BOUNCED, "hard"),
    "soft_bounced": (EventType.BOUNCED, "soft"),
    "suppressed": (EventType.REJECTED, "suppressed"),
    "failed": (EventType.FAILED, None),
    "complained": (EventType.COMPLAINED, None),
    "opened": (EventType.OPENED, None),
    "clicked": (EventType.CLICKED, None),
}
"""What a happening at the simulator is in the common vocabulary, unless the provider tells it otherwise."""


@dataclass(frozen=True, kw_only=True)
class Played:
    """One provider, and an account at the simulator."""

    name: str
    api_key: str
    """What the simulator takes (`Config.api_key`)."""
    settings: Mapping[str, str]
    """The account, but for its ``base_url``."""
    wrong: Mapping[str, str]
    """Settings with which the provider knows nobody."""
    receives_by: str | None = "webhook_secret"
    """The setting that holds what the receiver of events is told."""
    errors: Mapping[str, str]
    """By the names of `Dialect.errors`: the outcome, see :func:`in_a_word`."""
    events: Mapping[str, Meaning] = field(default_factory=dict)
    """What differs from :data:`MEANINGS`."""
    untold: frozenset[str] = frozenset()
    """What the provider tells nobody."""
    own_event_ids: bool = True
    """Whether its events have ids; else the same fact has the same one however often it is told anew."""
    says_when: bool = True
    """Whether a 429 says how long to wait."""
    evidence: frozenset[Literal["key", "look-up", "event"]]
    """What settles a call without an answer."""

    def account(self, simulator: Simulator) -> dict[str, str]:
        """All settings, secrets too."""
        told = {self.receives_by: simulator.webhook_secret} if self.receives_by else {}
        return {**self.settings, "base_url": simulator.http_url, **told}

    def meaning(self, happening: str) -> Meaning:
        """What this happening is told as."""
        return self.events.get(happening, MEANINGS[happening])


def in_a_word(outcome: Outcome) -> str:
    """``accepted``, ``doubt``, ``never written``; or whose fault a refusal is, and whether a repeat may help."""
    match outcome:
        case Accepted():
            return "accepted"
        case Ambiguous():
            return "doubt"
        case NeverWritten():
            return "never written"
        case Rejected(scope=scope, retryable=retryable):
            return f"{scope or 'nobody'}{', later' if retryable else ''}"


PLAYED = (
    Played(
        name="resend",
        api_key="re_right",
        settings={"api_key": "re_right"},
        wrong={"api_key": "re_wrong"},
        errors={
            "rejected": "message",
            "busy": "account, later",
            "broken": "doubt",
            "unavailable": "doubt",
            "quota": "account, later",
            "monthly_quota": "account, later",
            "other_body": "doubt",
            "in_progress": "message, later",
            "restricted_key": "account",
            "unverified_domain": "account",
        },
        evidence=frozenset({"key", "event"}),
    ),
    Played(
        name="sendgrid",
        api_key="SG.right",
        settings={"api_key": "SG.right"},
        wrong={"api_key": "SG.wrong"},
        errors={
            "rejected": "message",
            "unauthorized": "account",
            "sender_not_verified": "account",
            "not_found": "account",
            "not_allowed": "message",
            "too_large": "message",
            "busy": "account, later",
            "broken": "doubt",
            "unavailable": "doubt",
            "gateway_timeout": "doubt",
        },
        events={"failed": (EventType.REJECTED, None)},
        evidence=frozenset({"look-up", "event"}),
    ),
    Played(
        name="postmark",
        api_key="token-right",
        settings={"server_token": "token-right"},
        wrong={"server_token": "token-wrong"},
        errors={
            "rejected": "message",
            "no_token": "account",
            "no_sender": "account",
            "unconfirmed_sender": "account",
            "not_allowed": "account",
            "inactive": "message",
            "pending": "account",
            "may_not_send": "account",
            "not_found": "account",
            "too_large": "message",
            "busy": "account, later",
            "broken": "doubt",
            "maintenance": "account, later",
        },
        untold=frozenset({"sent"}),
        says_when=False,
        evidence=frozenset({"look-up", "event"}),
    ),
    Played(
        name="mailgun",
        api_key="key-right",
        settings={"api_key": "key-right", "domain": "mg.example.test"},
        wrong={"api_key": "key-wrong"},
        errors={
            "rejected": "message",
            "unauthorized": "account",
            "request_failed": "account",
            "domain_not_found": "account",
            "too_large": "message",
            "busy": "account, later",
            "broken": "doubt",
            "bad_gateway": "doubt",
            "unavailable": "doubt",
            "gateway_timeout": "doubt",
            "not_the_api": "account",
        },
        events={"failed": (EventType.REJECTED, None)},
        says_when=False,
        evidence=frozenset({"look-up", "event"}),
    ),
    Played(
        name="ses",
        api_key="AKIDRIGHT:a secret",
        settings={
            "access_key_id": "AKIDRIGHT",
            "secret_access_key": "a secret",
            "region": "eu-west-1",
            "configuration_set": "ledger-events",
            "topic_arns": "arn:aws:sns:eu-west-1:123456789012:ses-events",
        },
        wrong={"secret_access_key": "another secret"},
        receives_by="signing_certificate",
        errors={
            "rejected": "message",
            "bad_request": "message",
            "busy": "account, later",
            "broken": "doubt",
            "unavailable": "doubt",
            "limit_exceeded": "account",
            "suspended": "account",
            "paused": "account",
            "mail_from": "account",
            "not_found": "account",
            "throttled": "account, later",
            "wrong_key": "account",
            "wrong_signature": "account",
            "not_permitted": "account",
        },
        says_when=False,
        evidence=frozenset({"event"}),
    ),
    Played(
        name="usesend",
        api_key="us_right",
        settings={"api_key": "us_right"},
        wrong={"api_key": "us_wrong"},
        errors={
            "rejected": "message",
            "invalid": "message",
            "busy": "account, later",
            "broken": "doubt",
            "other_body": "doubt",
            "in_progress": "message, later",
            "no_key": "account",
            "unknown_key": "account",
            "other_domain": "account",
            "wrong_domain": "account",
            "unverified_domain": "account",
            "not_found": "account",
            "method": "message",
        },
        evidence=frozenset({"key"}),
    ),
    Played(
        name="postal",
        api_key="right",
        settings={"api_key": "right"},
        wrong={"api_key": "wrong"},
        errors={
            "rejected": "message",
            "no_content": "message",
            "too_many": "message",
            "no_sender": "message",
            "unauthenticated": "account",
            "no_key": "account",
            "unknown_key": "account",
            "suspended": "account",
            "parameter": "message",
            "busy": "account, later",
            "broken": "doubt",
        },
        # Postal gives up on what was temporary as on anything else, and keeps what it may not send for a person.
        events={"soft_bounced": (EventType.BOUNCED, "hard"), "suppressed": (EventType.DEFERRED, None)},
        untold=frozenset({"sent", "failed", "complained"}),
        says_when=False,
        evidence=frozenset({"event"}),
    ),
    Played(
        name="brevo",
        api_key="xkeysib-right",
        settings={"api_key": "xkeysib-right"},
        wrong={"api_key": "xkeysib-wrong"},
        errors={
            "rejected": "message",
            "missing": "message",
            "busy": "account, later",
            "broken": "doubt",
            "quota": "account",
            "no_key": "account",
            "permission": "account",
            "validation": "account",
            "not_found": "account",
            "method": "message",
            "not_acceptable": "message",
            # That its key was used says that a repeat is safe, not that the first message was taken.
            "repeated": "doubt",
            "other_body": "doubt",
            "in_progress": "doubt",
        },
        own_event_ids=False,
        evidence=frozenset({"event"}),
    ),
    Played(
        name="sparkpost",
        api_key="right",
        settings={"api_key": "right", "honours_keys": "true"},
        wrong={"api_key": "wrong"},
        errors={
            "rejected": "message",
            "invalid": "message",
            "missing": "message",
            "busy": "account, later",
            "broken": "doubt",
            "unavailable": "doubt",
            "quota": "account, later",
            "sandbox_quota": "account",
            "no_key": "account",
            "permission": "account",
            "no_license": "account",
            "wrong_domain": "account",
            "blacklisted": "account",
            "no_resources": "account, later",
            "not_generated": "message",
            "generation_rejected": "message",
            "syntax": "message",
            "header": "message",
            "content_type": "message",
            "not_found": "account",
            "method": "message",
            "other_body": "doubt",
            "in_progress": "message, later",
            "bad_key": "message",
        },
        events={"suppressed": (EventType.REJECTED, None)},
        says_when=False,
        evidence=frozenset({"key", "event"}),
    ),
    Played(
        name="mailjet",
        api_key="right:secret",
        settings={"api_key": "right", "secret_key": "secret"},
        wrong={"secret_key": "another"},
        errors={
            "rejected": "message",
            "missing": "message",
            "mismatch": "message",
            "empty": "message",
            "too_large": "message",
            "no_content": "message",
            "too_many": "message",
            "header": "message",
            "sender_header": "account",
            "wrong_sender": "account",
            "malformed": "message",
            "no_key": "account",
            "suspended": "account",
            "not_found": "account",
            "method": "message",
            "busy": "account, later",
            "broken": "doubt",
        },
        events={"suppressed": (EventType.REJECTED, None)},
        untold=frozenset({"sent", "failed"}),
        own_event_ids=False,
        says_when=False,
        evidence=frozenset({"event"}),
    ),
    Played(
        name="mandrill",
        api_key="right",
        settings={"api_key": "right"},
        wrong={"api_key": "wrong"},
        errors={
            "rejected": "message",
            "invalid": "message",
            "spam": "message",
            "unsubscribed": "message",
            "unsigned": "account",
            "wrong_sender": "account",
            "test_limit": "account",
            "no_key": "account",
            "validation": "message",
            "payment": "account",
            "reputation": "account",
            "subaccount": "account",
            "unavailable": "doubt",
            "broken": "doubt",
            "busy": "account, later",
        },
        untold=frozenset({"failed"}),
        own_event_ids=False,
        says_when=False,
        evidence=frozenset({"event"}),
    ),
    Played(
        name="mailtrap",
        api_key="right",
        settings={"api_key": "right"},
        wrong={"api_key": "wrong"},
        errors={
            "rejected": "message",
            "no_key": "account",
            "forbidden": "account",
            "not_found": "account",
            "method": "message",
            "too_large": "message",
            "busy": "account, later",
            "broken": "doubt",
        },
        # Whatever it gives up on is a bounce, which is hard; why it rejects is not said by a code.
        events={"soft_bounced": (EventType.BOUNCED, "hard"), "suppressed": (EventType.REJECTED, None)},
        untold=frozenset({"sent", "failed"}),
        says_when=False,
        evidence=frozenset({"event"}),
    ),
)
