"""PgBouncer in transaction mode before a database."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from dashboard.demo.stage import free_port
from dashboard.embedded.server_account import ServerAccount
from tests.crew import until

SESSIONS = 4
"""Sessions that it holds on the server for a database: fewer than its clients, so that they have to share."""


@contextmanager
def pgbouncer(program: str, url: str) -> Iterator[str]:
    """Run it for the database of ``url``; gives the URL to reach that database through it."""
    server = conninfo_to_dict(url)
    user, database, port = server["user"], server["dbname"], free_port()
    target = " ".join(f"{name}={server[name]}" for name in ("host", "port", "password") if server.get(name))
    with tempfile.TemporaryDirectory(prefix="sendonce-bouncer-") as name:
        folder = Path(name)
        account = ServerAccount.find((folder,))  # it refuses to run as root, too
        (folder / "users.txt").write_text(f'"{user}" ""\n')
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n* = {target}\n[pgbouncer]\npool_mode = transaction\ndefault_pool_size = {SESSIONS}\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = trust\n"
            f"auth_file = {folder}/users.txt\nmax_client_conn = 200\nlogfile = {folder}/log\n"
        )
        for path in (folder, *folder.iterdir()):
            account.own(path)
        with subprocess.Popen(
            [*account.prefix, program, "-q", str(folder / "pgbouncer.ini")],
            cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            user=account.user, group=account.group, extra_groups=account.extra_groups,
        ) as process:  # fmt: skip
            through = f"postgresql://{user}@127.0.0.1:{port}/{database}"

            def answers() -> bool:
                assert process.poll() is None, (folder / "log").read_text()
                try:
                    psycopg.connect(through, sslmode="disable").close()
                except psycopg.OperationalError:
                    return False
                return True

            until(answers, what="PgBouncer")
            yield through
            process.terminate()
