"""What the recipient of an accepted message does with it: answer, by a mail such as any program for mail writes it.

How the vendor hands such a mail in is the dialect's part (`Dialect.hand_in`).
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import default
from email.utils import format_datetime, formataddr, make_msgid
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from dashboard.simulator.events import Mail

WHOLE_LINES = default.clone(max_line_length=900)
"""Or Python would fold a long Message-ID into encoded words, which no program for mail does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How somebody answers. Whatever is not said is as the recipient's own program would have it."""

    text: str = "Thank you, that is all I wanted to know."
    sender: str | None = None
    """Another address than that of the recipient."""
    to: str | None = None
    """Another address than the Reply-To of the message, or its From."""
    automatic: bool = False
    """Nobody is there: a responder answers (RFC 3834)."""
    threaded: bool = True
    """It names the message that it answers."""
    headers: Mapping[str, str] | None = None
    """More headers, or other values."""


class Letter(NamedTuple):
    """A mail as it arrives at the vendor's mail server, with its envelope."""

    mail: EmailMessage
    sender: str
    recipient: str


class HandIn(NamedTuple):
    """A request by which the vendor hands a mail in."""

    headers: Mapping[str, str]
    body: bytes


def answer(mail: Mail, message_id: str, wish: Wish, now: float) -> Letter:
    """The mail that answers this one, which its recipient saw under this Message-ID."""
    sender, to = wish.sender or mail.address, wish.to or mail.reply_to or mail.sender
    said = EmailMessage(policy=WHOLE_LINES)
    said["From"] = formataddr(("Ada, who answers", sender))
    said["To"] = to
    said["Subject"] = f"{'Automatic reply' if wish.automatic else 'Re'}: {mail.subject}"
    said["Date"] = format_datetime(datetime.fromtimestamp(int(now), UTC))
    said["Message-ID"] = make_msgid(domain="mail.example.test")
    if wish.threaded:
        said["In-Reply-To"] = said["References"] = f"<{message_id}>"
    if wish.automatic:
        said["Auto-Submitted"] = "auto-replied"
    for name, value in (wish.headers or {}).items():
        del said[name]
        said[name] = value
    quoted = "".join(f"> {line}\n" for line in (mail.text or "").splitlines())
    said.set_content(f"{wish.text}\n\nOn that day the shop wrote:\n{quoted}")
    recipient = to[to.rindex("<") + 1 : -1] if to.endswith(">") else to
    return Letter(said, "" if wish.automatic else sender, recipient)


def plain_text(mail: EmailMessage) -> str:
    """What a mail says, as vendors take it out of it."""
    return str(mail.get_content())


def own_words(mail: EmailMessage) -> str:
    """The same without what it quotes, as vendors take that away."""
    return plain_text(mail).partition("\n\nOn that day")[0]


def pairs(mail: EmailMessage) -> list[tuple[str, str]]:
    """All headers in their order."""
    return [(name, str(value)) for name, value in mail.items()]


def apart(url: str) -> tuple[str, dict[str, str]]:
    """An address without its name and password, and the header that says them (RFC 7617)."""
    parts = urlsplit(url)
    if parts.username is None:
        return url, {}
    said = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    plain = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    return plain, {"authorization": "Basic " + base64.b64encode(said.encode()).decode()}
