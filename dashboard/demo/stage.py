"""The stage of a demo: its folder, its secrets, its database, its processes."""

from __future__ import annotations

import base64
import ctypes
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dashboard.cli.embedded import EmbeddedPostgres
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
        self._processes: list[subprocess.Popen[bytes]] = []
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
        for process in reversed(self._processes):
            stop(process)
        self._postgres.stop()

    @property
    def settings(self) -> Settings:
        """What the processes run with."""
        return read_settings(self.environment)

    @property
    def url(self) -> str:
        """Where the dashboard is."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start ``sendonce …``; what it says goes to ``<name>.log`` in the demo's folder."""
        log = self.log_file(name).open("ab")
        with log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dashboard.cli", *arguments],
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                preexec_fn=_end_with_the_parent if sys.platform == "linux" else None,
            )  # fmt: skip
        self._processes.append(process)
        return process

    def log_file(self, name: str) -> Path:
        """Where a part writes what it says."""
        return self.folder / f"{name}.log"

    def wait_for(self, name: str, url: str, process: subprocess.Popen[bytes], *, seconds: float = 30) -> None:
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
        kept = self._kept_secrets()
        return {
            "DATABASE_URL": self._postgres.url("sendonce"),
            "SENDONCE_SECRET_KEY": kept["secret_key"],
            "SENDONCE_ENCRYPTION_KEYS": kept["encryption_keys"],
            "SENDONCE_PUBLIC_URL": self.url,
            "SENDONCE_ENVIRONMENT": "demo",
            "SENDONCE_LOG": "console",
            **self._tuning,
        }

    def _kept_secrets(self) -> dict[str, str]:
        """The secrets of this folder, made once."""
        path = self.folder / "secrets.json"
        if not path.exists():
            made = {
                "secret_key": secrets.token_urlsafe(48),
                "encryption_keys": "demo:" + base64.b64encode(secrets.token_bytes(32)).decode(),
            }
            path.touch(mode=0o600)
            path.write_text(json.dumps(made))
        kept: dict[str, str] = json.loads(path.read_text())
        return kept


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


def stop(process: subprocess.Popen[bytes], *, patience: float = 20) -> None:
    """End a process politely, then by force."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end_with_the_parent() -> None:
    """Have the kernel end this process when the demo is killed, so that none is left behind."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGTERM)
