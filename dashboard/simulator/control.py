"""The control API under ``/_control/``: no vendor has it; tests, demos and people ask it for the truth.

| route | does |
|---|---|
| ``GET books[?full=1][&start=N][&count=N]`` | summary, counts, and rows (100 unless asked for more) |
| ``POST config`` | changes settings: ``{"http": {"slow": 0.1}, "webhooks": {"paused": true}}`` |
| ``GET webhook-secret`` | what a receiver needs in order to verify events |
| ``POST reply`` | ``{"send_id": …, "text": …, "automatic": …}``: its recipient answers, which the vendor hands in |
| ``POST flush`` | makes all pending webhook calls now |
| ``GET idle[?wait=S]`` | whether nothing is pending, after waiting up to S seconds for it |
| ``POST reset`` | forgets everything accepted; the settings stay |

A POST must say ``content-type: application/json``: no page of another site can send that unasked.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qs

from dashboard.simulator import page
from dashboard.simulator.api import Api
from dashboard.simulator.config import Config, read_config
from dashboard.simulator.connection import Answer, Request, settle
from dashboard.simulator.dialect import as_json
from dashboard.simulator.provider import Provider
from dashboard.simulator.replies import Wish

ROWS = 100
LONGEST_WAIT = 600.0


class Control:
    """Answers the control API and the two pages, and hands everything else to the vendor's API."""

    def __init__(self, provider: Provider, configure: Callable[[Config], None]) -> None:
        self._provider = provider
        self._configure = configure
        self._api = Api(provider)
        self._handing: asyncio.Task[None] | None = None

    def handle(self, request: Request) -> Answer:
        """The answer to any request."""
        if request.path.startswith("/_control/"):
            return self._control(request)
        if request.method == "GET" and request.path == "/" and not request.query:
            return page.mailbox(self._provider)
        if request.method == "GET" and request.path.startswith("/_mailbox/"):
            return page.message(self._provider, request.path.removeprefix("/_mailbox/"))
        return self._api.handle(request)

    def _control(self, request: Request) -> Answer:
        if request.method == "POST" and not request.headers.get("content-type", "").startswith("application/json"):
            return as_json(415, {"error": "send content-type: application/json"})
        asked = {name: values[-1] for name, values in parse_qs(request.query).items()}
        try:
            match request.method, request.path.removeprefix("/_control/"):
                case "GET", "books":
                    return as_json(200, self._books(asked))
                case "POST", "config":
                    self._configure(read_config(request.body.decode(), self._provider.config))
                    return as_json(200, {"changed": True})
                case "GET", "webhook-secret":
                    return as_json(200, {"secret": self._provider.shared_secret})
                case "POST", "flush":
                    return as_json(200, {"released": self._provider.webhooks.flush()})
                case "GET", "idle":
                    return self._idle(float(asked.get("wait", "0")))
                case "POST", "reply":
                    return self._reply(json.loads(request.body))
                case "POST", "reset":
                    self._provider.reset()
                    return as_json(200, {"reset": True})
        except (ValueError, TypeError) as error:
            return as_json(400, {"error": str(error)})
        return as_json(404, {"error": "no such control route"})

    def _books(self, asked: dict[str, str]) -> dict[str, Any]:
        provider = self._provider
        total = len(provider.books)
        full = asked.get("full", "") not in ("", "0")
        start = 0 if full else max(int(asked.get("start", "0")), 0)
        count = total if full else max(int(asked.get("count", str(ROWS))), 0)
        rows = provider.books.page(start, count)
        return {
            "summary": provider.books.summary(),
            "counts": dict(provider.counts),
            "webhooks": {"pending": provider.webhooks.pending, **provider.webhooks.counts},
            "start": start,
            "rows": [asdict(row) for row in rows],
            "next_start": start + len(rows) if start + len(rows) < total else None,
        }

    def _idle(self, wait: float) -> Answer:
        """Asked to wait, the answer leaves when nothing is pending or the time is over; it says which."""

        def now() -> bytes:
            pending = self._provider.webhooks.pending
            return json.dumps({"idle": pending == 0, "pending_webhooks": pending}).encode()

        if wait <= 0 or self._provider.webhooks.pending == 0:
            return Answer(body=now())
        idle = self._provider.webhooks.when_idle()
        asyncio.get_running_loop().call_later(min(wait, LONGEST_WAIT), settle, idle)
        return Answer(body=now, after=(idle,))

    def _reply(self, asked: dict[str, Any]) -> Answer:
        """The answer leaves when the mail was handed in; it says with what status, null for no answer."""
        wish = {name: value for name, value in asked.items() if name != "send_id"}
        request = self._provider.answer(str(asked.get("send_id")), Wish(**wish))
        status: list[int] = []
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        async def hand_in() -> None:
            try:
                status.append(await self._provider.hand_in(request))
            except (OSError, EOFError, ValueError):
                pass
            finally:
                settle(done)

        self._handing = loop.create_task(hand_in())
        return Answer(body=lambda: json.dumps({"status": status[0] if status else None}).encode(), after=(done,))
