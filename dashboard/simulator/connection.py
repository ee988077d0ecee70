"""How an answer leaves, or does not: the ways in which a connection can end on a client."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

_LINGER_ZERO = struct.pack("ii", 1, 0)


class Way(Enum):
    """What becomes of an answer."""

    ANSWER = auto()
    RESET = auto()
    """The peer gets RST instead."""
    SILENCE = auto()
    """The connection stays open and nothing is ever written."""


@dataclass(slots=True, kw_only=True)
class Answer:
    """One HTTP answer, as a value."""

    status: int = 200
    body: bytes | Callable[[], bytes] = b""
    """Or what makes it at the moment when the answer leaves."""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    way: Way = Way.ANSWER
    delay: float = 0.0
    """Seconds to wait first."""
    after: tuple[asyncio.Future[None], ...] = ()
    """What must have happened before it leaves."""
    left: Callable[[], None] | None = None
    """Called once it has left, or would have, had the client stayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One HTTP request. Header names are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


def reset(transport: asyncio.BaseTransport) -> None:
    """Close at once with RST: lingering for zero seconds makes the kernel throw away what is unsent."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_ZERO)
    if isinstance(transport, asyncio.Transport):
        transport.abort()


def settle(future: asyncio.Future[None]) -> None:
    """Mark it as done, unless it is already."""
    if not future.done():
        future.set_result(None)
