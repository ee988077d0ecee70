"""What a provider's outcome means to the ledger: the one bridge between two floors that do not know each other."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from dashboard.ledger.attempts import Finished, Kind, Started
from dashboard.providers.base import Accepted, Ambiguous, NeverWritten, Outcome, Rejected, Scope

ACCOUNT_PAUSE = timedelta(minutes=5)
"""How long an account is left alone that its provider refuses (credentials, quota, domain), unless it says how long."""


def as_finished(started: Started, outcome: Outcome, duration_ms: int) -> Finished:
    """The outcome of a started attempt in the ledger's words. ``duration_ms``: of the call itself."""
    plain = Finished(
        send_id=started.send_id, n=started.n, claim_number=started.claim_number, account_id=started.account_id,
        kind="accepted", duration_ms=duration_ms,
    )  # fmt: skip
    match outcome:
        case Accepted(provider_message_id, request_id):
            return replace(plain, provider_message_id=provider_message_id, request_id=request_id)
        case Ambiguous() as doubt:
            return replace(
                plain, kind="ambiguous", error_class=doubt.error_class, error_code=doubt.error_code,
                reason=doubt.reason or None, phase=doubt.phase, request_id=doubt.request_id,
            )  # fmt: skip
        case NeverWritten(reason, permanent):
            return replace(plain, kind="cannot_be_written" if permanent else "never_written", reason=reason)
        case Rejected() as refusal:
            kind, pause = _refusal(refusal)
            return replace(
                plain, kind=kind, pause=pause, retry_after=refusal.retry_after_seconds, error_code=refusal.error_code,
                error_class="refused_for_now" if refusal.retryable else "refused", reason=refusal.reason or None,
                phase=refusal.phase, request_id=refusal.request_id,
            )  # fmt: skip


def _refusal(refusal: Rejected) -> tuple[Kind, timedelta | None]:
    """Whose fault a refusal is, and for how long to leave the account alone (None: the breaker decides)."""
    match refusal:
        case Rejected(scope=Scope.MESSAGE, retryable=True):
            return "refused_for_now", None
        case Rejected(scope=Scope.ACCOUNT, retryable=False):
            return "account_trouble", ACCOUNT_PAUSE
        case Rejected(scope=Scope.ACCOUNT, retry_after_seconds=seconds):
            return "account_trouble", timedelta(seconds=max(seconds, 0.05)) if seconds is not None else None
        case Rejected(retryable=True):  # nobody was reached: no scope
            return "account_trouble", None
        case _:
            return "refused", None
