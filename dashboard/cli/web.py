"""``sendonce web``: the dashboard, the API and the webhooks, on gunicorn with threads."""

from __future__ import annotations

import errno
import logging
import os
import socket
import tempfile
import time
from typing import Any

import click
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.config import Config
from gunicorn.glogging import Logger

from dashboard.cli import Mistake
from dashboard.cli.options import example
from dashboard.ledger.database import Database
from dashboard.ledger.vault import Vault
from dashboard.log import Action, configure, log
from dashboard.settings import Settings, read_settings

THREADS = 8
"""Of one process. Each may hold one database connection, so the pool has as many."""

PATIENCE_SECONDS = 30
"""How long requests under way may take to end when the server is told to stop."""

PORT_PATIENCE_SECONDS = 3.0
"""How long a port may still be held by the processes of a server that was just killed."""


@click.command(epilog=example("sendonce web --host 0.0.0.0 --port 8000"))
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(0, 65_535), help="Port; 0 takes any.")
@click.option("--processes", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes that answer.")
def web(host: str, port: int, processes: int) -> None:
    """Serve the dashboard, the API and the webhooks.

    SIGTERM or Ctrl-C stops it politely: requests under way are finished first.
    """
    settings = read_settings(os.environ)
    configure(settings.log)
    _wait_for_port(host, port)
    with tempfile.TemporaryDirectory(prefix="sendonce-metrics-") as folder:
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # before anything imports prometheus_client
        Server(settings, host=host, port=port, processes=processes).run()


class Server(BaseApplication):
    """gunicorn, set up here instead of by a file of its own."""

    def __init__(self, settings: Settings, *, host: str, port: int, processes: int) -> None:
        self.settings = settings
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        self.chosen: dict[str, Any] = {
            "bind": [address],
            "workers": processes,
            "threads": THREADS,
            "worker_class": "gthread",
            "graceful_timeout": PATIENCE_SECONDS,
            "timeout": 2 * PATIENCE_SECONDS,
            "keepalive": 5,
            "logger_class": _Log,
            "control_socket_disable": True,
            "when_ready": _tell_started,
            "worker_exit": _hand_over,
            "child_exit": _forget,
            "on_exit": lambda _: log.info(Action.WEB_STOPPED),
        }
        super().__init__()

    def load_config(self) -> None:
        """Hand over what was chosen."""
        for name, value in self.chosen.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        """The application, made in each process, since connections cannot be shared across a fork."""
        from dashboard import steps
        from dashboard.web import create_app  # counts from here on, each process in its own file

        database = Database(self.settings.database_url, pool_size=THREADS, application_name="sendonce web")
        s = self.settings
        steps.configure(logged=s.log_sends, collector=s.traces, share=s.traces_share, part="web")
        return create_app(self.settings, database, Vault(self.settings.encryption_keys))


def _wait_for_port(host: str, port: int) -> None:
    """Raises ``Mistake`` where this address cannot be listened on: gunicorn would only log it, line after line."""
    until = time.monotonic() + PORT_PATIENCE_SECONDS
    while True:
        try:
            socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
            return
        except OSError as error:
            if time.monotonic() > until or error.errno != errno.EADDRINUSE:
                # Python adds the address to the words of the system; those of the resolver have numbers below 0.
                why = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror
                raise Mistake(
                    f"cannot listen on {host}, port {port}: {why}; choose another with --host or --port"
                ) from None
        time.sleep(0.1)


class _Log(Logger):
    """gunicorn's own words go the way of every library's: from *warning* on, in the form of our logs."""

    def setup(self, cfg: Config) -> None:
        self.error_log.setLevel(logging.WARNING)
        self.error_log.propagate = True


def _hand_over(_: Arbiter, __: Any) -> None:
    """In a process that ends: the spans that wait still go out."""
    from dashboard import steps

    steps.close()


def _forget(_: Arbiter, worker: Any) -> None:
    """What a process that ended had counted stays counted; its gauges go."""
    from prometheus_client.multiprocess import mark_process_dead

    mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]


def _tell_started(arbiter: Arbiter) -> None:
    listening = [str(listener) for listener in arbiter.LISTENERS]
    log.info(Action.WEB_STARTED, at=listening, processes=arbiter.num_workers, threads=THREADS)
