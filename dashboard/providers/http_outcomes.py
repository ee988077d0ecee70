"""One HTTP call for one send or several, and how its answer is judged where a provider's own table says nothing else.

The default is doubt: a status without a row here is ambiguous, because the provider may have taken the message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal, TypeVar

from dashboard.providers.base import (
    Ambiguous,
    CannotLookUp,
    Deadline,
    NeverWritten,
    Outcome,
    Outgoing,
    Rejected,
    Scope,
)
from dashboard.providers.reading import json_object
from dashboard.providers.results import Answer, NoAnswer, SendResult
from dashboard.providers.wording import for_people, why_unsendable

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


def call_once(
    outgoing: Outgoing,
    *,
    write: Callable[[Outgoing], bytes],
    post: Callable[[bytes], Answer | NoAnswer | NeverWritten],
    judge: Callable[[Answer], Outcome],
) -> Outcome:
    """Write the body of one send, post it once, and judge what came back.

    ``write`` raises ValueError, in words for the message's author, for what the provider can never be told.
    """
    if reason := why_unsendable(outgoing):
        return NeverWritten(reason, permanent=True)
    try:
        body = write(outgoing)
    except ValueError as error:
        return NeverWritten(str(error), permanent=True)
    return outcome_of(post(body), judge)


Entry = TypeVar("Entry")


def call_for_all(
    members: Sequence[Outgoing],
    *,
    entry: Callable[[Outgoing], Entry],
    write: Callable[[Sequence[Outgoing], Sequence[Entry]], bytes],
    post: Callable[[bytes, Deadline], Answer | NoAnswer | NeverWritten],
    judge: Callable[[Answer, Sequence[Outgoing]], list[Outcome]],
) -> list[Outcome]:
    """Write several sends into one body, post it once, and judge what came back. One outcome each, in their order.

    ``entry`` writes what is one member's own; one for whom it raises ValueError, as ``write`` of :func:`call_once`
    does, stays out of the call. ``write`` puts these into one body, and raises it for what they have in common.
    ``judge``: what an answer means to each of those that are in the call. The earliest of their deadlines counts.
    """
    outcomes: dict[int, Outcome] = {}
    entries: dict[int, Entry] = {}
    for place, member in enumerate(members):
        try:
            if reason := why_unsendable(member):
                raise ValueError(reason)
            entries[place] = entry(member)
        except ValueError as error:
            outcomes[place] = NeverWritten(str(error), permanent=True)
    if entries:
        sent = [members[place] for place in entries]
        result = _post_all(sent, list(entries.values()), write=write, post=post)
        told = judge(result, sent) if isinstance(result, Answer) else [without_answer(result)] * len(sent)
        outcomes |= dict(zip(entries, told, strict=True))
    return [outcomes[place] for place in range(len(members))]


def _post_all(
    sent: Sequence[Outgoing],
    entries: Sequence[Entry],
    *,
    write: Callable[[Sequence[Outgoing], Sequence[Entry]], bytes],
    post: Callable[[bytes, Deadline], Answer | NoAnswer | NeverWritten],
) -> Answer | NoAnswer | NeverWritten:
    try:
        body = write(sent, entries)
    except ValueError as error:  # of what they have in common
        return NeverWritten(str(error), permanent=True)
    return post(body, min((member.deadline for member in sent), key=lambda deadline: deadline.at))


def told_to_each(outcome: Outcome, members: Sequence[Outgoing]) -> list[Outcome]:
    """The outcome of one call to each of its members.

    That one of several cannot be taken is no judgement on the others, nor does anybody say which it is: they are
    refused for now, and each goes alone the next time.
    """
    if len(members) > 1 and isinstance(outcome, Rejected) and outcome.scope is Scope.MESSAGE and not outcome.retryable:
        outcome = replace(
            outcome, retryable=True, reason=f"refused for one of {len(members)} messages: {outcome.reason}"
        )
    return [outcome] * len(members)


def outcome_of(result: Answer | NoAnswer | NeverWritten, judge: Callable[[Answer], Outcome]) -> Outcome:
    """The outcome of one call; ``judge``: what its provider's answers mean."""
    return judge(result) if isinstance(result, Answer) else without_answer(result)


def without_answer(result: NoAnswer | NeverWritten) -> Outcome:
    """The outcome of a call that has no answer to judge."""
    return judge_failure(result) if isinstance(result, NoAnswer) else result


def judge_result(title: str, result: SendResult, judge: Callable[[Answer], Outcome]) -> Outcome:
    """The outcome of one recorded result. Raises ValueError for a result of another protocol."""
    if not isinstance(result, Answer | NoAnswer):
        raise ValueError(f"{title} speaks HTTP: give a status or an error")
    return outcome_of(result, judge)


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


def judge_by_table(
    answer: Answer,
    rulings: Mapping[tuple[int, str], Ruling],
    *,
    body_read: bool,
    error_code: str | None,
    words: str = "",
    request_id: str | None = None,
) -> Outcome:
    """The outcome of an answer that is not the documented yes: by status and code, any other by its status alone.

    ``body_read``: the body is whole, since it could be read; one that could not, and has no end, may have been cut off.
    """
    if not body_read and not answer.end_marked:
        return Ambiguous(error_class="cut_off", reason=f"HTTP {answer.status} without an end", request_id=request_id)
    ruling = rulings.get((answer.status, error_code or "")) or ruling_of(answer.status)
    return judge_refusal(answer, ruling, error_code=error_code, words=words, request_id=request_id)


def unreadable(answer: Answer, reason: str, request_id: str | None = None) -> Ambiguous:
    """The outcome of a success status whose body is not the documented one."""
    return Ambiguous(error_class="unreadable_answer", reason=f"HTTP {answer.status} {reason}", request_id=request_id)


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
    until = http_date(value)
    if until is None:
        return None
    seconds = (until - (http_date(headers.get("date", "")) or now or datetime.now(UTC))).total_seconds()
    return min(max(seconds, 0.0), LONGEST_WAIT)


def http_date(value: str) -> datetime | None:
    """A date as HTTP writes it (RFC 9110 §5.6.7), in UTC; None if it cannot be read."""
    try:
        at = parsedate_to_datetime(value)
        return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
