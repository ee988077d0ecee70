"""Submit: one call to a provider for one started attempt, and its outcome in the ledger's words."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from uuid import UUID

from dashboard import steps
from dashboard.ledger import contents
from dashboard.ledger.accounts import read_account
from dashboard.ledger.attempts import Finished, Started
from dashboard.ledger.database import Database
from dashboard.ledger.vault import KeyMissing, Vault
from dashboard.outcomes import as_finished
from dashboard.providers import provider
from dashboard.providers.base import (
    Ambiguous,
    Channel,
    Deadline,
    Message,
    NeverWritten,
    Outcome,
    Outgoing,
    Rejected,
    Scope,
)
from dashboard.worker.meters import ATTEMPT_SECONDS, ATTEMPTS


def _unusable(code: str, reason: str) -> Rejected:
    """Nothing was written, and nothing else of this account could be: the breaker has it rest, and says why."""
    return Rejected(scope=Scope.ACCOUNT, retryable=True, error_code=code, reason=reason)


@dataclass(frozen=True, slots=True)
class _Open:
    endpoint: bytes
    channel: Channel
    provider: str


class Moved(Exception):
    """The account was changed since the attempt was written ahead: what is on record is not where the call would go."""


class MessageGone(Exception):
    """The content of this send cannot be read: a person must look at it, and nobody else's mail waits for that."""


class Submitter:
    """Opens the channels of accounts as they are needed. Shared by the threads of one worker."""

    def __init__(self, database: Database, vault: Vault, *, request_timeout: float) -> None:
        self._database = database
        self._vault = vault
        self._request_timeout = request_timeout
        self._open: dict[UUID, _Open] = {}
        self._lock = threading.Lock()

    def submit(self, started: Started, deadline: Deadline) -> Finished:
        """Make the call. Whatever happens is an outcome, never an exception."""
        began = time.monotonic()
        try:
            outcome = self._outcome(started, deadline)
        except MessageGone as error:
            return Finished(
                send_id=started.send_id, n=started.n, claim_number=started.claim_number, account_id=started.account_id,
                kind="message_gone", reason=str(error),
            )  # fmt: skip
        seconds = time.monotonic() - began
        finished = as_finished(started, outcome, round(seconds * 1000))
        opened = self._open.get(started.account_id)
        name = opened.provider if opened else "unknown"
        ATTEMPTS.labels(name, finished.kind).inc()
        ATTEMPT_SECONDS.labels(name).observe(seconds)
        steps.tell(
            steps.Step.SUBMITTED, started.send_id, seconds=seconds, provider=name, attempt=started.n,
            outcome=finished.kind,
        )  # fmt: skip
        return finished

    def _outcome(self, started: Started, deadline: Deadline) -> Outcome:
        try:
            outgoing = self._outgoing(started, deadline)
            channel = self.channel(started.account_id, started.endpoint)
        except KeyMissing as error:
            return _unusable("key_missing", str(error))
        except Moved:
            return NeverWritten("the account was changed since the attempt was written ahead")
        except MessageGone:
            raise
        except Exception as error:  # the database away, a bad setting
            return _unusable("channel", f"the account's channel could not be opened ({type(error).__name__})")
        try:
            return channel.submit(outgoing)
        except Exception as error:  # a bug of an adapter: where in the call it happened nobody knows
            return Ambiguous(error_class="adapter_error", reason=type(error).__name__)

    def _outgoing(self, started: Started, deadline: Deadline) -> Outgoing:
        """Raises :class:`KeyMissing`, and :class:`MessageGone` for whatever else is wrong with this one message."""
        try:
            return self._opened(started, deadline)
        except KeyMissing:
            raise
        except Exception as error:  # not written for this row, damaged, or no message at all
            raise MessageGone(f"the stored message cannot be read ({type(error).__name__})") from None

    def _opened(self, started: Started, deadline: Deadline) -> Outgoing:
        body = contents.opened(self._vault, started.send_id, started.body)
        return Outgoing(
            send_id=started.send_id,
            attempt=started.n,
            address=self._vault.decrypt(started.address, started.send_id.bytes).decode(),
            recipient_name=body["name"],
            message=Message(
                sender=body["from"],
                subject=body["subject"],
                reply_to=body["reply_to"],
                text=body["text"],
                html=body["html"],
                headers=body["headers"],
                date=started.recorded_at,
            ),
            deadline=deadline,
        )

    def channel(self, account_id: UUID, endpoint: bytes) -> Channel:
        """The channel to where the attempt on record says that it goes. Raises :class:`Moved` where there is none."""
        opened = self._open.get(account_id)
        if opened and opened.endpoint == endpoint:
            return opened.channel
        with self._lock:
            opened = self._open.get(account_id)
            if opened and opened.endpoint == endpoint:
                return opened.channel
            with self._database.transaction(durable=False) as connection:
                account = read_account(connection, self._vault, account_id)
            if account is None:
                raise LookupError("the account is gone")
            if account.endpoint != endpoint:
                raise Moved
            channel = provider(account.provider).open_channel(account.settings, request_timeout=self._request_timeout)
            self._open[account_id] = _Open(endpoint, channel, account.provider)
            return channel

    def close(self) -> None:
        """Drop all connections to providers."""
        for opened in self._open.values():
            opened.channel.close()
