"""A provider whose books are beyond doubt, and everything that may go wrong with a call to it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import uuid4

from dashboard.providers.base import Accepted, Ambiguous, NeverWritten, Outcome, Rejected, Scope


class Fault(StrEnum):
    """What becomes of one call."""

    ACCEPTED = "accepted"
    ANSWER_LOST = "answer_lost"  # taken, and the worker's time-out comes before the answer
    TAKEN_LATE = "taken_late"  # no answer, and it is taken at the last moment of the declared settling time
    NOT_TAKEN = "not_taken"  # no answer, and it was not taken
    RESET = "reset"  # the connection ended before the request
    REFUSED = "refused"
    REFUSED_FOR_NOW = "refused_for_now"
    ACCOUNT_TROUBLE = "account_trouble"
    INEXPRESSIBLE = "inexpressible"  # the adapter cannot write it


_NO_ANSWER = Ambiguous(error_class="read_timeout", reason="no answer in time", phase="response")

_OUTCOMES: dict[Fault, Outcome] = {
    Fault.ANSWER_LOST: _NO_ANSWER,
    Fault.TAKEN_LATE: _NO_ANSWER,
    Fault.NOT_TAKEN: _NO_ANSWER,
    Fault.RESET: NeverWritten(reason="the connection was refused"),
    Fault.REFUSED: Rejected(scope=Scope.MESSAGE, retryable=False, reason="not a mailbox"),
    Fault.REFUSED_FOR_NOW: Rejected(scope=Scope.MESSAGE, retryable=True, reason="try later"),
    Fault.ACCOUNT_TROUBLE: Rejected(scope=Scope.ACCOUNT, retryable=False, reason="the key was revoked"),
    Fault.INEXPRESSIBLE: NeverWritten(reason="no such header", permanent=True),
}

TOO_LATE = NeverWritten(reason="the submit deadline had passed")
"""What every adapter answers where it finds the deadline passed before the first byte."""


@dataclass
class Copy:
    """One message that the provider took."""

    message_id: str
    attempt: int
    """The number of the attempt, which travels with the message where no key is honoured."""


@dataclass
class Books:
    """What the provider did for one send."""

    keys: bool
    faults: tuple[Fault, ...] = ()
    calls: int = 0
    copies: list[Copy] = field(default_factory=list)
    coming: int | None = None
    """An attempt that was not answered and will be taken when its settling time ends."""

    def call(self, attempt: int) -> Outcome:
        """A call arrives."""
        fault = self.faults[self.calls] if self.calls < len(self.faults) else Fault.ACCEPTED
        self.calls += 1
        match fault:
            case Fault.ACCEPTED:
                return Accepted(provider_message_id=self.take(attempt).message_id)
            case Fault.ANSWER_LOST:
                self.take(attempt)
            case Fault.TAKEN_LATE:
                self.coming = attempt
            case _:
                pass
        return _OUTCOMES[fault]

    def take(self, attempt: int) -> Copy:
        """Take a message. A repeat under an honoured key gets the first answer again."""
        if not self.copies or not self.keys:
            self.copies.append(Copy(uuid4().hex, attempt))
        return self.copies[0] if self.keys else self.copies[-1]

    def settle(self) -> None:
        """The settling time is over: what was still coming has come."""
        if self.coming is not None:
            self.take(self.coming)
            self.coming = None
