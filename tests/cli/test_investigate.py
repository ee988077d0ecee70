"""``sendonce investigate`` says what the complaint page says."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import UUID

import pytest

from dashboard.cli import run
from tests.cli.test_trace import send as send  # a delivered send in the workspace ``shop``
from tests.factories import ADDRESS


def investigate(*more: str) -> int:
    return run(["investigate", "--workspace", "shop", *more])


def test_a_complaint_is_answered_with_reply_and_proof(send: UUID, capsys: pytest.CaptureFixture[str]) -> None:
    assert investigate("--who", "evt_7", "--complaint", "never") == 0
    told = capsys.readouterr().out
    assert told.startswith("Accepted by Resend once")
    assert "proved · Ask the customer to look in spam" in told
    assert "  This email was delivered to your mail server on 30 November at 12:00." in told
    assert f"Delivered to the mail server · Resend · send {send}" in told
    assert "Not looked into: a campaign that is paused or was cancelled (campaigns)" in told


def test_json_is_what_the_api_answers(send: UUID, capsys: pytest.CaptureFixture[str]) -> None:
    assert investigate("--who", f" {ADDRESS}", "--complaint", "twice", "--at", "30 Nov 2026 12:00", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["complaint"], told["cause"]) == ("twice", "same_content_two_keys")
    assert ADDRESS not in str(told)


def test_equal_message_ids_are_one_message(send: UUID, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    headers = tmp_path / "headers"
    headers.write_text("Message-ID: <a@b.example>\n\nMessage-ID: <a@b.example>\n")
    assert investigate("--who", "evt_7", "--complaint", "twice", "--headers", str(headers)) == 0
    assert "one message, copied after it had left" in capsys.readouterr().out


def test_nothing_known_ends_with_1(send: UUID, capsys: pytest.CaptureFixture[str]) -> None:
    assert investigate("--who", "nobody@example.com", "--complaint", "unwanted") == 1
    assert "cannot tell · Try something else" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--who", "x", "--complaint", "rude"), "'rude' is not one of"),
        (("--who", "x", "--complaint", "twice", "--at", "whenever"), "yesterday evening"),
        (("--who", "x", "--complaint", "twice", "--zone", "Mars"), "Europe/Berlin"),
        (("--complaint", "twice"), "--who"),
    ],
)
def test_a_mistake_is_one_clear_line(
    send: UUID, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], says: str
) -> None:
    assert investigate(*more) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1
