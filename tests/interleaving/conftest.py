"""One ledger for all schedules of a run: each batch empties it first."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.factories import own_database
from tests.interleaving.explorer import Explorer, StagedDatabase


@pytest.fixture(scope="package")
def shared_explorer(server_url: str, template_database: str) -> Iterator[Explorer]:
    """A ledger with everybody who may act on it."""
    with own_database(server_url, template_database) as url:
        made = Explorer(StagedDatabase(url, ping=False))
        yield made
        made.close()


@pytest.fixture
def explorer(shared_explorer: Explorer) -> Explorer:
    """The same, having seen nothing yet."""
    shared_explorer.seen.clear()
    return shared_explorer
