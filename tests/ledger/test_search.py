"""Search takes anything an agent has in hand; lists are narrowed by filters and walk an index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from dashboard.ledger import search as search_module
from dashboard.ledger.database import Database, compiled, statement
from dashboard.ledger.search import Cursor, Hit, Reading, SendFilter, exact_hit, list_sends, search
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import State, Verdict
from tests.factories import ADDRESS, Factory, at, own_database


def find(factory: Factory, text: str) -> list[Hit]:
    return search(factory.connection, factory.vault, factory.workspace, text)


def test_each_reading_finds_the_send_and_says_which_it_was(factory: Factory) -> None:
    send = factory.accepted(key="receipt:order_7:r1:v3", recipient="r1", trigger="evt_991", message_id="49a3")
    factory.event(send, "delivered", occurred=5, event_id="evt-from-resend")
    factory.duplicate(send, when=9, trigger_id="evt_992")
    expected = {
        str(send): Reading.SEND_ID,
        f"<{send}@mail.example.com>": Reading.SEND_ID,
        f"{send}@mail.example.com": Reading.SEND_ID,
        f"Message-ID: <{send}@mail.example.com>": Reading.SEND_ID,
        "receipt:order_7:r1:v3": Reading.KEY,
        "receipt:order_7": Reading.KEY_PREFIX,
        "order_7": Reading.KEY_PREFIX,
        "evt_991": Reading.TRIGGER_ID,
        "evt_992": Reading.TRIGGER_ID,
        "r1": Reading.RECIPIENT_ID,
        " Ada@EXAMPLE.com ": Reading.ADDRESS,
        "49a3": Reading.PROVIDER_MESSAGE_ID,
        "<49a3@eu-west-1.amazonses.com>": Reading.PROVIDER_MESSAGE_ID,
        "evt-from-resend": Reading.EVENT_ID,
    }
    assert {text: [(hit.send_id, hit.reading) for hit in find(factory, text)] for text in expected} == {
        text: [(send, reading)] for text, reading in expected.items()
    }


def test_a_second_message_id_is_found_too(factory: Factory) -> None:
    send = factory.accepted()
    factory.add("second_message_ids", send_id=send, account_id=factory.account, provider_message_id="msg-9", attempt=1)
    assert [hit.reading for hit in find(factory, "msg-9")] == [Reading.PROVIDER_MESSAGE_ID]


@pytest.mark.parametrize("text", ["", "   ", "\0", "zürich", "no such thing", "a" * 5000, "%", "' or 1=1", "<>", "@"])
def test_text_that_means_nothing_finds_nothing(factory: Factory, text: str) -> None:
    factory.accepted()
    assert find(factory, text) == []


def test_nothing_is_found_across_workspaces(factory: Factory) -> None:
    send = factory.accepted(key="receipt:order_7", recipient="r1", trigger="evt_1", message_id="m1")
    factory.event(send, "delivered", occurred=5, event_id="e1")
    factory.add("second_message_ids", send_id=send, account_id=factory.account, provider_message_id="m2", attempt=1)
    other = Factory(factory.connection)
    for text in (str(send), "receipt:order_7", "receipt", "r1", "evt_1", "m1", "m2", "e1", ADDRESS):
        assert find(other, text) == [], text


def test_an_exact_reading_comes_before_the_start_of_a_key_and_each_send_comes_once(factory: Factory) -> None:
    exact = factory.accepted(key="order_7", recipient="order_7")
    longer = factory.accepted(key="order_77", recipient="x", message_id="m2")
    hits = find(factory, "order_7")
    assert [(hit.send_id, hit.reading) for hit in hits] == [(exact, Reading.KEY), (longer, Reading.KEY_PREFIX)]
    assert exact_hit(hits) == hits[0]


def test_one_trigger_of_two_sends_is_not_an_exact_hit(factory: Factory) -> None:
    newer, older = factory.accepted(asked=10, message_id="a"), factory.accepted(asked=0, message_id="b")
    hits = find(factory, "evt_1")
    assert [hit.send_id for hit in hits] == [newer, older]
    assert exact_hit(hits) is None


def test_a_hit_has_the_state_of_its_work_row(factory: Factory) -> None:
    factory.unknown()
    assert [hit.state for hit in find(factory, ADDRESS)] == [State.UNKNOWN]


def test_an_address_is_found_under_every_live_key(factory: Factory) -> None:
    send = factory.accepted()
    rotated = Vault([("k2", b"n" * 32), ("k1", b"k" * 32)])
    assert [hit.send_id for hit in search(factory.connection, rotated, factory.workspace, ADDRESS)] == [send]


def test_a_reading_gives_at_most_so_many_hits(factory: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_module, "HITS", 3)
    for second in range(5):
        factory.pending(asked=second, recipient="r1")
    assert [hit.recorded_at for hit in find(factory, "r1")] == [at(4.1), at(3.1), at(2.1)]


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────────

MAKERS: dict[State, Callable[..., UUID]] = {
    State.PENDING: Factory.pending,
    State.CLAIMED: Factory.claimed,
    State.UNKNOWN: Factory.unknown,
    State.HELD: Factory.held,
    State.ACCEPTED: Factory.accepted,
    State.FAILED: Factory.failed,
    State.SUPPRESSED: Factory.suppressed,
    State.CANCELLED: Factory.cancelled,
}


def listed(factory: Factory, *, limit: int = 50, **filters: Any) -> list[UUID]:
    """All pages of a list."""
    found: list[UUID] = []
    after = None
    while True:
        page = list_sends(factory.connection, factory.workspace, SendFilter(**filters), after=after, limit=limit)
        assert len(page.rows) <= limit
        found += [row.send_id for row in page.rows]
        if page.next is None:
            return found
        after = Cursor.read(str(page.next))


@pytest.mark.parametrize("state", State)
def test_a_list_by_state_has_the_sends_of_that_state_only(factory: Factory, state: State) -> None:
    made = {s: make(factory, address=None) for s, make in MAKERS.items()}
    assert listed(factory, state=state) == [made[state]]
    assert listed(factory, state=state, mailstream="receipts") == [made[state]]
    assert listed(factory, state=state, mailstream="other") == []


def test_the_list_of_all_is_newest_first_across_mailstreams(factory: Factory) -> None:
    factory.stream("welcome")
    made = [factory.pending(asked=i, mailstream=("receipts", "welcome")[i % 2]) for i in range(7)]
    assert listed(factory) == made[::-1]
    assert listed(factory, mailstream="welcome") == [made[5], made[3], made[1]]


@pytest.mark.parametrize("filters", [{}, {"state": State.PENDING}, {"verdict": Verdict.MISMATCH}])
def test_pages_of_any_size_make_the_same_list(factory: Factory, filters: dict[str, Any]) -> None:
    for second in range(9):
        send = factory.pending(asked=second // 3, due=second // 3)  # threes at one moment
        factory.duplicate(send, when=100 + second // 3, verdict="mismatch", state_met="pending")
    whole = listed(factory, **filters)
    assert len(set(whole)) == 9
    assert [listed(factory, limit=limit, **filters) for limit in (1, 2, 4, 9)] == [whole] * 4


def test_open_states_list_what_has_waited_longest_first(factory: Factory) -> None:
    late, early = factory.pending(due=20), factory.pending(due=10)
    assert listed(factory, state=State.PENDING) == [early, late]
    new, old = factory.held(opened=4000), factory.held(opened=3000)
    assert listed(factory, state=State.HELD) == [old, new]


def test_a_send_that_failed_twice_is_listed_once_and_one_that_was_replayed_is_not(factory: Factory) -> None:
    twice = factory.failed(answered=3)
    factory.move(twice, "replay", "failed", "pending", "replayed", when=10)
    factory.move(twice, "fail", "claimed", "failed", "refused", when=20)
    again = factory.failed(answered=4)
    factory.move(again, "replay", "failed", "pending", "replayed", when=11)
    assert listed(factory, state=State.FAILED) == [twice]


def test_a_list_by_verdict_has_each_send_once_by_its_last_such_delivery(factory: Factory) -> None:
    first, second = factory.accepted(message_id="a"), factory.accepted(message_id="b")
    for send, when in ((first, 10), (second, 11), (first, 12)):
        factory.duplicate(send, when=when, verdict="mismatch")
    factory.duplicate(factory.pending(), when=13)
    assert listed(factory, verdict=Verdict.MISMATCH) == [first, second]
    assert listed(factory, verdict=Verdict.MISMATCH, state=State.FAILED) == []
    assert listed(factory, verdict=Verdict.MISMATCH, state=State.ACCEPTED, mailstream="receipts") == [first, second]
    page = list_sends(factory.connection, factory.workspace, SendFilter(verdict=Verdict.MISMATCH))
    assert [row.duplicates for row in page.rows] == [2, 1]


@pytest.mark.parametrize("text", ["", "x", "2026-11-30~", "never~0b6e2f1c-0000-5000-8000-000000000001"])
def test_a_damaged_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Cursor.read(text)


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────────────

HOT = ("sends", "work", "attempts", "events", "duplicates", "moves", "messages")
FILL = """
insert into sendonce.sends (id, workspace_id, mailstream, key, recipient_id, address_lookup, fingerprint, source,
  trigger_type, trigger_id, asked_at, recorded_at, due_at, state, reason, settled_at)
