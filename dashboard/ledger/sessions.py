"""Who is logged in: the check of a password, slowed down against guessing, and the sessions that it opens.

A session is a random token in the browser and its SHA-256 here. It ends by itself after a shift, when its person logs
out, changes the password or is shut out. Tries are counted before the password is looked at, so that many at once
do not slip through together, and counted in the database, so that all web processes agree.
"""

from __future__ import annotations

import functools
import secrets
from dataclasses import dataclass
from datetime import timedelta

from argon2.exceptions import InvalidHashError, VerificationError

from dashboard.ledger.access import MAX_PASSWORD, Person, find_person, hasher, read_person, token_hash
from dashboard.ledger.database import Connection, Database, run
from dashboard.ledger.vault import Vault

LIFETIME = timedelta(hours=12)
"""A shift and a bit. After it one logs in again."""

FREE_TRIES = {"login": 5, "client": 20}
"""Tries within the window before one has to wait: of one login, and of one client address (an office may share it)."""

WINDOW = timedelta(minutes=15)


@functools.cache
def _nobody() -> str:
    """Verified where the login is unknown, so that the answer takes as long as for one that is known."""
    return hasher.hash(secrets.token_hex())


@dataclass(frozen=True, slots=True)
class LoggedIn:
    """The password was right; ``token`` opens the session."""

    person: Person
    token: str


@dataclass(frozen=True, slots=True)
class NotLoggedIn:
    """Login or password is wrong, or the person is shut out: nobody learns which."""


@dataclass(frozen=True, slots=True)
class TooManyTries:
    """Not even looked at: try again after ``wait_seconds``."""

    wait_seconds: int


def log_in(
    database: Database, vault: Vault, *, login: str, password: str, client: str
) -> LoggedIn | NotLoggedIn | TooManyTries:
    """Check a password and open a session. ``client`` is the address that asks; only its keyed hash is kept."""
    _nobody()  # made by the first log-in, of whomever: made for an unknown one alone, it would tell by its time
    by_login, by_client = vault.keyed_hash(f"login:{login}"), vault.keyed_hash(f"client:{client}")
    with database.transaction(durable=False) as connection:
        wait = max(_wait(connection, by_login, "login"), _wait(connection, by_client, "client"))
        if wait:
            return TooManyTries(wait)
        noted = run(connection, "note_login_failure", subjects=[by_login, by_client]).fetchall()
        known = find_person(connection, login)
        password_hash = _password_hash(connection, known)
    # Outside a transaction: it takes a while on purpose.
    right = _matches(password_hash, password)
    if known is None or known.disabled_at is not None or not right:
        return NotLoggedIn()
    with database.transaction() as connection:
        run(connection, "forget_login_failures", login=by_login, client=by_client, at=[row[0] for row in noted])
        token = open_session(connection, known, password_hash)
        return LoggedIn(known, token) if token else NotLoggedIn()


def open_session(connection: Connection, person: Person, password_hash: str) -> str | None:
    """A new session; its token. None where that password is not the person's any more, or the person is shut out."""
    token = secrets.token_urlsafe(32)
    opened = run(
        connection, "open_session",
        token_hash=token_hash(token), user_id=person.id, password_hash=password_hash, lifetime=LIFETIME,
    ).fetchone()  # fmt: skip
    return token if opened else None


def read_session(connection: Connection, token: str) -> Person | None:
    """Whose session this is, or None where it has ended."""
    row = connection.execute(
        "select user_id from sendonce.sessions where token_hash = %s and expires_at > now()", (token_hash(token),)
    ).fetchone()
    if row is None:
        return None
    run(connection, "touch_session", token_hash=token_hash(token))
    person = read_person(connection, row[0])
    return person if person and person.disabled_at is None else None


def close_session(connection: Connection, token: str) -> None:
    """End a session; ending it twice does no harm."""
    run(connection, "close_session", token_hash=token_hash(token))


def _wait(connection: Connection, subject: bytes, kind: str) -> int:
    """Seconds until the next try: none for the first few, then twice as many after each, up to the whole window."""
    # One at a time per subject, or tries that run at once would not see each other.
    connection.execute("select pg_advisory_xact_lock(%s)", (int.from_bytes(subject[:8], signed=True),))
    row = connection.execute(
        """
        select count(*), coalesce(extract(epoch from clock_timestamp() - max(at)), 0)::float8
        from sendonce.login_failures where subject = %s and at > clock_timestamp() - %s::interval
        """,
        (subject, WINDOW),
    ).fetchone()
    assert row is not None
    over = int(row[0]) - FREE_TRIES[kind]
    if over < 0:
        return 0
    pause = min(2.0 ** min(over + 2, 30), WINDOW.total_seconds())
    return max(0, round(pause - float(row[1]) + 0.5))


def _password_hash(connection: Connection, person: Person | None) -> str:
    if person is None:
        return _nobody()
    row = connection.execute("select password_hash from sendonce.users where id = %s", (person.id,)).fetchone()
    return str(row[0]) if row else _nobody()


def _matches(password_hash: str, password: str) -> bool:
    try:
        return hasher.verify(password_hash, password[: MAX_PASSWORD + 1])
    except (VerificationError, InvalidHashError):
        return False
