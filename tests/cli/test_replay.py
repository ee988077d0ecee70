"""``sendonce replay``: a look first, then the deed, one line a send."""

from __future__ import annotations

from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from dashboard.cli.replay import replay
from dashboard.ledger.database import Database
from tests.crew import Hand, ask_one, person, state_of
from tests.place import Place


@pytest.fixture
def place(ledger: Database) -> Place:
    place = Place(ledger)
    person(place)
    return place


def run(*arguments: str) -> Result:
    return CliRunner().invoke(replay, ["--user", "ada", "--reason", "verified now", *arguments])


def failed(place: Place, key: str) -> UUID:
    send = ask_one(place, key)
    Hand(place).send("refused")
    return send


def test_a_dry_run_says_what_would_be_and_changes_nothing(place: Place) -> None:
    send, accepted = failed(place, "order:1"), ask_one(place, "order:2")
    Hand(place).send()
    told = run(str(send), str(accepted), "--dry-run")
    assert told.output == (
        f"{send}  would be sent again\n{accepted}  This send is accepted: only a failed one can be replayed.\n"
    )
    assert (state_of(place, send), place.count("audit")) == ("failed", 0)


def test_failed_sends_become_pending_and_the_others_are_left_alone_with_the_reason(place: Place) -> None:
    send, pending = failed(place, "order:1"), ask_one(place, "order:2")
    told = run(str(send), str(pending), str(send))
    assert told.output.splitlines() == [
        f"{send}  is pending again",
        f"{pending}  This send is open: it is on its way, or waits for a decision.",
    ]
    assert state_of(place, send) == "pending"


def test_somebody_must_answer_for_it(place: Place) -> None:
    send = failed(place, "order:1")
    told = CliRunner().invoke(replay, ["--user", "nobody", "--reason", "x", str(send)])
    assert (told.exit_code, state_of(place, send)) == (2, "failed")
    assert "nobody has the login 'nobody'" in told.output
