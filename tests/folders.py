"""Where the database servers of the tests keep their files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
"""Linux' file system in memory: a database is cloned there in a seventh of the time that a disk takes."""

ROOM = 4 * 2**30
"""Bytes that the servers of a run may come to need. A container's /dev/shm is often smaller."""


@contextmanager
def server_folder() -> Iterator[Path]:
    """A folder for one or several servers, gone afterwards: in memory where there is room."""
    roomy = os.access(MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(MEMORY).free >= ROOM
    with tempfile.TemporaryDirectory(prefix="sendonce-tests-", dir=MEMORY if roomy else None) as name:
        folder = Path(name)
        folder.chmod(0o711)  # for root, whose server runs as another account
        yield folder
