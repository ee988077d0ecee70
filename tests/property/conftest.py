"""One committed ledger for all examples of a property: each example has a key of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dashboard.ledger.database import Database
from tests.factories import own_database
from tests.place import Place


@pytest.fixture(scope="package")
def place(server_url: str, template_database: str) -> Iterator[Place]:
    """The workspace ``default``."""
    with own_database(server_url, template_database) as url:
        database = Database(url)
        yield Place(database)
        database.close()
