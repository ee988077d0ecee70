"""Finding sends by anything an agent may have in hand: each reading of what was typed is one look into an index.

What is typed is never kept here: ``lookups.py`` files it, encrypted, behind an opaque link.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from uuid import UUID

from dashboard.identity import MAX_KEY, BadAddress, discreet
from dashboard.ledger.database import Connection, run
from dashboard.ledger.notes import ticket_lookup
from dashboard.ledger.slips import addresses, spellings
from dashboard.ledger.vault import Vault

HITS = 50
"""At most so many hits of each reading."""

KINDS = 64
"""A key is also found by the start of what follows its kind (``order_84721`` finds ``receipt:order_84721:…``), and an
id by the number in it (``84721`` finds ``order_84721``), for at most so many kinds: the distinct first parts."""

SHORTEST_PREFIX = 3
"""Characters; a shorter start of a key would find anything."""

LONGEST = 1_000
"""Characters of a searched text that are looked at."""

SHORTEST_PIECE = 8
"""Characters of an id that was cut off by which it is still found."""

_MESSAGE_ID = re.compile(
    r"(?:message-id:\s*)?<(?P<marked>[^<>\s]+)>|message-id:\s*(?P<named>[^<>\s]+)|(?P<bare>[^<>\s@]{16,}@[^<>\s@]+)",
    re.IGNORECASE,
)
"""With its brackets, with the header's name, or bare: then it has a longer first part than an address usually has."""
_NUMBER = re.compile(r"(?:[^\W\d_]+[.:]?\s+){0,3}(?:[#№]\s*)?(?P<number>[0-9]{3,20})")
_PIECE_OF_UUID = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{1,4}-?){0,7}", re.IGNORECASE)


class Reading(StrEnum):
    """As what the searched text was understood, the most exact first; the statements rank by this order."""

    SEND_ID = "send_id"  # also as a Message-ID of ours: <send id@domain>
    KEY = "key"
    PROVIDER_MESSAGE_ID = "provider_message_id"
    EVENT_ID = "event_id"
    TRIGGER_ID = "trigger_id"
    RECIPIENT_ID = "recipient_id"
    ADDRESS = "address"
    TICKET = "ticket"  # that somebody noted on the send
    SUBJECT = "subject"
    NUMBER = "number"  # in an order's, recipient's or key's name
    KEY_PREFIX = "key_prefix"
    PIECE = "piece"  # the beginning of an id that was cut off
    SLIP = "slip"  # one slip of the pen away


_EXACT = frozenset(Reading) - {Reading.KEY_PREFIX, Reading.PIECE, Reading.SLIP}

PAGED = (Reading.TRIGGER_ID, Reading.RECIPIENT_ID, Reading.ADDRESS, Reading.SUBJECT)
"""Readings that may find any number of sends, newest first: one goes on to the older ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A send that was found. ``state`` is a word of ``lifecycle.State``, as in ``Trace.state``."""

    send_id: UUID
    mailstream: str
    key: str
    state: str
    reading: Reading
    recorded_at: datetime
    recipient_id: str
    """With every address in it masked, should a producer use addresses as ids."""


@dataclass(frozen=True, slots=True)
class Before:
    """Where a page of hits ended: what was recorded before that."""

    at: datetime
    send_id: UUID

    def __str__(self) -> str:
        return f"{self.at.isoformat()}~{self.send_id}"

    @classmethod
    def read(cls, text: str) -> Before:
        """Raises ValueError for what is no place in a list."""
        at, _, send_id = text.partition("~")
        return cls(datetime.fromisoformat(at), UUID(send_id))


START = Before(datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1))


def search(
    connection: Connection,
    vault: Vault,
    workspace_id: UUID,
    text: str,
    *,
    limit: int | None = None,
    before: Before = START,
) -> list[Hit]:
    """The sends that this text may mean: the most exact reading first, within a reading the newest first.

    A send that is found by several readings is there once, with the most exact one. At most ``limit`` (:data:`HITS`)
    a reading. With ``before``: the older ones, of the readings of :data:`PAGED` alone.
    """
    text = _trimmed(text)
    if not text:
        return []
    bind = _readings(vault, workspace_id, text)
    return _found(connection, "read_hits", bind, workspace_id, limit=limit or HITS, before=before)


