"""What is personal is encrypted here: AES-256-GCM, the key's id in front so that keys rotate, bound to its row.

Stored form: one byte length of the key id, the key id, 12 bytes of nonce, the ciphertext with its tag.
The associated data is the id of the row it belongs to, so that a ciphertext moved to another row does not open.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence
from uuid import UUID

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dashboard.identity import address_lookup, reply_address, send_of_reply_address, subject_lookup

NONCE, TAG = 12, 16
"""Bytes of an AES-GCM nonce and tag."""


class Unreadable(Exception):
    """The text was not written for this row, was damaged, or its key is not there."""


class KeyMissing(Unreadable):
    """The key is not configured: the trouble of this installation, not of this row."""


class Vault:
    """Encrypts with the first key, decrypts with whichever was used."""

    def __init__(self, keys: Sequence[tuple[str, bytes]]) -> None:
        """``keys``: (id, 32 bytes), the active one first, the oldest last. Raises ValueError without any.

        What is hashed is hashed under the oldest: hashes are compared, with those from before a rotation as well.
        """
        if not keys:
            raise ValueError("at least one encryption key is needed")
        self._ciphers = {name.encode(): AESGCM(key) for name, key in keys}
        active = keys[0][0].encode()
        self._prefix = bytes([len(active)]) + active
        self._cipher = self._ciphers[active]
        self._lookup_keys = [hmac.digest(key, b"address look-up", hashlib.sha256) for _, key in reversed(keys)]
        self._subject_keys = [hmac.digest(key, b"subject look-up", hashlib.sha256) for _, key in reversed(keys)]
        self._reply_keys = [hmac.digest(key, b"reply address", hashlib.sha256) for _, key in reversed(keys)]
        self._hash_key = hmac.digest(keys[-1][1], b"keyed hash", hashlib.sha256)

    def encrypt(self, plain: bytes, row: bytes) -> bytes:
        """Encrypt for the row of that id."""
        nonce = os.urandom(NONCE)
        return self._prefix + nonce + self._cipher.encrypt(nonce, plain, row)

    def decrypt(self, stored: bytes, row: bytes) -> bytes:
        """Decrypt. Raises :class:`Unreadable`; its kind :class:`KeyMissing` where only the key is not there."""
        end = 1 + stored[0] if stored else 0
        name = stored[1:end]
        if len(stored) < end + NONCE + TAG or not (name.isascii() and name.decode(errors="replace").isprintable()):
            raise Unreadable("this is no encrypted text, or it was damaged")
        cipher = self._ciphers.get(name)
        if cipher is None:
            raise KeyMissing("the encryption key of this row is not configured")
        try:
            return cipher.decrypt(stored[end : end + NONCE], stored[end + NONCE :], row)
        except InvalidTag:
            raise Unreadable("this text was not written for this row, or was changed") from None

    def lookup(self, address: str) -> bytes:
        """The hash under which a row files this address, the same before and after a rotation. Raises BadAddress."""
        return address_lookup(address, self._lookup_keys[0])

    def lookups(self, address: str) -> list[bytes]:
        """The hashes under which this address may be filed, one a live key. Raises BadAddress."""
        return [address_lookup(address, key) for key in self._lookup_keys]

    def subject_lookup(self, workspace_id: UUID, subject: str) -> bytes:
        """The hash under which a new message files its subject."""
        return subject_lookup(workspace_id, subject, self._subject_keys[0])

    def subject_lookups(self, workspace_id: UUID, subject: str) -> list[bytes]:
        """The hashes under which this subject may be filed, one a live key."""
        return [subject_lookup(workspace_id, subject, key) for key in self._subject_keys]

    def reply_address(self, send_id: UUID, domain: str) -> str:
        """The address at which mail answers this send, the same before and after a rotation."""
        return reply_address(send_id, domain, self._reply_keys[0])

    def send_of_reply_address(self, address: str) -> UUID | None:
        """The send that this address was made for, under any live key; None for one that is not ours."""
        return send_of_reply_address(address, self._reply_keys)

    def keyed_hash(self, text: str) -> bytes:
        """A hash of something that only this installation can make, such as a client's address."""
        return hmac.digest(self._hash_key, text.encode(), hashlib.sha256)
