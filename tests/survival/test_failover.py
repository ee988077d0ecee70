"""The primary dies under load, its synchronous standby is promoted: nothing committed is lost, nothing sent twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from dashboard.cli import run as run_command
from dashboard.ledger import place as places
from dashboard.ledger import standby
from dashboard.ledger.database import Database, NotCommitted, migrate
from dashboard.ledger.standby import NotInForce
from tests.conftest import SOAK
from tests.crew import person
from tests.flow.town import Town
from tests.place import Place
from tests.survival.ending import nothing_lost_nothing_twice, wait_for_rest
from tests.survival.pair import Pair, pair

FAILOVERS = 5 if SOAK else 1
LOAD = 50
"""So many more mails are taken before and after each failover."""


@pytest.fixture
def servers() -> Iterator[Pair]:
    with pair() as servers:
        migrate(servers.address("one"))
        yield servers


@pytest.fixture
def place(servers: Pair) -> Iterator[Place]:
    database = Database(servers.url)
    yield Place(database)
    database.close()


def declare(town: Town, servers: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the command, as a person does."""
    monkeypatch.setenv("DATABASE_URL", servers.url)
    monkeypatch.setenv("SENDONCE_SECRET_KEY", "s" * 40)
    monkeypatch.setenv("SENDONCE_ENCRYPTION_KEYS", "k1:a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s=")
    person(town.place, "ada")
    command = ["place", "standby", servers.standby, "--user", "ada", "--reason", "it may go on by itself"]
    assert run_command(command) == 0


class Business(threading.Thread):
    """Asks for one send after the other, each until its commit is answered, whatever happens to the database."""

    def __init__(self, town: Town) -> None:
        super().__init__(daemon=True)
        self._town = town
        self._closing = threading.Event()
        self.asked: list[UUID] = []
        self.start()

    def run(self) -> None:
        """Ask until the business closes."""
        while not self._closing.wait(0.01):
            key = f"order:{len(self.asked)}"
            with suppress(psycopg.Error, NotCommitted):  # then it is asked again, under the same key
                self.asked += self._town.enqueue([key])

    def close(self) -> None:
        """No further order is taken."""
        self._closing.set()
        self.join()


def test_the_declared_standby_goes_on_by_itself(town: Town, servers: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    town.simulator.configure(http={"slow": 1.0}, slow_ms=40)
    for _ in range(2):
        town.worker(url=servers.url)
    business = Business(town)
    for failover in range(1, FAILOVERS + 1):
        servers.join()
        declare(town, servers, monkeypatch)
        taken = len(town.simulator.books)
        assert town.simulator.wait_taken(taken + LOAD, timeout=60), town.log.read_text()[-3000:]
        servers.kill_primary()
        servers.promote()
        taken = len(town.simulator.books)
        assert town.simulator.wait_taken(taken + LOAD, timeout=60), town.log.read_text()[-3000:]
        carried_on = "select count(distinct detail) as n from sendonce.audit where action = 'carry_on'"
        assert town.place.one(carried_on)["n"] == failover
        assert "standby" not in settings_of(town), "the next one needs a declaration of its own"
    business.close()
    assert wait_for_rest(town, seconds=60) == {"accepted": len(business.asked)}
    nothing_lost_nothing_twice(town, business.asked)


def settings_of(town: Town) -> dict[str, object]:
    """What the ledger knows of itself."""
    return {row["name"]: row["value"] for row in town.place.all("select name, value from sendonce.settings")}


def test_a_standby_that_is_not_in_force_is_no_proof_of_anything(servers: Pair, place: Place) -> None:
    servers.join(synchronous=False)
    servers.wait_for("two")
    assert sends(place), "the place is written down"
    ada = person(place)
    with (
        pytest.raises(NotInForce, match="no synchronous standby 'two' is in force"),
        place.database.transaction() as connection,
    ):
        standby.declare(connection, "two", user_id=ada, reason="it only follows")
    servers.be_synchronous()
    with (
        pytest.raises(NotInForce, match="'one' is the cluster_name of this server itself"),
        place.database.transaction() as connection,
    ):
        standby.declare(connection, "one", user_id=ada, reason="a slip")
    with place.database.transaction() as connection:
        standby.declare(connection, "two", user_id=ada, reason="it may go on by itself")
    assert sends(place)

    # It goes away, and somebody lets the server go on alone: the server confirms, and we do not.
    servers.stop_standby()
    servers.set_names("")
    with pytest.raises(NotCommitted, match="the declared standby does not have it"):
        place.run("insert into sendonce.workspaces (name) values ('unconfirmed')")
    assert not sends(place)
    with (
        pytest.raises(NotInForce, match="the standby 'two' cannot be told now"),
        place.database.transaction() as connection,
    ):
        standby.withdraw(connection, user_id=ada, reason="it is gone")

    # Until it would not go on by itself any more: then a person may say that it was not promoted.
    with psycopg.connect(servers.address("one")) as beside:
        beside.execute(
            "update sendonce.settings set changed_at = now() - interval '361 seconds' where name = 'standby'"
        )
    assert not sends(place)
    with place.database.transaction() as connection:
        assert standby.withdraw(connection, user_id=ada, reason="it is gone") == "two"
    assert sends(place)
    place.run("insert into sendonce.workspaces (name) values ('confirmed')")

    # It is back, and declared again; then it is started anew, and might be anybody's copy.
    servers.start_standby()
    servers.be_synchronous()
    with place.database.transaction() as connection:
        standby.declare(connection, "two", user_id=ada, reason="it may go on by itself")
    assert sends(place)
    with place.database.transaction() as connection:
        seen = standby.declared(connection)
    assert seen is not None
    assert (seen.name, seen.in_force, seen.lapsed) == ("two", True, False)
    servers.stop_standby()
    servers.start_standby()
    servers.wait_for("two")
    servers.kill_primary()
    servers.promote()
    with psycopg.connect(servers.address("two")) as connection:
        variants = {
            "seen since it started": ("two", True, "0 seconds", True),
            "another name": ("three", True, "0 seconds", False),
            "not in force when last seen": ("two", False, "0 seconds", False),
            "seen too long ago": ("two", True, "301 seconds", False),
        }
        for what, (name, in_force, ago, survived) in variants.items():
            with connection.transaction(force_rollback=True):
                connection.execute(
                    "update sendonce.settings set value = %s, changed_at = clock_timestamp() - %s::interval"
                    " where name = 'standby'",
                    (Jsonb({"name": name, "in_force": in_force}), ago),
                )
                assert standby.survived(connection) == survived, what
        assert not standby.survived(connection), "last seen before it was started anew"
    assert not sends(place)
    with place.database.transaction() as connection:
        off = places.sending_off(connection)
    assert off is not None
    assert off.reason == "The timeline is 00000002, and was 00000001."
    with place.database.transaction() as connection:
        places.adopt_place(connection, "production", user_id=ada, reason="the old one is gone")
        assert standby.declared(connection) is None
    assert sends(place)


def sends(place: Place) -> bool:
    """A worker's look at the place: whether it may send."""
    with place.database.transaction(durable=False) as connection:
        return places.may_send(connection, "production")
