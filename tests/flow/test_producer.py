"""enqueue: a send is asked for if, and only if, the caller's own transaction commits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb
from sqlalchemy import create_engine
from sqlalchemy.orm import Session

from dashboard.identity import send_id
from dashboard.ledger.outbox import relay
from dashboard.producer import enqueue
from tests.place import Place

ASKED: dict[str, Any] = {
    "mailstream": "receipts",
    "key": "receipt:order_84721:recipient_2045:receipt-v3",
    "recipient_id": "recipient_2045",
    "address": "ada@example.com",
    "trigger": ("order.paid", "evt_991"),
    "message": {"from": "Shop <shop@example.com>", "subject": "Your receipt", "text": "Thank you, Ada ✓ 100%"},
}


class Untouchable:
    """A connection that must not be used."""

    def __getattr__(self, name: str) -> object:
        if name == "cursor":
            raise AssertionError("the database was touched")
        raise AttributeError(name)


def test_a_request_lives_and_dies_with_the_callers_transaction(place: Place) -> None:
    with psycopg.connect(place.database.url) as connection:
        connection.execute("create table orders (id int)")
        connection.commit()
        connection.execute("insert into orders values (1)")
        enqueue(connection, **ASKED)
        connection.rollback()
        assert place.count("outbox") == 0
        connection.execute("insert into orders values (1)")
        asked = enqueue(connection, **ASKED)
        assert place.count("outbox") == 0, "nothing is committed before the caller commits"
        connection.commit()
    assert asked == send_id(place.workspace, "receipts", ASKED["key"])
    assert place.one("select send_id from sendonce.outbox")["send_id"] == asked


def by_psycopg(url: str) -> UUID:
    with psycopg.connect(url, row_factory=dict_row) as connection:
        return enqueue(connection, **ASKED)


def by_cursor(url: str) -> UUID:
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        return enqueue(cursor, **ASKED)


def by_sqlalchemy_connection(url: str) -> UUID:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    with engine.begin() as connection:
        asked = enqueue(connection, **ASKED)
    engine.dispose()
    return asked


def by_sqlalchemy_session(url: str) -> UUID:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url))
    with Session(engine) as session, session.begin():
        asked = enqueue(session, **ASKED)
    engine.dispose()
    return asked


@pytest.mark.parametrize("ask", [by_psycopg, by_cursor, by_sqlalchemy_connection, by_sqlalchemy_session])
def test_whatever_connection_the_caller_has_the_request_is_the_same(place: Place, ask: Callable[[str], UUID]) -> None:
    assert ask(place.database.url) == send_id(place.workspace, "receipts", ASKED["key"])
    row = place.one("select request, source from sendonce.outbox")
    assert row["request"]["message"]["text"] == "Thank you, Ada ✓ 100%"
    assert row["source"] == "outbox"


def test_an_asynchronous_connection_is_refused_with_advice() -> None:
    class Asynchronous:
        async def execute(self) -> None: ...

    with pytest.raises(TypeError, match="asynchronous"):
        enqueue(Asynchronous(), **ASKED)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"key": ""}, "key"),
        ({"key": "receipt:ada@example.com"}, "address"),
        ({"key": "ünicode"}, "ASCII"),
        ({"address": "no address"}, "recipient.address"),
        ({"recipient_id": " "}, "recipient.id"),
        ({"workspace": ""}, "workspace"),
        ({"mailstream": None}, "mailstream"),
        ({"trigger": ("order.paid",)}, "trigger"),
        ({"trigger": ("order.paid", "evt", datetime(2026, 1, 1))}, "trigger.at"),  # noqa: DTZ001
        ({"message": {"from": "a@example.com", "subject": "s", "text": "NUL \0"}}, "message.text.*NUL"),
        ({"message": {"from": "a@example.com", "subject": "s", "text": "half \ud83d"}}, "message.text.*surrogate"),
        ({"message": {**ASKED["message"], "variables": {"a": {"b": ["\0"]}}}}, "NUL"),
        ({"message": {**ASKED["message"], "variables": {"\0": 1}}}, "NUL"),
        ({"message": {**ASKED["message"], "variables": {"when": datetime.now(UTC)}}}, "JSON"),
        ({"message": {**ASKED["message"], "variables": {"x": float("nan")}}}, "JSON"),
        ({"metadata": {"a": "\udfff"}}, "metadata.a.*surrogate"),
        ({"metadata": {"a": 1}}, "metadata"),
        ({"not_before": "tomorrow"}, "not_before"),
    ],
)
def test_a_bad_request_is_refused_before_the_database_is_touched(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        enqueue(Untouchable(), **(ASKED | wrong))


def test_a_request_over_the_limit_is_refused_before_the_database_is_touched() -> None:
    """In bytes: these are two each."""
    with pytest.raises(ValueError, match=r"request: has 10[0-9]{6} bytes; at most 10000000"):
        enqueue(Untouchable(), **(ASKED | {"message": {**ASKED["message"], "text": "ü" * 5_000_000}}))


def test_the_database_refuses_it_too_in_the_callers_transaction(place: Place) -> None:
    with psycopg.connect(place.database.url) as connection:
        enqueue(connection, **(ASKED | {"message": {**ASKED["message"], "text": "x" * 9_990_000}}))
        request = {"workspace": "default", "mailstream": "receipts", "key": "k", "message": {"text": "ü" * 5_000_000}}
        with (
            pytest.raises(
                psycopg.errors.InvalidParameterValue, match=r"has 10\d{6} bytes; at most 10000000"
            ) as refused,
            connection.transaction(),
        ):
            connection.execute("select sendonce.enqueue(%s)", [Jsonb(request)])
        assert "link" in (refused.value.diag.message_hint or "")
    assert place.count("outbox") == 1, "and what was asked for before in the same transaction stands"
    with place.database.transaction() as connection:
        assert relay(connection, place.vault, limit=10).won == 1, "what is taken is relayed"


def test_what_was_enqueued_is_relayed_as_it_was_asked_for(place: Place) -> None:
    happened = datetime(2026, 11, 30, 9, tzinfo=UTC)
    later = datetime.now(UTC) + timedelta(days=1)
    with psycopg.connect(place.database.url) as connection:
        asked = enqueue(
            connection,
            **(ASKED | {"trigger": ("order.paid", "evt_991", happened)}),
            not_before=later,
            metadata={"order": "84721"},
            recipient_name="Ada",
        )
    with place.database.transaction() as connection:
        relayed = relay(connection, place.vault, limit=10)
        again = enqueue(connection, **ASKED)
        repeated = relay(connection, place.vault, limit=10)
    assert asked == again
    assert (relayed.won, relayed.later, relayed.dead) == (1, 0, 0)
    assert (repeated.won, repeated.later, repeated.dead) == (0, 1, 0)
    send = place.one("select * from sendonce.sends")
    assert (send["id"], send["triggered_at"], send["due_at"]) == (asked, happened, later)
    assert send["metadata"] == {"order": "84721"}
    duplicate = place.one("select verdict::text, difference from sendonce.duplicates")
    assert duplicate == {"verdict": "in_progress", "difference": None}


def test_an_unknown_mailstream_is_the_databases_to_refuse(place: Place) -> None:
    with (
        psycopg.connect(place.database.url) as connection,
        pytest.raises(psycopg.errors.InvalidParameterValue, match='no mailstream "recipes" in workspace "default"'),
    ):
        enqueue(connection, **(ASKED | {"mailstream": "recipes"}))


def test_asking_loads_nothing_of_the_web_or_the_database() -> None:
    code = (
        "import sys; from dashboard.producer import enqueue;"
        "print(*sorted({'flask', 'plotly', 'sqlalchemy', 'psycopg', 'alembic'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
