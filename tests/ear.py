"""Somebody who is told: a real server that alerts go to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

SILENCE = 0
"""The status of an answer that does not come."""


@dataclass
class Ear:
    """A server that takes what it is told; ``answers`` are its next statuses, then 200."""

    heard: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)
    url: str = ""
    awake: threading.Event = field(default_factory=threading.Event)
    """Ends every silence."""


@pytest.fixture
def ear() -> Iterator[Ear]:
    """Listens on this machine."""
    it = Ear()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            it.heard.append(({name.lower(): value for name, value in self.headers.items()}, body))
            status = it.answers.pop(0) if it.answers else 200
            if status == SILENCE:
                it.awake.wait(10)
            self.send_response(status)
            if status == 302:
                self.send_header("location", it.url)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    it.url = f"http://127.0.0.1:{server.server_port}/hook?team=mail"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield it
    it.awake.set()
    server.shutdown()
    thread.join()
    server.server_close()
