"""The application on a real database, with a person of each role, and browsers that talk to it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from uuid import UUID

import pytest
from argon2 import PasswordHasher
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from dashboard.ledger import access
from dashboard.ledger.database import Database
from dashboard.ledger.tables import Role
from dashboard.settings import Settings
from tests.factories import Factory
from tests.serving import the_app

PASSWORD = "correct horse battery"
HTMX = {"HX-Request": "true", "HX-Request-Type": "partial"}


@dataclass
class Browser:
    """One browser: keeps its cookies, and sends the form token as a form would."""

    client: FlaskClient
    csrf: str = ""

    def get(self, path: str, *, htmx: bool = False, query: dict[str, str] | None = None) -> TestResponse:
        """Open a page, or ask for a fragment of it."""
        response = self.client.get(path, query_string=query, headers=HTMX if htmx else {})
        self._remember(response)
        return response

    def post(self, path: str, *, htmx: bool = False, **fields: str) -> TestResponse:
        """Send a form."""
        response = self.client.post(path, data={"csrf_token": self.csrf, **fields}, headers=HTMX if htmx else {})
        self._remember(response)
        return response

    def log_in(self, login: str, password: str = PASSWORD, *, wanted: str = "") -> TestResponse:
        """Fill in the log-in form."""
        self.get("/login")
        response = self.post("/login", login=login, password=password, next=wanted)
        if response.status_code == 303:
            self.get("/")
        return response

    def _remember(self, response: TestResponse) -> None:
        if response.content_type.startswith("text/html"):
            found = re.search(r'name="csrf_token" value="([^"]+)"', response.text)
            self.csrf = found[1] if found else self.csrf


@dataclass
class House:
    """The application, its database, and a factory whose rows are committed by :meth:`commit`."""

    app: Flask
    database: Database
    factory: Factory
    people: dict[str, UUID] = field(default_factory=dict)

    @property
    def workspace(self) -> UUID:
        """The workspace that everybody belongs to."""
        return self.factory.workspace

    def commit(self) -> None:
        """Let the application see what the factory made."""
        self.factory.connection.commit()

    def browser(self, login: str | None = None) -> Browser:
        """A new browser, logged in as one of support, operator, admin, or not at all."""
        browser = Browser(self.app.test_client())
        if login:
            assert browser.log_in(login).status_code == 303
        return browser

    def rows(self, query: str, *values: object) -> list[tuple[object, ...]]:
        """What the database says."""
        with self.database.transaction(durable=False) as connection:
            return connection.execute(query, values).fetchall()  # type: ignore[call-overload, no-any-return]

    def read_by(self, act: Callable[[], object]) -> set[str]:
        """The tables that the application reads while ``act`` runs, as PostgreSQL counts it."""
        before = self._reads()
        act()
        return {str(name) for name, _ in set(self._reads()) - set(before)}

    def _reads(self) -> list[tuple[object, ...]]:
        with self.database.transaction(durable=False) as one, self.database.transaction(durable=False) as other:
            for connection in (one, other):  # all that the application has: each tells at the end of a transaction
                connection.execute("select pg_stat_force_next_flush()")
        return self.rows("select relname, seq_scan + coalesce(idx_scan, 0) from pg_stat_user_tables")


@pytest.fixture(scope="session")
def password_hash() -> str:
    """Hashed with the least effort: a check takes as much as its hash says, and each test logs in."""
    return PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)


@pytest.fixture
def house(database_url: str, password_hash: str) -> Iterator[House]:
    """An application with a person of each role and nothing sent yet."""
    database = Database(database_url, pool_size=2)
    connection = database.connect()
    factory = Factory(connection)
    settings = Settings(
        database_url=database_url, secret_key="s" * 40, encryption_keys=(("k1", b"k" * 32),), environment="test"
    )
    people = {}
    for role in Role:
        name = role.value
        people[name] = factory.add("users", login=name, name=f"The {name}", password_hash=password_hash)
        access.put_role(connection, user_id=people[name], workspace_id=factory.workspace, role=role)
    connection.commit()
    yield House(the_app(settings, database, factory.vault), database, factory, people)
    connection.close()
    database.close()
