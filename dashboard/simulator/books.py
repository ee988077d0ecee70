"""What the simulator really accepted: the truth that a ledger is measured against.

A row is written before the client can learn of the acceptance, by one write to a file opened for appending, so a
simulator that is killed loses none. (A power failure may: nothing is synced, it is a sandbox.)
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """One accepted message."""

    message_id: str
    send_id: str | None
    """Our id as it came: the tag ``send_id``, or the header ``X-Send-Id``."""
    key: str | None
    """The idempotency key of the call, honoured or not."""
    recipient: str
    at: float
    """Seconds since the epoch."""
    protocol: str
    """``resend`` or ``smtp``."""
    call: str
    """The send call that brought it; the messages of one batch share it."""
    item: int = 0
    """Its place in that call."""
    endpoint: str = ""
    fingerprint: str = ""
    """Of the call's body: what a repeat under the same key is compared with."""

    @property
    def identity(self) -> str:
        """What makes two acceptances copies of one message."""
        return self.send_id or (f"{self.key}#{self.item}" if self.key else self.message_id)


class Books:
    """The rows, oldest first, in memory and (with a folder) on disk. May be read from any thread."""

    def __init__(self, folder: Path | None = None) -> None:
        self._changed = threading.Condition()
        self._rows: list[Acceptance] = []
        self._copies: Counter[str] = Counter()
        self._file = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / "books.jsonl"
            for row in _read(path):
                self._note(row)
            self._file = path.open("ab", buffering=0)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> list[Acceptance]:
        """A copy of all rows, oldest first."""
        with self._changed:
            return list(self._rows)

    def page(self, start: int, count: int) -> Sequence[Acceptance]:
        """Rows from the ``start``-th (counted from 0) on."""
        with self._changed:
            return self._rows[start : start + count]

    def newest(self, count: int) -> Sequence[Acceptance]:
        """The last rows, newest first."""
        with self._changed:
            return self._rows[: -count - 1 : -1]

    def copies(self, identity: str) -> int:
        """How many messages of this identity were accepted."""
        return self._copies[identity]

    def add(self, rows: Sequence[Acceptance]) -> None:
        """Record the messages of one call: all of them or, when the disk refuses, none (OSError)."""
        if self._file is not None:
            self._file.write(b"".join(json.dumps(asdict(row)).encode() + b"\n" for row in rows))
        with self._changed:
            for row in rows:
                self._note(row)
            self._changed.notify_all()

    def wait_for(self, count: int, timeout: float) -> bool:
        """Wait until at least ``count`` messages were accepted; False when ``timeout`` seconds passed first."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._rows) >= count, timeout)

    def clear(self) -> None:
        """Forget everything, also on disk."""
        with self._changed:
            if self._file is not None:
                self._file.truncate(0)
            self._rows.clear()
            self._copies.clear()

    def close(self) -> None:
        """Close the file. The rows stay readable."""
        if self._file is not None:
            self._file.close()

    def summary(self) -> dict[str, Any]:
        """Counts: messages, sends (distinct identities), and which sends were taken more than once."""
        with self._changed:
            repeated = {identity: n for identity, n in self._copies.items() if n > 1}
            return {
                "messages": len(self._rows),
                "sends": len(self._copies),
                "sends_taken_more_than_once": len(repeated),
                "most_copies_of_one_send": max(self._copies.values(), default=0),
                "repeated_sends": repeated,
                "by_protocol": dict(Counter(row.protocol for row in self._rows)),
            }

    def _note(self, row: Acceptance) -> None:
        self._rows.append(row)
        self._copies[row.identity] += 1


def _read(path: Path) -> list[Acceptance]:
    """The rows of a file. A last line without its end was never answered, so it is cut off."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        path.write_bytes(whole)
    try:
        return [Acceptance(**json.loads(line)) for line in whole.splitlines()]
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is not a simulator's books: {error}") from None
