"""``sendonce workspace``: where its tickets are, and stopping all its mail."""

from __future__ import annotations

import pytest

from dashboard.cli import run
from dashboard.ledger.database import Database
from dashboard.ledger.notes import read_ticket_url, ticket_link


def test_tickets_become_links_to_where_they_are(ledger: Database, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workspace", "add", "default"]) == 0
    template = "https://desk.example.com/t/{ticket}"
    assert run(["workspace", "set", "--ticket-url", template]) == 0
    assert f"Tickets of default are at {template}." in capsys.readouterr().out
    with ledger.transaction() as connection:
        row = connection.execute("select id from sendonce.workspaces").fetchone()
        assert row is not None
        assert ticket_link(read_ticket_url(connection, row[0]), "ZD 1") == "https://desk.example.com/t/ZD%201"
        told = connection.execute("select detail from sendonce.audit where action = 'set_workspace'").fetchall()
    assert told == [({"ticket_url": template},)]
    assert run(["workspace", "set", "--ticket-url", "javascript:alert({ticket})"]) == 2
    assert "begins with https://" in capsys.readouterr().err
    assert run(["workspace", "set", "--ticket-url", ""]) == 0
    with ledger.transaction() as connection:
        assert ticket_link(read_ticket_url(connection, row[0]), "ZD 1") is None


def test_all_sending_is_stopped_with_a_reason_and_goes_on(ledger: Database, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workspace", "add", "default"]) == 0
    assert run(["workspace", "pause", "--reason", "wrong prices went out"]) == 0
    assert "All sending of default is paused." in capsys.readouterr().out
    with ledger.transaction() as connection:
        row = connection.execute("select paused_reason from sendonce.workspaces").fetchone()
    assert row == ("wrong prices went out",)
    assert run(["workspace", "resume"]) == 0
    assert "default is active." in capsys.readouterr().out
    assert run(["workspace", "pause", "--reason", "x", "--workspace", "nowhere"]) == 2
    assert run(["workspace", "pause", "--reason", "x", "--user", "nobody"]) == 2
