"""A committed ledger for each rule, and the check that nobody left it broken."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dashboard.ledger.database import Database
from tests.crew import violations
from tests.factories import Factory, own_database
from tests.place import EMPTY, Place


@pytest.fixture(scope="package")
def shared_database(server_url: str, template_database: str) -> Iterator[Database]:
    """One database for all rules: to empty it takes a fraction of making a new one."""
    with own_database(server_url, template_database) as url:
        database = Database(url)
        yield database
        database.close()


@pytest.fixture
def place(shared_database: Database) -> Iterator[Place]:
    """The workspace ``default``, whose invariants hold at the end of every test."""
    with shared_database.transaction(durable=False) as connection:
        connection.execute(EMPTY)  # type: ignore[call-overload]
    made = Place(shared_database)
    yield made
    assert violations(made) == []


@pytest.fixture
def own_place(database_url: str) -> Iterator[Place]:
    """The same on a database of its own, for tests that change its settings or its tables."""
    database = Database(database_url)
    yield Place(database)
    database.close()


@pytest.fixture
def factory(shared_database: Database) -> Iterator[Factory]:
    """Makes rows in an empty ledger that nobody else sees, in a transaction that is rolled back."""
    connection = shared_database.connect()
    try:
        connection.execute(EMPTY)  # type: ignore[call-overload]
        yield Factory(connection)
    finally:
        connection.close()
