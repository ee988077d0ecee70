"""``sendonce cancel``: as the page and the API do it, one line a send."""

from __future__ import annotations

from uuid import uuid4

import pytest
from click.testing import CliRunner, Result

from dashboard.cli.cancel import cancel
from dashboard.ledger.database import Database
from tests.crew import Hand, ask_one, held, person, state_of
from tests.place import Place


@pytest.fixture
def place(ledger: Database) -> Place:
    place = Place(ledger)
    person(place)
    return place


def run(*arguments: str, reason: str = "the order was cancelled", login: str = "ada") -> Result:
    return CliRunner().invoke(
        cancel, ["--user", login, "--reason", reason, *arguments], standalone_mode=False, catch_exceptions=True
    )


def test_each_send_is_cancelled_remembered_or_left_alone_with_the_reason(place: Place) -> None:
    taken = ask_one(place, "order:1")
    Hand(place).send()
    calling = ask_one(place, "order:2")
    Hand(place).start()
    waiting, foreign = ask_one(place, "order:3"), uuid4()
    told = run(*map(str, (taken, calling, waiting, waiting, foreign)))
    assert told.output.splitlines() == [
        f"{taken}  Too late: the provider has taken it.",
        f"{calling}  is being submitted: too late if it is taken, else it becomes cancelled",
        f"{waiting}  is cancelled",
        f"{foreign}  There is no send of this id.",
    ]
    assert told.return_value == 1
    assert [state_of(place, send) for send in (taken, calling, waiting)] == ["accepted", "claimed", "cancelled"]
    rows = place.all("select subject, user_id, reason from sendonce.audit where action = 'cancel_send' order by id")
    assert [row["subject"] for row in rows] == [str(taken), str(calling), str(waiting)]
    assert {row["user_id"] for row in rows} == {person(place)}


def test_it_may_be_repeated(place: Place) -> None:
    send = ask_one(place)
    assert (run(str(send)).return_value, run(str(send)).output) == (0, f"{send}  is cancelled already\n")


def test_a_held_send_is_decided(place: Place) -> None:
    send, *_ = held(place)
    assert run(str(send)).return_value == 0
    assert place.one("select decision::text, reason from sendonce.decisions") == {
        "decision": "cancel", "reason": "the order was cancelled",
    }  # fmt: skip


def test_somebody_must_answer_for_it_with_a_reason(place: Place) -> None:
    send = ask_one(place)
    assert "Give a reason" in run(str(send), reason=" ").output
    assert "nobody has the login 'eve'" in str(run(str(send), login="eve").exception)
    assert state_of(place, send) == "pending"
