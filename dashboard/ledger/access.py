"""Who may do what: people, their roles in workspaces, and API tokens.

A person has one role in each workspace they belong to; each role includes the one before (``tables.Role``).
Passwords are kept as argon2id hashes; API tokens as SHA-256, which is enough for 256 random bits.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from argon2 import PasswordHasher

from dashboard.ledger.database import Connection, run
from dashboard.ledger.refused import Refused as Refused
from dashboard.ledger.tables import Right, Role

MIN_PASSWORD, MAX_PASSWORD, MAX_LOGIN = 12, 1_000, 100

_WORKSPACE = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")

hasher = PasswordHasher()
"""argon2id with the library's defaults, which follow RFC 9106's second recommended option."""


@dataclass(frozen=True, slots=True)
class Membership:
    """A person's role in one workspace, and what they may see of other people there."""

    workspace_id: UUID
    workspace: str
    title: str
    role: Role
    reveal: bool = True
    messages: bool = False

    def has(self, right: Right) -> bool:
        """True where this person has the right: operators and admins may read messages without being given it."""
        match right:
            case Right.REVEAL:
                return self.reveal
            case Right.MESSAGES:
                return self.messages or includes(self.role, Role.OPERATOR)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may log in. ``disabled_at`` is set once they may not any more."""

    id: UUID
    login: str
    name: str
    disabled_at: datetime | None
    memberships: tuple[Membership, ...]


@dataclass(frozen=True, slots=True)
class ApiToken:
    """A program's way in, to one workspace. The token itself is shown once, when it is made."""

    id: UUID
    workspace_id: UUID
    name: str
    created_at: datetime
    revoked_at: datetime | None
    user_id: UUID | None
    """For whom it decides, with what that person may do. None: it asks for sends, and decides nothing."""


def includes(role: Role, needed: Role) -> bool:
    """True where ``role`` may do what ``needed`` may."""
    order = list(Role)
    return order.index(role) >= order.index(needed)


# ── people ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def add_person(connection: Connection, *, login: str, name: str, password: str) -> UUID:
    """Add somebody who may log in but has no role yet. Raises :class:`Refused`."""
    if not login or login != login.strip() or len(login) > MAX_LOGIN or not login.isprintable():
        raise Refused(f"a login has 1 to {MAX_LOGIN} printable characters and no space at its ends")
    row = run(connection, "add_user", login=login, name=name or login, password_hash=_hashed(password)).fetchone()
    if row is None:
        raise Refused(f"the login {login} is taken: choose another, or change its role or password")
    return UUID(str(row[0]))


def put_role(
    connection: Connection,
    *,
    user_id: UUID,
    workspace_id: UUID,
    role: Role,
    reveal: bool | None = None,
    messages: bool | None = None,
) -> None:
    """Give a person a role in a workspace, in place of the one they had. A right that is None stays as it is."""
    run(
        connection, "put_role", user_id=user_id, workspace_id=workspace_id, role=role.value, reveal=reveal,
        messages=messages,
    )  # fmt: skip


def set_password(connection: Connection, *, login: str, password: str) -> UUID:
    """Change a password; whoever is logged in with the old one is logged out. Raises :class:`Refused`."""
    return _known(run(connection, "set_password", login=login, password_hash=_hashed(password)).fetchone(), login)


def disable_person(connection: Connection, *, login: str) -> UUID:
    """Shut somebody out, at once. What they did stays on record. Raises :class:`Refused`."""
    return _known(run(connection, "disable_user", login=login).fetchone(), login)


def find_person(connection: Connection, login: str) -> Person | None:
    """The person with this login, disabled or not."""
    return next(iter(_people(connection, "users.login = %(given)s", login)), None)


def read_person(connection: Connection, user_id: UUID) -> Person | None:
    """The person with this id, disabled or not."""
    return next(iter(_people(connection, "users.id = %(given)s", user_id)), None)


def operates_everywhere(connection: Connection, user_id: UUID) -> bool:
    """True for whoever is an operator, or more, in every workspace: they may do what concerns all."""
    row = connection.execute(
        "select not exists (select from sendonce.workspaces w where not exists (select from sendonce.roles r"
        " where r.workspace_id = w.id and r.user_id = %s and r.role::text = any(%s)))",
        (user_id, [role.value for role in Role if includes(role, Role.OPERATOR)]),
    ).fetchone()
    return row == (True,)


def list_people(connection: Connection) -> list[Person]:
    """Everybody, by login."""
    return _people(connection, "%(given)s::text is null", None)


