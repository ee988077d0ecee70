"""What a provider's outcome means to the ledger."""

from datetime import UTC, datetime
from uuid import uuid4

from dashboard.ledger.attempts import Started
from dashboard.outcomes import as_finished
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
