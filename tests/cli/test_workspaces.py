"""``sendonce workspace``: where the tickets of a workspace are."""

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


def test_a_workspace_says_whether_it_keeps_what_replies_say(
    ledger: Database, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert run(["workspace", "add", "default"]) == 0
    kept = "select keep_replies from sendonce.workspaces"
    for option, expected in (("--keep-replies", True), ("--forget-replies", False)):
        with ledger.transaction() as connection:
            assert connection.execute(kept).fetchone() == (not expected,)
        assert run(["workspace", "set", option]) == 0
        with ledger.transaction() as connection:
            assert connection.execute(kept).fetchone() == (expected,)
    assert "only that they came" in capsys.readouterr().out
