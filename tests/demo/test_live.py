"""``make demo`` from outside: it serves, looks after its parts, goes on where it ended, and leaves nothing behind."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dashboard.demo.stage import free_port
from tests.crew import until
from tests.folders import server_folder

PATIENCE = 120.0


class Demo:
    """A demo in a process of its own."""

    def __init__(self, folder: Path, port: int) -> None:
        command = [sys.executable, "-m", "dashboard.cli", "demo", "--data", str(folder), "--port", str(port)]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        )
        self.said = ""
        self._ended = False
        self._grew = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def wait_for(self, words: str) -> str:
        """Wait until it has said this."""
        with self._grew:
            came = self._grew.wait_for(lambda: words in self.said or self._ended, PATIENCE)
        assert came, self.said
        assert words in self.said, self.said
        return self.said

    def sessions(self) -> dict[int, str]:
        """The sessions of its children, by what runs in them: each child leads one, its watcher is in it too."""
        table = subprocess.run(["ps", "-eo", "pid=,ppid=,args="], capture_output=True, text=True, check=True).stdout
        rows = [line.split(maxsplit=2) for line in table.splitlines()]
        return {int(pid): args for pid, parent, args in rows if int(parent) == self.process.pid}

    def end(self, how: signal.Signals) -> int:
        """Send a signal and wait for the end."""
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout:
            for line in self.process.stdout:
                with self._grew:
                    self.said += line
                    self._grew.notify_all()
        with self._grew:
            self._ended = True
            self._grew.notify_all()


@pytest.fixture
def folder() -> Iterator[Path]:
    with server_folder() as folder:
        yield folder / "demo"


def workers(sessions: dict[int, str]) -> list[int]:
    """Those sessions in which a worker runs."""
    return [pid for pid, args in sessions.items() if args.endswith(" worker")]


def living(sessions: dict[int, str]) -> list[int]:
    """The processes of these sessions that have not ended."""
    table = subprocess.run(["ps", "-eo", "pid=,stat="], capture_output=True, text=True, check=True).stdout
    alive = []
    for line in table.splitlines():
        pid, state = line.split()
        try:
            if not state.startswith("Z") and os.getsid(int(pid)) in sessions:
                alive.append(int(pid))
        except (ProcessLookupError, PermissionError):
            continue
    return alive


def wait_until_all_have_ended(sessions: dict[int, str]) -> None:
    until = time.monotonic() + 30
    while left := living(sessions):
        assert time.monotonic() < until, f"left behind: {[sessions.get(pid, pid) for pid in left]}"
        time.sleep(0.05)


def test_a_port_in_use_is_told_in_one_line_and_nothing_is_made(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        demo = Demo(folder, taken.getsockname()[1])
        assert demo.process.wait(PATIENCE) == 2
        said = demo.wait_for("--port")
    assert re.fullmatch(r"sendonce: port [0-9]+ is in use: .*--port\n", said)
    assert not folder.exists()


def test_the_demo_lives_through_kills_and_goes_on_where_it_ended(folder: Path) -> None:
    port = free_port()
    demo = Demo(folder, port)
    try:
        said = demo.wait_for("Ctrl-C")
        order, recipient, address = re.findall(r"^ {4}(\S+) {3,}", said, re.MULTILINE)
        assert order.startswith("order_")
        assert recipient.startswith("recipient_")
        assert address.startswith("bounce+")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/login", timeout=10) as page:
            assert page.status == 200

        another = Demo(folder, free_port())
        assert another.process.wait(PATIENCE) == 2
        assert f"process {demo.process.pid} already runs a server" in another.wait_for("already runs")

        children = demo.sessions()
        worker = workers(children)[0]
        os.kill(worker, signal.SIGKILL)
        demo.wait_for("The worker was ended by SIGKILL, and is started again.")
        until(lambda: len(workers(children | demo.sessions())) == 3, what="a worker in its place")
        children |= demo.sessions()

        demo.end(signal.SIGKILL)
        wait_until_all_have_ended(children)
    finally:
        demo.end(signal.SIGKILL)

    demo = Demo(folder, port)
    try:
        again = demo.wait_for("Ctrl-C")
        assert re.findall("(?:Password|token) +(.*)", again) == re.findall("(?:Password|token) +(.*)", said)
        children = demo.sessions()
        assert len(children) == 5, "PostgreSQL, the dashboard, the simulator, two workers"
        assert demo.end(signal.SIGINT) == 0
        demo.wait_for("Stopped. The next start goes on from here.")
        assert living(children) == []
    finally:
        demo.end(signal.SIGKILL)
