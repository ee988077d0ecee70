"""Resend's HTTP API, from its documents: Send Email, Send Batch Emails, Retrieve Email, Errors, Idempotency Keys,
Rate Limit. Names, codes and shapes are the vendor's; the sentences in ``message`` are ours.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from dashboard.simulator import recipients
from dashboard.simulator.connection import Answer, Request, Way
from dashboard.simulator.events import Mail
from dashboard.simulator.keys import Conflict, Use
from dashboard.simulator.provider import Call, Draft, Provider
from dashboard.simulator.resend_request import Refused, read_batch, read_email
from dashboard.simulator.throttle import Throttle

SEND_ENDPOINTS = ("/emails", "/emails/batch")
NOT_TAKEN = frozenset({"reset_before", "http_500_not_taken", "http_429"})
PAGE = b"<!doctype html><title>Gateway</title><p>Your request was processed.</p>"


class Resend:
    """Answers one request at a time; every decision is made, and every acceptance booked, before it returns."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._throttle = Throttle()

    def handle(self, request: Request) -> Answer:
        """The answer to a request of a vendor's client."""
        try:
            answer = self._route(request)
        except Refused as refused:
            answer = error(refused.status, refused.name, refused.message)
        if answer.way is Way.ANSWER:
            self._provider.counts[f"http_{answer.status}"] += 1
        return answer

    def _route(self, request: Request) -> Answer:
        self._authenticate(request)
        if request.path in SEND_ENDPOINTS:
            if request.method == "POST":
                return self._send(request)
            raise Refused(405, "method_not_allowed", "This endpoint takes POST.")
        if request.path.startswith("/emails/"):
            if request.method == "GET":
                return self._retrieve(request.path.removeprefix("/emails/"))
            raise Refused(405, "method_not_allowed", "This endpoint takes GET.")
        raise Refused(404, "not_found", "There is no such endpoint.")

    def _authenticate(self, request: Request) -> None:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise Refused(401, "missing_api_key", "The Authorization header carries no API key.")
        wanted = self._provider.config.api_key
        if wanted is not None and key.strip() != wanted:
            raise Refused(403, "invalid_api_key", "This API key is not known.")

    # ── sending ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _send(self, request: Request) -> Answer:
        provider, now = self._provider, time.time()
        limits = self._throttle.take(provider.config, now)
        if limits.exceeded:
            retry = {"retry-after": str(provider.config.retry_after_seconds)}
            return error(429, "rate_limit_exceeded", "Too many requests in this second.", {**limits.headers, **retry})
        drafts, errors = _drafts(request)
        if any("reject" in recipients.words_of(draft.address) for draft in drafts):
            raise Refused(422, "validation_error", "The `to` address is refused, as its name asks for.")
        call = Call(
            protocol="resend",
            endpoint=request.path,
            key=_key(request),
            fingerprint=hashlib.sha256(request.body).hexdigest(),
        )
        words = recipients.words_of(drafts[0].address) if drafts else frozenset[str]()
        fault = provider.fault("resend", _identity(call, drafts), words)
        if fault in NOT_TAKEN:
            return self._not_taken(fault, limits.headers)
        answer = self._taken(call, drafts, errors, now)
        answer.headers = limits.headers if answer.status != 200 else {**limits.headers, **self._quota_headers()}
        return self._spoiled(answer, fault) if answer.status == 200 else answer

    def _taken(self, call: Call, drafts: Sequence[Draft], errors: Sequence[dict[str, Any]], now: float) -> Answer:
        """Accept, or give the first answer of the key again, or say why neither."""
        provider = self._provider
        keyed = call.key is not None and provider.config.honour_keys
        if keyed:
            known = provider.keys.look(call.endpoint, call.key or "", call.fingerprint, now)
            if known is Conflict.OTHER_BODY:
                return error(409, "invalid_idempotent_request", "The key was used with another body before.")
            if known is Conflict.IN_PROGRESS:
                return error(409, "concurrent_idempotent_requests", "A request with this key is being worked on.")
            if isinstance(known, Use):
                provider.counts["replayed"] += 1
                return _accepted(call.endpoint, known.message_ids, errors)
        quota = provider.config.daily_quota
        if quota is not None and len(provider.books) + len(drafts) > quota:
            return error(429, "daily_quota_exceeded", "The quota of the day is used up.")
        ids, overtaken_by = provider.accept(call, drafts)
        answer = _accepted(call.endpoint, ids, errors)
        answer.after = (*provider.held(), *overtaken_by)
        if keyed:
            use = Use(call.fingerprint, now, tuple(ids))
            provider.keys.take(call.endpoint, call.key or "", use)
            answer.left = _mark_answered(use)
        return answer

    def _spoiled(self, answer: Answer, fault: str | None) -> Answer:
        """What is left of the answer to a call that was accepted."""
        match fault:
            case "accept_then_timeout":
                answer.way = Way.SILENCE
            case "reset_after":
                answer.way = Way.RESET
            case "http_500_taken":
                answer.status = 500
                answer.body = error(500, "application_error", "Something broke.").body
            case "slow":
                answer.delay = self._provider.config.slow_ms / 1000
            case "garbage":
                answer.content_type, answer.body = "text/html", PAGE
        return answer

    def _not_taken(self, fault: str | None, headers: dict[str, str]) -> Answer:
        if fault == "reset_before":
            return Answer(way=Way.RESET)
        if fault == "http_500_not_taken":
            return error(500, "application_error", "Something broke.", headers)
        retry = {"retry-after": str(self._provider.config.retry_after_seconds)}
        return error(429, "rate_limit_exceeded", "Too many requests.", {**headers, "ratelimit-remaining": "0", **retry})

    def _quota_headers(self) -> dict[str, str]:
        if self._provider.config.daily_quota is None:
            return {}
        return {"x-resend-daily-quota": str(len(self._provider.books))}

    # ── looking up ───────────────────────────────────────────────────────────────────────────────────────────────

    def _retrieve(self, message_id: str) -> Answer:
        mail = self._provider.mails.get(message_id)
        if mail is None or mail.protocol != "resend":
            raise Refused(404, "not_found", "There is no email with this id.")
        return as_json(200, _described(mail, time.time()))


