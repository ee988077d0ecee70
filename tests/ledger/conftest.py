"""Rows and what the ledger reads of them: in transactions that are never committed, and in a large ledger."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench import generated
from dashboard.ledger.database import Connection, Database
from tests.conftest import SOAK
from tests.factories import Factory, own_database

SENDS = 1_000_000 if SOAK else 100_000
"""Sends of the large ledger."""


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


@pytest.fixture(scope="package")
def full(server_url: str, template_database: str) -> Iterator[Factory]:
    """A large ledger, analysed, whose planner behaves as it does by default."""
    with own_database(server_url, template_database) as url:
        database = Database(url, pool_size=1)
        connection = database.connect()
        factory = Factory(connection)
        factory.stream("welcome")
        generated.fill(
            connection, factory.vault, workspace=factory.workspace, account=factory.account, sends=SENDS
        )  # fmt: skip
        connection.commit()
        connection.autocommit = True
        connection.execute("vacuum analyze")
        yield factory
        connection.close()
        database.close()
