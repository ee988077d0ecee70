"""``sendonce enqueue``: good lines are asked for, bad ones are told by their number."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dashboard.cli import run
from dashboard.ledger.database import Database
from dashboard.ledger.outbox import relay
from tests.place import Place


@pytest.fixture
def place(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The workspace ``default``, whose database the command is told."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    database = Database(database_url)
    yield Place(database)
    database.close()


def asked(key: str, **changes: Any) -> str:
    request = {
        "mailstream": "receipts", "key": key, "recipient": {"id": "r", "address": "ada@example.com"},
        "trigger": {"type": "order.paid", "id": "evt_991"},
        "message": {"from": "shop@example.com", "subject": "Your receipt", "text": "Grüße"}, **changes,
    }  # fmt: skip
    return json.dumps(request, ensure_ascii=False)


def test_good_lines_are_asked_for_and_bad_ones_told_with_exit_code_1(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "asked.jsonl"
    file.write_text(
        "\n".join(
            [
                asked("a"),
                "{broken",
                "",
                asked("ada@example.com"),
                asked("b", workspace="default"),
                asked("c", workspace="other"),
                asked("d", mailstream="recipes"),
                asked("e", metadata={"a": "x"}).replace('"x"', '"\\ud800"'),
                asked("f"),
            ]
        )
    )
    assert run(["enqueue", str(file)]) == 1
    out, err = capsys.readouterr()
    assert out == "3 asked for, 5 not taken\n"
    assert [line.partition(":")[0] for line in err.splitlines()] == ["line 2", "line 4", "line 6", "line 8", "line 7"]
    assert "ada@example.com" not in err
    rows = place.all("select request ->> 'key' as key, request ->> 'workspace' as workspace from sendonce.outbox")
    assert sorted((row["key"], row["workspace"]) for row in rows) == [
        ("a", "default"), ("b", "default"), ("f", "default"),
    ]  # fmt: skip


def test_a_file_may_be_asked_for_again(place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "asked.jsonl"
    file.write_text("\n".join(asked(f"k{i}") for i in range(1200)))
    assert [run(["enqueue", str(file)]) for _ in range(2)] == [0, 0]
    assert capsys.readouterr().out == "1,200 asked for, 0 not taken\n" * 2
    with place.database.transaction() as connection:
        relayed = relay(connection, place.vault, limit=5000)
    assert (relayed.won, relayed.later) == (1200, 1200)


def test_a_line_that_only_the_database_refuses_spoils_no_other(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "asked.jsonl"
    file.write_text("\n".join([asked("a"), asked("b", message={}), asked("c")]))
    place.run(
        "create function refuse() returns trigger language plpgsql as $$ begin"
        " if new.request ->> 'key' = 'c' then raise exception 'not c' using errcode = 'data_exception'; end if;"
        " return new; end $$"
    )
    place.run("create trigger refuse before insert on sendonce.outbox for each row execute function refuse()")
    assert run(["enqueue", str(file)]) == 1
    out, err = capsys.readouterr()
    assert out == "1 asked for, 2 not taken\n"
    assert "line 2: message.from" in err
    assert "line 3: the database refused it: not c" in err


def test_a_line_that_is_too_long_is_told_and_the_next_one_is_read(
    place: Place, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "asked.jsonl"
    file.write_text("x" * 25_000_000 + "\n" + asked("a") + "\n")
    assert run(["enqueue", str(file)]) == 1
    out, err = capsys.readouterr()
    assert out == "1 asked for, 1 not taken\n"
    assert err == "line 1: request: has more than 10,000,000 bytes\n"


def test_lines_may_come_from_standard_input(place: Place) -> None:
    command = [sys.executable, "-m", "dashboard.cli", "enqueue", "-"]
    done = subprocess.run(command, input=asked("a"), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 asked for, 0 not taken\n", "")
    assert place.count("outbox") == 1


@pytest.mark.usefixtures("place")
def test_an_unknown_workspace_or_file_is_wrong_usage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["enqueue", str(tmp_path / "nowhere.jsonl")]) == 2
    (tmp_path / "asked.jsonl").write_text(asked("a"))
    assert run(["enqueue", str(tmp_path / "asked.jsonl"), "--workspace", "elsewhere"]) == 2
    assert "there is no workspace elsewhere" in capsys.readouterr().err
