"""A committed ledger that the real functions work on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dashboard.ledger.database import Database
from tests.ledger.course import Ledger


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """Nothing was asked of it yet."""
    database = Database(database_url, pool_size=3)
    yield Ledger(database)
    database.close()