def error(status: int, name: str, message: str, headers: dict[str, str] | None = None) -> Answer:
    """An error in the vendor's shape."""
    return as_json(status, {"statusCode": status, "name": name, "message": message}, headers)


def as_json(status: int, document: Any, headers: dict[str, str] | None = None) -> Answer:
    """An answer with this document."""
    body = json.dumps(document, separators=(",", ":")).encode()
    return Answer(status=status, body=body, headers=headers or {})


def _drafts(request: Request) -> tuple[list[Draft], list[dict[str, Any]]]:
    if request.path == "/emails":
        return [read_email(request.body)], []
    return read_batch(request.body, permissive=request.headers.get("x-batch-validation") == "permissive")


def _key(request: Request) -> str | None:
    key = request.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key) <= 256:
        raise Refused(400, "invalid_idempotency_key", "The key must have 1 to 256 characters.")
    return key


def _identity(call: Call, drafts: Sequence[Draft]) -> str:
    """What chance goes by, the same on every repeat of a call."""
    if len(drafts) == 1 and drafts[0].send_id:
        return drafts[0].send_id
    return call.key or " ".join(draft.send_id or "" for draft in drafts).strip() or call.fingerprint


def _accepted(endpoint: str, ids: Sequence[str], errors: Sequence[dict[str, Any]] = ()) -> Answer:
    if endpoint == "/emails":
        return as_json(200, {"id": ids[0]})
    document: dict[str, Any] = {"data": [{"id": each} for each in ids]}
    return as_json(200, document | ({"errors": list(errors)} if errors else {}))


def _mark_answered(use: Use) -> Callable[[], None]:
    def mark() -> None:
        use.answered = True

    return mark


def _described(mail: Mail, now: float) -> dict[str, Any]:
    """The resource of Retrieve Email; its time has a blank instead of the ``T``."""
    happened = [fact.type for fact in mail.story if fact.at <= now]
    return {
        "object": "email",
        "id": mail.message_id,
        "from": mail.sender,
        "to": list(mail.to),
        "cc": [],
        "bcc": [],
        "reply_to": [],
        "subject": mail.subject,
        "text": mail.text,
        "html": mail.html,
        "created_at": datetime.fromtimestamp(mail.accepted_at, UTC).isoformat(" ", "microseconds"),
        "scheduled_at": None,
        "last_event": happened[-1].removeprefix("email.") if happened else "queued",
        "tags": [{"name": name, "value": value} for name, value in mail.tags.items()],
    }
