"""``sendonce rollups`` and ``sendonce marker``: the figures of the charts, and what is marked in them."""

from __future__ import annotations

from click.testing import CliRunner, Result

from dashboard.cli.markers import marker
from dashboard.cli.rollups import rollups
from dashboard.ledger.database import Database
from tests.crew import ask_one
from tests.place import Place


def mark(*arguments: str) -> Result:
    return CliRunner().invoke(marker, arguments, standalone_mode=False)


def test_a_rebuild_counts_what_nobody_has_counted_and_may_be_repeated(ledger: Database) -> None:
    place = Place(ledger)
    ask_one(place, "order:1")
    place.run("delete from sendonce.dirty")
    for _ in range(2):
        told = CliRunner().invoke(rollups, ["rebuild", "--limit", "1"], standalone_mode=False)
        assert told.output.splitlines()[-1] == "Everything is counted again."
        assert place.one("select sum(recorded)::int as n from sendonce.rollups") == {"n": 1}
        assert place.one("select sum(recorded)::int as n from sendonce.rollup_hours") == {"n": 1}


def test_a_marker_is_listed_with_its_time(ledger: Database) -> None:
    Place(ledger)
    assert mark("list").output == "There are no markers.\n"
    told = mark("add", "deploy", "shop 4.2", "--at", "2026-11-30T14:00:00+02:00")
    assert told.output.endswith("stands in the charts.\n")
    (line,) = mark("list", "--days", "3650").output.splitlines()
    assert line.split("\t")[1:] == ["2026-11-30 12:00:00Z", "deploy", "shop 4.2", "-"]


def test_a_marker_that_cannot_be_taken_says_why(ledger: Database) -> None:
    Place(ledger)
    assert "title: is needed" in str(mark("add", "deploy", "  ").exception)
    assert "give a time with a zone" in str(mark("add", "deploy", "x", "--at", "noon").exception)
    assert "more than a day ahead" in str(mark("add", "deploy", "x", "--at", "2126-01-01T00:00:00Z").exception)
