"""Rule 10 on poison: a row that nobody can take is set aside with its reason, and its neighbours go on."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg.types.json import Jsonb

from dashboard.identity import send_id
from dashboard.ledger.outbox import Relayed
from dashboard.lifecycle import State
from tests.crew import state_of, violations
from tests.place import Place
from tests.rules.test_rule_10_relay import body, enqueue, relay


@dataclass(frozen=True)
class Poison:
    """One outbox row as somebody may write it past ``enqueue``, and what its dead letter has to say."""

    says: str
    request: str
    """JSON text, as PostgreSQL takes it."""
    asked_at: str = "2026-11-30T09:00:00Z"
    send_id: UUID | None = None


KEY = "poison"


def with_message(**members: object) -> str:
    """A good request but for these members of its message."""
    good = body(KEY)
    return json.dumps({**good, "message": {**good["message"], **members}})  # type: ignore[dict-item]


def with_number(digits: str) -> str:
    """A good request whose variable is this number."""
    return with_message(variables={"n": 0}).replace('"n": 0', f'"n": {digits}')


NESTED = '{"a":' * 3_000 + "1" + "}" * 3_000

POISON = {
    "no object": Poison("must be an object", '"words"'),
    "JSON null": Poison("is needed", "null"),
    "a list": Poison("must be an object", "[]"),
    "a key that is a number": Poison("key", json.dumps({**body(KEY), "key": 7})),
    "a recipient that is text": Poison("recipient", json.dumps({**body(KEY), "recipient": "ada"})),
    "a trigger that is a list": Poison("trigger", json.dumps({**body(KEY), "trigger": []})),
    "a message that is true": Poison("message", json.dumps({**body(KEY), "message": True})),
    "headers that are a list": Poison("message.headers", with_message(headers=["X-A: b"])),
    "metadata of numbers": Poison("metadata", json.dumps({**body(KEY), "metadata": {"a": 1}})),
    "a time that is a number": Poison("not_before", json.dumps({**body(KEY), "not_before": 1})),
    "a time outside the calendar": Poison("not_before", json.dumps({**body(KEY), "not_before": "12026-01-01"})),
    "a key over the length": Poison("key", json.dumps({**body(KEY), "key": "k" * 256})),
    "a recipient id over the length": Poison(
        "recipient.id", json.dumps({**body(KEY), "recipient": {"id": "r" * 513, "address": "ada@example.com"}})
    ),
    "an address over the length": Poison(
        "recipient.address", json.dumps({**body(KEY), "recipient": {"id": "r", "address": "a" * 600 + "@example.com"}})
    ),
    "a header over the length": Poison("message.headers", with_message(headers={"X-Long": "v" * 4_001})),
    "the name of a header over the length": Poison("message.headers", with_message(headers={"X" * 513: "v"})),
    "a mailstream over the length": Poison("mailstream", json.dumps({**body(KEY), "mailstream": "m" * 600})),
    "asked in infinity": Poison("asked", json.dumps(body(KEY)), asked_at="infinity"),
    "asked before all time": Poison("asked", json.dumps(body(KEY)), asked_at="-infinity"),
    "asked in the year 20000": Poison("asked", json.dumps(body(KEY)), asked_at="20000-01-01T00:00:00Z"),
    "asked before Christ": Poison("asked", json.dumps(body(KEY)), asked_at="0044-03-15 12:00:00+00 BC"),
    "a number of 5,000 digits": Poison("cannot be read", with_number("9" * 5_000)),
    "a number beyond any float": Poison("cannot be read", with_number("1e9000")),
    "a number that JSON programs read differently": Poison("message", with_number("9007199254740993")),
    "nesting beyond any reader": Poison("depth|deeply", with_number(NESTED)),
    "an id that does not follow from the key": Poison("send id", json.dumps(body(KEY)), send_id=uuid4()),
    "more than 10 MB": Poison("10000000", with_message(text="x" * 10_000_001)),
}


def put(place: Place, poison: Poison) -> UUID:
    """Write the row by hand; its uuid."""
    made: UUID = place.one(
        "insert into sendonce.outbox (send_id, workspace_id, request, asked_at) values (%s, %s, %s::jsonb, %s)"
        " returning id",
        poison.send_id or send_id(place.workspace, "receipts", KEY), place.workspace, poison.request, poison.asked_at,
    )["id"]  # fmt: skip
    return made


def fate(place: Place, outbox_id: UUID) -> list[str]:
    """Where an outbox uuid is by now."""
    tables = {"outbox": "id", "sends": "outbox_id", "duplicates": "outbox_id", "dead_letters": "outbox_id"}
    query = " union all ".join(
        f"select '{table}' as name from sendonce.{table} where {column} = %s" for table, column in tables.items()
    )
    return [row["name"] for row in place.all(query, *[outbox_id] * len(tables))]


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON.keys())
def test_a_poisoned_row_is_a_dead_letter_with_its_reason_and_its_neighbours_are_sends(
    place: Place, poison: Poison
) -> None:
    enqueue(place, "before")
    poisoned = put(place, poison)
    enqueue(place, "after")
    assert relay(place) == Relayed(taken=3, won=2, dead=1)
    assert fate(place, poisoned) == ["dead_letters"]
    assert re.search(poison.says, place.one("select reason from sendonce.dead_letters")["reason"])
    for key in ("before", "after"):
        assert state_of(place, send_id(place.workspace, "receipts", key)) == State.PENDING


def test_a_row_of_a_workspace_that_does_not_exist_is_a_dead_letter(place: Place) -> None:
    nowhere = uuid4()
    enqueue(place, "before")
    place.run(
        "insert into sendonce.outbox (send_id, workspace_id, request) values (%s, %s, %s)",
        send_id(nowhere, "receipts", KEY), nowhere, Jsonb(body(KEY)),
    )  # fmt: skip
    enqueue(place, "after")
    assert relay(place) == Relayed(taken=3, won=2, dead=1)
    assert place.one("select workspace_id from sendonce.dead_letters")["workspace_id"] == nowhere


def test_what_a_dead_letter_keeps_is_the_whole_request(place: Place) -> None:
    poisoned = put(place, POISON["a number of 5,000 digits"])
    relay(place)
    payload: Any = place.one("select payload from sendonce.dead_letters")["payload"]
    kept = place.vault.decrypt(payload, poisoned.bytes).decode()
    assert '"n": ' + "9" * 5_000 in kept


def test_all_poison_at_once_leaves_each_uuid_in_one_place(place: Place) -> None:
    enqueue(place, "before")
    poisoned = [put(place, poison) for poison in POISON.values()]
    enqueue(place, "after", "before")
    while relay(place).taken:
        pass
    assert [fate(place, one) for one in poisoned] == [["dead_letters"]] * len(POISON)
    assert [place.count(table) for table in ("outbox", "sends", "duplicates")] == [0, 2, 1]
    assert violations(place) == []


def test_the_database_itself_keeps_out_what_no_text_can_hold(place: Place) -> None:
    """NUL and lone surrogates never reach an outbox row: the producer's own statement fails."""
    for text in (r"\u0000", r"\ud800"):
        with pytest.raises(psycopg.DataError):
            put(place, Poison("", f'{{"key": "{text}"}}'))