def find_workspace(connection: Connection, name: str) -> UUID:
    """The id of a workspace. Raises :class:`Refused`."""
    row = connection.execute("select id from sendonce.workspaces where name = %s", (name,)).fetchone()
    if row is None:
        raise Refused(f"there is no workspace {name}; make it with: sendonce workspace add {name}")
    return UUID(str(row[0]))


def add_workspace(connection: Connection, *, name: str, title: str) -> UUID:
    """Make a workspace. Its name never changes, since it names the sends of its producers. Raises :class:`Refused`."""
    if not _WORKSPACE.fullmatch(name):
        raise Refused("a workspace's name has 1 to 63 lower-case letters, digits, - or _, such as shop")
    row = connection.execute(
        "insert into sendonce.workspaces (name, title) values (%s, %s) on conflict do nothing returning id",
        (name, title or name),
    ).fetchone()
    if row is None:
        raise Refused(f"there is a workspace {name} already")
    return UUID(str(row[0]))


def set_second_person(connection: Connection, workspace_id: UUID, *, above: int | None) -> None:
    """Above how many held sends decided at once a second person has to agree. None: never for their number."""
    connection.execute("update sendonce.workspaces set second_person_above = %s where id = %s", (above, workspace_id))


def list_workspaces(connection: Connection) -> list[tuple[str, str]]:
    """Name and title of all workspaces, by name."""
    return [(row[0], row[1]) for row in connection.execute("select name, title from sendonce.workspaces order by name")]


# ── programs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def add_token(
    connection: Connection, *, workspace_id: UUID, name: str, user_id: UUID | None = None
) -> tuple[UUID, str]:
    """Make an API token: its id, and the token, which nobody can show again. ``user_id``: for whom it decides."""
    if not name.strip():
        raise Refused("a token needs a name that says which program uses it")
    token = "so_" + secrets.token_urlsafe(32)
    row = run(
        connection, "add_token", workspace_id=workspace_id, name=name.strip(), token_hash=token_hash(token),
        user_id=user_id,
    ).fetchone()  # fmt: skip
    assert row is not None
    return UUID(str(row[0])), token


def revoke_token(connection: Connection, *, workspace_id: UUID, token_id: UUID) -> bool:
    """Revoke an API token, at once. False where there is none that is still good."""
    return run(connection, "revoke_token", workspace_id=workspace_id, token_id=token_id).fetchone() is not None


def read_token(connection: Connection, token: str) -> ApiToken | None:
    """What a token opens, or None where it opens nothing (any more)."""
    return next(iter(_tokens(connection, "token_hash = %(given)s and revoked_at is null", token_hash(token))), None)


def list_tokens(connection: Connection, workspace_id: UUID) -> list[ApiToken]:
    """The API tokens of a workspace, revoked ones too, newest first."""
    return _tokens(connection, "workspace_id = %(given)s", workspace_id)


def token_hash(token: str) -> bytes:
    """What is kept of a random token. No salt and no stretching: nobody guesses 256 random bits."""
    return hashlib.sha256(token.encode()).digest()


# ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _hashed(password: str) -> str:
    if not MIN_PASSWORD <= len(password) <= MAX_PASSWORD:
        raise Refused(f"a password has {MIN_PASSWORD} to {MAX_PASSWORD} characters")
    return hasher.hash(password)


def _known(row: tuple[object, ...] | None, login: str) -> UUID:
    if row is None:
        raise Refused(f"nobody has the login {login}")
    return UUID(str(row[0]))


def _people(connection: Connection, where: LiteralString, given: object) -> list[Person]:
    rows = connection.execute(
        f"""
        select users.id, users.login, users.name, users.disabled_at,
               workspaces.id, workspaces.name, workspaces.title, roles.role, roles.reveal, roles.messages
        from sendonce.users
        left join sendonce.roles on roles.user_id = users.id
        left join sendonce.workspaces on workspaces.id = roles.workspace_id
        where {where}
        order by users.login, workspaces.name
        """,  # noqa: S608  # the condition is a literal of this file
        {"given": given},
    ).fetchall()
    people: dict[UUID, Person] = {}
    for user_id, login, name, disabled_at, workspace_id, workspace, title, role, *rights in rows:
        before = people[user_id].memberships if user_id in people else ()
        now = (Membership(workspace_id, workspace, title, Role(role), *rights),) if workspace_id else ()
        people[user_id] = Person(user_id, login, name, disabled_at, before + now)
    return list(people.values())


def _tokens(connection: Connection, where: LiteralString, given: object) -> list[ApiToken]:
    rows = connection.execute(
        f"""
        select id, workspace_id, name, created_at, revoked_at, user_id from sendonce.api_tokens
        where {where} order by created_at desc
        """,  # noqa: S608
        {"given": given},
    )
    return [ApiToken(*row) for row in rows]
