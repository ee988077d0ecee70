"""A TCP proxy before PostgreSQL that reads what is said and cuts a connection at a chosen COMMIT.

It understands as much of the protocol as it takes to know which statements a transaction has run: messages of the
client, their kinds, and the text of what is parsed.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from psycopg.conninfo import conninfo_to_dict

Moment = Literal["before", "after"]
"""Before the COMMIT reaches the server; or after the server has answered it, before the answer reaches the client."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Cut the connection at the first COMMIT of a transaction that ran a statement with these words."""

    moment: Moment
    words: str


@dataclass
class Proxy:
    """``with Proxy(url) as proxy: proxy.url``; each of ``cuts`` is made once, then the connections go through."""

    to: str
    cuts: list[Cut] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self._sockets: list[socket.socket] = []
        self._server = conninfo_to_dict(self.to)

    @property
    def url(self) -> str:
        """The database, reached through here. TLS would hide what is said."""
        user = f"{self._server['user']}:{self._server.get('password', '')}"
        port = self._listener.getsockname()[1]
        return f"postgresql://{user}@127.0.0.1:{port}/{self._server['dbname']}?sslmode=disable&gssencmode=disable"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._sockets:
            _cut(each)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = self._connect()
            self._sockets += [client, server]
            talk = _Talk(self, client, server)
            for direction in (talk.listen, talk.answer):
                threading.Thread(target=direction, daemon=True).start()

    def _connect(self) -> socket.socket:
        host, port = str(self._server["host"]), int(self._server.get("port") or 5432)
        if not host.startswith("/"):
            return socket.create_connection((host, port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(str(Path(host) / f".s.PGSQL.{port}"))
        return server

    def take(self, ran: set[str]) -> Cut | None:
        """The cut to make at the COMMIT of a transaction that ran these statements."""
        with self._lock:
            for cut in self.cuts:
                if any(cut.words in text for text in ran):
                    self.cuts.remove(cut)
                    return cut
        return None


class _Talk:
    """One connection, two directions."""

    def __init__(self, proxy: Proxy, client: socket.socket, server: socket.socket) -> None:
        self._proxy, self._client, self._server = proxy, client, server
        self._texts: dict[bytes, str] = {}
        self._ran: set[str] = set()
        self._silenced = threading.Event()

    def listen(self) -> None:
        """What the client says."""
        try:
            (length,) = struct.unpack("!I", self._read(4))
            self._server.sendall(struct.pack("!I", length) + self._read(length - 4))  # its first message has no kind
            while True:
                kind = self._read(1)
                (length,) = struct.unpack("!I", self._read(4))
                body = self._read(length - 4)
                cut = self._note(kind, body)
                if cut == "before":
                    break
                if cut == "after":
                    self._silenced.set()
                self._server.sendall(kind + struct.pack("!I", length) + body)
        except (OSError, EOFError):
            pass
        _cut(self._client)
        _cut(self._server)

    def answer(self) -> None:
        """What the server says. The answer to a COMMIT that is to be lost is heard here and goes no further."""
        with contextlib.suppress(OSError):
            while said := self._server.recv(65536):
                if self._silenced.is_set():
                    break
                self._client.sendall(said)
        _cut(self._client)
        _cut(self._server)

    def _note(self, kind: bytes, body: bytes) -> Moment | None:
        match kind:
            case b"P":
                name, text, _ = body.split(b"\0", 2)
                self._texts[name] = text.decode()
            case b"B":
                _, name, _ = body.split(b"\0", 2)
                self._ran.add(self._texts[name])
            case b"Q" if body.upper().startswith(b"COMMIT"):
                ran, self._ran = self._ran, set()
                cut = self._proxy.take(ran)
                return cut.moment if cut else None
            case b"Q":
                self._ran = set() if body.upper().startswith((b"BEGIN", b"ROLLBACK")) else self._ran
        return None

    def _read(self, count: int) -> bytes:
        whole = b""
        while len(whole) < count:
            part = self._client.recv(count - len(whole))
            if not part:
                raise EOFError
            whole += part
        return whole


def _cut(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()
