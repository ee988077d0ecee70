"""``sendonce held``: the rules of the pages, on the command line."""

from __future__ import annotations

import re
from uuid import UUID, uuid4

import pytest
from click.testing import CliRunner, Result

from dashboard.cli import Mistake
from dashboard.cli.held import held
from dashboard.ledger.database import Database
from tests.crew import held as make_held
from tests.crew import person, state_of, violations
from tests.place import Place

ANSWERS = ("--user", "ada", "--reason", "the sale is over")


@pytest.fixture
def place(ledger: Database) -> Place:
    place = Place(ledger)
    person(place)
    person(place, "bob")
    return place


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(held, list(arguments), input=given, standalone_mode=False)


def three(place: Place) -> list[UUID]:
    return [make_held(place, key)[0] for key in "abc"]


def test_they_are_listed_and_shown(place: Place) -> None:
    first, *_ = three(place)
    lines = [line.split("\t") for line in run("list", "--mailstream", "receipts").stdout.splitlines()]
    assert len(lines) == 3
    assert lines[0][0] == str(first)
    assert lines[0][2:] == ["receipts", "unconfirmed", "read_timeout"]
    assert run("list", "--failure", "reset").stdout == "No held send fits.\n"
    told = run("show", str(first)).stdout
    assert "may be decided\tresend, mark_accepted, cancel" in told
    assert "1 ended with read_timeout at resend: no earlier one was settled by evidence" in told


def test_all_that_fit_are_counted_asked_about_and_decided(place: Place) -> None:
    sends = three(place)
    told = run("decide", "cancel", "--all", "--mailstream", "receipts", *ANSWERS, given="n\n")
    assert "cancel: 3 held (receipts 3)" in told.output
    assert {state_of(place, send) for send in sends} == {"held"}
    told = run("decide", "cancel", "--all", *ANSWERS, given="y\n")
    assert told.return_value == 0
    assert sorted(told.stdout.splitlines()[-3:]) == sorted(f"{send}\tis decided" for send in sends)
    assert {state_of(place, send) for send in sends} == {"cancelled"}
    assert [row["stage"] for row in place.all("select stage::text from sendonce.proposals order by created_at")] == [
        "preview", "done",
    ]  # fmt: skip
    assert violations(place) == []


def test_single_ones_are_decided_and_others_left(place: Place) -> None:
    first, second, third = three(place)
    told = run("decide", "mark_accepted", str(first), str(second), "--yes", *ANSWERS)
    assert told.return_value == 0
    assert [state_of(place, send) for send in (first, second, third)] == ["accepted", "accepted", "held"]
    again = run("decide", "cancel", str(first), "--yes", *ANSWERS)
    assert isinstance(again.exception, Mistake)
    assert "is not held" in str(again.exception)


def test_a_second_person_agrees_or_declines(place: Place) -> None:
    place.run("update sendonce.workspaces set second_person_above = 1")
    sends = three(place)
    told = run("decide", "cancel", "--all", "--yes", *ANSWERS).stdout
    (number,) = re.findall(r"agree ([0-9a-f-]{36})", told)
    assert {state_of(place, send) for send in sends} == {"held"}
    assert "own second person" in str(run("agree", number, "--user", "ada").exception)
    assert run("agree", number, "--user", "bob").return_value == 0
    assert {state_of(place, send) for send in sends} == {"cancelled"}
    assert run("proposals").stdout.split("\t")[1:4] == ["done", "cancel", "3"]
    late = run("decline", number, "--user", "bob", "--reason", "no").exception
    assert "it is carried out" in str(late)


@pytest.mark.parametrize(
    "wrong", [("decide", "cancel"), ("decide", "cancel", str(uuid4()), "--all"), ("decide", "send", "--all")]
)
def test_wrong_usage_is_told(place: Place, wrong: tuple[str, ...]) -> None:
    told = run(*wrong, *ANSWERS)
    assert told.exception is not None
    assert place.count("proposals") == 0
