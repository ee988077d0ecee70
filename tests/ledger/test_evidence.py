"""The evidence about a complaint: what is read, by a fixed number of statements, each by an index."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from bench import generated
from bench.plans import scanned
from dashboard.ledger import evidence as evidence_module
from dashboard.ledger.database import Database, statement, statement_names
from dashboard.ledger.evidence import Evidence, Question, read_evidence
from dashboard.ledger.vault import Vault
from tests.factories import ADDRESS, Factory, at


@pytest.fixture
def ledger(database_url: str) -> Iterator[tuple[Database, Factory]]:
    """A committed ledger, read by one connection."""
    database = Database(database_url, pool_size=1)
    connection = database.connect()
    connection.autocommit = True
    yield database, Factory(connection)
    connection.close()
    database.close()


def ask(ledger: tuple[Database, Factory], who: str, *, also: tuple[UUID, ...] = (), **question: Any) -> Evidence:
    database, factory = ledger
    return read_evidence(
        database, factory.vault, workspace_id=factory.workspace, also=also, question=Question(who=who, **question)
    )


def named(found: Evidence) -> list[UUID]:
    return [trace.send.id for trace in found.named]


def beside(found: Evidence) -> list[UUID]:
    return [trace.send.id for trace in found.beside]


def test_an_order_names_its_sends_and_brings_those_to_the_same_person_around_then(
    ledger: tuple[Database, Factory],
) -> None:
    make = ledger[1]
    send = make.accepted(trigger="order_7")
    same_person = make.accepted(asked=3_600, answered=3_602, address="other@example.com", message_id="b")
    same_address = make.accepted(asked=-3_600, answered=-3_598, recipient="recipient_9", message_id="c")
    make.accepted(asked=-200_000, answered=-199_998, message_id="d")
    make.accepted(recipient="recipient_8", address="nobody@example.com", message_id="e")
    found = ask(ledger, "order_7")
    assert (named(found), found.by_person) == ([send], False)
    assert set(beside(found)) == {same_person, same_address}


def test_a_person_names_all_that_went_to_them_around_the_time(ledger: tuple[Database, Factory]) -> None:
    make = ledger[1]
    earlier, then = make.accepted(message_id="a"), make.accepted(asked=500_000, answered=500_002, message_id="b")
    for who in (ADDRESS, "recipient_1"):
        assert named(ask(ledger, who)) == [then], "without a time: around the newest"
        assert named(ask(ledger, who, around=(at(0), at(3_600)))) == [earlier]
    nothing = ask(ledger, ADDRESS, around=(at(-500_000), at(-400_000)))
    assert (named(nothing), nothing.by_person) == ([], True)


def test_what_was_asked_for_long_before_and_is_open_still_counts(ledger: tuple[Database, Factory]) -> None:
    make = ledger[1]
    waits = make.pending(asked=0, due=900_000, claim_at=900_000)
    make.accepted(asked=1, message_id="a")
    assert named(ask(ledger, ADDRESS, around=(at(700_000), at(700_001)))) == [waits]


def test_another_workspace_counts_by_address_alone_and_only_if_it_is_asked(ledger: tuple[Database, Factory]) -> None:
    make = ledger[1]
    other = Factory(make.connection)
    send = make.accepted(trigger="order_7")
    by_address = other.accepted(recipient="recipient_of_theirs", message_id="b")
    other.accepted(address="other@example.com", message_id="c")  # their recipient_1 is somebody else
    assert beside(ask(ledger, "order_7")) == []
    found = ask(ledger, "order_7", also=(other.workspace,))
    assert (named(found), beside(found)) == ([send], [by_address])
    assert found.workspaces[other.workspace].startswith("ws-")
    assert named(ask(ledger, str(by_address), also=(other.workspace,))) == [], "what is named is named at home"


def test_more_sends_than_are_looked_at_are_told(
    ledger: tuple[Database, Factory], monkeypatch: pytest.MonkeyPatch
) -> None:
    for second in range(4):
        ledger[1].accepted(asked=second, message_id=str(second))
    assert not ask(ledger, ADDRESS).cut
    monkeypatch.setattr(evidence_module, "SENDS", 3)
    assert (ask(ledger, ADDRESS).cut, len(ask(ledger, ADDRESS).traces)) == (True, 3)
    monkeypatch.setattr(evidence_module, "SENDS", 10)
    monkeypatch.setattr(evidence_module, "WALK", 4)
    assert ask(ledger, ADDRESS).cut


def test_the_outbox_is_searched_by_everything_that_a_request_has(ledger: tuple[Database, Factory]) -> None:
    make = ledger[1]
    make.connection.execute(
        """
        insert into sendonce.outbox (send_id, workspace_id, request)
        select gen_random_uuid(), %s, jsonb_build_object('mailstream', 'receipts', 'key', 'receipt:order_' || i,
          'recipient', jsonb_build_object('id', 'r' || i, 'address', a),
          'trigger', jsonb_build_object('type', 'order.paid', 'id', 'evt_' || i))
        from (values (1, ' Ada@Example.com'), (2, 'ada@bücher.example'), (3, 'x@xn--bcher-kva.example')) v (i, a)
        """,
        [make.workspace],
    )
    wanted = {
        "receipt:order_1": ["evt_1"], "order_2": ["evt_2"], "evt_3": ["evt_3"], "r1": ["evt_1"],
        "ada@example.com": ["evt_1"], "ada@xn--bcher-kva.example": ["evt_2"], "X@BÜCHER.example": ["evt_3"],
        "order": ["evt_1", "evt_2", "evt_3"], "rder_1": [], "evt": [], "nobody@example.com": [],
    }  # fmt: skip
    assert {who: [one.trigger_id for one in ask(ledger, who).waiting] for who in wanted} == wanted


def test_a_damaged_row_of_the_outbox_is_no_obstacle(ledger: tuple[Database, Factory]) -> None:
    make = ledger[1]
    for request in ("[]", '"text"', "{}", '{"recipient": 7, "trigger": [1], "key": {}}', "null"):
        make.connection.execute(
            "insert into sendonce.outbox (send_id, workspace_id, request) values (gen_random_uuid(), %s, %s::jsonb)",
            [make.workspace, request],
        )
    assert ask(ledger, "order_7").waiting == []


def test_an_unreadable_request_is_found_by_what_it_holds(ledger: tuple[Database, Factory]) -> None:
    make = ledger[1]
    for outbox_id, vault in ((uuid4(), make.vault), (uuid4(), Vault([("lost", b"l" * 32)]))):
        make.add(
            "dead_letters", workspace_id=make.workspace, outbox_id=outbox_id, source="outbox", reason="key: is needed",
            payload=vault.encrypt(b'{"trigger": {"id": "Order_7"}, "name": "Z\\u00fcrich"}', outbox_id.bytes),
        )  # fmt: skip
    for who in ("order_7", "Zürich"):
        found = ask(ledger, who)
        assert [letter.reason for letter in found.unreadable] == ["key: is needed"]
        assert found.sealed, "one of the two could not be decrypted"
    assert ask(ledger, "order_8").unreadable == []


def test_since_when_all_is_known(ledger: tuple[Database, Factory]) -> None:
    make = ledger[1]
    make.connection.execute("update sendonce.workspaces set created_at = now() - interval '9 days'")
    assert _remembered(ask(ledger, "x")) == timedelta(days=9)
    make.connection.execute("update sendonce.mailstreams set retain_for = interval '2 days'")
    assert _remembered(ask(ledger, "x")) == timedelta(days=2)


def _remembered(found: Evidence) -> timedelta:
    return timedelta(hours=round((found.now - found.known_since) / timedelta(hours=1)))


def test_the_same_statements_whatever_there_is(ledger: tuple[Database, Factory]) -> None:
    database, make = ledger
    few = make.accepted(trigger="few", recipient="few", address="few@example.com", message_id="few")
    for number in range(12):
        send = make.accepted(trigger="many", recipient="many", message_id=f"m{number}")
        for second in range(40):
            make.event(send, "opened", occurred=second)
            make.duplicate(send, when=second)
    taken = []
    for who in ("few", "many"):
        ask(ledger, who)  # first, so that every statement is prepared
        before = _statements(database)
        assert ask(ledger, who).named
        taken.append(_statements(database) - before)
    assert taken[0] == taken[1] <= 31
    assert few


def _statements(database: Database) -> int:
    """Executions of the prepared statements of the only connection, but for this one's own."""
    with database.transaction(durable=False) as connection:
        row = connection.execute(
            "select sum(generic_plans + custom_plans) from pg_prepared_statements"
            " where statement not like '%pg_prepared_statements%'"
        ).fetchone()
    assert row is not None
    return int(row[0])


