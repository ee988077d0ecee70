"""The command line tells a user's mistake in one line, each command with an example, and starts fast."""

from __future__ import annotations

import importlib
import subprocess
import sys

import click
import pytest

from dashboard import __version__
from dashboard.cli import COMMANDS, Mistake, run, sendonce

NOBODY_LISTENS = "postgresql://u:s3cret@127.0.0.1:1/d"


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DATABASE_URL", "SENDONCE_SECRET_KEY", "SENDONCE_ENCRYPTION_KEYS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([name, "--help"]) == 0
    told = capsys.readouterr().out
    assert "Example" in told
    assert f"sendonce {name}" in told.partition("Example")[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_register_says_the_same_as_the_command(name: str) -> None:
    module, _, attribute = COMMANDS[name][0].partition(":")
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command)
    assert command.name == name
    assert COMMANDS[name][1].endswith(".")


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--help"]) == 0
    told = capsys.readouterr().out
    for name, (_, what) in COMMANDS.items():
        assert name in told
        assert what in told


def test_help_loads_no_command() -> None:
    code = (
        "import sys; from dashboard.cli import run; run(['--help']);"
        "assert not {'flask', 'plotly', 'sqlalchemy', 'psycopg'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"sendonce {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["dance"], "No such command 'dance'. (see: sendonce --help)"),
        (["migrate", "--fast"], "No such option '--fast'."),
        (["web", "--port", "x"], "Invalid value for '--port'"),
        (["migrate"], "DATABASE_URL is not set"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"sendonce: {told}")
    assert captured.err.count("\n") == 1


def test_all_settings_that_are_missing_are_told_a_line_each(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["web"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["sendonce:", "DATABASE_URL"],
        ["sendonce:", "SENDONCE_SECRET_KEY"],
        ["sendonce:", "SENDONCE_ENCRYPTION_KEYS"],
    ]


def test_a_database_that_cannot_be_reached_is_one_line_without_the_password(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", NOBODY_LISTENS)
    assert run(["migrate"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("sendonce: the database cannot be reached: ")
    assert told.count("\n") == 1
    assert "s3cret" not in told


def test_migrate_brings_an_empty_database_to_the_schema_and_may_be_repeated(
    empty_database_url: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", empty_database_url)
    for _ in range(2):
        assert run(["migrate", "--wait", "5"]) == 0
    assert capsys.readouterr().out.count("newest schema") == 2


def a_command(error: BaseException) -> click.Command:
    def raise_it() -> None:
        raise error

    return click.Command("tried", callback=raise_it)


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (Mistake("the file has no line 7"), 2, "sendonce: the file has no line 7\n"),
        (click.exceptions.Exit(1), 1, ""),
        (KeyboardInterrupt(), 130, "sendonce: stopped\n"),
    ],
)
def test_a_commands_end_decides_the_code(
    error: BaseException,
    code: int,
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(type(sendonce), "get_command", lambda *_: a_command(error))
    assert run(["tried"]) == code
    assert capsys.readouterr().err.strip("\n") == told.strip("\n")


def test_a_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(sendonce), "get_command", lambda *_: a_command(ZeroDivisionError("ours")))
    with pytest.raises(ZeroDivisionError):
        run(["tried"])
