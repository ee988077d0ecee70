"""No search, trace or list reads a table that grows with the mail from end to end, however large it is.

The plans are those of a generated, analysed ledger: 100,000 sends here, a million in the long form; ``python -m
bench.finding`` does it with ten million and says how long each takes. What is counted besides are the pages that are
really read: a plan may walk an index far longer than it should.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from bench import generated
from bench.plans import MOST_PAGES, pages, ran, scanned
from dashboard.ledger import listing, search
from dashboard.ledger.access import hasher, put_role
from dashboard.ledger.behind import Behind, Span
from dashboard.ledger.database import BY_INDEX, Database, compiled, statement
from dashboard.ledger.listing import Cursor, SendFilter
from dashboard.ledger.search import Before
from dashboard.ledger.tables import NO_ACCOUNT, Role
from dashboard.lifecycle import State, Verdict
from dashboard.settings import Settings
from tests.conftest import SOAK
from tests.factories import Factory
from tests.place import KEYS
from tests.serving import the_app
from tests.web.conftest import PASSWORD, Browser

pytestmark = pytest.mark.xdist_group("large ledger")


def test_a_plan_that_reads_a_hot_table_from_end_to_end_is_noticed(full: Factory) -> None:
    slow, bind = "select * from sendonce.sends where recipient_id like %(text)s", {"text": "%x"}
    assert scanned(full.connection, slow, bind) == {"sends"}
    assert pages(full.connection, slow, bind) > MOST_PAGES * (10 if SOAK else 1)


LATER = Before(generated.BEGAN.replace(day=2), uuid4())


@pytest.mark.parametrize("before", [search.START, LATER], ids=["first", "older"])
@pytest.mark.parametrize("text", generated.TYPED.values(), ids=generated.TYPED)
def test_no_search_reads_a_hot_table_from_end_to_end(full: Factory, text: str, before: Before) -> None:
    bind = _bound(full, search._readings(full.vault, full.workspace, text), before)
    assert scanned(full.connection, statement("read_hits"), bind) == set()
    assert pages(full.connection, statement("read_hits"), bind) < MOST_PAGES


@pytest.mark.parametrize("text", generated.MISTYPED.values(), ids=generated.MISTYPED)
def test_no_search_for_what_is_close_does(full: Factory, text: str) -> None:
    bind = _bound(full, search._closeness(full.vault, text), search.START)
    assert scanned(full.connection, statement("read_close"), bind) == set()
    assert pages(full.connection, statement("read_close"), bind) < MOST_PAGES * 10, (
        "thousands of spellings are looked up"
    )


def _bound(full: Factory, readings: dict[str, object], before: Before) -> dict[str, object]:
    where = {"workspace_id": full.workspace, "before_at": before.at, "before_id": before.send_id}
    return {**readings, **where, "limit": search.HITS, "kinds": search.KINDS}


TRACE_PARTS = (
    "send", "stream", "account", "attempts", "duplicates", "moves", "events", "second_ids", "holds", "decisions",
    "cancels", "workers", "suppressions", "neighbours", "replies",
)  # fmt: skip


@pytest.mark.parametrize("part", TRACE_PARTS)
def test_no_part_of_a_trace_reads_a_hot_table_from_end_to_end(full: Factory, part: str) -> None:
    send = _a_send(full)
    bind = {
        "workspace_id": full.workspace, "send_id": send, "workspace_ids": [full.workspace, uuid4()],
        "send_ids": [send, uuid4()], "limit": 50, "cap": 100,
    }  # fmt: skip
    assert scanned(full.connection, statement(f"read_trace_{part}"), bind) == set()
    assert pages(full.connection, statement(f"read_trace_{part}"), bind) < MOST_PAGES


def _a_send(full: Factory) -> UUID:
    row = full.connection.execute("select id from sendonce.sends where key = 'receipt:order_777:v3'").fetchone()
    assert row is not None
    found: UUID = row[0]
    return found


@pytest.mark.parametrize(
    "after", [None, Cursor(generated.BEGAN.replace(hour=12), uuid4())], ids=["first", "later"]
)  # fmt: skip
@pytest.mark.parametrize(
    "filters",
    [
        SendFilter(),
        SendFilter(mailstream="welcome"),
        *(SendFilter(state=state) for state in State),
        SendFilter(state=State.PENDING, mailstream="welcome"),
        SendFilter(verdict=Verdict.MISMATCH),
    ],
    ids=lambda filters: str(filters.state or filters.verdict or filters.mailstream or "all"),
)
def test_no_list_reads_a_hot_table_from_end_to_end(full: Factory, filters: SendFilter, after: Cursor | None) -> None:
    query, bind = compiled(listing._listing(full.workspace, filters, after, 51))
    # Claims change no index, so that they stay cheap; their list reads the table of what is open, which is small.
    assert scanned(full.connection, query, bind) == ({"work"} if filters.state == State.CLAIMED else set())


REPLIED = """
insert into sendonce.mail_replies (workspace_id, account_id, digest, send_id, matched_by, reason, at, received_at,
  automatic)
