"""What came back over the wire for one call, before it is judged: an answer, a failure, or an SMTP session.

Adapters judge these values without a network, so the same code decides in production and over recorded samples.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A complete HTTP response."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""
    body: bytes = b""
    end_marked: bool = True
    """False: nothing but the end of the connection said where the body ends, so it may have been cut off."""
    received_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    """When it came: some say by the clock when to come again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    """A call without a complete response."""

    error: str
    """Groups alike failures: ``dns connect_refused connect_timeout connect_failed tls_error read_timeout reset
    cut_off garbage``."""
    request_written: bool
    """False only where it is proved that no byte of the request was handed over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpFailure:
    """Where and how an SMTP session broke."""

    phase: str
    error: str
    final_dot_written: bool | None = None
    """Whether any byte of the end of the message may have been handed over; None: as the phase says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpSession:
    """One SMTP or LMTP transaction: the replies by phase, in order, and the failure that ended it, if one did."""

    replies: tuple[tuple[str, str], ...] = ()
    """(phase, reply text); phases ``banner ehlo starttls auth mail_from rcpt_to data data_body final_dot bdat_last
    quit``."""
    failure: SmtpFailure | None = None
    recipients: tuple[str, ...] = ("",)
    lmtp: bool = False


SendResult = Answer | NoAnswer | SmtpSession


def as_result(recorded: SendResult | Mapping[str, Any]) -> SendResult:
    """A result from its plain form: ``status, headers, body, received_at``; ``error, request_written``; or
    ``replies, failure``.

    ``body`` may be bytes, text, or what JSON would give. Raises ValueError for anything else.
    """
    if not isinstance(recorded, Mapping):
        return recorded
    if "status" in recorded:
        body = recorded["body_text"] if recorded.get("body_text") is not None else recorded.get("body", b"")
        headers = {str(name).lower(): str(value) for name, value in (recorded.get("headers") or {}).items()}
        at = recorded.get("received_at")
        return Answer(
            status=int(recorded["status"]),
            headers=headers,
            body=body_bytes(body),
            received_at=datetime.fromisoformat(at) if at else datetime.now(UTC),
        )
    if "replies" in recorded:
        return _session(recorded)
    if "error" in recorded:
        return NoAnswer(error=str(recorded["error"]), request_written=recorded.get("request_written") is not False)
    raise ValueError("a send result has a status, an error, or SMTP replies")


def body_bytes(body: object) -> bytes:
    """The bytes of a recorded body: as they are, as UTF-8, or as compact JSON."""
    if isinstance(body, bytes):
        return body
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return text.encode()


def _session(recorded: Mapping[str, Any]) -> SmtpSession:
    failure = recorded.get("failure")
    return SmtpSession(
        replies=tuple((str(phase), str(text)) for phase, text in recorded["replies"]),
        failure=failure
        and SmtpFailure(
            phase=str(failure["phase"]),
            error=str(failure["error"]),
            final_dot_written=failure.get("final_dot_written", failure.get("last_chunk_written")),
        ),
        recipients=tuple(str(address) for address in recorded.get("to") or ("",)),
        lmtp=recorded.get("protocol") == "lmtp",
    )
