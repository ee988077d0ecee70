"""``sendonce web`` as it is run: a process that answers, writes its logs, and stops in good order."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from http.client import HTTPConnection

import psycopg


def test_it_answers_and_a_polite_stop_ends_all_its_processes(database_url: str) -> None:
    environment = os.environ | {
        "DATABASE_URL": database_url,
        "SENDONCE_SECRET_KEY": "s" * 32,
        "SENDONCE_ENCRYPTION_KEYS": "k1:" + base64.b64encode(bytes(32)).decode(),
    }
    command = [sys.executable, "-m", "dashboard.cli", "web", "--port", "0", "--processes", "2"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            started = json.loads(server.stderr.readline())
            assert started["action"] == "web_started"
            with urllib.request.urlopen(f"{started['at'][0]}/healthz", timeout=60) as answer:
                assert json.load(answer) == {"status": "ok"}
        finally:
            server.send_signal(signal.SIGTERM)
        # Both worker processes hold this pipe too: its end proves that they are gone.
        rest, _ = server.stderr.read(), server.wait(timeout=60)
    assert server.returncode == 0
    assert [json.loads(line)["action"] for line in rest.splitlines()] == ["web_stopped"]


def test_a_request_under_way_is_answered_before_the_stop(database_url: str) -> None:
    environment = os.environ | {
        "DATABASE_URL": database_url,
        "SENDONCE_SECRET_KEY": "s" * 32,
        "SENDONCE_ENCRYPTION_KEYS": "k1:" + base64.b64encode(bytes(32)).decode(),
    }
    command = [sys.executable, "-m", "dashboard.cli", "web", "--port", "0"]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        address = json.loads(server.stderr.readline())["at"][0].removeprefix("http://")
        # A request that waits for a lock is under way when the server is told to stop.
        with psycopg.connect(database_url) as holder:
            holder.execute("lock table sendonce.alembic_version")
            waiting = HTTPConnection(address, timeout=60)
            waiting.request("GET", "/readyz")
            _until_somebody_waits(database_url)
            server.send_signal(signal.SIGTERM)
        assert waiting.getresponse().status == 200
        waiting.close()
        assert server.wait(timeout=60) == 0


def test_a_port_that_somebody_has_is_named_in_one_sentence(database_url: str) -> None:
    environment = os.environ | {
        "DATABASE_URL": database_url,
        "SENDONCE_SECRET_KEY": "s" * 32,
        "SENDONCE_ENCRYPTION_KEYS": "k1:" + base64.b64encode(bytes(32)).decode(),
    }
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        port = somebody.getsockname()[1]
        command = [sys.executable, "-m", "dashboard.cli", "web", "--port", str(port)]
        server = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert server.returncode == 2
    assert server.stderr.splitlines() == [
        f"sendonce: cannot listen on 127.0.0.1, port {port}: Address already in use;"
        " choose another with --host or --port"
    ]


def _until_somebody_waits(database_url: str) -> None:
    end = time.monotonic() + 30
    with psycopg.connect(database_url, autocommit=True) as connection:
        while not connection.execute("select 1 from pg_stat_activity where wait_event_type = 'Lock'").fetchone():
            assert time.monotonic() < end, "nobody came to wait"
