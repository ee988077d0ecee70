"""``sendonce dead-letters``: what was set aside is looked at, queued again or discarded, and nothing is lost."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import UUID

import pytest
from click.testing import CliRunner, Result
from psycopg.types.json import Jsonb

from dashboard.cli.dead_letters import dead_letters
from dashboard.identity import send_id
from dashboard.ledger.database import Database
from dashboard.ledger.dead_letters import bury_webhook
from tests.crew import person, state_of, violations
from tests.place import Place
from tests.rules.test_rule_10_relay import body, relay

ANSWERS = ("--user", "ada", "--reason", "it is mended")


@pytest.fixture
def place(ledger: Database) -> Place:
    place = Place(ledger)
    person(place)
    return place


def run(*arguments: str) -> Result:
    return CliRunner().invoke(dead_letters, list(arguments), standalone_mode=False)


def buried(place: Place, request: dict[str, object]) -> tuple[int, UUID]:
    """The number and the outbox uuid of a request that was set aside."""
    made = send_id(place.workspace, str(request["mailstream"]), str(request["key"]))
    row = place.one(
        "insert into sendonce.outbox (send_id, workspace_id, request) values (%s, %s, %s) returning id",
        made, place.workspace, Jsonb(request),
    )  # fmt: skip
    assert relay(place).dead == 1
    letter = place.one("select id from sendonce.dead_letters where outbox_id = %s", row["id"])
    return letter["id"], row["id"]


def test_what_was_mended_is_queued_again_under_its_own_uuid_and_sent(place: Place) -> None:
    number, uuid = buried(place, body("order:1") | {"mailstream": "letters"})
    assert "mailstream: the workspace has none of this name" in run("requeue", str(number), *ANSWERS).output
    assert (place.count("outbox"), place.count("dead_letters"), place.count("audit")) == (0, 1, 0)
    place.stream("letters", "transactional")
    made = send_id(place.workspace, "letters", "order:1")
    told = run("requeue", str(number), *ANSWERS)
    assert (told.output, told.return_value) == (f"{number}\tis queued again, as send {made}\n", 0)
    assert (place.one("select id, send_id from sendonce.outbox"), place.count("dead_letters")) == (
        {"id": uuid, "send_id": made}, 0,
    )  # fmt: skip
    assert run("requeue", str(number), *ANSWERS).return_value == 1, "and it is queued once"
    assert relay(place).won == 1
    assert state_of(place, made) == "pending"
    assert place.one("select outbox_id from sendonce.sends") == {"outbox_id": uuid}
    row = place.one("select action, subject, reason, user_id from sendonce.audit")
    assert row == {
        "action": "dead_letter.requeue", "subject": str(number), "reason": "it is mended", "user_id": person(place),
    }  # fmt: skip
    assert violations(place) == []


def test_what_would_be_set_aside_again_is_left_alone_with_the_reason(place: Place) -> None:
    number, _ = buried(place, body("order:1") | {"trigger": []})
    told = run("requeue", str(number), "999", *ANSWERS)
    assert told.output.splitlines() == [
        f"{number}\tIt would be set aside again: trigger: must be an object",
        "999\tThere is no dead letter of this number.",
    ]
    assert told.return_value == 1
    assert (place.count("outbox"), place.count("dead_letters")) == (0, 1)


def test_what_is_discarded_loses_what_it_held_and_stays_on_record(place: Place) -> None:
    number, uuid = buried(place, body("order:1") | {"trigger": []})
    assert run("discard", str(number), *ANSWERS).output == f"{number}\tis discarded\n"
    row = place.one("select outbox_id, payload, discarded_at is not null as gone, reason from sendonce.dead_letters")
    assert row == {"outbox_id": uuid, "payload": b"", "gone": True, "reason": "trigger: must be an object"}
    assert place.one("select action, subject, reason from sendonce.audit") == {
        "action": "dead_letter.discard", "subject": str(number), "reason": "it is mended",
    }  # fmt: skip
    assert run("list").output == "There are no dead letters.\n"
    assert "discarded before" in run("discard", str(number), *ANSWERS).output
    assert "what it held is gone" in run("requeue", str(number), *ANSWERS).output
    assert violations(place) == []


def test_they_are_listed_oldest_first_and_shown_without_what_they_hold(place: Place) -> None:
    first, uuid = buried(place, body("order:1") | {"trigger": []})
    second, _ = buried(place, body("order:2") | {"mailstream": "letters"})
    place.run("update sendonce.dead_letters set at = at - %s where id = %s", timedelta(hours=1), second)
    with place.database.transaction() as connection:
        bury_webhook(
            connection, place.vault, workspace_id=place.workspace, account_id=place.account, payload=b"ada@example.com",
            reason="no type",
        )  # fmt: skip
    listed = [line.split("\t") for line in run("list").output.splitlines()]
    assert [(line[0], line[2]) for line in listed[:2]] == [(str(second), "outbox"), (str(first), "outbox")]
    assert listed[2][2:] == ["webhook of main", "no type"]
    shown = run("show", str(first)).output
    assert f"outbox row\t{uuid}" in shown
    assert "trigger: must be an object" in shown
    everything = run("list").output + shown + run("show", listed[2][0]).output
    assert not {word for word in ("ada@", "Thank you", json.dumps(body("order:1"))) if word in everything}
    assert "only the provider can tell it again" in run("requeue", listed[2][0], *ANSWERS).output


def test_another_workspace_has_none_of_them(place: Place) -> None:
    number, _ = buried(place, body("order:1") | {"trigger": []})
    Place(place.database, name="other")
    for command in ("requeue", "discard"):
        told = run(command, str(number), *ANSWERS, "--workspace", "other")
        assert told.output == f"{number}\tThere is no dead letter of this number.\n"
    assert run("list", "--workspace", "other").output == "There are no dead letters.\n"
    assert place.one("select discarded_at from sendonce.dead_letters") == {"discarded_at": None}
