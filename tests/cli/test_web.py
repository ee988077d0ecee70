"""``sendonce web`` as it is run: a process that answers, writes its logs, and stops in good order."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import urllib.request


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
