"""What the words of providers mean to the ledger: the one bridge between two floors that do not know each other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from dashboard.ledger.attempts import Finished, Kind, Started
from dashboard.ledger.events import Told
from dashboard.ledger.mail_replies import Mail, Name
from dashboard.providers import PROVIDERS
from dashboard.providers.base import Accepted, Ambiguous, NeverWritten, Outcome, ProviderEvent, Rejected, Reply, Scope

LONGEST = 500
"""Characters kept of what a provider says, its message id among them."""

ACCOUNT_PAUSE = timedelta(minutes=5)
"""How long an account is left alone that its provider refuses (credentials, quota, domain), unless it says how long."""


def as_finished(started: Started, outcome: Outcome, duration_ms: int) -> Finished:
    """The outcome of a started attempt in the ledger's words. ``duration_ms``: of the call itself."""
    if isinstance(outcome, Accepted):  # nearly always: without the detour over a dictionary
        return Finished(
            started.send_id, started.n, started.claim_number, started.account_id, "accepted",
            provider_message_id=_storable(outcome.provider_message_id), request_id=_storable(outcome.request_id),
            duration_ms=duration_ms, batch=started.batch,
        )  # fmt: skip
    return Finished(
        send_id=started.send_id, n=started.n, claim_number=started.claim_number, account_id=started.account_id,
        duration_ms=duration_ms, batch=started.batch,
        **{name: _storable(fact) for name, fact in _facts(outcome).items()},
    )  # fmt: skip


def _storable(fact: Any) -> Any:
    """A provider's words as a database can hold and index them: bounded, without NUL and half characters."""
    if not isinstance(fact, str):
        return fact
    return fact.replace("\0", "").encode(errors="replace").decode()[:LONGEST]


def _facts(outcome: Ambiguous | NeverWritten | Rejected) -> dict[str, Any]:
    match outcome:
        case Ambiguous():
            return {
                "kind": "ambiguous", "error_class": outcome.error_class, "error_code": outcome.error_code,
                "reason": outcome.reason or None, "phase": outcome.phase, "request_id": outcome.request_id,
            }  # fmt: skip
        case NeverWritten():
            kind = "cannot_be_written" if outcome.permanent else "never_written"
            return {"kind": kind, "reason": outcome.reason}
        case Rejected(key_in_use=True):
            doubt = Ambiguous(
                error_class="key_in_use", error_code=outcome.error_code, reason=outcome.reason, phase=outcome.phase,
                request_id=outcome.request_id,
            )  # fmt: skip
            return _facts(doubt)
        case Rejected():
            refused, pause = _refusal(outcome)
            return {
                "kind": refused, "pause": pause, "retry_after": outcome.retry_after_seconds,
                "error_class": "refused_for_now" if outcome.retryable else "refused", "error_code": outcome.error_code,
                "reason": outcome.reason or None, "phase": outcome.phase, "request_id": outcome.request_id,
            }  # fmt: skip


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


def as_told(event: ProviderEvent) -> Told:
    """A provider's event in the ledger's words."""
    return Told(
        event_type=event.event_type,
        event_id=event.event_id,
        event_day=event.event_day,
        provider_message_id=event.provider_message_id,
        send_id=event.send_id,
        attempt=event.attempt,
        recipient=event.recipient,
        occurred_at=event.occurred_at,
        bounce_class=event.bounce_class,
        reason=event.reason,
        machine=event.machine,
        url=event.url,
        raw=event.raw,
    )


def as_mail(reply: Reply) -> Mail:
    """A mail that came in, in the ledger's words: what it says it answers by all that we may know that by."""
    return Mail(
        message_id=reply.message_id,
        sender=reply.sender,
        recipients=reply.recipients,
        names=[name for message_id in reply.answers for name in _names(message_id)],
        written_at=reply.written_at,
        automatic=reply.automatic,
        subject=reply.subject,
        text=reply.text,
    )


def _names(message_id: str) -> list[Name]:
    """Our own Message-ID has the send id before the @; some providers' have their id of the message there; others give
    the whole of it as their id."""
    local, _, domain = message_id.partition("@")
    names = [Name(None, message_id)]
    if any(domain.lower() == end or domain.lower().endswith(f".{end}") for end in _DOMAINS):
        names.append(Name(None, local))
    try:
        return [Name(UUID(local), None), *names]
    except ValueError:
        return names


_DOMAINS = [end for one in PROVIDERS if (end := one.capabilities({}).message_id_domain)]
