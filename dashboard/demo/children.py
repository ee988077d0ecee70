"""Child processes that end with the demo, however it ends: politely, by a signal, by SIGKILL.

A tiny shell beside each child reads a pipe whose other end only the demo holds (as in ``embedded/postgres.py``). When
the demo is gone the pipe closes, and the shell ends the child: first politely, then by force. No bookkeeping of process
ids survives anywhere, so nothing can be left behind or be ended by mistake later.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

Child = subprocess.Popen[bytes]

# The end of standard input means that the demo is gone; a line means that it has seen the child's end by itself.
# The doubled parentheses make the watcher nobody's child: gunicorn expects none that it has not made.
_WATCHED = (
    "exec 3<&0 </dev/null; ( ( read -r _ <&3 || { kill -TERM $$; n=0;"
    " while kill -0 $$ && [ $n -lt 80 ]; do sleep 0.1; n=$((n + 1)); done; kill -KILL $$; } 2>/dev/null ) & );"
    ' exec 3<&-; exec "$@"'
)


def start(arguments: tuple[str, ...], *, environment: Mapping[str, str], log: Path) -> Child:
    """Start ``sendonce …``; what it says goes to ``log``. Ctrl-C is the demo's: it does not reach the child.

    Of our settings it gets those of ``environment`` alone, whatever the caller's shell has.
    """
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SENDONCE_", "DATABASE_"))}
    with log.open("ab") as said:
        return subprocess.Popen(
            ["/bin/sh", "-c", _WATCHED, "sendonce", sys.executable, "-m", "dashboard.cli", *arguments],
            env={**inherited, **environment},
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )


def stop(child: Child, *, patience: float = 20) -> None:
    """End a child politely, then by force, and dismiss its watcher. May be repeated."""
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(patience)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    if child.stdin is not None and not child.stdin.closed:
        with contextlib.suppress(BrokenPipeError):  # somebody ended the watcher
            child.stdin.write(b"ended\n")
            child.stdin.close()
