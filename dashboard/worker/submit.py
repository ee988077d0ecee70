"""Submit: one call to a provider for one started attempt, or for several, and the outcomes in the ledger's words."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
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
    SendsBatches,
)
from dashboard.providers.http import NO_DEADLINE
from dashboard.worker.meters import ATTEMPT_SECONDS, ATTEMPTS


class Moved(Exception):
    """The account was changed since the attempt was written ahead: what is on record is not where the call would go."""


class MessageGone(Exception):
    """The content of this send cannot be read: a person must look at it, and nobody else's mail waits for that."""


def _unusable(code: str, reason: str) -> Rejected:
    """Nothing was written, and nothing else of this account could be: the breaker has it rest, and says why."""
    return Rejected(scope=Scope.ACCOUNT, retryable=True, error_code=code, reason=reason)


def _no_call(error: Exception) -> Outcome:
    """What to say where there was no way to make a call at all."""
    match error:
        case KeyMissing():
            return _unusable("key_missing", str(error))
        case Moved():
            return NeverWritten("the account was changed since the attempt was written ahead")
        case _:  # the database away, a bad setting
            return _unusable("channel", f"the account's channel could not be opened ({type(error).__name__})")


def _gone(started: Started, error: MessageGone) -> Finished:
    return Finished(
        send_id=started.send_id, n=started.n, claim_number=started.claim_number, account_id=started.account_id,
        kind="message_gone", reason=str(error),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Open:
    endpoint: bytes
    channel: Channel
    provider: str


class Submitter:
    """Opens the channels of accounts as they are needed. Shared by the threads of one worker."""

    def __init__(self, database: Database, vault: Vault, *, request_timeout: float) -> None:
        self._database = database
        self._vault = vault
        self._request_timeout = request_timeout
        self._open: dict[UUID, _Open] = {}
        self._lock = threading.Lock()

    def part(self, candidates: Sequence[Started]) -> list[list[UUID]]:
        """Which of these may go out together, as the channel of their account says (``attempts.Part``)."""
        calls: list[list[UUID]] = []
        for account in {started.account_id: started.endpoint for started in candidates}.items():
            own = [started for started in candidates if (started.account_id, started.endpoint) == account]
            with suppress(Exception):  # no account, a bug of an adapter: each goes alone, and meets what is wrong
                channel = self.channel(*account)
                parted = channel.batches(self._readable(own)) if isinstance(channel, SendsBatches) else []
                calls += [[member.send_id for member in call] for call in parted]
        return calls

    def submit(self, started: Started, deadline: Deadline) -> Finished:
        """Make the call. Whatever happens is an outcome, never an exception."""
        began = time.monotonic()
        try:
            outcome = self._outcome(started, deadline)
        except MessageGone as error:
            return _gone(started, error)
        return self._told([started], [outcome], time.monotonic() - began)[0]

    def submit_batch(self, members: Sequence[Started], deadline: Deadline) -> list[Finished]:
        """Make one call for all of these, which share a batch. Likewise; what each came to, in any order.

        One whose message cannot be read stays out of the call, and is told by itself.
        """
        began = time.monotonic()
        gone: list[Finished] = []
        unusable: list[Started] = []
        going: list[Started] = []
        messages: list[Outgoing] = []
        outcomes: list[Outcome] = []
        for started in members:
            try:
                messages.append(self._outgoing(started, deadline))
                going.append(started)
            except MessageGone as error:
                gone.append(_gone(started, error))
            except KeyMissing as error:
                unusable.append(started)
                outcomes.append(_no_call(error))
        outcomes += self._outcomes(going[0], messages) if going else []
        return gone + (self._told(unusable + going, outcomes, time.monotonic() - began) if outcomes else [])

    def _outcome(self, started: Started, deadline: Deadline) -> Outcome:
        try:
            outgoing = self._outgoing(started, deadline)
            channel = self.channel(started.account_id, started.endpoint)
        except MessageGone:
            raise
        except Exception as error:
            return _no_call(error)
        try:
            return channel.submit(outgoing)
        except Exception as error:  # a bug of an adapter: where in the call it happened nobody knows
            return Ambiguous(error_class="adapter_error", reason=type(error).__name__)

    def _outcomes(self, first: Started, messages: Sequence[Outgoing]) -> Sequence[Outcome]:
        """What one call for all of them comes to; ``first`` says where it goes and what batch it is."""
        assert first.batch is not None
        try:
            channel = self.channel(first.account_id, first.endpoint)
        except Exception as error:
            return [_no_call(error)] * len(messages)
        try:
            # Asked again, since some calls have one text for all: whoever is in the wrong one would get another's mail.
            if not isinstance(channel, SendsBatches) or channel.batches(messages) != [list(messages)]:
                return [NeverWritten("the account does not take these with one call")] * len(messages)
        except Exception as error:  # a bug of an adapter, before any byte
            return [NeverWritten(type(error).__name__)] * len(messages)
        try:
            outcomes = channel.submit_batch(first.batch, messages)
            if len(outcomes) != len(messages):
                raise LookupError("not one outcome for each message")
        except Exception as error:  # likewise: where in the call it happened nobody knows
            return [Ambiguous(error_class="adapter_error", reason=type(error).__name__)] * len(messages)
        return outcomes

    def _told(self, members: Sequence[Started], outcomes: Sequence[Outcome], seconds: float) -> list[Finished]:
        """What one call came to, in the ledger's words."""
        opened = self._open.get(members[0].account_id)
        name = opened.provider if opened else "unknown"
        ATTEMPT_SECONDS.labels(name).observe(seconds)
        told = []
        for started, outcome in zip(members, outcomes, strict=True):
            finished = as_finished(started, outcome, round(seconds * 1000))
            ATTEMPTS.labels(name, finished.kind).inc()
            steps.tell(
                steps.Step.SUBMITTED, started.send_id, seconds=seconds, provider=name, attempt=started.n,
                outcome=finished.kind,
            )  # fmt: skip
            told.append(finished)
        return told

    def _readable(self, candidates: Sequence[Started]) -> list[Outgoing]:
        """The messages of those that have one."""
        messages = []
        for started in candidates:
            with suppress(KeyMissing, MessageGone):
                messages.append(self._outgoing(started, NO_DEADLINE))
        return messages

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
