"""Messages to submit, samples to read, and a small real server whose behaviour is a function over its socket."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from dashboard.providers.base import Deadline, Message, Outgoing

SAMPLES = Path(__file__).parents[1] / "data" / "providers"
SEND_ID = UUID("0b6e7a52-6f0e-5a1c-9c55-0e7f5f3f1a10")
PATIENCE = 10.0
"""Seconds after which a test gives up on something that should have happened."""


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
"""Anything that JSON can say."""


def sample(provider: str, name: str) -> Any:
    return json.loads((SAMPLES / provider / name).read_text(encoding="utf-8"))


def outgoing(
    *, attempt: int = 1, seconds: float = 30.0, address: str = "ada@example.com", name: str | None = None, **fields: Any
) -> Outgoing:
    """A message that may be submitted for the next ``seconds``; ``fields`` replace those of the message."""
    values: dict[str, Any] = {
        "sender": "Shop <shop@example.com>",
        "subject": "Your receipt",
        "text": "Thanks.",
        "date": datetime(2026, 11, 30, 9, 0, tzinfo=UTC),
    }
    return Outgoing(
        send_id=SEND_ID,
        attempt=attempt,
        address=address,
        recipient_name=name,
        message=Message(**(values | fields)),
        deadline=Deadline.after(seconds),
    )


class Server:
    """Accepts on a loopback port and runs ``behave(socket, number of the connection)`` for each connection."""

    def __init__(self, behave: Callable[[socket.socket, int], None]) -> None:
        self._behave = behave
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16384)  # who stops reading is soon noticed
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.connections = 0
        self.done = threading.Semaphore(0)
        self.stopping = threading.Event()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    def __enter__(self) -> Server:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection, self.connections), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        with connection:
            connection.settimeout(PATIENCE)
            try:
                self._behave(connection, number)
            except OSError:
                pass  # the client went away, as it may
            finally:
                self.done.release()


def reset(connection: socket.socket) -> None:
    """Close with a RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def refused_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def read_request(connection: socket.socket) -> bytes:
    """A whole HTTP request; what came until the end where the client stops earlier."""
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = connection.recv(65536)
        if not chunk:
            return received
        received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    length = lengths[0] if lengths else 0
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def http_answer(body: bytes, *, status: str = "200 OK", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body
