"""The last check of an account, as every part of Sendonce tells it: page, API and command."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from dashboard.ledger.account_checks import AccountCheck
from dashboard.ledger.accounts import replies_url, webhook_url
from dashboard.providers import PROVIDERS


def address_to_paste(check: AccountCheck, public_url: str) -> str | None:
    """The webhook address to enter at the provider; None for one that reports nothing."""
    reports = any(one.capabilities({}).webhooks for one in PROVIDERS if one.name == check.provider)
    return webhook_url(public_url, check.account_id) if reports else None


def replies_address_to_paste(check: AccountCheck, public_url: str) -> str | None:
    """The address at which the provider is to hand in mail that comes in; None for one that hands in none."""
    hands_in = any(one.capabilities({}).replies for one in PROVIDERS if one.name == check.provider)
    return replies_url(public_url, check.account_id) if hands_in else None


def document(check: AccountCheck, public_url: str) -> dict[str, Any]:
    """The check for programs. ``verdict`` is the worst of all; null before the first check."""
    return {
        "account": check.name, "provider": check.provider, "webhook_url": address_to_paste(check, public_url),
        "replies_url": replies_address_to_paste(check, public_url),
        "verdict": check.verdict or None, "checked_at": _iso(check.checked_at), "broke_at": _iso(check.broke_at),
        "set_aside": [
            {"reason": one.reason, "number": one.number, "last_at": _iso(one.last_at)} for one in check.set_aside
        ],
        "awaited": check.awaited, "findings": [dict(finding) for finding in check.findings],
    }  # fmt: skip


def _iso(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).isoformat().replace("+00:00", "Z")
