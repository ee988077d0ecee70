"""Poison over the API: a clear 4xx, nothing recorded, and in a batch nobody else is touched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.conftest import Api, asked

DEEP = '{"a":' * 3_000 + "1" + "}" * 3_000

POISON: dict[str, tuple[str, str]] = {
    "NUL in a variable": (json.dumps(asked(message__variables={"a": "\0"})), "message.variables.a"),
    "NUL in the name of a field": (json.dumps(asked(message__variables={"\0": "a"})), "the name of a field"),
    "half of a surrogate pair": (json.dumps(asked(trigger__id="\ud800")), "trigger.id"),
    "a number of 5,000 digits": (json.dumps(asked(message__variables={"n": 0})).replace(": 0}", f": {'9' * 5_000}}}"),
                                 "request"),
    "a number beyond any float": (json.dumps(asked(message__variables={"n": 0})).replace(": 0}", ": 1e9000}"),
                                  "message"),
    "NaN": (json.dumps(asked(message__variables={"n": float("nan")})), "request"),
    "nesting beyond any reader": (
        json.dumps(asked(message__variables={"n": 0})).replace(": 0}", f": {DEEP}}}"), "request|message"),
    "a key over the length": (json.dumps(asked(key="k" * 256)), "key"),
    "a recipient id over the length": (json.dumps(asked(recipient__id="r" * 513)), "recipient.id"),
    "a trigger id over the length": (json.dumps(asked(trigger__id="t" * 513)), "trigger.id"),
    "a header over the length": (json.dumps(asked(message__headers={"X": "v" * 4_001})), "message.headers.X"),
    "a time outside the calendar": (json.dumps(asked(not_before="9999-12-31T23:59:59-12:00")), "not_before"),
    "words": ('"words"', "request"),
    "null": ("null", "request"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "field"), POISON.values(), ids=POISON.keys())
def test_poison_is_400_with_the_name_of_its_field_and_spoils_no_other_line(api: Api, body: str, field: str) -> None:
    answer = api.send("POST", "/api/v1/sends", data=body, content_type="application/json")
    assert (answer.status_code, answer.json and answer.json["field"] in field.split("|")) == (400, True)
    lines = api.batch("\n".join([json.dumps(asked(key="a")), body, json.dumps(asked(key="b"))]))
    assert [json.loads(line)["status"] for line in lines.text.splitlines()] == [201, 400, 201]
    assert [api.place.count(table) for table in ("sends", "work", "duplicates")] == [2, 2, 0]


def test_a_key_in_the_header_over_the_length_is_400(api: Api) -> None:
    for header in ("k" * 256, '"' + "k" * 256 + '"', "\xff"):
        answer = api.post(asked(key=None), headers={"Idempotency-Key": header})
        assert (answer.status_code, answer.json and answer.json["field"]) == (400, "key")
    assert api.place.count("sends") == 0


LIMITS = {
    "of a row": "program_limit_exceeded",
    "of a statement": "statement_too_complex",
    "of a type": "numeric_value_out_of_range",
    "of a constraint": "check_violation",
}


@pytest.mark.parametrize("code", LIMITS.values(), ids=LIMITS.keys())
def test_what_only_the_database_refuses_is_400_for_one_send_and_for_its_line(api: Api, code: str) -> None:
    """Not 503 or 500: the same request would come again for ever."""
    api.place.run(
        "create function refuse() returns trigger language plpgsql as $$ begin if new.key = 'b' then"
        f" raise exception 'no' using errcode = '{code}'; end if; return new; end $$"
    )
    api.place.run("create trigger refuse before insert on sendonce.sends for each row execute function refuse()")
    one = api.post(asked(key="b"))
    assert (one.status_code, one.content_type) == (400, "application/problem+json")
    lines = api.batch("\n".join(json.dumps(asked(key=key)) for key in "abc"))
    assert [json.loads(line)["status"] for line in lines.text.splitlines()] == [201, 400, 201]
    assert api.place.count("sends") == 2


def test_a_body_of_almost_10_mb_is_taken_as_it_is(api: Api) -> None:
    text = "x" * 9_900_000
    answer = api.post(asked(message__text=text))
    assert answer.status_code == 201
    row: Any = api.place.one("select send_id, body from sendonce.messages")
    assert json.loads(api.place.vault.decrypt(row["body"], row["send_id"].bytes))["text"] == text


@pytest.mark.parametrize("path", ["/api/v1/sends?key=%00", "/api/v1/sends?key=" + "k" * 600, "/api/v1/sends/%00"])
def test_odd_values_in_the_address_are_a_clear_4xx(api: Api, path: str) -> None:
    assert api.get(path).status_code in (400, 404)