select s.workspace_id, %(account)s, uuid_send(s.id) || n::text::bytea, case when n = 1 then s.id end,
  case when n = 1 then 'message_id' end, case when n = 2 then 'it answers no email' end, s.recorded_at, s.recorded_at,
  false
from (select * from sendonce.sends limit 10000) s cross join generate_series(1, 2) n
"""
"""As many answers as other mail."""


def test_replies_find_their_send_and_go_after_their_time_by_an_index(full: Factory) -> None:
    send = _a_send(full)
    named = {"i": [0, 0], "rank": [0, 1], "matched_by": ["address", "message_id"], "send_id": [uuid4(), send]}
    named |= {"message_id": [None, "m-77"], "sender": [None, full.vault.lookup("ada@example.com")]}
    matched = {**named, "workspace_id": full.workspace, "most": 100}
    with full.connection.transaction(force_rollback=True):
        full.connection.execute(REPLIED, {"account": full.account})
        full.connection.execute("analyze sendonce.mail_replies")
        for name, bind in (
            ("match_replies", matched),
            ("read_trace_replies", {"send_ids": [send]}),
            ("forget_replies", {"before": generated.BEGAN, "limit": 1000}),
            ("count_replies_set_aside", {"account_id": full.account, "cap": 100}),
        ):
            assert scanned(full.connection, statement(name), bind, more=("mail_replies",)) == set(), name
            assert pages(full.connection, statement(name), bind) < MOST_PAGES, name


@pytest.mark.parametrize("kept", ["1 day", "100 years"], ids=["all of it is old", "nothing is"])
def test_retention_comes_to_what_is_old_by_an_index(full: Factory, kept: str) -> None:
    with full.connection.transaction(force_rollback=True):
        full.connection.execute("update sendonce.mailstreams set retain_for = %s::interval", (kept,))
        assert scanned(full.connection, statement("lock_retained"), {"limit": 100}) == set()
        assert (
            scanned(full.connection, statement("count_retained"), {"workspace_id": full.workspace, "cap": 100}) == set()
        )


OPERATIONS: dict[str, dict[str, object]] = {
    "read_held": {
        "after_at": None, "after_id": None, "limit": 50, "mailstream": "receipts", "account": None, "reason": None,
        "failure": None, "hold_ids": None,
    },
    "read_incidents": {"counted": 10_000, "limit": 12},
    "read_alike": {"provider": "resend", "error_class": "read_timeout", "phase": None, "scanned": 2_000},
    "read_failures": {"ids": [uuid4()]},
    "read_account_errors": {"looked_at": 300},
    "read_suspects": {"before": LATER.at, "looked_at": 500, "apart": timedelta(days=1), "limit": 50},
}  # fmt: skip


HELD_ONCE = """
insert into sendonce.holds (send_id, workspace_id, mailstream, reason, waives, opened_at, closed_at, closed_by)
select id, workspace_id, mailstream, 'unconfirmed', '{ambiguous}', recorded_at,
  recorded_at + interval '1 hour', 'person'
