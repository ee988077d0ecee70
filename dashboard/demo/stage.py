"""The stage of a demo: its folder, its secrets, its database, its processes."""

from __future__ import annotations

import base64
import json
import secrets
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dashboard.demo import children
from dashboard.demo.children import Child
from dashboard.embedded.postgres import EmbeddedPostgres
from dashboard.ledger.database import migrate
from dashboard.settings import Settings, read_settings


class StageError(Exception):
    """A part of the demo did not come up; the text says which and where its log is."""


class Stage:
    """Everything a demo runs on, under one folder. A context manager: leaving it ends every process it started."""

    def __init__(self, folder: Path, *, port: int | None = None, tuning: Mapping[str, str]) -> None:
        """``port`` of the dashboard (None: any free one); ``tuning``: further variables of all processes."""
        self.folder = folder.resolve()
        self.port = port or free_port()
        self._tuning = tuning
        self._postgres = EmbeddedPostgres(self.folder / "pg")
        self._children: list[Child] = []
        self.environment: dict[str, str] = {}

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._postgres.start()
        try:
            self.environment = self._make_environment()
            migrate(self.environment["DATABASE_URL"])
        except BaseException:
            self._postgres.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for child in reversed(self._children):
            children.stop(child)
        self._postgres.stop()

    @property
    def settings(self) -> Settings:
        """What the processes run with."""
        return read_settings(self.environment)

    @property
    def url(self) -> str:
        """Where the dashboard is."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, name: str, *arguments: str) -> Child:
        """Start ``sendonce …``; what it says goes to ``<name>.log`` in the demo's folder."""
        child = children.start(arguments, environment=self.environment, log=self.log_file(name))
        self._children.append(child)
        return child

    def start_simulator(
        self, *, http_port: int, smtp_port: int, seed: int, keys_honoured: bool, behaviour: Mapping[str, Any]
    ) -> Child:
        """Start the provider that misbehaves; its books are kept. ``behaviour``: settings of the simulator."""
        settings = self.folder / "simulator.json"
        write_private(settings, json.dumps(behaviour))
        return self.start(
            "simulator", "simulator", "--port", str(http_port), "--smtp-port", str(smtp_port), "--seed", str(seed),
            "--provider-keys", "honoured" if keys_honoured else "ignored", "--faults", str(settings),
            "--data", str(self.folder / "simulator"),
        )  # fmt: skip

    def dismiss(self, child: Child) -> None:
        """Forget a child, which is ended if need be."""
        children.stop(child)
        self._children.remove(child)

    def keep(self, name: str, make: Callable[[], str]) -> str:
        """A value of this folder that is made once, such as a secret."""
        path = self.folder / "kept.json"
        kept: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        if name not in kept:
            kept[name] = make()
            write_private(path, json.dumps(kept))
        return kept[name]

    def log_file(self, name: str) -> Path:
        """Where a part writes what it says."""
        return self.folder / f"{name}.log"

    def wait_for(self, name: str, url: str, process: Child, *, seconds: float = 30) -> None:
        """Wait until a part answers. Raises :class:`StageError` when it ends before, or does not answer in time."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if process.poll() is not None:
                break
            try:
                urllib.request.urlopen(url, timeout=2).close()  # noqa: S310  # a loopback address of our own
                return
            except urllib.error.HTTPError:
                return
            except OSError:
                time.sleep(0.05)
        raise StageError(f"the {name} did not come up; see {self.log_file(name)}")

    def _make_environment(self) -> dict[str, str]:
        return {
            "DATABASE_URL": self._postgres.url("sendonce"),
            "SENDONCE_SECRET_KEY": self.keep("secret_key", lambda: secrets.token_urlsafe(48)),
            "SENDONCE_ENCRYPTION_KEYS": self.keep("encryption_keys", _encryption_key),
            "SENDONCE_PUBLIC_URL": self.url,
            "SENDONCE_ENVIRONMENT": "demo",
            "SENDONCE_LOG": "console",
            **self._tuning,
        }


def _encryption_key() -> str:
    return "demo:" + base64.b64encode(secrets.token_bytes(32)).decode()


class Books:
    """The simulator's own books and its controls, over HTTP."""

    def __init__(self, url: str) -> None:
        self.url = url

    def summary(self) -> dict[str, Any]:
        """Totals: messages, sends, repeated sends; counts of faults; counts of webhooks."""
        return self._call("GET", "/_control/books?count=0")

    def rows(self) -> list[dict[str, Any]]:
        """Every message that the simulator really accepted."""
        rows: list[dict[str, Any]] = self._call("GET", "/_control/books?full=1")["rows"]
        return rows

    def configure(self, changes: Mapping[str, Any]) -> None:
        """Change how it behaves."""
        self._call("POST", "/_control/config", changes)

    def flush(self) -> None:
        """Make all pending webhook calls now."""
        self._call("POST", "/_control/flush", {})

    def wait_idle(self, seconds: float) -> bool:
        """Wait until no webhook is pending."""
        return bool(self._call("GET", f"/_control/idle?wait={seconds}", timeout=seconds + 10)["idle"])

    def _call(self, method: str, path: str, body: object = None, *, timeout: float = 30) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310  # a loopback address of our own
            self.url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=timeout) as answer:  # noqa: S310
            told: dict[str, Any] = json.load(answer)
        return told


def free_port() -> int:
    """A port of the loopback address that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_free(port: int) -> bool:
    """Whether a server could listen on this port of the loopback address now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as servers do: a port at rest is no port in use
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read: all of it, or nothing."""
    unfinished = path.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    unfinished.touch(mode=0o600)
    unfinished.write_text(text)
    unfinished.rename(path)
