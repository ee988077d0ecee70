"""A migrated database that the commands are told of by their environment."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from dashboard.ledger.database import Database


@pytest.fixture
def ledger(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Database]:
    """An empty ledger, with the settings that every command needs."""
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("SENDONCE_SECRET_KEY", "s" * 40)
    monkeypatch.setenv("SENDONCE_ENCRYPTION_KEYS", "k1:" + base64.b64encode(b"k" * 32).decode())
    monkeypatch.setenv("SENDONCE_PUBLIC_URL", "https://mail.example.com")
    database = Database(database_url, pool_size=1)
    yield database
    database.close()
