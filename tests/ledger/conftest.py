"""A large ledger, for how PostgreSQL would answer there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench import generated
from dashboard.ledger.database import Database
from tests.conftest import SOAK
from tests.factories import Factory, own_database

SENDS = 1_000_000 if SOAK else 100_000
"""Sends of the large ledger."""


@pytest.fixture(scope="package")
def full_database(server_url: str, template_database: str) -> Iterator[Database]:
    """That of the large ledger."""
    with own_database(server_url, template_database) as url:
        database = Database(url, pool_size=1)
        yield database
        database.close()


@pytest.fixture(scope="package")
def full(full_database: Database) -> Iterator[Factory]:
    """A large ledger, analysed, whose planner behaves as it does by default."""
    connection = full_database.connect()
    factory = Factory(connection)
    factory.stream("welcome")
    generated.fill(connection, factory.vault, workspace=factory.workspace, account=factory.account, sends=SENDS)
    generated.roll_up(connection, workspace=factory.workspace, days=10)
    connection.commit()
    connection.autocommit = True
    connection.execute("vacuum analyze")
    yield factory
    connection.close()
