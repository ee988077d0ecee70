"""``sendonce user`` and ``sendonce token``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from click.testing import CliRunner, Result

from dashboard.cli.people import token, user
from dashboard.ledger import access
from dashboard.ledger.database import Database
from dashboard.ledger.tables import Role

Command = Callable[..., Result]


@dataclass
class Place:
    """A ledger with one workspace, and the commands on it."""

    url: str
    database: Database

    def user(self, *arguments: str, stdin: str = "") -> Result:
        """``sendonce user …``."""
        return CliRunner(env={"DATABASE_URL": self.url}).invoke(user, arguments, input=stdin)

    def token(self, *arguments: str) -> Result:
        """``sendonce token …``."""
        return CliRunner(env={"DATABASE_URL": self.url}).invoke(token, arguments)


@pytest.fixture
def place(database_url: str) -> Iterator[Place]:
    """The workspaces ``default`` and ``other``."""
    database = Database(database_url, pool_size=1)
    with database.transaction() as connection:
        connection.execute("insert into sendonce.workspaces (name) values ('default'), ('other')")
    yield Place(database_url, database)
    database.close()


def test_a_person_is_added_given_further_roles_and_shut_out(place: Place) -> None:
    added = place.user("add", "ada", "--role", "operator", "--password-stdin", stdin="correct horse battery\n")
    assert (added.exit_code, added.output) == (0, "ada is operator in default.\n")
    assert place.user("add", "ada", "--role", "admin", "--workspace", "other").exit_code == 0
    with place.database.transaction() as connection:
        person = access.find_person(connection, "ada")
    assert person is not None
    assert [(one.workspace, one.role) for one in person.memberships] == [
        ("default", Role.OPERATOR),
        ("other", Role.ADMIN),
    ]
    assert "operator in default, admin in other" in place.user("list").output
    assert place.user("disable", "ada").exit_code == 0
    assert "disabled" in place.user("list").output
    with place.database.transaction() as connection:
        actions = connection.execute("select action from sendonce.audit order by id").fetchall()
    assert [action for (action,) in actions] == ["add_user", "set_role", "set_role", "disable_user"]


def test_rights_are_given_and_taken_with_the_role(place: Place) -> None:
    place.user("add", "ada", "--messages", "--no-reveal", "--password-stdin", stdin="correct horse battery\n")
    assert "support in default reading messages without revealing addresses" in place.user("list").output
    place.user("add", "ada", "--no-messages")
    assert "support in default without revealing addresses" in place.user("list").output
    with place.database.transaction() as connection:
        details = connection.execute(
            "select detail from sendonce.audit where action = 'set_role' order by id"
        ).fetchall()
    assert [detail for (detail,) in details] == [
        {"role": "support", "reveal": False, "messages": True}, {"role": "support", "messages": False},
    ]  # fmt: skip


def test_mistakes_are_one_clear_line(place: Place) -> None:
    short = place.user("add", "ada", "--password-stdin", stdin="short\n")
    assert (short.exit_code, "a password has 12 to 1000 characters" in short.output) == (2, True)
    assert "nobody has the login bob" in place.user("disable", "bob").output
    assert "there is no workspace nowhere" in place.user("add", "ada", "--workspace", "nowhere").output
    assert "there is no workspace nowhere" in place.token("add", "shop", "--workspace", "nowhere").output
    unknown = place.token("revoke", "0b6e2f1c-7c1e-4a51-9d0b-3f5f0f6a2b11")
    assert (unknown.exit_code, "sendonce token list" in unknown.output) == (2, True)


def test_a_token_opens_its_workspace_until_it_is_revoked(place: Place) -> None:
    secret = place.token("add", "shop").output.strip()
    with place.database.transaction() as connection:
        found = access.read_token(connection, secret)
        assert found is not None
        assert found.workspace_id == access.find_workspace(connection, "default")
        stored = connection.execute("select token_hash from sendonce.api_tokens").fetchall()
    assert secret.encode() not in stored[0][0]
    assert secret not in place.token("list").output
    assert place.token("revoke", str(found.id)).exit_code == 0
    assert "revoked" in place.token("list").output
    with place.database.transaction() as connection:
        assert access.read_token(connection, secret) is None
