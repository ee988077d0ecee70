"""Mail that comes in: what of it tells which send it answers, whoever hands it in and in whatever form.

Every word of such a mail was chosen by a stranger. So all of it is bounded, nothing of it is believed, and nothing in
it raises anything but ValueError.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.parser import BytesParser
from email.utils import parsedate_to_datetime
from html.parser import HTMLParser
from urllib.parse import parse_qsl

from dashboard.providers.base import Reply, WebhookRequest
from dashboard.providers.reading import named_values, text

MOST_ANSWERED = 20
"""So many of the messages that a mail says it answers are looked at: the nearest, and the first of the thread."""
MOST_RECIPIENTS, MOST_FIELDS, MOST_HEADERS = 50, 1000, 1000
LONGEST_HEADER, LONGEST_ID, LONGEST_TEXT = 20_000, 300, 100_000
"""Characters."""
LONGEST_MIME = 4_000_000
"""Bytes of a raw mail that are looked at: what people write stands before what they attach."""

Headers = Sequence[tuple[str, str]]

AUTOMATIC = (  # a header, and what in it says that no person wrote this
    ("auto-submitted", re.compile(r"(?!no\b)\S", re.I)),  # RFC 3834 §5
    ("return-path", re.compile(r"<\s*>")),  # RFC 3834 §3.3, RFC 5321 §4.5.5: what must not be answered
    ("content-type", re.compile(r"multipart/report\b", re.I)),  # RFC 6522: delivery and disposition notifications
    ("precedence", re.compile(r"(bulk|junk|list|auto_reply)\b", re.I)),  # not standard, RFC 3834 §2 speaks of it
    ("x-autoreply", re.compile(r"\S")),  # what responders wrote before there was a standard, and still do
    ("x-autorespond", re.compile(r"\S")),
    ("x-auto-response-suppress", re.compile(r"\S")),  # Exchange, on what it answers by itself
)

_ID = re.compile(rf"<([^<>\s]{{1,{LONGEST_ID}}})>")
_ADDRESS = re.compile(r"[^\s<>()\[\],;:\"]{1,64}@[^\s<>()\[\],;:\"@]{1,255}")
_FOLD = re.compile(r"\r?\n(?=[ \t])")
_BOUNDARY = re.compile(r'boundary=(?:"([^"]{1,200})"|([^\s";,]{1,200}))', re.I)
_FIELD_NAME = re.compile(rb'[;\s]name="([^"\r\n]{1,200})"', re.I)


# ── what a mail says of itself ───────────────────────────────────────────────────────────────────────────────────────


def read_mail(
    headers: Headers,
    *,
    recipients: Iterable[object] = (),
    sender: object = None,
    said: str | None = None,
    html: str | None = None,
) -> Reply:
    """A mail of which these headers are known; of two of one name the first counts.

    ``recipients``: those of the envelope. ``sender``: its address, where the provider has taken it out of the From.
    ``said``, ``html``: what it says, as text and as HTML, which is read only where there is no text.
    """
    known: dict[str, str] = {}
    for name, value in headers[:MOST_HEADERS]:
        if value:
            known.setdefault(name.strip().lower(), _storable(value)[:LONGEST_HEADER])
    to = [address for one in recipients if (address := _address(one))]
    to += [one for name in ("to", "cc", "delivered-to", "x-original-to") for one in _addresses(known.get(name, ""))]
    return Reply(
        message_id=next(iter(_ids(known.get("message-id", ""))), None),
        sender=_sender(sender) or _sender(known.get("from")),
        recipients=tuple(dict.fromkeys(to))[:MOST_RECIPIENTS],
        answers=answered(known.get("in-reply-to", ""), known.get("references", "")),
        written_at=_written_at(known.get("date")),
        automatic=any(pattern.match(known.get(name, "").strip()) for name, pattern in AUTOMATIC),
        subject=_storable(_unencoded(known.get("subject", "")))[:LONGEST_ID],
        text=_bounded(said or (as_text(html) if html else None)),
    )


def answered(in_reply_to: str, references: str) -> tuple[str, ...]:
    """The messages that a mail answers, the likeliest first: whom it names, then the thread from its end (RFC 5322
    §3.6.4). Of a long thread its middle is left out."""
    thread = _ids(references)
    nearest = list(dict.fromkeys([*_ids(in_reply_to)[:MOST_ANSWERED], *reversed(thread)]))
    if len(nearest) > MOST_ANSWERED:
        nearest = [*nearest[: MOST_ANSWERED - 1], thread[0]] if thread else nearest[:MOST_ANSWERED]
    return tuple(nearest)


def _ids(said: str) -> list[str]:
    """The ids of a header. Python's own library writes long ones, such as Amazon's, as encoded words, though it is not
    to (RFC 2047 §5)."""
    return _ID.findall(_unencoded(said) if "=?" in said else said)


def _addresses(said: str) -> list[str]:
    return _ADDRESS.findall(said)[:MOST_RECIPIENTS]


def _address(said: object) -> str | None:
    return next(iter(_addresses((text(said) or "")[:LONGEST_HEADER])), None)


def _sender(said: object) -> str | None:
    """The address of a From: what stands in its angle brackets, whatever name stands before them."""
    whole = (text(said) or "")[:LONGEST_HEADER]
    inside = whole[whole.rindex("<") :] if "<" in whole else whole
    address = _address(inside)
    return address and address.lower()


def _written_at(said: str | None) -> datetime | None:
    try:
        at = parsedate_to_datetime(said or "")
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _unencoded(said: str) -> str:
    """A header's encoded words (RFC 2047) as text; as it came where they cannot be read."""
    try:
        return str(make_header(decode_header(said)))
    except (MessageError, LookupError, ValueError):  # an unknown charset, damaged base64 or bytes
        return said


