"""As much of HTTP/1.1 as send calls need, on an asyncio protocol: keep-alive, one request at a time, faulty ends.

The general servers of the standard library cannot leave an answer away, and cost several times as much per request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from http import HTTPStatus

from dashboard.simulator.connection import Answer, Request, Way, reset

MAX_HEAD = 64 * 1024
MAX_BODY = 40 * 1024 * 1024

Handler = Callable[[Request], Answer]


class HttpConnection(asyncio.Protocol):
    """One client's connection. ``open_connections`` holds it while it lives, so that a stop can end it.

    ``cuts``: whether a POST to this path is to be reset as soon as its head was read.
    """

    def __init__(
        self, handler: Handler, open_connections: set[HttpConnection], cuts: Callable[[str], bool] = lambda path: False
    ) -> None:
        self._handler = handler
        self._cuts = cuts
        self._open = open_connections
        self._buffer = bytearray()
        self._busy = False
        self._continue_sent = False
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._open.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = None
        self._open.discard(self)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if len(self._buffer) > MAX_HEAD + MAX_BODY:
            self.abort()
        elif not self._busy:
            self._serve()

    def abort(self) -> None:
        """End the connection at once; an answer that waits is lost."""
        if self._transport is not None:
            reset(self._transport)
            self._transport = None
        if self._waiting is not None:
            self._waiting.cancel()

    def _serve(self) -> None:
        """Answer the requests that are complete, until one has to wait."""
        while self._transport is not None and not self._busy:
            try:
                request = self._next_request()
            except _Unreadable as error:
                self._write(Answer(status=error.status, body=b"{}"), keep=False)
                return
            if request is None:
                return
            keep = request.headers.get("connection", "").lower() != "close"
            answer = self._handler(request)
            if answer.delay or answer.after or answer.way is Way.SILENCE:
                self._busy = True
                self._waiting = asyncio.get_running_loop().create_task(self._later(answer, keep))
            else:
                self._leave(answer, keep)

    async def _later(self, answer: Answer, keep: bool) -> None:
        try:
            if answer.delay:
                await asyncio.sleep(answer.delay)
            for each in answer.after:
                await asyncio.shield(each)
        finally:
            self._leave(answer, keep)
        if answer.way is Way.ANSWER:
            self._busy = False
            self._serve()

    def _leave(self, answer: Answer, keep: bool) -> None:
        """Let the answer go its way, if the client is still there."""
        if self._transport is not None:
            if answer.way is Way.ANSWER:
                self._write(answer, keep)
            elif answer.way is Way.RESET:
                reset(self._transport)
                self._transport = None
        if answer.left is not None:
            answer.left()

    def _write(self, answer: Answer, keep: bool) -> None:
        assert self._transport is not None
        body = answer.body if isinstance(answer.body, bytes) else answer.body()
        head = [
            f"HTTP/1.1 {answer.status} {_phrase(answer.status)}",
            f"content-type: {answer.content_type}",
            f"content-length: {len(body)}",
            *(f"{name}: {value}" for name, value in answer.headers.items()),
        ]
        if not keep:
            head.append("connection: close")
        self._transport.write("\r\n".join(head).encode() + b"\r\n\r\n" + body)
        if not keep:
            self._transport.close()
            self._transport = None

    def _next_request(self) -> Request | None:
        """Cut one complete request off the buffer; None while there is none."""
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise _Unreadable(431)
            return None
        start, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
        method, _, rest = start.partition(" ")
        target, _, version = rest.rpartition(" ")
        path, _, query = target.partition("?")
        if method == "POST" and self._cuts(path):
            self.abort()
            return None
        headers = {}
        for line in lines:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        length = _body_length(headers)
        if len(self._buffer) < end + 4 + length:
            self._send_continue(headers)
            return None
        body = bytes(self._buffer[end + 4 : end + 4 + length])
        del self._buffer[: end + 4 + length]
        self._continue_sent = False
        if not target.startswith("/") or version not in ("HTTP/1.1", "HTTP/1.0"):
            raise _Unreadable(400)
        if version == "HTTP/1.0":
            headers["connection"] = "close"
        return Request(method=method, path=path, query=query, headers=headers, body=body)

    def _send_continue(self, headers: dict[str, str]) -> None:
        """Tell a client that asks first to go on, once a request."""
        if headers.get("expect", "").lower() == "100-continue" and not self._continue_sent:
            assert self._transport is not None
            self._transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._continue_sent = True


class _Unreadable(Exception):
    """The request cannot be read; what follows it on the connection neither."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def _body_length(headers: dict[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise _Unreadable(411)
    text = headers.get("content-length", "0")
    if not text.isascii() or not text.isdigit():
        raise _Unreadable(400)
    if int(text) > MAX_BODY:
        raise _Unreadable(413)
    return int(text)


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Other"
