"""What may go out in a message, and what of a provider's words may be kept."""

from __future__ import annotations

import re
from collections.abc import Iterator

import idna

from dashboard.providers.base import Message, Outgoing

RESERVED_HEADERS = frozenset(
    {"from", "to", "cc", "bcc", "subject", "date", "message-id", "reply-to"}
    | {"return-path", "received", "mime-version", "x-send-id"}
)
"""Set by Sendonce itself, or by a fixed choice: a send has one recipient, so Cc and Bcc do not exist."""

_HEADER_NAME = re.compile(r"[!-9;-~]{1,64}")  # RFC 5322 §3.6.8: printable ASCII without the colon
_NOT_ON_ONE_LINE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f\x85\u2028\u2029\ud800-\udfff]")
_NOT_IN_A_BODY = re.compile(r"[\x00\ud800-\udfff]")
_BARE_ADDRESS = re.compile(r'[^\s@<>(),;:\\"\[\]]{1,64}@[^\s@<>(),;:\\"\[\]]{1,255}')
_NAMED_ADDRESS = re.compile(r'(?:"(?P<quoted>(?:[^"\\]|\\.)*)"\s*|(?P<plain>[^"<>@]*))<(?P<address>[^<>]*)>')
_NEEDS_QUOTES = re.compile(r'[()<>\[\]:;@\\,."]')
_ADDRESS_IN_TEXT = re.compile(r"[^\s<>\"'(),;:=]+@[^\s<>\"'(),;:]+")


def why_unsendable(outgoing: Outgoing) -> str | None:
    """Why no adapter may write this message, in words for its author; None if nothing speaks against it.

    Line breaks in what becomes a header would let the content write headers of its own; NUL and lone surrogates
    cannot be carried at all.
    """
    message = outgoing.message
    for name, value in _header_texts(outgoing):
        if found := _NOT_ON_ONE_LINE.search(value):
            return f"{name} contains {_called(found.group())}"
    for name, body in (("text", message.text), ("html", message.html)):
        if found := _NOT_IN_A_BODY.search(body or ""):
            return f"{name} contains {_called(found.group())}"
    if message.text is None and message.html is None:
        return "the message has neither text nor html"
    return _why_bad_addresses(outgoing) or _why_bad_headers(message)


def _why_bad_addresses(outgoing: Outgoing) -> str | None:
    message = outgoing.message
    if not _BARE_ADDRESS.fullmatch(outgoing.address):
        return "the recipient's address is not a bare address"
    if mailbox(message.sender) is None:
        return "from must be an address, or Name <address>"
    if message.reply_to is not None and mailbox(message.reply_to) is None:
        return "reply_to must be an address, or Name <address>"
    return None


def _why_bad_headers(message: Message) -> str | None:
    for name in message.headers:
        if not _HEADER_NAME.fullmatch(name):
            return f"{name!r} is not a header name"
        if name.lower() in RESERVED_HEADERS or name.lower().startswith(("content-", "resent-")):
            return f"the header {name} cannot be set by a message"
    if len({name.lower() for name in message.headers}) < len(message.headers):
        return "a header is given twice"
    return None


def mailbox(text: str) -> tuple[str, str] | None:
    """(display name, bare address) of exactly one mailbox, else None.

    A name with a comma is taken without quotes too, since that is how people write companies.
    """
    if _BARE_ADDRESS.fullmatch(text.strip()):
        return "", text.strip()
    found = _NAMED_ADDRESS.fullmatch(text.strip())
    if found is None or not _BARE_ADDRESS.fullmatch(found["address"]):
        return None
    if found["quoted"] is not None:
        return re.sub(r"\\(.)", r"\1", found["quoted"]), found["address"]
    return found["plain"].strip(), found["address"]


def mailbox_text(name: str, address: str) -> str:
    """One mailbox as text, the name in quotes where it needs them (RFC 5322 §3.2.3, §3.4)."""
    if not name:
        return address
    if not _NEEDS_QUOTES.search(name):
        return f"{name} <{address}>"
    escaped = re.sub(r'(["\\])', r"\\\1", name)
    return f'"{escaped}" <{address}>'


def tidy(text: str) -> str:
    """A mailbox with quotes where they are needed."""
    found = mailbox(text)
    return mailbox_text(*found) if found else text


def message_id(outgoing: Outgoing) -> str:
    """The Message-ID of a send: the same on every attempt, under the sender's domain. Raises ValueError for a domain
    that cannot be one."""
    found = mailbox(outgoing.message.sender)
    if found is None:
        raise ValueError("from must be an address, or Name <address>")
    return f"<{outgoing.send_id}@{ascii_domain(found[1]).rpartition('@')[2]}>"


def ascii_domain(address: str) -> str:
    """The address with its domain in IDNA form; the local part stays. Raises ValueError for an impossible domain."""
    local, _, domain = address.rpartition("@")
    if domain.isascii():
        return address
    try:
        return f"{local}@{idna.encode(domain, uts46=True).decode()}"
    except idna.IDNAError:
        raise ValueError("the domain of an address cannot be written in IDNA form") from None


def for_people(text: str, longest: int = 300) -> str:
    """A provider's words without addresses and control characters, at most ``longest`` characters."""
    plain = "".join(c if c.isprintable() else " " for c in text[: longest * 4])
    return " ".join(_ADDRESS_IN_TEXT.sub("<address>", plain).split())[:longest]


def _header_texts(outgoing: Outgoing) -> Iterator[tuple[str, str]]:
    message = outgoing.message
    yield "from", message.sender
    yield "the recipient's address", outgoing.address
    yield "the recipient's name", outgoing.recipient_name or ""
    yield "subject", message.subject
    yield "reply_to", message.reply_to or ""
    for name, value in message.headers.items():
        yield "the name of a header", name
        yield f"the header {name}", value


def _called(character: str) -> str:
    if character == "\0":
        return "a NUL character"
    if character in "\r\n\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029":
        return "a line break"
    if "\ud800" <= character <= "\udfff":
        return "half of a surrogate pair"
    return f"the control character U+{ord(character):04X}"
