"""Who is who: keys, send ids, fingerprints, and the keyed hash by which an address is found without being stored."""

from __future__ import annotations

import base64
import binascii
import functools
import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from uuid import UUID, uuid5

import idna
import rfc8785

MAX_KEY = 255
_KEY = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_ADDRESS_INSIDE = re.compile(r"[^\s@:]+@[^\s@:]+\.[^\s@:]+")
_ADDRESS_ANYWHERE = re.compile(r"""[^\s"'<>(),;:=]+@[^\s"'<>(),;:]+""")
_ANSWERED = re.compile(r"(?:(?:re|aw|sv|tr|fw|fwd|wg)\s*:\s*)+", re.IGNORECASE)
_ADDRESS = re.compile(r"[^\s@<>\"(),:;\\\[\]]+@[^\s@<>\"(),:;\\\[\]]+")


class BadKey(ValueError):
    """A key that breaks the rules; the message says which one and what to do."""


class BadAddress(ValueError):
    """Not an address that mail can be sent to."""


def check_key(key: object) -> str:
    """The key itself, if it keeps the rules of DESIGN §2. Raises :class:`BadKey`."""
    if not isinstance(key, str) or not key:
        raise BadKey("a key is needed: the deterministic name of this email, such as receipt:order_84721:v3")
    if len(key) > MAX_KEY:
        raise BadKey(f"the key has {len(key)} characters; at most {MAX_KEY} are allowed: shorten or hash its parts")
    if not _KEY.fullmatch(key):
        raise BadKey("a key is made of printable ASCII characters, without spaces at its ends")
    if "@" in key and _ADDRESS_INSIDE.search(key):
        raise BadKey("the key contains an email address: use the recipient's id instead, keys are kept for ever")
    return key


def send_id(workspace_id: UUID, mailstream: str, key: str) -> UUID:
    """The id of the logical email: RFC 9562 version 5, so that anyone can compute it from the same three facts."""
    return uuid5(workspace_id, f"{mailstream}\n{key}")


SEEN_BY_RECIPIENT = (
    "from", "reply_to", "subject", "text", "html", "headers", "template", "revision", "variables", "attachments",
)  # fmt: skip
"""The fields of a message that a fingerprint covers. Not among them: trigger, metadata, time and address."""
_SEEN = frozenset(SEEN_BY_RECIPIENT)


def fingerprint(message: Mapping[str, object], recipient_id: str) -> bytes:
    """SHA-256 over the canonical JSON (RFC 8785) of what the recipient would see.

    Absent and null fields are alike. Raises ValueError for what JSON cannot hold (NaN, lone surrogates, huge integers).
    """
    seen = {
        name: value
        for name, value in message.items()
        if name in _SEEN and value is not None and value != {} and value != []
    }
    seen["recipient_id"] = recipient_id
    return hashlib.sha256(canonical_json(seen)).digest()


def canonical_json(value: dict[str, object]) -> bytes:
    """RFC 8785 bytes. Raises ValueError for what has none."""
    try:
        if _plain(value):
            # Only text under ASCII names: here the standard library writes the same bytes, many times as fast.
            return _ENCODE_SORTED(value).encode()
        return rfc8785.dumps(value)  # type: ignore[arg-type]  # it checks the types itself
    except RecursionError:
        raise ValueError("the message is nested too deeply") from None
    except (rfc8785.CanonicalizationError, UnicodeEncodeError) as error:
        raise ValueError(f"the message cannot be written as canonical JSON: {error}") from None


_ENCODE_SORTED = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, sort_keys=True, separators=(",", ":")
).encode
_SAFE_INTEGER = 2**53 - 1


def _plain(value: object) -> bool:
    kind = type(value)
    if kind is str or kind is bool or value is None:
        return True
    if kind is int:
        return -_SAFE_INTEGER <= value <= _SAFE_INTEGER  # type: ignore[operator]  # it is an int
    if kind is dict:
        for name, item in value.items():  # type: ignore[attr-defined]  # it is a dict
            if type(name) is not str or not name.isascii() or (type(item) is not str and not _plain(item)):
                return False
        return True
    return kind is list and all(map(_plain, value))  # type: ignore[call-overload]