from sendonce.sends limit 20000
"""
"""All decided long ago, as after years: what is held now has to be found among them."""


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_list_of_operations_reads_a_hot_table_from_end_to_end(full: Factory, name: str) -> None:
    bind = {"workspace_id": full.workspace, **OPERATIONS[name]}
    with full.connection.transaction(force_rollback=True):
        full.connection.execute(HELD_ONCE)
        full.connection.execute("analyze sendonce.holds")
        assert scanned(full.connection, statement(name), bind, more=("holds",)) == set()


def test_holds_that_are_named_are_not_looked_for_among_all(full: Factory) -> None:
    with full.connection.transaction(force_rollback=True):
        full.connection.execute(HELD_ONCE.replace("recorded_at + interval '1 hour', 'person'", "null, null"))
        full.connection.execute("analyze sendonce.holds")
        some = [row[0] for row in full.connection.execute("select id from sendonce.holds order by id limit 3")]
        bind = {"workspace_id": full.workspace, **OPERATIONS["read_held"], "mailstream": None, "hold_ids": some}
        assert scanned(full.connection, statement("read_held"), bind, more=("holds",)) == set()
        assert pages(full.connection, statement("read_held"), bind) < 100


WAITS = """
insert into sendonce.outbox (send_id, workspace_id, request)
select id, workspace_id, '{}' from sendonce.sends limit 5000
"""
"""A relay that has stood still."""

BY_INDEX_ALONE = {"work", "holds", "rollups", "rollup_hours", "latencies", "latency_hours", "carriers", "outbox"}
"""What the overview reads that grows with time, or with what is open."""
SMALL = {
    "markers", "workers", "accounts", "account_checks", "mailstreams", "workspaces", "users", "roles", "sessions",
    "settings", "api_tokens",
}  # fmt: skip


def test_every_statement_of_the_overview_reads_roll_ups_what_is_open_and_small_tables_alone(
    full: Factory, full_database: Database
) -> None:
    """Whichever statements its pages run: they are taken from the server, which has prepared them."""
    person = full.add("users", login="ada", name="Ada", password_hash=hasher.hash(PASSWORD))
    put_role(full.connection, user_id=person, workspace_id=full.workspace, role=Role.OPERATOR)
    settings = Settings(database_url=full_database.url, secret_key="s" * 40, encryption_keys=KEYS)
    browser = Browser(the_app(settings, full_database, full.vault).test_client())
    assert browser.log_in("ada").status_code == 303
    full.connection.execute(HELD_ONCE)
    full.connection.execute(WAITS)
    full.connection.execute("analyze sendonce.holds, sendonce.outbox")
    database = Database(full_database.url, pool_size=1)  # in whose session nothing else was done
    the_app(settings, database, full.vault)
    for where in ("", "/figures"):
        for span in ("1h", "30d"):  # of minutes, and of hours
            for narrowed in ({}, {"mailstream": "receipts"}, {"account": "main"}):
                answer = browser.get(f"/overview{where}", query={"range": span, **narrowed})
                assert answer.status_code == 200
    with database.snapshot() as connection:
        by_it = ran(connection)
    database.close()
    full.connection.execute("truncate sendonce.outbox, sendonce.holds cascade")
    assert len(by_it) > 10
    assert {"rollups", "rollup_hours", "latencies", "outbox", "work"} <= {table for one in by_it for table in one.read}
    for one in by_it:
        assert one.read <= BY_INDEX_ALONE | SMALL, one.statement
        assert not one.scanned & BY_INDEX_ALONE, one.statement


def test_the_domains_of_an_account_come_from_its_newest_sends_by_an_index(full: Factory) -> None:
    bind = {"account_id": full.account, "streams": 50, "each": 10}
    assert scanned(full.connection, statement("read_newest_bodies"), bind) == set()
    assert pages(full.connection, statement("read_newest_bodies"), bind) < MOST_PAGES


def test_whose_an_event_is_comes_by_an_index(full: Factory) -> None:
    (message_id,) = full.connection.execute(
        "select provider_message_id from sendonce.attempts where send_id = %s", [_a_send(full)]
    ).fetchone() or ("",)
    told = {"i": [0, 1], "send_id": [_a_send(full), None], "provider_message_id": [message_id, message_id]}
    where = {"account_id": full.account, "workspace_id": full.workspace}
    kept = {"send_ids": [_a_send(full)], "message_ids": [message_id], "after": None, "limit": 1000}
    with full.connection.transaction(force_rollback=True):
        full.connection.execute(BY_INDEX)
        for name, bind in (("match_events", told | where), ("find_unmatched", kept)):
            assert scanned(full.connection, statement(name), bind) == set(), name
            assert pages(full.connection, statement(name), bind) < MOST_PAGES, name


def test_gauges_and_roll_ups_come_to_their_rows_by_an_index(full: Factory) -> None:
    with full.connection.transaction(force_rollback=True):
        full.connection.execute(BY_INDEX)  # as the transactions of pages and workers begin
        for mailstream in (None, "receipts"):
            gauges = {"workspace_id": full.workspace, "mailstream": mailstream, "counted": 100}
            assert scanned(full.connection, statement("read_gauges"), gauges) == set(), mailstream
        minute = generated.BEGAN.replace(hour=12, minute=7)
        bind = {"workspace_id": [full.workspace], "mailstream": ["receipts"], "minute": [minute]}
        for name in ("insert_rollups", "insert_latencies", "insert_carriers", "delete_rollups"):
            counted = {"nobody": NO_ACCOUNT, "bounds": [1.0], **bind}
            assert scanned(full.connection, statement(name), counted) == set(), name


def test_a_scrape_of_the_metrics_costs_no_more_with_a_long_queue(full: Factory) -> None:
    with full.connection.transaction(force_rollback=True):
        full.connection.execute(HELD_ONCE)
        full.connection.execute("analyze sendonce.holds")
        for name in ("read_watched_all", "read_open_all"):
            assert scanned(full.connection, statement(name), {"counted": 100}, more=("holds",)) == set(), name
            assert pages(full.connection, statement(name), {"counted": 100}) < 500, name


@pytest.mark.parametrize("what", Behind)
def test_the_sends_behind_a_point_come_by_an_index(full: Factory, what: Behind) -> None:
    noon = generated.BEGAN.replace(hour=12)
    span = Span(what=what, since=noon, until=noon + timedelta(minutes=1))
    query, bind = compiled(listing._listing(full.workspace, SendFilter(behind=span), None, 51))
    with full.connection.transaction(force_rollback=True):
        full.connection.execute(BY_INDEX)
        assert scanned(full.connection, query, bind) == set()
