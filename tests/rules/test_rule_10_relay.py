"""Rule 10: every committed outbox row becomes exactly one of send, duplicate and dead letter, whoever else relays."""

from __future__ import annotations

import json

import psycopg
import pytest
from psycopg.types.json import Jsonb

from dashboard.identity import send_id
from dashboard.ledger import outbox
from dashboard.ledger.outbox import Relayed
from tests.crew import Rival, open_transaction, record_in, state_of, verdicts_of, violations, wait_for_a_waiter
from tests.place import Place


def body(key: str, **more: object) -> dict[str, object]:
    return {
        "mailstream": "receipts", "key": key, "recipient": {"id": "r", "address": "ada@example.com"},
        "trigger": {"type": "order.paid", "id": "evt_1"},
        "message": {"from": "shop@example.com", "subject": "Your receipt", "text": "Thank you"}, **more,
    }  # fmt: skip


def enqueue(place: Place, *keys: str) -> None:
    """In one transaction of the business."""
    with place.database.transaction() as connection:
        for key in keys:
            connection.execute("select sendonce.enqueue(%s)", [Jsonb(body(key))])


def relay(place: Place, limit: int = 100) -> Relayed:
    with place.database.transaction() as connection:
        return outbox.relay(connection, place.vault, limit=limit)


def ids(place: Place, *keys: str) -> list:  # type: ignore[type-arg]
    return [send_id(place.workspace, "receipts", key) for key in keys]


def test_each_row_becomes_a_send_or_a_duplicate_and_leaves_the_outbox(place: Place) -> None:
    enqueue(place, "a", "b", "a", "a")
    assert relay(place) == Relayed(taken=4, won=2, later=2)
    assert (place.count("outbox"), place.count("sends"), place.count("work")) == (0, 2, 2)
    assert verdicts_of(place, ids(place, "a")[0]) == ["in_progress", "in_progress"]


def test_of_several_rows_with_one_key_the_first_by_its_id_proposes(place: Place) -> None:
    enqueue(place, "a", "a", "a")
    order = place.all("select id from sendonce.outbox order by id")
    relay(place)
    assert place.one("select outbox_id from sendonce.sends")["outbox_id"] == order[0]["id"]
    duplicates = place.all("select outbox_id from sendonce.duplicates")
    assert {row["outbox_id"] for row in duplicates} == {row["id"] for row in order[1:]}


def test_two_relays_share_the_rows_and_neither_waits_for_the_other(place: Place) -> None:
    enqueue(place, "a", "b", "c", "d")
    with open_transaction(place) as connection:
        assert outbox.relay(connection, place.vault, limit=3).won == 3
        assert relay(place) == Relayed(taken=1, won=1), "what another relay holds is skipped"
    assert (place.count("outbox"), place.count("sends")) == (0, 4)


def test_a_relay_that_meets_a_recorder_of_the_same_key_waits_and_reads_the_winner(place: Place) -> None:
    enqueue(place, "a", "b")
    with open_transaction(place) as connection:
        record_in(connection, place, "a")
        other = Rival(lambda: relay(place))
        wait_for_a_waiter(place, other)
    assert other.result == Relayed(taken=2, won=1, later=1)
    assert verdicts_of(place, ids(place, "a")[0]) == ["mismatch"], "its words are other ones, and it was never sent"
    assert (place.count("outbox"), place.count("work")) == (0, 2)


def test_a_relay_that_waits_for_a_recorder_which_gives_up_wins(place: Place) -> None:
    enqueue(place, "a")
    with open_transaction(place, commit=False) as connection:
        record_in(connection, place, "a")
        other = Rival(lambda: relay(place))
        wait_for_a_waiter(place, other)
    assert other.result == Relayed(taken=1, won=1)
    assert state_of(place, ids(place, "a")[0]) == "pending"


def test_keys_are_recorded_in_the_order_of_their_ids_so_that_recorders_never_wait_in_a_circle(place: Place) -> None:
    first, second = sorted(("a", "b"), key=lambda key: send_id(place.workspace, "receipts", key))
    enqueue(place, second, first)
    with open_transaction(place) as connection:
        record_in(connection, place, first)
        other = Rival(lambda: relay(place))
        wait_for_a_waiter(place, other)
        record_in(connection, place, second)  # a deadlock, had the other one inserted this one first
    assert other.result == Relayed(taken=2, later=2)


def test_a_row_that_commits_late_is_not_passed_over(place: Place) -> None:
    with open_transaction(place) as connection:
        connection.execute("select sendonce.enqueue(%s)", [Jsonb(body("early position, late commit"))])
        enqueue(place, "late position, early commit")
        assert relay(place) == Relayed(taken=1, won=1)
    assert relay(place) == Relayed(taken=1, won=1)
    assert (place.count("outbox"), place.count("sends")) == (0, 2)