def search_close(connection: Connection, vault: Vault, workspace_id: UUID, text: str) -> list[Hit]:
    """The sends whose ids begin with this text, or are one slip of the pen away from it (``slips.py``).

    Asked where :func:`search` found nothing. An address is compared by its keyed hash, so only its likeliest slips
    are tried.
    """
    text = _trimmed(text)
    if not text:
        return []
    return _found(connection, "read_close", _closeness(vault, text), workspace_id, limit=HITS, before=START)


def exact_hit(hits: list[Hit]) -> Hit | None:
    """The one send that was meant, if there is exactly one: a search goes straight to its trace."""
    exact = [hit for hit in hits if hit.reading in _EXACT]
    return exact[0] if len(exact) == 1 else None


def _trimmed(text: str) -> str:
    return text.replace("\0", "").strip()[:LONGEST]


def _found(
    connection: Connection, statement: str, bind: dict[str, object], workspace_id: UUID, *, limit: int, before: Before
) -> list[Hit]:
    readings = list(Reading)
    rows = run(
        connection, statement, **bind, workspace_id=workspace_id, limit=limit, kinds=KINDS, before_at=before.at,
        before_id=before.send_id,
    )  # fmt: skip
    return [
        Hit(
            send_id=send_id,
            mailstream=mailstream,
            key=key,
            state=state,
            reading=readings[rank - 1],
            recorded_at=recorded_at,
            recipient_id=discreet(recipient_id),
        )
        for send_id, mailstream, key, state, rank, recorded_at, recipient_id in rows
    ]


def _readings(vault: Vault, workspace_id: UUID, text: str) -> dict[str, object]:
    """What to look for, reading by reading; None or an empty list where the text cannot be meant so."""
    message_id = _MESSAGE_ID.fullmatch(text)
    inner = next(filter(None, message_id.groups())) if message_id else text
    local = inner.partition("@")[0]
    number = _NUMBER.fullmatch(text)
    try:
        lookups = vault.lookups(text)
    except BadAddress:
        lookups = []
    try:
        send_ids = [UUID(local)]
    except ValueError:
        send_ids = []
    starts_key = _may_be_key(text) and len(text) >= SHORTEST_PREFIX
    return {
        "text": text,
        "send_ids": send_ids,
        "key": text if _may_be_key(text) else None,
        # Some providers give the whole Message-ID as theirs, some only its local part.
        "message_ids": list({text, inner, f"<{inner}>", local} if message_id else {text}),
        "lookups": lookups,
        "ticket": ticket_lookup(text),
        "subjects": vault.subject_lookups(workspace_id, text),
        "number": number["number"] if number else None,
        "number_end": _end(number["number"]) if number else None,
        "prefix": text if starts_key else None,
        "prefix_end": _end(text) if starts_key else None,
    }


def _closeness(vault: Vault, text: str) -> dict[str, object]:
    """What to look for where nothing is called exactly so."""
    message_id = _MESSAGE_ID.fullmatch(text)
    piece = next(filter(None, message_id.groups())) if message_id else text
    written = spellings(text)
    lookups = [lookup for address in addresses(text) for lookup in vault.lookups(address)]
    first, last = _uuids_from(piece)
    is_piece = len(piece) >= SHORTEST_PIECE and piece.isprintable()
    return {
        "written": written,
        "send_ids": [UUID(one) for one in spellings(text.lower()) if _is_uuid(one)],
        "lookups": lookups,
        "piece": piece if is_piece else None,
        "piece_end": _end(piece) if is_piece else None,
        "first_id": first,
        "last_id": last,
    }


def names_number(text: str) -> bool:
    """Whether it is a number, alone or with words before it, and so may be looked up by its number."""
    return _NUMBER.fullmatch(_trimmed(text)) is not None


def _may_be_key(text: str) -> bool:
    return len(text) <= MAX_KEY and text.isascii() and text.isprintable()


def _end(start: str) -> str:
    """What comes right after everything that begins so, byte for byte."""
    return start[:-1] + chr(ord(start[-1]) + 1)


def _is_uuid(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False


def _uuids_from(text: str) -> tuple[UUID | None, UUID | None]:
    """The first and the last id that begins with these digits; None where it is no beginning of one."""
    digits = text.replace("-", "")
    if not _PIECE_OF_UUID.fullmatch(text) or not SHORTEST_PIECE <= len(digits) < 32:
        return None, None
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