@functools.lru_cache(maxsize=4096)
def normal_address(address: str) -> str:
    """The form by which addresses are compared: trimmed, local part case-folded, domain in lower-case IDNA form.

    Dots and plus tags stay: only the receiving domain knows what they mean. Raises :class:`BadAddress`.
    """
    trimmed = address.strip()
    if not trimmed.isascii():
        trimmed = unicodedata.normalize("NFC", trimmed)
    if len(trimmed) > 320 or not _ADDRESS.fullmatch(trimmed):
        raise BadAddress("this is not an email address of the form name@domain")
    local, _, domain = trimmed.rpartition("@")
    if domain.isascii():
        ascii_domain = domain.lower()
    else:
        try:
            ascii_domain = idna.encode(domain, uts46=True).decode()
        except (idna.IDNAError, UnicodeError):
            raise BadAddress("the domain of this address is not a valid internationalised name") from None
    return f"{local.casefold()}@{ascii_domain}"


def address_lookup(address: str, key: bytes) -> bytes:
    """Keyed BLAKE2b of the normal address, 16 bytes: finds an address, never gives one back."""
    return hashlib.blake2b(normal_address(address).encode(), key=key, digest_size=16, person=b"sendonce-addr").digest()


def masked(address: str) -> str:
    """An address as people see it who may not see it: ``a•••@example.com``."""
    local, at, domain = address.rpartition("@")
    return f"{local[:1]}•••{at}{domain}" if at else "•••"


def discreet(text: str) -> str:
    """A text of somebody else with every address in it masked, however it is written."""
    return _ADDRESS_ANYWHERE.sub(lambda found: masked(found[0]), text) if "@" in text else text


def holds_address(text: str) -> bool:
    """Whether something in it looks like an address."""
    return "@" in text and _ADDRESS_ANYWHERE.search(text) is not None


def normal_subject(subject: str) -> str:
    """The form by which subjects are compared: without what answering put in front, case, or runs of spaces."""
    plain = " ".join(subject.split()) if subject.isascii() else " ".join(unicodedata.normalize("NFC", subject).split())
    answered = _ANSWERED.match(plain)
    return (plain[answered.end() :] if answered else plain).casefold()


def subject_lookup(workspace_id: UUID, subject: str, key: bytes) -> bytes:
    """Keyed BLAKE2b of the normal subject within a workspace, 8 bytes: finds a subject, never gives one back."""
    text = normal_subject(subject).encode(errors="replace")
    return hashlib.blake2b(workspace_id.bytes + text, key=key, digest_size=8, person=b"sendonce-subj").digest()


REPLY_MAC = 10
"""Bytes of the MAC in a reply address: 80 bits, of which every guess is a mail."""
_REPLY_ADDRESS = re.compile(r"reply\+([a-z2-7]{42})@[^@\x00-\x20]+", re.IGNORECASE)


def reply_address(send_id: UUID, domain: str, key: bytes) -> str:
    """The address of this domain at which mail answers this send: its id and a keyed MAC, in base32, for some mail
    servers keep no case."""
    token = base64.b32encode(send_id.bytes + _reply_mac(send_id, key)).decode().rstrip("=").lower()
    return f"reply+{token}@{domain}"


def send_of_reply_address(address: str, keys: Iterable[bytes]) -> UUID | None:
    """The send that an address was made for with one of these keys; None for any other address."""
    found = _REPLY_ADDRESS.fullmatch(address.strip())
    if found is None:
        return None
    try:
        token = base64.b32decode(found[1].upper() + "======")
    except binascii.Error:
        return None
    send_id, mac = UUID(bytes=token[:16]), token[16:]
    made = [hmac.compare_digest(mac, _reply_mac(send_id, key)) for key in keys]
    return send_id if any(made) else None


def _reply_mac(send_id: UUID, key: bytes) -> bytes:
    return hmac.digest(key, send_id.bytes, hashlib.sha256)[:REPLY_MAC]
