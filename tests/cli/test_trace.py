"""``sendonce trace``: what became of a send, for terminals and programs."""

from __future__ import annotations

import base64
import json
from uuid import UUID

import pytest

from dashboard.cli import run
from dashboard.ledger.database import Database
from tests.factories import ADDRESS, Factory


@pytest.fixture
def send(database_url: str, monkeypatch: pytest.MonkeyPatch) -> UUID:
    """A delivered send in the workspace ``shop``, committed, and settings that reach it."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("SENDONCE_SECRET_KEY", "s" * 40)
    monkeypatch.setenv("SENDONCE_ENCRYPTION_KEYS", "k1:" + base64.b64encode(b"k" * 32).decode())
    database = Database(database_url, pool_size=1)
    connection = database.connect()
    factory = Factory(connection)
    connection.execute("update sendonce.workspaces set name = 'shop'")
    made = factory.accepted(key="receipt:order_7", trigger="evt_7", recipient="r1")
    factory.event(made, "delivered", occurred=5)
    factory.delivery(made, "delivered", when=5)
    factory.accepted(key="receipt:order_8", trigger="evt_8", recipient="r1", message_id="msg-2", asked=1)
    connection.commit()
    connection.close()
    database.close()
    return made


def test_one_send_is_told_with_its_verdict_and_timeline(send: UUID, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "evt_7", "--workspace", "shop"]) == 0
    told = capsys.readouterr().out
    assert "Accepted by Resend once" in told
    assert f"send {send}, accepted" in told
    assert "event     Delivered to the mail server · Resend" in told
    assert ADDRESS not in told


def test_json_is_a_list_of_what_happened(send: UUID, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", str(send), "--workspace", "shop", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"at", "lane", "what", "who", "detail", "evidence"} <= set(told[0])
    assert told[-1]["what"] == "Delivered to the mail server"


def test_several_sends_are_listed(send: UUID, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", ADDRESS, "--workspace", "shop"]) == 0
    told = capsys.readouterr().out
    assert "2 sends match" in told
    assert str(send) in told
    assert run(["trace", "r1", "--workspace", "shop", "--json"]) == 0
    assert [hit["key"] for hit in json.loads(capsys.readouterr().out)] == ["receipt:order_8", "receipt:order_7"]


@pytest.mark.usefixtures("send")
def test_nothing_found_is_exit_code_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "nothing like it", "--workspace", "shop"]) == 1
    assert "Nothing is known by that" in capsys.readouterr().out


@pytest.mark.usefixtures("send")
def test_an_unknown_workspace_is_the_users_mistake(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "evt_7", "--workspace", "nowhere"]) == 2
    assert "there is no workspace nowhere" in capsys.readouterr().err


def test_what_is_close_to_a_mistyped_id_is_listed(send: UUID, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "receipt:order7", "--workspace", "shop"]) == 1
    told = capsys.readouterr().out
    assert "Nothing is called exactly that. Close to it:" in told
    assert f"{send}  accepted" in told
    assert run(["trace", "receipt:order7", "--workspace", "shop", "--json"]) == 1
    assert [hit["reading"] for hit in json.loads(capsys.readouterr().out)] == ["slip"]


@pytest.mark.usefixtures("send")
def test_phases_and_silence_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["trace", "evt_7", "--workspace", "shop"]) == 0
    told = capsys.readouterr().out
    assert "from claim to start 1.0 s, the call 399 ms" in told
    assert "without anything, until now" in told
