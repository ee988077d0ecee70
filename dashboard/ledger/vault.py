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

from dashboard.identity import address_lookup, subject_lookup


class Unreadable(Exception):
    """The key is not there any more, or the text was not written for this row."""


class Vault:
    """Encrypts with the first key, decrypts with whichever was used."""

    def __init__(self, keys: Sequence[tuple[str, bytes]]) -> None:
        """``keys``: (id, 32 bytes), the active one first. Raises ValueError without any."""
        if not keys:
            raise ValueError("at least one encryption key is needed")
        self._ciphers = {name.encode(): AESGCM(key) for name, key in keys}
        active = keys[0][0].encode()
        self._prefix = bytes([len(active)]) + active
        self._cipher = self._ciphers[active]
        self._lookup_keys = [hmac.digest(key, b"address look-up", hashlib.sha256) for _, key in keys]
        self._subject_keys = [hmac.digest(key, b"subject look-up", hashlib.sha256) for _, key in keys]
        self._hash_key = hmac.digest(keys[-1][1], b"keyed hash", hashlib.sha256)

    def encrypt(self, plain: bytes, row: bytes) -> bytes:
        """Encrypt for the row of that id."""
        nonce = os.urandom(12)
        return self._prefix + nonce + self._cipher.encrypt(nonce, plain, row)

    def decrypt(self, stored: bytes, row: bytes) -> bytes:
        """Decrypt. Raises :class:`Unreadable`."""
        end = 1 + stored[0]
        cipher = self._ciphers.get(stored[1:end])
        if cipher is None:
            raise Unreadable("the encryption key of this row is not configured")
        try:
            return cipher.decrypt(stored[end : end + 12], stored[end + 12 :], row)
        except InvalidTag:
            raise Unreadable("this text was not written for this row, or was changed") from None

    def lookup(self, address: str) -> bytes:
        """The hash under which a new row files this address. Raises BadAddress."""
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

    def keyed_hash(self, text: str) -> bytes:
        """A hash of something that only this installation can make, such as a client's address."""
        return hmac.digest(self._hash_key, text.encode(), hashlib.sha256)
