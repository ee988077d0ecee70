"""Rows and what the ledger reads of them, in transactions that are never committed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dashboard.ledger.database import Connection, Database
from tests.factories import Factory, own_database


@pytest.fixture(scope="package")
def read_database(server_url: str, template_database: str) -> Iterator[Database]:
    """A database for tests that commit nothing."""
    with own_database(server_url, template_database) as url:
        database = Database(url, pool_size=1)
        yield database
        database.close()


@pytest.fixture
def connection(read_database: Database) -> Iterator[Connection]:
    """A transaction that is rolled back."""
    connection = read_database.connect()
    try:
        yield connection
    finally:
        connection.close()


@pytest.fixture
def factory(connection: Connection) -> Factory:
    """Makes rows that nobody else sees."""
    return Factory(connection)