select gen_random_uuid(), %(workspace)s, case when i %% 10 = 0 then 'welcome' else 'receipts' end,
  'receipt:order_' || i,
  'recipient_' || i %% 5000, decode(md5((i %% 5000)::text), 'hex'), 'x', 'outbox', 'order.paid', 'evt_' || i, t, t, t,
  (case when i <= 24000 then 'accepted' when i <= 26000 then 'failed' else 'open' end)::sendonce.send_state,
  case when i <= 26000 then 'answered' end, case when i <= 26000 then t end
from (select i, %(noon)s::timestamptz + i * interval '1 second' as t from generate_series(1, 30000) i) n;
insert into sendonce.work (send_id, workspace_id, mailstream, mail_class, reason, due_at, claim_at)
select id, workspace_id, mailstream, 'transactional', 'due', due_at, due_at from sendonce.sends where state = 'open';
insert into sendonce.attempts (send_id, n, workspace_id, mailstream, account_id, worker, claim_number, claimed_at,
  submit_deadline, request_deadline, finished_at, status, provider_message_id)
select id, 1, workspace_id, mailstream, %(account)s, %(account)s, 1, due_at, due_at, due_at, due_at, 'accepted',
  'm-' || id
from sendonce.sends where state <> 'open';
insert into sendonce.events (workspace_id, account_id, event_id, fact, event_type, occurred_at, send_id, matched_by)
select workspace_id, %(account)s, 'e-' || id, decode(md5(id::text), 'hex'), 'delivered', due_at, id, 'send_id'
from sendonce.sends where state = 'accepted';
insert into sendonce.duplicates (send_id, workspace_id, mailstream, source, trigger_id, at, state_met, verdict)
select id, workspace_id, mailstream, 'api', trigger_id, due_at, 'accepted',
  (case when key like '%%7' then 'mismatch' else 'duplicate' end)::sendonce.verdict from sendonce.sends;
