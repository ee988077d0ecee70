"""The HTTP API of the vendor that is played: what is common to all of them, from the credentials to the answer that
leaves, or does not. Every decision is made, and every acceptance booked, before an answer is returned.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from dashboard.simulator import recipients
from dashboard.simulator.connection import Answer, Request, Way
from dashboard.simulator.dialect import Call, Dialect, Limits, Refused
from dashboard.simulator.keys import Conflict, Use
from dashboard.simulator.provider import Provider
from dashboard.simulator.throttle import Throttle

NOT_TAKEN = frozenset({"reset_before", "timeout_before", "http_500_not_taken", "http_429"})
PAGE = b"<!doctype html><title>Gateway</title><p>Your request was processed.</p>"


class Api:
    """Answers one request at a time, in the words of one dialect."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._dialect: Dialect = provider.dialect
        self._throttle = Throttle()

    def handle(self, request: Request) -> Answer:
        """The answer to a request of a vendor's client."""
        try:
            answer = self._route(request)
        except Refused as refused:
            answer = self._dialect.refusal(refused.error)
        if answer.way is Way.ANSWER:
            self._provider.counts[f"http_{answer.status}"] += 1
        return answer

    def _route(self, request: Request) -> Answer:
        public = self._dialect.public(request, self._provider)
        if public is not None:
            return public
        self._dialect.authenticate(request, self._provider.config)
        call = self._dialect.read_call(request)
        return self._dialect.other(request, self._provider) if call is None else self._send(call)

    # ── sending ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _send(self, call: Call) -> Answer:
        provider, now = self._provider, time.time()
        limits = self._throttle.take(provider.config, len(provider.books), now)
        answer = self._judged(call, limits, now)
        if limits.quota_used is not None:
            limits = replace(limits, quota_used=len(provider.books))
        answer.headers = {**answer.headers, **self._dialect.limit_headers(limits, now)}
        return answer

    def _judged(self, call: Call, limits: Limits, now: float) -> Answer:
        provider = self._provider
        if limits.retry_after is not None:
            return self._refuse("busy")
        if provider.config.error is not None:
            return self._refuse(provider.config.error)
        if any("reject" in recipients.words_of(draft.address) for draft in call.drafts):
            return self._refuse("rejected")
        words = recipients.words_of(call.drafts[0].address) if call.drafts else frozenset[str]()
        fault = provider.fault(self._dialect.name, _identity(call), words)
        if fault in NOT_TAKEN:
            return self._not_taken(fault, limits, now)
        taken = self._taken(call, now)
        return taken if isinstance(taken, Answer) else self._spoiled(taken.answer, fault)

    def _refuse(self, error: str) -> Answer:
        return self._dialect.refusal(self._dialect.errors[error])

    def _taken(self, call: Call, now: float) -> Answer | _Taken:
        """Accept, or give the first answer of the key again, or say why neither."""
        provider = self._provider
        keyed = call.key is not None and provider.config.honour_keys
        if keyed:
            known = provider.keys.look(call.endpoint, call.key or "", call.fingerprint, now)
            if isinstance(known, Conflict):
                return self._refuse("other_body" if known is Conflict.OTHER_BODY else "in_progress")
            if isinstance(known, Use):
                provider.counts["replayed"] += 1
                if "repeated" in self._dialect.errors:
                    return self._refuse("repeated")
                first = call.answer(known.message_ids)
                first.headers = {**first.headers, **self._dialect.replay_headers}
                return _Taken(first)
        quota = provider.config.daily_quota
        if quota is not None and len(provider.books) + len(call.drafts) > quota:
            return self._refuse("quota")
        ids, overtaken_by = provider.accept(call)
        answer = call.answer(ids)
        answer.after = (*provider.held(), *overtaken_by)
        if keyed:
            use = Use(call.fingerprint, now, tuple(ids))
            provider.keys.take(call.endpoint, call.key or "", use)
            answer.left = _mark_answered(use)
        return _Taken(answer)

    def _spoiled(self, answer: Answer, fault: str | None) -> Answer:
        """What is left of the answer to a call that was accepted."""
        match fault:
            case "accept_then_timeout":
                answer.way = Way.SILENCE
            case "reset_after":
                answer.way = Way.RESET
            case "http_500_taken":
                broken = self._refuse("broken")
                broken.after, broken.left = answer.after, answer.left
                return broken
            case "slow":
                answer.delay = self._provider.config.slow_ms / 1000
            case "garbage":
                answer.status, answer.content_type, answer.body, answer.headers = 200, "text/html", PAGE, {}
        return answer

    def _not_taken(self, fault: str | None, limits: Limits, now: float) -> Answer:
        match fault:
            case "reset_before":
                return Answer(way=Way.RESET)
            case "timeout_before":
                return Answer(way=Way.SILENCE)
            case "http_500_not_taken":
                return self._refuse("broken")
        over = Limits(limits.limit, 0, self._provider.config.retry_after_seconds, limits.quota_used)
        busy = self._refuse("busy")
        busy.headers = {**busy.headers, **self._dialect.limit_headers(over, now)}
        return busy


class _Taken:
    """A success whose answer may still go wrong."""

    __slots__ = ("answer",)

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


def _identity(call: Call) -> str:
    """What chance goes by, the same on every repeat of a call."""
    drafts = call.drafts
    if len(drafts) == 1 and drafts[0].send_id:
        return drafts[0].send_id
    return call.key or " ".join(draft.send_id or "" for draft in drafts).strip() or call.fingerprint


def _mark_answered(use: Use) -> Callable[[], None]:
    def mark() -> None:
        use.answered = True

    return mark
