"""A message as the bytes that SMTP carries: the same on every attempt, whatever attempt, hour or Python runs.

Header lines are written here because ``email.policy.SMTP`` turns a long word without spaces, such as the link of a
List-Unsubscribe, into encoded words that no receiver reads.
"""

from __future__ import annotations

import re
from datetime import UTC
from email.header import Header
from email.quoprimime import body_encode
from email.utils import format_datetime
from uuid import UUID

from dashboard.providers.base import Outgoing
from dashboard.providers.wording import ascii_domain, mailbox, mailbox_text, message_id

_LINE = 78
_LONGEST_LINE = 998  # RFC 5322 §2.1.1


def message_bytes(outgoing: Outgoing) -> bytes:
    """The whole message with CRLF line ends. Raises ValueError for a domain that cannot be one."""
    message = outgoing.message
    sender_name, sender = parsed_mailbox(message.sender)
    lines = [
        header("Date", format_datetime(message.date.astimezone(UTC))),
        header("Message-ID", message_id(outgoing)),
        mailbox_header("From", sender_name, sender),
        mailbox_header("To", outgoing.recipient_name or "", ascii_domain(outgoing.address)),
    ]
    if message.reply_to is not None:
        lines.append(mailbox_header("Reply-To", *parsed_mailbox(message.reply_to)))
    lines.append(header("Subject", message.subject))
    lines.extend(header(name, value) for name, value in sorted(message.headers.items()))
    lines.append(header("X-Send-Id", str(outgoing.send_id)))
    lines.append(header("MIME-Version", "1.0"))
    return "".join([*lines, _body(message.text, message.html, outgoing.send_id)]).encode()


def parsed_mailbox(text: str) -> tuple[str, str]:
    """(display name, address with an ASCII domain). Raises ValueError if it is no mailbox."""
    found = mailbox(text)
    if found is None:
        raise ValueError("not an address, nor Name <address>")
    return found[0], ascii_domain(found[1])


def header(name: str, value: str) -> str:
    """One header line, folded at spaces; encoded words (RFC 2047) where it is not plain ASCII."""
    if value.isascii() and "=?" not in value:
        folded = _folded(f"{name}: {value}")
        if all(len(line) <= _LONGEST_LINE for line in folded.split("\r\n")):
            return folded + "\r\n"
    return f"{name}: {_encoded(name, value)}\r\n"


def mailbox_header(name: str, display_name: str, address: str) -> str:
    """A header with one mailbox."""
    if not display_name:
        return f"{name}: {address}\r\n"
    if display_name.isascii() and "=?" not in display_name and len(display_name) < _LONGEST_LINE // 4:
        return _folded(f"{name}: {mailbox_text(display_name, address)}") + "\r\n"
    return f"{name}: {_encoded(name, display_name)}\r\n <{address}>\r\n"


def _encoded(name: str, value: str) -> str:
    return Header(value, "utf-8", maxlinelen=_LINE - 2, header_name=name).encode(linesep="\r\n")


def _folded(line: str) -> str:
    """Broken before words that would cross the line's length; never into a line of nothing but spaces."""
    folded: list[str] = []
    current, *words = line.split(" ")
    for word in words:
        has_content = bool(current.strip()) and not (not folded and current.endswith(":"))
        if word and has_content and len(current) + 1 + len(word) > _LINE:
            folded.append(current)
            current = f" {word}"
        else:
            current = f"{current} {word}"
    return "\r\n".join([*folded, current])


def _body(text: str | None, html: str | None, send_id: UUID) -> str:
    parts = [_part(kind, content) for kind, content in (("plain", text), ("html", html)) if content is not None]
    if len(parts) == 1:
        return parts[0]
    boundary = f"=_{send_id.hex}"  # quoted-printable writes "=" as "=3D", so no part can hold it
    opened = "".join(f"--{boundary}\r\n{part}\r\n" for part in parts)
    return f'Content-Type: multipart/alternative; boundary="{boundary}"\r\n\r\n{opened}--{boundary}--\r\n'


def _part(kind: str, content: str) -> str:
    """Quoted-printable always: no line is too long, and nothing on the way has a reason to change a byte."""
    octets = re.sub(r"\r\n?", "\n", content).encode().decode("latin-1")  # one character a byte, as body_encode wants
    encoded = body_encode(octets, maxlinelen=76, eol="\r\n")
    return (
        f'Content-Type: text/{kind}; charset="utf-8"\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n'
        f"{encoded}{'' if encoded.endswith(chr(10)) else chr(13) + chr(10)}"
    )
