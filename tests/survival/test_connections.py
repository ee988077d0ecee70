"""Connections that break in the middle of a COMMIT: whether it was done nobody was told, and the worker finds out."""

from __future__ import annotations

import pytest

from dashboard.ledger.database import Database, NotCommitted
from dashboard.ledger.place import may_send
from dashboard.simulator import Simulator
from tests import crew
from tests.conftest import SOAK
from tests.crew import until
from tests.flow.town import Town
from tests.lanes import a_lane, point_at
from tests.place import Place
from tests.survival.ending import nothing_lost_nothing_twice, wait_for_rest
from tests.survival.proxy import Cut, Moment, Proxy

BATCHES = 30 if SOAK else 3
"""In each of them a commit of every step is cut."""

STEPS = {
    "relay": "delete from sendonce.outbox",
    "claim": "set state = 'claimed'",
    "start": "insert into sendonce.attempts",
    "finish": "set status = 'accepted', finished_at = now()",
}
"""Each step of the straight path, by words of a statement that only it runs."""


@pytest.mark.parametrize("moment", ["before", "after"])
def test_whatever_commit_a_connection_breaks_at_every_mail_goes_out_once(town: Town, moment: Moment) -> None:
    with Proxy(town.place.database.url) as proxy:
        town.worker(url=proxy.url, SENDONCE_IN_FLIGHT="20")
        sends = []
        for batch in range(BATCHES):
            proxy.cuts = [Cut(moment, words) for words in STEPS.values()]
            sends += town.enqueue([f"order:{batch}-{i}" for i in range(20)])
            assert wait_for_rest(town) == {"accepted": len(sends)}
            assert proxy.cuts == [], "every cut was made"
        town.end()
    nothing_lost_nothing_twice(town, sends)
    attempts = town.place.all("select status::text as status, count(*) as n from sendonce.attempts group by 1")
    of = {row["status"]: row["n"] for row in attempts}
    assert set(of) <= {"accepted", "abandoned"}, "no doubt stays: what was never written is known not to be"
    # A write-ahead whose answer was lost stands in the ledger; one that never arrived does not.
    assert ("abandoned" in of) == (moment == "after")


def test_a_lane_that_comes_by_a_connection_to_another_server_starts_nothing(place: Place, simulator: Simulator) -> None:
    """Another loop of its worker has met the trouble and connected anew, so that the lane itself has met none."""
    point_at(place, simulator)
    with place.database.transaction() as connection:
        assert may_send(connection, "production")
    send = crew.ask_one(place)
    place.run("update sendonce.settings set value = value || '{\"timeline\": \"00000099\"}' where name = 'place'")
    with a_lane(place) as lane:
        with pytest.raises(NotCommitted, match="not at home"):
            lane.go_round()
        assert (simulator.books, crew.attempts_of(place, send)) == ([], [])
        place.run("delete from sendonce.settings where name = 'place'")
        until(lambda: not lane.go_round())
    assert crew.attempts_of(place, send) == ["accepted"]


def test_a_connection_that_is_in_use_while_the_ledger_is_closed_is_closed_after_it(database_url: str) -> None:
    database = Database(database_url)
    with database.transaction() as connection:
        database.close()
        connection.execute("select")
    assert connection.closed
