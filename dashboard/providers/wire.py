"""Sockets that keep the clock and know whether anything was written: the ground of every send path.

What a failed call proves depends on one bit: was a byte of the request handed over? The sockets here keep that bit
themselves, at the place where bytes leave, and hold two bounds on ``CLOCK_BOOTTIME``:

* *submit deadline*: asked before the first byte of the request, so that nothing leaves after it (DESIGN §5.9);
* *until*: no read and no write goes on past it, however slowly the other side drips.

``wrote`` turns true when the first ``send`` has returned. Until then the kernel has taken nothing; under TLS it may
have taken a part of one record, which nobody can decrypt.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from dashboard.providers.base import Deadline, Outcome, Outgoing, Rejected, Scope, Settings, boot_time

IDLE_SECONDS = 4.0
"""How long a connection may rest. Servers close idle ones after 5 s and more; a write that crosses such a close on the
wire cannot be told from a request that was taken, so the connection is given up first."""


class SubmitDeadlinePassed(Exception):
    """The submit deadline was over before the first byte of the request: nothing was written."""


class TimedSocket(socket.socket):
    """A stream socket with the two bounds; every wait is cut to what is left."""

    until: float = float("inf")
    wrote: bool = False
    _submit_by: Deadline | None = None

    def begin(self, *, submit_by: Deadline | None, until: float) -> None:
        """Count what is written from here on: its first byte no later than ``submit_by``, all over by ``until``."""
        self.wrote = False
        self._submit_by = submit_by
        self.until = until

    def send(self, data: Any, flags: int = 0) -> int:
        """Write some bytes. Raises SubmitDeadlinePassed before the first one, TimeoutError past ``until``."""
        self.settimeout(seconds_left(self.until))
        if not self.wrote and self._submit_by is not None and self._submit_by.passed:
            raise SubmitDeadlinePassed
        sent = super().send(data, flags)
        self.wrote = self.wrote or sent > 0
        return sent

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Write all bytes."""
        with memoryview(data) as view, view.cast("B") as rest:
            done = 0
            while done < len(rest):
                done += self.send(rest[done:], flags)

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        """Read some bytes. Raises TimeoutError past ``until``."""
        self.settimeout(seconds_left(self.until))
        return super().recv_into(buffer, nbytes or 0, flags)


class TimedTLSSocket(TimedSocket, ssl.SSLSocket):
    """The same over TLS; made by a context of :func:`tls_context`."""


def tls_context() -> ssl.SSLContext:
    """Verified TLS with the system's authorities (``SSL_CERT_FILE`` replaces them)."""
    context = ssl.create_default_context()
    context.sslsocket_class = TimedTLSSocket
    return context


def seconds_left(until: float) -> float | None:
    """What is left until an instant on the boot clock, None for no bound. Raises TimeoutError when nothing is left."""
    if until == float("inf"):
        return None
    left = until - boot_time()
    if left <= 0:
        raise TimeoutError("no time left")
    return left


def open_socket(host: str, port: int, until: float) -> TimedSocket:
    """Connect to the first address of ``host`` that answers. Raises OSError; the look-up itself cannot be bounded."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    failure: OSError = OSError("the name has no address")
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        sock = TimedSocket(family, kind, protocol)
        try:
            left = seconds_left(until)
            sock.settimeout(left and left / (len(addresses) - index))  # an address that is dead must not eat it all
            sock.connect(address)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            sock.close()
            failure = error
        else:
            sock.until = until
            return sock
    raise failure


class Closable(Protocol):
    """Something that rests in a pool."""

    def close(self) -> None:
        """Let go of it."""
        ...


Resting = TypeVar("Resting", bound=Closable)


class IdlePool(Generic[Resting]):
    """Connections at rest, the warmest first; those that rested too long are closed instead of reused."""

    def __init__(self, *, size: int, usable: Callable[[Resting], bool], idle_seconds: float = IDLE_SECONDS) -> None:
        self._size, self._usable, self._idle_seconds = size, usable, idle_seconds
        self._resting: list[tuple[float, Resting]] = []
        self._closed = False
        self._lock = threading.Lock()

    def take(self) -> Resting | None:
        """A connection that still stands, or None."""
        while True:
            with self._lock:
                if not self._resting:
                    return None
                since, connection = self._resting.pop()
            if boot_time() - since < self._idle_seconds and self._usable(connection):
                return connection
            connection.close()

    def give(self, connection: Resting) -> None:
        """Let it rest, or close it where there is no room."""
        with self._lock:
            if not self._closed and len(self._resting) < self._size:
                self._resting.append((boot_time(), connection))
                return
        connection.close()

    def close(self) -> None:
        """Close all that rest, and from now on all that come back."""
        with self._lock:
            resting, self._resting, self._closed = self._resting, [], True
        for _, connection in resting:
            connection.close()


@dataclass(frozen=True, slots=True)
class Refusing:
    """The channel of an account whose settings cannot work: it answers every submission with the same refusal."""

    outcome: Outcome

    def submit(self, outgoing: Outgoing) -> Outcome:
        """The refusal."""
        return self.outcome

    def batches(self, members: Sequence[Outgoing]) -> list[list[Outgoing]]:
        """All in one, which is refused at once."""
        return [list(members)]

    def submit_batch(self, batch: UUID, members: Sequence[Outgoing]) -> list[Outcome]:
        """The refusal, for each."""
        return [self.outcome] * len(members)

    def try_out(self) -> Outcome:
        """The refusal."""
        return self.outcome

    def close(self) -> None:
        """Nothing is open."""


def refusing(reason: str) -> Refusing:
    """The channel of an account whose settings cannot work, for this reason."""
    return Refusing(Rejected(scope=Scope.ACCOUNT, error_code="settings", reason=reason))


def credential(settings: Settings, name: str) -> str:
    """A setting that travels in a header. Raises ValueError where it is missing or cannot travel there."""
    value = settings.get(name, "").strip()
    if not value or not value.isascii() or not value.isprintable():
        raise ValueError(f"{name} is missing, or holds characters that it cannot have")
    return value
