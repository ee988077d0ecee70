"""``sendonce alerts``: the same rules as on the page."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from dashboard.cli import run
from dashboard.ledger import access
from tests.place import KEYS, Place


@pytest.fixture
def ada(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A ledger with somebody who answers for what is done."""
    with place.database.transaction() as connection:
        access.add_person(connection, login="ada", name="Ada", password="correct horse battery")
    keys = ",".join(f"{name}:{base64.b64encode(key).decode()}" for name, key in KEYS)
    monkeypatch.setenv("DATABASE_URL", place.database.url)
    monkeypatch.setenv("SENDONCE_SECRET_KEY", "s" * 40)
    monkeypatch.setenv("SENDONCE_ENCRYPTION_KEYS", keys)
    return place


def test_rules_silences_and_channels(ada: Place, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def said(*arguments: str, code: int = 0) -> str:
        assert run(["alerts", *arguments]) == code
        told = capsys.readouterr()
        return told.out + told.err

    who = ("--user", "ada")
    assert "outbox-stuck" in said("defaults")
    assert "outbox-stuck\tquiet\tcritical" in said("rules")
    assert "above 2 min, for 2 min" in said(
        "set", "slow", "--measure", "due_age", "--above", "120", "--for", "2m", "--mailstream", "receipts", *who
    )
    assert "as it is" not in said("set", "slow", "--off", *who)
    assert "slow\toff\twarning\tdue_age\treceipts\tabove 2 min" in said("rules")
    assert "needs --measure" in said("set", "other", *who, code=2)
    assert "is gone" in said("remove", "slow", *who)
    assert "lasts for 2h" in said("silence", "--rule", "outbox-stuck", "--for", "2h", "--reason", "a migration", *who)
    assert "a migration" in said("silences")
    assert "has ended" in said("unsilence", "1", *who)
    (tmp_path / "url").write_text("https://chat.example.com/hook/planted\n")
    said("add-channel", "chat", "--kind", "slack", "--url-file", str(tmp_path / "url"), *who)
    said("add-channel", "people", "--kind", "email", "--to", "ada@example.com", *who)
    channels = said("channels")
    assert "https://chat.example.com/…" in channels
    assert "planted" not in channels
    assert "a•••@example.com" in channels
    assert "within seconds" in said("test", "chat", *who)
    assert "is gone" in said("remove-channel", "chat", *who)
    assert "Nothing fires." in said("list", "--open")
    ada.run(
        "insert into sendonce.alerts (workspace_id, rule, measure, severity, threshold, value, worst)"
        " values (%s, 'outbox-stuck', 'outbox_age', 'critical', 120, 130, 400)", ada.workspace,
    )  # fmt: skip
    assert "outbox-stuck\t-\t6 min" in said("list", "--open", code=1)
    assert json.loads(said("list", "--json"))[0]["worst"] == 400
