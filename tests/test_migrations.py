"""The migrated database is what ``tables.py`` describes, its functions agree with Python, its statements parse."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from uuid import UUID, uuid5

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb
from sqlalchemy import create_engine, pool, text

from dashboard import lifecycle
from dashboard.identity import BadKey, check_key, send_id
from dashboard.ledger import tables
from dashboard.ledger.database import migrate, statement, statement_names
from dashboard.ledger.tables import SCHEMA, metadata
from tests.factories import Factory

ROOT = Path(__file__).resolve().parents[1]

# ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_alembic_finds_no_difference(database_url: str) -> None:
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(database_url), poolclass=pool.NullPool
    )
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "include_schemas": True,
                "compare_type": True,
                "compare_server_default": True,
                "version_table_schema": SCHEMA,
                "include_name": lambda name, kind, _: kind != "schema" or name == SCHEMA,
            },
        )
        assert compare_metadata(context, metadata) == []


CATALOG = {
    "enum labels": """
        select t.typname, e.enumsortorder, e.enumlabel from pg_enum e join pg_type t on t.oid = e.enumtypid
        where t.typnamespace = 'sendonce'::regnamespace""",
    "columns": """
        select c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, l.collname,
          pg_get_expr(d.adbin, d.adrelid)
        from pg_attribute a join pg_class c on c.oid = a.attrelid left join pg_collation l on l.oid = a.attcollation
        left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
        where c.relnamespace = 'sendonce'::regnamespace and c.relkind = 'r' and a.attnum > 0
          and c.relname <> 'alembic_version'""",
    "constraints": """
        select c.relname, k.conname, pg_get_constraintdef(k.oid)
        from pg_constraint k join pg_class c on c.oid = k.conrelid
        where c.relnamespace = 'sendonce'::regnamespace and c.relname <> 'alembic_version'""",
    "indexes": """
        select tablename, indexname, indexdef from pg_indexes
        where schemaname = 'sendonce' and tablename <> 'alembic_version'""",
    "storage": """
        select relname, array(select unnest(reloptions) order by 1)::text from pg_class
        where relnamespace = 'sendonce'::regnamespace and reloptions is not null""",
}


@pytest.mark.parametrize("what", CATALOG)
def test_the_migrated_catalogue_is_that_of_the_tables(what: str, both_catalogues: tuple[str, str]) -> None:
    described, migrated = (_rows(url, CATALOG[what]) for url in both_catalogues)
    assert described, "there is something to compare"
    assert migrated == described


@pytest.fixture
def both_catalogues(database_url: str, empty_database_url: str) -> tuple[str, str]:
    """A database made by ``metadata.create_all``, and a migrated one."""
    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: psycopg.connect(empty_database_url), poolclass=pool.NullPool
    )
    with engine.begin() as connection:
        connection.execute(text(f"create schema {SCHEMA}"))
        metadata.create_all(connection)
    return empty_database_url, database_url


def _rows(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return sorted(connection.execute(query).fetchall(), key=str)  # type: ignore[call-overload]


ENUMS: dict[str, type[StrEnum]] = {
    "mail_class": lifecycle.MailClass,
    "state": lifecycle.State,
    "made_by": lifecycle.By,
    "attempt_status": lifecycle.AttemptStatus,
    "delivery": lifecycle.Delivery,
    "event_type": lifecycle.EventType,
    "verdict": lifecycle.Verdict,
    "run_by": lifecycle.RunBy,
    "policy": tables.Policy,
    "decision": lifecycle.Decision,
    "suppression_scope": tables.SuppressionScope,
    "role": tables.Role,
    "alert_state": tables.AlertState,
    "severity": tables.Severity,
    "notice_kind": tables.NoticeKind,
    "channel_kind": tables.ChannelKind,
    "stage": tables.Stage,
}


def test_the_enums_of_the_database_are_those_of_python_in_their_order(database_url: str) -> None:
    expected = {name: [str(word) for word in words] for name, words in ENUMS.items()} | {
        "work_state": [str(state) for state in lifecycle.OPEN_STATES],
        "send_state": ["open", *(str(state) for state in lifecycle.SETTLED_STATES)],
        "move": [move.name for move in lifecycle.MOVES],
    }
    stored: dict[str, list[str]] = {}
    for name, _, label in sorted(_rows(database_url, CATALOG["enum labels"]), key=lambda row: (row[0], row[1])):
        stored.setdefault(str(name), []).append(str(label))
    assert stored == expected


# ── migrating ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_migrating_again_changes_nothing(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        Factory(connection).pending()
    migrate(database_url)
    assert _rows(database_url, "select count(*) from sendonce.work") == [(1,)]


def test_two_migrations_at_once_wait_for_each_other(empty_database_url: str) -> None:
    command = [sys.executable, "-m", "dashboard.cli", "migrate"]
    environment = os.environ | {"DATABASE_URL": empty_database_url}
    running = [subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [process.wait() for process in running] == [0, 0]
    assert _rows(empty_database_url, "select count(*) from sendonce.alembic_version") == [(1,)]


# ── statements ───────────────────────────────────────────────────────────────────────────────────────────────────────

_BIND = re.compile(r"%\((\w+)\)[sb]|%%")


def test_every_statement_parses_on_the_migrated_schema(database_url: str, subtests: pytest.Subtests) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        for name in statement_names():
            with subtests.test(name):
                connection.execute(f"prepare p as {_numbered(statement(name))}")  # type: ignore[call-overload]
                connection.execute("deallocate p")


def _numbered(query: str) -> str:
    """A statement of ours with the server's own parameters."""
    names: list[str] = []

    def number(bind: re.Match[str]) -> str:
        if bind[1] is None:
            return "%"
        if bind[1] not in names:
            names.append(bind[1])
        return f"${names.index(bind[1]) + 1}"

    return _BIND.sub(number, query)


