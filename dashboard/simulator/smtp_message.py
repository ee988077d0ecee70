"""Reads what came between DATA and the final dot. Nothing in it is refused: a mail server takes what it is given."""

from __future__ import annotations

from collections.abc import Sequence
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32

from dashboard.simulator.connection import Answer
from dashboard.simulator.dialect import Call, Draft, fingerprint


def read_message(content: bytes, *, sender: str, to: Sequence[str]) -> tuple[Call, Draft, str]:
    """The message as the provider keeps it, and the identity that chance goes by."""
    message = BytesParser(policy=compat32).parsebytes(content)
    draft = Draft(
        sender=_header(message, "From") or sender,
        to=tuple(to),
        address=to[0],
        subject=_header(message, "Subject") or "",
        text=_part(message, "text/plain"),
        html=_part(message, "text/html"),
        send_id=_header(message, "X-Send-Id"),
    )
    call = Call(
        drafts=(draft,),
        answer=lambda _: Answer(),
        key=_header(message, "Resend-Idempotency-Key"),
        fingerprint=fingerprint(content),
    )
    return call, draft, draft.send_id or _header(message, "Message-ID") or call.fingerprint


def _header(message: Message, name: str) -> str | None:
    value = message.get(name)
    if value is None:
        return None
    try:
        return str(make_header(decode_header(str(value)))).strip() or None
    except (ValueError, LookupError, HeaderParseError):
        return str(value).strip() or None


def _part(message: Message, kind: str) -> str | None:
    for part in message.walk():
        payload = part.get_payload(decode=True) if part.get_content_type() == kind else None
        if isinstance(payload, bytes):
            try:
                return payload.decode(part.get_content_charset("utf-8"), "replace")
            except LookupError:
                return payload.decode("utf-8", "replace")
    return None
