"""A transaction on the ledger for one command; what the ledger refuses is the user's mistake."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from dashboard.cli import Mistake
from dashboard.ledger.access import Refused, find_person
from dashboard.ledger.database import Connection, Database
from dashboard.settings import read_database_url


@contextmanager
def ledger() -> Iterator[Connection]:
    """A transaction, committed at the end. Needs DATABASE_URL only."""
    database = Database(read_database_url(os.environ), pool_size=1)
    try:
        with database.transaction() as connection:
            yield connection
    except Refused as refusal:
        raise Mistake(str(refusal)) from None
    finally:
        database.close()


def answering(connection: Connection, login: str) -> UUID:
    """The person who answers for what a command does. Raises :class:`Mistake` where nobody may log in so."""
    person = find_person(connection, login)
    if person is None or person.disabled_at is not None:
        raise Mistake(f"nobody has the login {login!r}; see: sendonce user list")
    return person.id


def answering_if_named(connection: Connection, login: str | None) -> UUID | None:
    """The same where somebody is named; None for whoever runs the command line."""
    return None if login is None else answering(connection, login)