insert into sendonce.moves (send_id, workspace_id, at, move, from_state, to_state, made_by, reason)
select id, workspace_id, due_at, m::sendonce.move, 'claimed', s::sendonce.state, 'worker', 'refused'
from sendonce.sends, (values ('retry_later', 'pending'), ('fail', 'failed')) v (m, s)
where m = 'retry_later' or state = 'failed';
insert into sendonce.messages (send_id) select id from sendonce.sends;
"""


@pytest.fixture(scope="module")
def full(server_url: str, template_database: str) -> Iterator[Factory]:
    """A ledger of 30,000 sends, analysed, whose planner behaves as the pages' connections let it."""
    with own_database(server_url, template_database) as url:
        database = Database(url, pool_size=1)
        connection = database.connect()
        factory = Factory(connection)
        factory.stream("welcome")
        bind = {"workspace": factory.workspace, "account": factory.account, "noon": at(0)}
        for part in FILL.strip().rstrip(";").split(";\n"):
            connection.execute(part, bind)  # type: ignore[arg-type]
        connection.commit()
        connection.autocommit = True
        connection.execute("vacuum analyze")
        yield factory
        connection.close()
        database.close()


def scanned(factory: Factory, query: str, bind: dict[str, Any]) -> set[str]:
    """The hot tables that the plan of a query reads from end to end."""
    row = factory.connection.execute("explain (format json) " + query, bind).fetchone()  # type: ignore[call-overload]
    return {node["Relation Name"] for node in _nodes(row[0][0]["Plan"]) if node["Node Type"] == "Seq Scan"} & set(HOT)


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)