def test_a_row_that_cannot_be_read_becomes_a_dead_letter_and_holds_nobody_up(place: Place) -> None:
    enqueue(place, "before")
    for bad in (
        {"mailstream": "receipts", "key": "no recipient"},
        body("bad address") | {"recipient": {"id": "r", "address": "nobody"}},
        body("unknown field", colour="red"),
    ):
        place.run("select sendonce.enqueue(%s)", Jsonb(bad))
    enqueue(place, "after")
    assert relay(place) == Relayed(taken=5, won=2, dead=3)
    assert (place.count("outbox"), place.count("sends"), place.count("dead_letters")) == (0, 2, 3)
    assert relay(place) == Relayed()


@pytest.mark.parametrize("value", ["9" * 5_000, "[" * 2_000 + "]" * 2_000], ids=["many digits", "deep"])
def test_a_row_with_json_that_only_the_database_can_read_becomes_a_dead_letter(place: Place, value: str) -> None:
    enqueue(place, "before")
    asked = json.dumps(body("strange", metadata={"n": "here"})).replace('"here"', value)
    place.run("select sendonce.enqueue(%s::jsonb)", asked)
    enqueue(place, "after")
    assert relay(place) == Relayed(taken=3, won=2, dead=1)
    # Newer versions of Python read as deep as the database does, and then it is no metadata.
    assert place.one("select reason from sendonce.dead_letters")["reason"].startswith(("request: ", "metadata: "))
    assert place.count("outbox") == 0


def test_a_row_of_a_mailstream_that_is_gone_becomes_a_dead_letter_and_no_send_without_work(place: Place) -> None:
    enqueue(place, "a", "b")
    place.run("delete from sendonce.mailstreams where name = 'receipts'")
    assert relay(place) == Relayed(taken=2, dead=2)
    assert (place.count("outbox"), place.count("sends"), place.count("dead_letters")) == (0, 0, 2)


def test_one_row_that_only_the_database_refuses_spoils_no_other(own_place: Place) -> None:
    place = own_place
    place.run("alter table sendonce.sends add constraint no_b check (key <> 'b')")
    enqueue(place, "a", "b", "c", "b")
    assert relay(place) == Relayed(taken=4, won=2, dead=2)
    assert (place.count("outbox"), place.count("sends"), place.count("dead_letters")) == (0, 2, 2)
    assert violations(place) == []


def test_a_row_that_is_relayed_again_after_its_deletion_was_lost_is_no_duplicate(place: Place) -> None:
    enqueue(place, "a", "a")
    rows = place.all("select id, send_id, workspace_id, request from sendonce.outbox")
    relay(place)
    for row in rows:  # as from a backup of the business's database
        place.run(
            "insert into sendonce.outbox (id, send_id, workspace_id, request) values (%s, %s, %s, %s)",
            row["id"], row["send_id"], row["workspace_id"], Jsonb(row["request"]),
        )  # fmt: skip
    assert relay(place).taken == 2
    assert (place.count("outbox"), place.count("sends"), place.count("duplicates")) == (0, 1, 1)


def test_a_relay_that_dies_before_its_commit_leaves_all_its_rows(place: Place) -> None:
    enqueue(place, "a", "b", "c")
    with open_transaction(place, commit=False) as connection:
        assert outbox.relay(connection, place.vault, limit=2).won == 2
    assert (place.count("outbox"), place.count("sends")) == (3, 0)
    assert relay(place) == Relayed(taken=3, won=3)


def test_a_row_that_met_a_send_which_is_gone_by_now_stays_for_the_next_pass(own_place: Place) -> None:
    place = own_place
    enqueue(place, "a", "b")
    with place.database.transaction() as connection:
        record_in(connection, place, "a")
    # Between the insert, which meets the send, and the look at it, the relay stops at this lock.
    place.run(
        "create function stop_here() returns trigger language plpgsql as"
        " $$ begin perform pg_advisory_xact_lock(1); return null; end $$"
    )
    place.run("create trigger stop_here after insert on sendonce.sends for each statement execute function stop_here()")
    with open_transaction(place) as connection:
        connection.execute("select pg_advisory_xact_lock(1)")
        other = Rival(lambda: relay(place))
        wait_for_a_waiter(place, other)
        made = ids(place, "a")[0]
        for table, column in (("sends", "id"), ("work", "send_id"), ("messages", "send_id")):
            connection.execute(f"delete from sendonce.{table} where {column} = %s", (made,))
    assert other.result == Relayed(taken=2, won=1)
    assert place.one("select send_id from sendonce.outbox")["send_id"] == made
    assert relay(place) == Relayed(taken=1, won=1)
    assert state_of(place, made) == "pending"
    assert violations(place) == []


def test_asking_notifies_nobody_inside_the_callers_transaction(place: Place) -> None:
    with psycopg.connect(place.database.url, autocommit=True) as listener:
        listener.execute("select * from pg_listening_channels()")
        listener.execute("listen sendonce")
        enqueue(place, "a")
        place.run("notify sendonce, 'the test is over'")
        heard = [notice.payload for notice in listener.notifies(timeout=10, stop_after=1)]
    assert heard == ["the test is over"]