def _storable(said: str) -> str:
    return text(said) or ""


def _bounded(said: str | None) -> str | None:
    kept = text(said[:LONGEST_TEXT]) if said else None
    return f"{kept}\n[…]" if kept and said and len(said) > LONGEST_TEXT else kept


# ── in which forms it comes ──────────────────────────────────────────────────────────────────────────────────────────


def header_pairs(told: object) -> list[tuple[str, str]]:
    """Headers as JSON has them: a list of [name, value], or of objects with a name and a value in any case."""
    pairs = []
    for one in told[:MOST_HEADERS] if isinstance(told, list) else ():
        entry = named_values(one)
        name, value = one if isinstance(one, list) and len(one) == 2 else (entry.get("name"), entry.get("value"))
        if isinstance(name, str) and isinstance(value, str):
            pairs.append((name, value))
    return pairs


def header_lines(raw: bytes) -> list[tuple[str, str]]:
    """Headers as they stand in the mail, folded lines put together."""
    whole = _FOLD.sub("", decoded_text(raw[:LONGEST_MIME]))
    pairs = (line.partition(":") for line in whole.splitlines()[:MOST_HEADERS])
    return [(name, value.strip()) for name, _, value in pairs]


def read_mime(raw: bytes, *, recipients: Iterable[object] = ()) -> Reply:
    """A mail as it travelled. Raises ValueError where it is nested beyond reading."""
    try:
        mail = BytesParser().parsebytes(raw[:LONGEST_MIME])
        headers = [(name, _as_utf8(value)) for name, value in mail.raw_items()]
        said, html = (_part(mail, kind) for kind in ("text/plain", "text/html"))
    except RecursionError:
        raise ValueError("the mail is nested too deeply") from None
    return read_mail(headers, recipients=recipients, said=said, html=html)


def _as_utf8(value: str) -> str:
    """A header as the parser keeps it: bytes that are not ASCII stand in it as half characters."""
    return _FOLD.sub("", value.encode("utf-8", "surrogateescape").decode(errors="replace"))


def _part(mail: Message, kind: str) -> str | None:
    """The first part of this kind that is not attached."""
    for part in mail.walk():
        if part.get_content_type() == kind and part.get_content_disposition() != "attachment":
            content = part.get_payload(decode=True)
            if isinstance(content, bytes):
                return decoded_text(content, str(part.get_param("charset") or ""))
    return None


def decoded_text(raw: bytes, charset: str | None = None) -> str:
    """Bytes as text, by this charset or as UTF-8; what is none of it gives way to a mark."""
    try:
        return raw.decode(charset or "utf-8", "replace")
    except (LookupError, ValueError):  # no charset of that name, or one that is no encoding of text
        return raw.decode(errors="replace")


def from_base64(encoded: str) -> bytes:
    """What it holds. Raises ValueError for what is no base64."""
    try:
        return base64.b64decode(encoded)
    except (binascii.Error, ValueError):
        raise ValueError("the mail is not in base64, though it is said to be") from None


def form_fields(request: WebhookRequest) -> dict[str, bytes]:
    """The fields of a form (RFC 7578, or urlencoded), without its files; of two of one name the first. Raises
    ValueError."""
    kind = request.headers.get("content-type", "")
    if kind.lower().startswith("multipart/form-data"):
        found = _BOUNDARY.search(kind)
        if found is None:
            raise ValueError("the form has no boundary")
        return _first(_multipart(request.body, (found[1] or found[2]).encode(errors="replace")))
    if not kind.lower().startswith("application/x-www-form-urlencoded"):
        raise ValueError("the body is no form")
    pairs = parse_qsl(request.body.decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    return _first((name, value.encode(errors="replace")) for name, value in pairs)


def _first(pairs: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    fields: dict[str, bytes] = {}
    for name, value in pairs:
        fields.setdefault(name, value)
    return fields


def _multipart(body: bytes, boundary: bytes) -> Iterator[tuple[str, bytes]]:
    delimiter = b"\r\n--" + boundary
    parts = (b"\r\n" + body).split(delimiter, MOST_FIELDS)
    if not parts[-1].startswith(b"--"):
        raise ValueError("the form has no end, or too many fields")
    for part in parts[1:-1]:
        head, blank, content = part.partition(b"\r\n\r\n")
        name = _FIELD_NAME.search(head)
        if blank and name and b"filename" not in head.lower():
            yield decoded_text(name[1]), content


class _Words(HTMLParser):
    """Collects the text of a page, without what is no text of it."""

    SILENT = frozenset({"script", "style", "head", "title"})
    LINES = frozenset({"br", "p", "div", "tr", "li", "blockquote", "h1", "h2", "h3"})

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._silent += tag in self.SILENT
        if tag in self.LINES:
            self.words.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in self.SILENT and self._silent > 0

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.words.append(data)


def as_text(html: str) -> str:
    """The words of HTML."""
    reader = _Words()
    try:
        reader.feed(html[: LONGEST_TEXT * 4])
        reader.close()
    except (ValueError, AssertionError):  # what the standard library's parser gives up on
        pass
    lines = (" ".join(line.split()) for line in "".join(reader.words).splitlines())
    return "\n".join(line for line in lines if line)
