"""A primary and a standby from the embedded binaries, which change places."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from dashboard.embedded.postgres import EmbeddedPostgres
from dashboard.embedded.server_account import ServerAccount
from tests.conftest import SERVER_SETTINGS
from tests.crew import until
from tests.folders import server_folder

Answer = tuple[object, ...]


class Pair:
    """Two servers by the names ``one`` and ``two``; ``url`` leads to whichever of them takes writes."""

    def __init__(self, home: Path) -> None:
        self._servers = {name: self._server(home, name) for name in ("one", "two")}
        self.primary, self.standby = "one", "two"
        self._servers["one"].start()
        self._servers["one"].url()  # makes the database
        shutil.copy2(home / "one" / "password-18", home / "two" / "password-18")

    @staticmethod
    def _server(home: Path, name: str) -> EmbeddedPostgres:
        (home / name).mkdir()
        ServerAccount.find((home / name,)).own(home / name)  # which writes the copy into it
        settings = {**SERVER_SETTINGS, "cluster_name": name, "wal_receiver_status_interval": "1"}
        return EmbeddedPostgres(home / name, tcp=True, settings=settings)

    def address(self, name: str) -> str:
        """The URL of one of the two."""
        password = (self._servers[name].folder / "password-18").read_text()
        return f"postgresql://postgres:{password}@127.0.0.1:{self._servers[name]._port}/sendonce?connect_timeout=5"

    @property
    def url(self) -> str:
        """The URL that workers are given."""
        one, two = (f"127.0.0.1:{server._port}" for server in self._servers.values())
        return self.address("one").replace(one, f"{one},{two}") + "&target_session_attrs=read-write"

    def ask(self, question: str, *, of: str | None = None) -> Answer:
        """A row of an answer of the primary, or of the one that is named."""
        with psycopg.connect(self.address(of or self.primary), autocommit=True) as connection:
            answer = connection.execute(question.encode())
            return (answer.description and answer.fetchone()) or ()

    def join(self, *, synchronous: bool = True) -> None:
        """The standby is made anew from the primary and follows it; then commits wait for it, if they should."""
        follower = self._servers[self.standby]
        shutil.rmtree(follower.cluster, ignore_errors=True)
        self._servers[self.primary].run(
            "pg_basebackup", "--pgdata", follower.cluster, "--dbname", self.address(self.primary),
            "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
        )  # fmt: skip
        follower.start()
        if synchronous:
            self.wait_for(self.standby)
            self.be_synchronous()

    def be_synchronous(self) -> None:
        """Commits of the primary wait for the standby from now on."""
        self.set_names(self.standby)
        until(lambda: self.ask("select sync_state from pg_stat_replication") == ("sync",), what="the standby")

    def set_names(self, names: str) -> None:
        """``synchronous_standby_names`` of the primary, known to every session when this returns."""
        self.ask(f"alter system set synchronous_standby_names = '{names}'")
        self.ask("select pg_reload_conf()")
        until(lambda: self.ask("show synchronous_standby_names") == (names,))

    def wait_for(self, name: str) -> None:
        """Until the standby of this name is streaming."""
        asked = f"select state from pg_stat_replication where application_name = '{name}'"
        until(lambda: self.ask(asked) == ("streaming",), what="streaming")

    def kill_primary(self) -> None:
        """As a power cut does."""
        self._servers[self.primary].stop(hard=True)

    def stop_standby(self) -> None:
        """Take it away, in good order."""
        self._servers[self.standby].stop()

    def start_standby(self) -> None:
        """It is back, and follows the primary."""
        self._servers[self.standby].start()

    def promote(self) -> None:
        """The standby takes the primary's place. The other has to join anew."""
        assert self.ask("select pg_promote()", of=self.standby) == (True,)
        self.primary, self.standby = self.standby, self.primary

    def stop(self) -> None:
        """Stop both."""
        for server in self._servers.values():
            server.stop()


@contextmanager
def pair() -> Iterator[Pair]:
    """Two servers in a folder of their own, the second one not made yet."""
    with server_folder() as home:
        servers = Pair(home)
        try:
            yield servers
        finally:
            servers.stop()