LIMIT = (
    "create function refuse() returns trigger language plpgsql as $$ begin if new.key = 'b' then"
    " raise exception 'index row size 2720 exceeds maximum' using errcode = 'program_limit_exceeded'; end if;"
    " return new; end $$"
)


def test_a_row_over_a_limit_of_the_database_spoils_no_other(own_place: Place) -> None:
    place = own_place
    place.run(LIMIT)
    place.run("create trigger refuse before insert on sendonce.sends for each row execute function refuse()")
    enqueue(place, "a", "b", "c", "b")
    assert relay(place) == Relayed(taken=4, won=2, dead=2)
    reasons = place.all("select reason from sendonce.dead_letters")
    assert reasons == [{"reason": "the ledger refused it: index row size 2720 exceeds maximum"}] * 2
    assert violations(place) == []


def test_a_pass_takes_no_more_than_memory_holds_and_the_next_ones_take_the_rest(place: Place) -> None:
    """Rows of some MB that do not compress, as an image in the HTML is."""
    for number in range(6):
        text = random.Random(number).randbytes(1_500_000).hex()
        with place.database.transaction() as connection:
            connection.execute("select sendonce.enqueue(%s)", [Jsonb(body(f"large:{number}") | large(text))])
    taken = []
    while (relayed := relay(place)).taken:
        assert relayed.won == relayed.taken
        taken.append(relayed.taken)
    assert taken == [2, 2, 2]
    assert [place.count(table) for table in ("outbox", "sends", "dead_letters")] == [0, 6, 0]


def large(text: str) -> dict[str, Any]:
    return {"message": {"from": "shop@example.com", "subject": "Your receipt", "text": text}}


@pytest.mark.parametrize(
    "text",
    ["{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "{{ 'x' * 10 ** 11 }}"],
    ids=["without end", "without bounds"],
)
def test_a_text_that_would_eat_up_the_relay_fails_alone_and_its_neighbour_goes_on(place: Place, text: str) -> None:
    place.run("select sendonce.enqueue(%s::jsonb)", with_message(text=text, variables={}).replace(KEY, "bad"))
    enqueue(place, "good")
    relay(place)
    assert [state_of(place, send_id(place.workspace, "receipts", key)) for key in ("good", "bad")] == [
        "pending",
        "failed",
    ]
    assert "characters" in place.one("select detail from sendonce.moves where to_state = 'failed'")["detail"]
