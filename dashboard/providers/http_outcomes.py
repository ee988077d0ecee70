"""How an HTTP answer is judged where a provider's own table says nothing else.

The default is doubt: a status without a row here is ambiguous, because the provider may have taken the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

from dashboard.providers.base import Ambiguous, CannotLookUp, NeverWritten, Outcome, Rejected, Scope
from dashboard.providers.reading import json_object
from dashboard.providers.results import Answer, NoAnswer
from dashboard.providers.wording import for_people

LONGEST_WAIT = 31 * 86_400.0
"""A Retry-After beyond a month is a mistake: it is cut to this many seconds."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What one kind of answer means, and the document that says so."""

    verdict: Literal["rejected", "retryable", "key_in_use", "ambiguous"]
    """*key_in_use*: a call under our key is running; repeat it, but nobody knows what became of the first."""
    scope: Scope | None
    source: str


_RFC = "RFC 9110 §15"
COMMON: Mapping[int, Ruling] = {
    # To be repeated elsewhere: not processed here, and we follow nobody. 302 and 303 may mean "done".
    301: Ruling("rejected", Scope.ACCOUNT, f"{_RFC}.4.2"),
    307: Ruling("rejected", Scope.ACCOUNT, f"{_RFC}.4.8"),
    308: Ruling("rejected", Scope.ACCOUNT, f"{_RFC}.4.9"),
    401: Ruling("rejected", Scope.ACCOUNT, f"{_RFC}.5.2"),
    402: Ruling("rejected", Scope.ACCOUNT, f"{_RFC}.5.3"),
    403: Ruling("rejected", Scope.ACCOUNT, f"{_RFC}.5.4"),
    404: Ruling("rejected", Scope.ACCOUNT, f"{_RFC}.5.5"),
    # Ours went out whole: whoever had no time may have waited for a server behind it, as gateways do.
    408: Ruling("ambiguous", None, f"{_RFC}.5.9 speaks of a request that did not arrive"),
    409: Ruling("ambiguous", Scope.MESSAGE, "a conflict may be with our own first try"),
    421: Ruling("retryable", None, f"{_RFC}.5.20: the wrong server, it does nothing"),
    425: Ruling("retryable", None, "RFC 8470 §5.2: the server was unwilling to process it yet"),
    429: Ruling("retryable", Scope.ACCOUNT, "RFC 6585 §4"),
}
OTHER_4XX = Ruling("rejected", Scope.MESSAGE, f"{_RFC}.5: the client's error, the request was not carried out")
REGISTERED_4XX = frozenset((*range(400, 418), *range(421, 427), 428, 429, 431, 451))
"""IANA's list of status codes. What is not on it (420, 460, 499) is somebody's own, such as a proxy's that gave up."""
DOUBT = Ruling("ambiguous", None, f"{_RFC}.6 and whatever is not documented")


def ruling_of(status: int) -> Ruling:
    """The common ruling over a status that is not the documented success."""
    return COMMON.get(status, OTHER_4XX if status in REGISTERED_4XX else DOUBT)


def outcome_of(result: Answer | NoAnswer | NeverWritten, judge: Callable[[Answer], Outcome]) -> Outcome:
    """The outcome of one call; ``judge``: what its provider's answers mean."""
    match result:
        case NeverWritten():
            return result
        case NoAnswer():
            return judge_failure(result)
        case Answer():
            return judge(result)


def readable(answer: Answer) -> dict[str, Any] | None:
    """The JSON object that the answer holds, if it does."""
    try:
        return json_object(answer.body)
    except ValueError:
        return None


def object_of(result: Answer | NoAnswer | NeverWritten) -> dict[str, Any]:
    """The JSON object in a 200. Raises :class:`CannotLookUp` for anything else."""
    if not isinstance(result, Answer):
        raise CannotLookUp(result.error if isinstance(result, NoAnswer) else result.reason)
    body = readable(result) if result.status == 200 else None
    if body is None:
        raise CannotLookUp(f"HTTP {result.status} without an answer")
    return body


def listed(result: Answer | NoAnswer | NeverWritten, name: str) -> list[Any]:
    """The list of that name in a 200. Raises :class:`CannotLookUp` for anything else."""
    found = object_of(result).get(name)
    if not isinstance(found, list):
        raise CannotLookUp(f"an answer without {name}")
    return found


def judge_refusal(
    answer: Answer, ruling: Ruling, *, error_code: str | None, words: str = "", request_id: str | None = None
) -> Outcome:
    """The outcome of an answer that is not the documented success. ``words``: what the provider said about it."""
    reason = for_people(words) or f"HTTP {answer.status}"
    if ruling.verdict == "ambiguous":
        return Ambiguous(
            error_class=f"http_{answer.status}", reason=reason, error_code=error_code, request_id=request_id
        )
    retryable = ruling.verdict != "rejected"
    return Rejected(
        scope=ruling.scope,
        retryable=retryable,
        key_in_use=ruling.verdict == "key_in_use",
        retry_after_seconds=retry_after(answer.headers, answer.received_at) if retryable else None,
        error_code=error_code,
        reason=reason,
        request_id=request_id,
    )


def judge_failure(failure: NoAnswer) -> Outcome:
    """The outcome of a call without an answer: a definite no only if no byte was written."""
    reason = failure.error.replace("_", " ")
    if failure.request_written:
        return Ambiguous(error_class=failure.error, reason=reason)
    return Rejected(scope=None, retryable=True, reason=reason, phase="connect")


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """``Retry-After`` as seconds from now (RFC 9110 §10.2.3: seconds or a date), never negative; None if unreadable.

    A date counts from the answer's own ``Date``, where it has one: this machine's clock may be wrong.
    """
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdecimal():
        return min(float(value), LONGEST_WAIT)
    until = _date(value)
    if until is None:
        return None
    seconds = (until - (_date(headers.get("date", "")) or now or datetime.now(UTC))).total_seconds()
    return min(max(seconds, 0.0), LONGEST_WAIT)


def _date(value: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(value)
        return at.replace(tzinfo=at.tzinfo or UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