def test_a_plan_that_reads_a_hot_table_from_end_to_end_is_noticed(full: Factory) -> None:
    assert scanned(full, "select * from sendonce.sends where recipient_id like %(text)s", {"text": "%x"}) == {"sends"}


@pytest.mark.parametrize(
    "text",
    [
        "0b6e2f1c-0000-5000-8000-000000000001",
        "receipt:order_77",
        "order_77",
        "recipient_77",
        "evt_77",
        ADDRESS,
        "<m-1@x>",
    ],
)
def test_no_search_reads_a_hot_table_from_end_to_end(full: Factory, text: str) -> None:
    bind = {"workspace_id": full.workspace, "limit": 50, "kinds": 64, **search_module._readings(full.vault, text)}
    assert scanned(full, statement("read_hits"), bind) == set()


TRACE_PARTS = (
    "send", "stream", "account", "attempts", "duplicates", "moves", "events", "second_ids", "holds", "decisions",
    "cancels", "workers", "suppressions", "neighbours",
)  # fmt: skip


@pytest.mark.parametrize("part", TRACE_PARTS)
def test_no_part_of_a_trace_reads_a_hot_table_from_end_to_end(full: Factory, part: str) -> None:
    bind = {"workspace_id": full.workspace, "send_id": uuid4(), "limit": 50, "cap": 100}
    assert scanned(full, statement(f"read_trace_{part}"), bind) == set()


@pytest.mark.parametrize("after", [None, Cursor(at(15_000), uuid4())], ids=["first", "later"])
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
    query, bind = compiled(search_module._listing(full.workspace, filters, after, 51))
    # Claims change no index, so that they stay cheap; their list reads the table of what is open, which is small.
    assert scanned(full, query, dict(bind)) == ({"work"} if filters.state == State.CLAIMED else set())


@pytest.mark.parametrize("kept", ["1 day", "100 years"], ids=["all of it is old", "nothing is"])
def test_retention_comes_to_what_is_old_by_an_index(full: Factory, kept: str) -> None:
    with full.connection.transaction(force_rollback=True):
        full.connection.execute("update sendonce.mailstreams set retain_for = %s::interval", (kept,))
        assert scanned(full, statement("lock_retained"), {"limit": 100}) == set()
        assert scanned(full, statement("count_retained"), {"workspace_id": full.workspace, "cap": 100}) == set()


OPERATIONS: dict[str, dict[str, Any]] = {
    "read_held": {
        "after_at": None, "after_id": None, "limit": 50, "mailstream": "receipts", "account": None, "reason": None,
        "failure": None,
    },
    "read_incidents": {"counted": 10_000, "limit": 12},
    "read_alike": {"provider": "resend", "error_class": "read_timeout", "phase": None, "scanned": 2_000},
    "read_failures": {"ids": [uuid4()]},
    "read_account_errors": {"looked_at": 300},
    "read_suspects": {"before": at(30_000), "looked_at": 500, "apart": timedelta(days=1), "limit": 50},
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_list_of_operations_reads_a_hot_table_from_end_to_end(full: Factory, name: str) -> None:
    bind = {"workspace_id": full.workspace, **OPERATIONS[name]}
    assert scanned(full, statement(name), bind) == set()