def test_every_statement_says_first_what_it_does() -> None:
    folder = Path(tables.__file__).parent / "sql"
    silent = [path.name for path in folder.glob("*.sql") if not re.match(r"-- [A-Z].{15,}", path.read_text())]
    assert silent == []


# ── functions ────────────────────────────────────────────────────────────────────────────────────────────────────────

PRINTABLE = st.characters(min_codepoint=32, max_codepoint=126)
KEYS = st.text(PRINTABLE, min_size=1, max_size=255)
NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)

slow = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def functions(database_url: str) -> Iterator[psycopg.Connection]:
    """A connection on which the ledger's functions can be called, in one transaction."""
    with psycopg.connect(database_url) as connection:
        yield connection


@slow
@given(workspace=st.uuids(), mailstream=NAMES, key=KEYS)
@example(workspace=UUID(int=0), mailstream="receipts", key="k" * 255)
@example(workspace=UUID(int=2**128 - 1), mailstream="", key="")
@example(workspace=UUID(int=7), mailstream="größe\U0001f4ec", key="~" * 254 + "!")
def test_sql_and_python_compute_the_same_send_id(
    functions: psycopg.Connection, workspace: UUID, mailstream: str, key: str
) -> None:
    row = functions.execute("select sendonce.send_id(%s, %s, %s)", (workspace, mailstream, key)).fetchone()
    assert row == (send_id(workspace, mailstream, key),)


def test_the_send_id_is_right_at_every_length_of_a_block(functions: psycopg.Connection) -> None:
    workspace = UUID(int=7)
    rows = functions.execute(
        "select n, sendonce.send_id(%s, '', repeat('k', n)) from generate_series(0, 190) n", (workspace,)
    ).fetchall()
    assert rows == [(n, uuid5(workspace, "\n" + "k" * n)) for n in range(191)]


ODD_KEYS = st.one_of(
    st.none(),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=300),
    st.text(st.sampled_from("ab.@: \t\n~!é"), max_size=12),
    st.from_regex(r"[a-z]{0,3}:?[a-z]{0,2}@[a-z]{0,3}\.?[a-z]{0,3} ?", fullmatch=True),
    KEYS,
)


@slow
@given(key=ODD_KEYS)
@example(key="k" * 255)
@example(key="k" * 256)
@example(key="")
@example(key="a@b.c")
@example(key="to:a@b.c")
@example(key="a@b")
@example(key="key\n")
def test_enqueue_refuses_the_same_keys_as_python(ledger: tuple[Factory, str], key: str | None) -> None:
    made, workspace = ledger
    try:
        check_key(key)
    except BadKey:
        expected = None
    else:
        assert key is not None
        expected = send_id(made.workspace, "receipts", key)
    request = Jsonb({"workspace": workspace, "mailstream": "receipts", "key": key})
    try:
        with made.connection.transaction():
            row = made.connection.execute("select sendonce.enqueue(%s)", (request,)).fetchone()
    except psycopg.errors.InvalidParameterValue:
        row = (None,)
    assert row == (expected,)


@pytest.fixture
def ledger(functions: psycopg.Connection) -> tuple[Factory, str]:
    """A workspace with a mailstream, and its name."""
    made = Factory(functions)
    return made, f"ws-{made.workspace}"


def test_enqueue_names_a_mailstream_that_is_not_there(ledger: tuple[Factory, str]) -> None:
    made, workspace = ledger
    with pytest.raises(psycopg.errors.InvalidParameterValue, match='no mailstream "letters"'):
        made.connection.execute(
            "select sendonce.enqueue(%s)", (Jsonb({"workspace": workspace, "mailstream": "letters", "key": "k"}),)
        )
