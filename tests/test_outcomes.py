"""What a provider's outcome means to the ledger."""

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from dashboard.ledger.attempts import Started
from dashboard.outcomes import as_finished
from dashboard.providers import classify
from dashboard.providers.base import Accepted, Rejected, Scope


def started() -> Started:
    return Started(uuid4(), 1, 1, uuid4(), b"", datetime.now(UTC), b"", b"")


def test_a_providers_words_are_made_fit_for_the_database() -> None:
    finished = as_finished(started(), Accepted("id\0with\ud800"), 12)
    assert (finished.kind, finished.provider_message_id, finished.duration_ms) == ("accepted", "idwith?", 12)


def test_a_refusal_of_the_account_is_not_the_sends_fault() -> None:
    finished = as_finished(started(), Rejected(scope=Scope.ACCOUNT, reason="no such key"), 1)
    assert (finished.kind, finished.pause is not None) == ("account_trouble", True)


def test_nobody_reached_leaves_the_pause_to_the_breaker() -> None:
    finished = as_finished(started(), Rejected(scope=None, retryable=True, reason="refused"), 1)
    assert (finished.kind, finished.pause) == ("account_trouble", None)


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("resend", {"name": "concurrent_idempotent_requests", "message": "Another request is running"}),
        ("sparkpost", {"errors": [{"code": "1601", "message": "in progress"}]}),
        ("usesend", {"error": {"code": "NOT_UNIQUE", "message": "A request is in progress"}}),
    ],
)
def test_a_key_that_is_in_use_leaves_doubt_for_the_running_call_may_be_a_copy_of_this_one(
    name: str, body: dict[str, Any]
) -> None:
    outcome = classify(name, {"status": 409, "body": body})
    assert isinstance(outcome, Rejected)
    finished = as_finished(started(), outcome, 1)
    assert (finished.kind, finished.error_class) == ("ambiguous", "key_in_use")
