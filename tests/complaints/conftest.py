"""One installation for all complaints: each test brings people of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.complaints.desk import Desk, a_desk
from tests.factories import own_database


@pytest.fixture(scope="package")
def desk(server_url: str, template_database: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A support agent's desk; ``sendonce verify`` finds nothing at its end."""
    with (
        own_database(server_url, template_database) as url,
        a_desk(url, tmp_path_factory.mktemp("complaints")) as desk,
    ):
        yield desk
