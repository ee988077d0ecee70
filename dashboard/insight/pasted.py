"""Message-IDs in headers that somebody pasted, whole or in part (RFC 5322 §3.6.4)."""

from __future__ import annotations

import re

MOST = 4
"""So many copies are compared; nobody pastes more."""

_MESSAGE_ID = re.compile(r"^[ \t>]*message-id[ \t]*:(?:[ \t]*\r?\n[ \t]+)?[ \t]*<?([^<>\s]+@?[^<>\s]*)>?", re.I | re.M)
_BARE = re.compile(r"^[ \t]*<?([^<>\s@]+@[^<>\s@]+)>?[ \t]*$", re.M)


def message_ids(pasted: str) -> tuple[str, ...]:
    """The Message-IDs in the order in which they stand there, without brackets; a bare one on a line of its own counts.

    Other fields that hold Message-IDs (References, In-Reply-To) say nothing about this copy.
    """
    return tuple((_MESSAGE_ID.findall(pasted) or _BARE.findall(pasted))[:MOST])
