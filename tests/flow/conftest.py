"""A committed ledger for each test of the flow."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dashboard.ledger.database import Database
from tests.place import Place


@pytest.fixture
def place(database_url: str) -> Iterator[Place]:
    """The workspace ``default``, ready to be asked for sends."""
    database = Database(database_url)
    yield Place(database)
    database.close()
