"""A client and a webhook receiver for the simulator's tests: the standard library on plain sockets, nothing of ours."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Place(Protocol):
    """Where a simulator listens, in this process or another."""

    @property
    def http_url(self) -> str: ...


class Client:
    """Calls one simulator. Every call has a connection of its own."""

    def __init__(self, sim: Place) -> None:
        host, _, port = sim.http_url.removeprefix("http://").rpartition(":")
        self._address = (host, int(port))

    def call(
        self,
        method: str,
        path: str,
        document: Any = None,
        *,
        headers: dict[str, str] | None = None,
        timeout: float = 10,
    ) -> Reply:
        connection = http.client.HTTPConnection(*self._address, timeout=timeout)
        sent = {"authorization": "Bearer re_test", "content-type": "application/json", **(headers or {})}
        body = document if isinstance(document, bytes | None) else json.dumps(document).encode()
        try:
            connection.request(method, path, body, sent)
            response = connection.getresponse()
            return Reply(response.status, dict(response.getheaders()), response.read().decode())
        finally:
            connection.close()

    def send(
        self,
        send_id: str = "send-1",
        *,
        key: str | None = None,
        to: str = "ada@example.test",
        timeout: float = 10,
        **more: Any,
    ) -> Reply:
        headers = {} if key is None else {"idempotency-key": key}
        return self.call("POST", "/emails", email(send_id, to=to, **more), headers=headers, timeout=timeout)


def email(send_id: str, *, to: str = "ada@example.test", **more: Any) -> dict[str, Any]:
    """The body of a send call."""
    tags = [{"name": "send_id", "value": send_id}, {"name": "kind", "value": "test"}]
    return {"from": "Shop <shop@example.test>", "to": [to], "subject": "Hello", "text": "Hi", "tags": tags, **more}


@dataclass
class Arrival:
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def event(self) -> Any:
        return json.loads(self.body)

    @property
    def story(self) -> tuple[str, str]:
        """Send id and type."""
        return self.event["data"]["tags"]["send_id"], self.event["type"]


@dataclass
class Receiver:
    """What a customer's webhook endpoint got, in order. ``answer`` decides the status by the how-manieth call it is."""

    answer: Callable[[int], int] = lambda _: 204
    arrivals: list[Arrival] = field(default_factory=list)
    url: str = ""
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def note(self, arrival: Arrival) -> int:
        with self._changed:
            self.arrivals.append(arrival)
            number = len(self.arrivals)
            self._changed.notify_all()
        return self.answer(number)

    def wait_for(self, count: int, timeout: float = 10) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: len(self.arrivals) >= count, timeout)


@contextmanager
def listening(receiver: Receiver) -> Iterator[Receiver]:
    """The receiver at an address of its own until the block ends."""
    server = endpoint(receiver)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def endpoint(receiver: Receiver) -> ThreadingHTTPServer:
    """A server that hands every POST to the receiver, on connections that are kept alive."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status = receiver.note(Arrival(headers, body, self.client_address[1]))
            self.send_response(status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
    return server
