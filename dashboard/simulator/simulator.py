"""The simulator as one object: two servers and the webhook sender on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from dashboard.simulator import smtp
from dashboard.simulator.books import Acceptance, Books
from dashboard.simulator.config import FIXED_WHILE_RUNNING, Config
from dashboard.simulator.connection import settle
from dashboard.simulator.control import Control
from dashboard.simulator.dialects import dialect_named
from dashboard.simulator.events import Mail
from dashboard.simulator.http_server import HttpConnection
from dashboard.simulator.provider import Provider
from dashboard.simulator.replies import HandIn, Wish

T = TypeVar("T")


class Simulator:
    """A provider on real sockets. ``with Simulator(config) as sim: sim.http_url, sim.smtp_port``.

    What goes wrong with a call is a pure function of (seed, message identity, how many times this simulator has met
    that identity); the identity is the send id (tag ``send_id`` or header ``X-Send-Id``), else the idempotency key
    (SMTP: the Message-ID), else the content. All methods may be called from any thread.
    """

    def __init__(self, config: Config | None = None) -> None:
        self._config = config or Config()
        self._dialect = dialect_named(self._config.dialect)
        self._dialect.check(self._config)
        self._books = Books(self._config.data)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="simulator", daemon=True)
        self._http: set[HttpConnection] = set()
        self._smtp: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._ports = (self._config.http_port, self._config.smtp_port)

    # ── starting and stopping ────────────────────────────────────────────────────────────────────────────────────

    def start(self) -> Self:
        """Listen. Raises OSError when a port is taken."""
        self._thread.start()
        try:
            self._run(self._begin)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop listening, end all connections and tasks, close the books (they stay readable)."""
        if self._thread.is_alive():
            self._run(self._end)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        if not self._loop.is_closed():
            self._loop.close()
        self._books.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # ── where it is ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def http_url(self) -> str:
        """The base address of the HTTP API, without a slash at its end."""
        return f"http://{self._config.host}:{self._ports[0]}"

    @property
    def smtp_host(self) -> str:
        """The host of the SMTP server."""
        return self._config.host

    @property
    def smtp_port(self) -> int:
        """The port of the SMTP server."""
        return self._ports[1]

    @property
    def webhook_secret(self) -> str:
        """What a receiver needs in order to verify events: the secret, or the public half of its key."""
        return self._dialect.shared_secret(self._config.webhooks)

    # ── what it took ─────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def books(self) -> list[Acceptance]:
        """Every accepted message, oldest first."""
        return self._books.rows

    def mails(self) -> list[Mail]:
        """The newest accepted messages with their content (as many as `Config.keep_content`), oldest first."""
        return self._on_loop(lambda: list(self._provider.mails.values()))

    def summary(self) -> dict[str, Any]:
        """The counts of the books, see `Books.summary`."""
        return self._books.summary()

    def wait_taken(self, count: int, timeout: float = 10.0) -> bool:
        """Wait until at least ``count`` messages were accepted; False when ``timeout`` seconds passed first."""
        return self._books.wait_for(count, timeout)

    def counts(self) -> dict[str, int]:
        """Answers (``http_200``, ``smtp_250`` …), faults (``fault_slow`` …) and ``replayed`` so far."""
        return self._on_loop(lambda: dict(self._provider.counts))

    def webhook_counts(self) -> dict[str, int]:
        """``events`` planned; calls ``sent``, ``acknowledged``, ``failed``, ``given_up``; acknowledged ``repeats`` and
        ``other_ids``; messages told ``out_of_order``; answers with an ``overtaking`` event; ``pending`` calls.
        """
        return self._on_loop(lambda: {"pending": self._provider.webhooks.pending, **self._provider.webhooks.counts})

    # ── what it does ─────────────────────────────────────────────────────────────────────────────────────────────

    def configure(self, **changes: Any) -> None:
        """Change settings, nested groups as mappings: ``configure(http={"slow": 0.1})``. Raises ValueError."""
        self._on_loop(lambda: self._configure(self._config.changed(changes)))

    def hold_answers(self) -> None:
        """From now on, accept but do not answer."""
        self.configure(hold_answers=True)

    def release_answers(self) -> None:
        """Answer all that were held, and again at once."""
        self.configure(hold_answers=False)

    def flush(self) -> int:
        """Make all pending webhook calls now; returns how many were not due yet."""
        return self._on_loop(self._provider.webhooks.flush)

    def wait_idle(self, timeout: float = 10.0) -> bool:
        """Wait until no webhook call is pending; False when ``timeout`` seconds passed first."""

        async def wait() -> bool:
            idle = self._provider.webhooks.when_idle()
            self._loop.call_later(timeout, settle, idle)
            await idle
            return self._provider.webhooks.pending == 0

        return self._run(wait)

    def reply(self, send_id: UUID | str, **wish: Any) -> int:
        """Let the recipient of a send answer, see `replies.Wish`, and the vendor hand that in; the status of that."""
        return self.hand_in(self.answer(send_id, **wish))

    def answer(self, send_id: UUID | str, **wish: Any) -> HandIn:
        """The same without handing it in. Raises ValueError where nothing of this send was accepted."""
        return self._on_loop(lambda: self._provider.answer(str(send_id), Wish(**wish)))

    def hand_in(self, request: HandIn) -> int:
        """Hand it in; again for each call."""
        return self._run(lambda: self._provider.hand_in(request))

    def reset(self) -> None:
        """Forget everything that was accepted, seen or is pending. The settings stay."""
        self._on_loop(self._provider.reset)

    def refuse_connections(self) -> None:
        """Stop listening and reset what is open: clients get "connection refused" until `accept_connections`."""
        self._run(self._close_doors)

    def accept_connections(self) -> None:
        """Listen again, on the same ports."""
        self._run(self._open_doors)

    # ── on the loop ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _begin(self) -> None:
        self._provider = Provider(self._config, self._books, self._dialect)
        self._control = Control(self._provider, self._configure)
        await self._open_doors()

    async def _end(self) -> None:
        await self._close_doors()
        await self._provider.webhooks.stop()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _open_doors(self) -> None:
        http_port, smtp_port = self._ports
        http = await self._loop.create_server(
            lambda: HttpConnection(self._control.handle, self._http, self._cuts),
            self._config.host,
            http_port,
            backlog=1024,
        )
        self._servers = [http]
        talk = smtp.serve(self._provider, self._smtp)
        self._servers.append(
            await asyncio.start_server(talk, self._config.host, smtp_port, limit=smtp.MAX_LINE, backlog=1024)
        )
        self._ports = (self._port(0), self._port(1))

    def _cuts(self, path: str) -> bool:
        return self._config.cut_requests and not path.startswith("/_control/")

    async def _close_doors(self) -> None:
        for server in self._servers:
            server.close()
        for connection in list(self._http):
            connection.abort()
        for conversation in list(self._smtp):
            conversation.cancel()
        await asyncio.gather(*self._smtp, return_exceptions=True)

    def _port(self, place: int) -> int:
        port: int = self._servers[place].sockets[0].getsockname()[1]
        return port

    def _configure(self, config: Config) -> None:
        fixed = [name for name in FIXED_WHILE_RUNNING if getattr(config, name) != getattr(self._config, name)]
        if config.webhooks.concurrency != self._config.webhooks.concurrency:
            fixed.append("webhooks.concurrency")
        if fixed:
            raise ValueError(f"cannot be changed while running: {', '.join(sorted(fixed))}")
        self._dialect.check(config)
        self._config = config
        self._provider.configure(config)

    # ── from other threads ───────────────────────────────────────────────────────────────────────────────────────

    def _on_loop(self, action: Callable[[], T]) -> T:
        async def run() -> T:
            return action()

        return self._run(run)

    def _run(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        return asyncio.run_coroutine_threadsafe(work(), self._loop).result()
