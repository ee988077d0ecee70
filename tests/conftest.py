"""A real PostgreSQL for the tests: one server a run, one migrated template database, a clone of it for each test."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Callable, Iterator

import psycopg
import pytest
from flask import Flask
from hypothesis import settings as hypothesis_settings
from jinja2 import FileSystemBytecodeCache
from psycopg import sql

from dashboard.embedded.postgres import EmbeddedPostgres
from dashboard.ledger.database import Connection, Database, migrate
from tests.factories import Factory, own_database
from tests.folders import server_folder
from tests.ledger.course import Ledger
from tests.place import Place
from tests.programs import PROGRAMS

SERVER_SETTINGS = {"fsync": "off", "full_page_writes": "off", "autovacuum": "off", "max_wal_size": "1GB"}
"""Nothing in a test survives a power cut anyway. What a commit waits for is left as it is: the ledger relies on it."""

LEFT_OUT = "left out: "

SCHEDULES = "schedules"
"""The property under which a test records how many schedules it explored."""

SOAK = os.environ.get("SENDONCE_SOAK") == "1"
"""`make soak`: the long forms of the tests."""

# Where the run was started in the background of a shell, it ignores SIGINT, and all that the tests start would, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run, so that a red one is red again; the long form looks for new ones.
hypothesis_settings.register_profile("short", derandomize=True, deadline=None, max_examples=50)
hypothesis_settings.register_profile("soak", deadline=None, max_examples=5000)
hypothesis_settings.load_profile("soak" if SOAK else "short")


@pytest.fixture(scope="session", autouse=True)
def compiled_templates(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Each template is compiled once a run, and not once for each application that a test makes."""
    Flask.jinja_options = {"bytecode_cache": FileSystemBytecodeCache(str(tmp_path_factory.mktemp("templates")))}


@pytest.fixture(scope="session")
def server_url() -> Iterator[str]:
    """A server on which databases may be created: SENDONCE_TEST_DATABASE_URL, or an embedded one of this run."""
    if given := os.environ.get("SENDONCE_TEST_DATABASE_URL"):
        yield given
        return
    with server_folder() as folder, EmbeddedPostgres(folder, settings=SERVER_SETTINGS) as server:
        yield server.url("postgres")


@pytest.fixture(scope="session")
def template_database(server_url: str) -> Iterator[str]:
    """The name of a database with the newest schema, that nobody is connected to."""
    name = _new_name("template")
    _administer(server_url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    migrate(_url_of(server_url, name))
    yield name
    _drop(server_url, name)


@pytest.fixture
def database_url(server_url: str, template_database: str) -> Iterator[str]:
    """The URL of a migrated, empty database that is this test's own."""
    name = _new_name("test")
    clone = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
    _administer(server_url, clone.format(sql.Identifier(name), sql.Identifier(template_database)))
    yield _url_of(server_url, name)
    _drop(server_url, name)


@pytest.fixture
def place(database_url: str) -> Iterator[Place]:
    """The workspace ``default`` in a committed ledger of this test's own, ready to be asked for sends."""
    database = Database(database_url)
    yield Place(database)
    database.close()


@pytest.fixture
def ledger(database_url: str) -> Iterator[Ledger]:
    """A committed ledger that the real functions work on, one step a transaction."""
    database = Database(database_url, pool_size=3)
    yield Ledger(database)
    database.close()


@pytest.fixture(scope="session")
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


@pytest.fixture
def empty_database_url(server_url: str) -> Iterator[str]:
    """The URL of a database without any schema, for tests of the migrations themselves."""
    name = _new_name("empty")
    _administer(server_url, sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield _url_of(server_url, name)
    _drop(server_url, name)


@pytest.fixture(scope="session")
def requires_program() -> Callable[[str], str]:
    """``requires_program("chromium")`` gives the program's path, or leaves the test out where the system lacks it.

    With SENDONCE_TEST_ALL=1, left out is failed.
    """

    def require(name: str) -> str:
        program = PROGRAMS[name]
        if path := program.find():
            return path
        told = f"{LEFT_OUT}the system has no {name}; get it with: apt-get install {' '.join(program.packages)}"
        if os.environ.get("SENDONCE_TEST_ALL") == "1":
            pytest.fail(told, pytrace=False)
        pytest.skip(told)

    return require


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many schedules were explored; name what was left out, why, and how to get it."""
    passed = [dict(report.user_properties) for report in terminalreporter.getreports("passed")]
    if explored := sum(int(str(properties.get(SCHEDULES, 0))) for properties in passed):
        terminalreporter.write_line(f"Schedules explored without a broken promise: {explored:,}")
    reasons: dict[str, int] = {}
    for report in terminalreporter.getreports("skipped"):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        _, marker, told = reason.partition(LEFT_OUT)
        if marker:
            reasons[told] = reasons.get(told, 0) + 1
    for told, count in sorted(reasons.items()):
        terminalreporter.write_line(f"Left out {count} {'test' if count == 1 else 'tests'}: {told}", yellow=True)


def _new_name(kind: str) -> str:
    return f"sendonce_{kind}_{secrets.token_hex(6)}"


def _url_of(server_url: str, database: str) -> str:
    """``server_url`` with another database."""
    address, question_mark, options = server_url.partition("?")
    scheme, _, rest = address.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/{database}{question_mark}{options}"


def _administer(server_url: str, statement: sql.Composed) -> None:
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(statement)


def _drop(server_url: str, name: str) -> None:
    # By force: a test may leave a killed worker's connection behind.
    _administer(server_url, sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))