MORE = """
insert into sendonce.unmatched (workspace_id, account_id, event_id, fact, recipient, event_type, occurred_at)
select %(workspace)s, %(account)s, 'u-' || i, decode(md5('u' || i), 'hex'), decode(md5((i %% 5000)::text), 'hex'),
  'delivered', %(noon)s::timestamptz + i * interval '1 second' from generate_series(1, 30000) i;
insert into sendonce.dead_letters (workspace_id, outbox_id, source, at, reason, payload)
select %(workspace)s, gen_random_uuid(), 'outbox', %(noon)s::timestamptz + i * interval '1 second', 'x', 'x'
from generate_series(1, 30000) i;
insert into sendonce.suppressions (workspace_id, address_lookup, scope, suppressed, said_at, source)
select %(workspace)s, decode(md5(i::text), 'hex'), 'bulk', true, %(noon)s, 'complained'
from generate_series(1, 30000) i;
analyze sendonce.unmatched, sendonce.dead_letters, sendonce.suppressions
"""


NINE = generated.BEGAN + timedelta(hours=9)


@pytest.fixture(scope="package")
def fuller(full: Factory) -> Factory:
    """Beside its sends it has everything else that is looked at."""
    bind = {"workspace": full.workspace, "account": full.account, "noon": generated.BEGAN}
    for part in MORE.strip().split(";\n"):
        full.connection.execute(part, bind if "%(" in part else None)  # type: ignore[arg-type]
    return full


@pytest.mark.xdist_group("large ledger")
@pytest.mark.parametrize("name", [name for name in statement_names() if name.startswith("read_evidence_")])
@pytest.mark.parametrize("around", [(None, None), (NINE, NINE + timedelta(minutes=10))], ids=["no time", "a time"])
def test_no_evidence_is_read_from_end_to_end(fuller: Factory, name: str, around: tuple[Any, Any]) -> None:
    bind = {
        "workspace_id": fuller.workspace, "workspace_ids": [fuller.workspace, uuid4()], "named": [uuid4()],
        "lookups": [b"x" * 16], "since": around[0], "until": around[1], "margin": timedelta(days=1), "walk": 200,
        "limit": 25, "waiting": [uuid4()], "text": "order_7", "address": ADDRESS,
        "shortest": 3,
    }  # fmt: skip
    hot = ("unmatched", "dead_letters", "suppressions")
    assert scanned(fuller.connection, statement(name), bind, more=hot) == set()
