"""A quota that is used up: no call makes sense before it ends, and none is made."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from dashboard.providers.base import Rejected, Scope
from dashboard.providers.resend import judge, until_its_quota_ends
from dashboard.providers.results import Answer

SIX = datetime(2026, 11, 30, 18, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "headers", "seconds"),
    [
        ("daily_quota_exceeded", {}, 6 * 3600),
        ("daily_quota_exceeded", {"date": "Mon, 30 Nov 2026 23:59:30 GMT"}, 30),
        ("daily_quota_exceeded", {"date": "not a date"}, 6 * 3600),
        ("daily_quota_exceeded", {"retry-after": "90"}, 90),
        ("monthly_quota_exceeded", {}, 3600),
        ("rate_limit_exceeded", {}, None),
    ],
)
def test_resend_is_left_alone_until_its_quota_ends(name: str, headers: dict[str, str], seconds: float | None) -> None:
    answer = Answer(status=429, headers=headers, body=json.dumps({"name": name, "message": "no"}).encode())
    outcome = until_its_quota_ends(judge(answer), answer, SIX)
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable, outcome.retry_after_seconds) == (Scope.ACCOUNT, True, seconds)
