"""The embedded server is there when it is wanted, keeps its data, and is gone with whoever started it."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from dashboard.embedded.postgres import EmbeddedPostgres, EmbeddedPostgresError
from dashboard.embedded.server_account import ServerAccount
from tests.folders import server_folder

FAST = {"fsync": "off"}

STARTER = """
import signal, sys
from dashboard.embedded.postgres import EmbeddedPostgres
from tests.folders import server_folder
with EmbeddedPostgres(sys.argv[1], settings={"fsync": "off"}) as server:
    print(server.url("postgres"), flush=True)
    signal.pause()
"""


@pytest.fixture(scope="module")
def made_folder() -> Iterator[Path]:
    """A folder with a cluster in it, made once."""
    with server_folder() as folder:
        with EmbeddedPostgres(folder, settings=FAST):
            pass
        yield folder


def ask(url: str, question: str) -> object:
    with psycopg.connect(url) as connection:
        row = connection.execute(question.encode()).fetchone()
    assert row is not None
    return row[0]


def wait_for_the_end_of_all_server_processes(folder: Path) -> None:
    """Each of them holds the lock, so that getting it proves that none is left."""
    with (folder / "lock").open("r+") as lock:
        signal.alarm(30)
        fcntl.flock(lock, fcntl.LOCK_EX)
        signal.alarm(0)


def start_elsewhere(folder: Path) -> tuple[subprocess.Popen[str], str]:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(folder)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert starter.stdout is not None
    url = starter.stdout.readline().strip()
    assert ask(url, "select 1") == 1
    return starter, url


@pytest.mark.parametrize("version", [16, 18])
def test_both_versions_start_and_speak_unicode(made_folder: Path, version: int) -> None:
    with EmbeddedPostgres(made_folder, version=version, settings=FAST) as server:
        url = server.url()
        assert str(ask(url, "show server_version")).startswith(str(version))
        assert ask(url, "show server_encoding") == "UTF8"
        assert ask(url, "select 'Ä' < 'Z'") is False  # sorted by code point, the same on every system
        assert ask(url, "show timezone") == "UTC"


def test_a_second_start_takes_less_than_two_seconds_and_finds_the_data(made_folder: Path) -> None:
    with EmbeddedPostgres(made_folder, settings=FAST) as server, psycopg.connect(server.url("kept")) as connection:
        connection.execute("create table kept as select 42 as answer")
    begun = time.monotonic()
    with EmbeddedPostgres(made_folder, settings=FAST) as server:
        assert time.monotonic() - begun < 2
        assert ask(server.url("kept"), "select answer from kept") == 42


def test_committed_data_survives_a_hard_kill(made_folder: Path) -> None:
    server = EmbeddedPostgres(made_folder, settings=FAST)
    server.start()
    with psycopg.connect(server.url("killed"), autocommit=True) as connection:
        connection.execute("create table survivor as select 7 as number")
        server.stop(hard=True)
    assert (server.cluster / "postmaster.pid").exists()
    with server:
        assert ask(server.url("killed"), "select number from survivor") == 7


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_however_the_starter_ends(made_folder: Path, how: signal.Signals) -> None:
    starter, url = start_elsewhere(made_folder)
    os.killpg(starter.pid, how)  # as a terminal does: to all in its foreground
    starter.communicate(timeout=30)
    assert starter.returncode == -how
    wait_for_the_end_of_all_server_processes(made_folder)
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url)
    assert not Path(url.partition("host=")[2].replace("%2F", "/")).exists()


def test_a_start_waits_for_the_server_of_a_killed_starter(made_folder: Path) -> None:
    starter, _ = start_elsewhere(made_folder)
    starter.kill()
    starter.communicate(timeout=30)
    with EmbeddedPostgres(made_folder, settings=FAST) as server:
        assert ask(server.url("postgres"), "select 1") == 1


def test_of_two_starters_one_gets_the_folder_and_the_other_is_told_who_has_it(made_folder: Path) -> None:
    starter, url = start_elsewhere(made_folder)
    try:
        with pytest.raises(EmbeddedPostgresError, match=f"process {starter.pid} already runs a server"):
            EmbeddedPostgres(made_folder, settings=FAST).start()
        assert ask(url, "select 1") == 1
    finally:
        starter.terminate()
        starter.communicate(timeout=30)


def test_two_starters_of_a_new_folder_make_one_whole_cluster(tmp_path: Path) -> None:
    starters = [
        subprocess.Popen([sys.executable, "-c", STARTER, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    # One of them fails and so closes its output without a word; the other says where it listens, and stays.
    said = [starter.stdout.readline() for starter in starters if starter.stdout is not None]
    assert sorted(map(bool, said)) == [False, True]
    assert ask(max(said).decode().strip(), "select 1") == 1
    for starter in starters:
        starter.terminate()
        starter.communicate(timeout=30)


def test_a_cluster_that_was_never_finished_is_made_anew(tmp_path: Path) -> None:
    unfinished = tmp_path / "cluster-18.new"
    unfinished.mkdir()
    (unfinished / "PG_VERSION").write_text("18\n")
    with EmbeddedPostgres(tmp_path, settings=FAST) as server:
        assert ask(server.url("postgres"), "select 1") == 1
    assert not unfinished.exists()


def test_the_socket_is_private(made_folder: Path) -> None:
    with EmbeddedPostgres(made_folder, settings=FAST) as server:
        folder = Path(str(ask(server.url("postgres"), "show unix_socket_directories")))
        assert folder.stat().st_mode & 0o077 == 0
        assert ask(server.url("postgres"), "show listen_addresses") == ""
    assert not folder.exists()


def test_the_socket_path_stays_short_where_the_temporary_folder_is_deep(
    made_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with EmbeddedPostgres(made_folder, settings=FAST) as server:
        assert ask(server.url("postgres"), "select 1") == 1


def test_tcp_takes_the_password_only_and_a_restart_keeps_the_port(made_folder: Path) -> None:
    server = EmbeddedPostgres(made_folder, tcp=True, settings=FAST)
    with server:
        url = server.url("postgres")
        assert ask(url, "select 1") == 1
        with pytest.raises(psycopg.OperationalError, match="password"):
            psycopg.connect(url, password="guess")
    with server:
        assert server.url("postgres") == url


def test_a_database_is_made_once_and_may_have_any_name(made_folder: Path) -> None:
    with EmbeddedPostgres(made_folder, settings=FAST) as server:
        name = 'odd/na me?&"ü'
        for _ in range(2):
            assert ask(server.url(name), "select current_database()") == name


def test_a_server_that_cannot_start_says_why_and_leaves_the_folder_free(made_folder: Path) -> None:
    with pytest.raises(EmbeddedPostgresError, match="no_such_setting"):
        EmbeddedPostgres(made_folder, settings={"no_such_setting": "1"}).start()
    with EmbeddedPostgres(made_folder, settings=FAST):
        pass


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(EmbeddedPostgresError, match="choose one of"):
        EmbeddedPostgres("unused", version=9)


def test_the_programs_run_as_the_servers_account(made_folder: Path) -> None:
    server = EmbeddedPostgres(made_folder, settings=FAST)
    assert "cluster state" in server.run("pg_controldata", "-D", server.cluster)
    with pytest.raises(EmbeddedPostgresError, match="pg_controldata failed"):
        server.run("pg_controldata", "-D", made_folder / "none")


def test_the_server_of_root_reaches_folders_that_only_root_may_enter(tmp_path: Path) -> None:
    """An ordinary user's server runs as that user, for whom these are no different from any folder."""
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedPostgres(closed / "pg", settings=FAST)
    package = server.programs.parents[1]
    for part in (server.programs.parent, *package.parent.glob(f"{package.name}.libs")):
        shutil.copytree(part, closed / part.relative_to(package.parent), symlinks=True)
    server.programs = closed / server.programs.relative_to(package.parent)
    with server:
        assert ask(server.url("postgres"), "select 1") == 1
        account = ServerAccount.find((closed,))
        status = Path(f"/proc/{(server.cluster / 'postmaster.pid').read_text().split()[0]}/status")
        if status.exists():  # Linux
            facts = dict(line.split(":\t", 1) for line in status.read_text().splitlines())
            assert int(facts["Uid"].split()[1]) == (os.geteuid() if account.uid is None else account.uid) != 0
            assert int(facts["CapEff"], 16) in (0, 1 << 2)  # at most CAP_DAC_READ_SEARCH
