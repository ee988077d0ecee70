"""The business asks at its pace, and goes on where it ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from dashboard.demo.business import BURST, Business, next_number
from dashboard.demo.company import set_up
from dashboard.demo.queue import Warehouse
from dashboard.ledger.database import Database
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import MailClass
from dashboard.producer.once import Ledger
from tests.place import KEYS

NOBODY_LISTENS = "http://127.0.0.1:1"


@dataclass
class Clock:
    """A clock that the test moves."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Town:
    """The company's ledger, and its business."""

    database: Database
    warehouse: Warehouse
    clock: Clock

    def business(self) -> Business:
        return Business(self.database, self.warehouse, seed=1, clock=self.clock)

    def asked(self) -> list[tuple[str, str]]:
        with self.database.transaction() as connection:
            return connection.execute(
                "select request ->> 'mailstream', request ->> 'key' from sendonce.outbox order by position"
            ).fetchall()

    def open_jobs(self) -> int:
        with self.database.transaction() as connection:
            row = connection.execute("select count(*) from sendonce.work where run_by = 'caller'").fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def town(database_url: str) -> Iterator[Town]:
    database, vault = Database(database_url), Vault(KEYS)
    with database.transaction() as connection:
        set_up(
            connection, vault, http_url=NOBODY_LISTENS, smtp_port=1, keys_honoured=True,
            graces=dict.fromkeys(MailClass, timedelta(seconds=5)), password=None,
        )  # fmt: skip
    settings = {"base_url": NOBODY_LISTENS, "api_key": "re_x"}
    warehouse = Warehouse(Ledger(database, vault), settings)
    yield Town(database, warehouse, Clock())
    warehouse.close()
    database.close()


def test_the_first_start_asks_for_a_burst_and_then_for_about_one_a_second(town: Town) -> None:
    business = town.business()
    for _ in range(BURST // 50):
        business.step()
    with town.database.transaction() as connection:
        assert next_number(connection) == BURST
    town.clock.now += 20  # what comes a little behind
    business.step()
    before = len({key for _, key in town.asked()})
    for _ in range(600):
        town.clock.now += 0.2
        business.step()
    business.close()
    assert 30 < len({key for _, key in town.asked()}) - before < 240, "in two minutes, at low or high tide"


def test_a_second_start_asks_for_nothing_again(town: Town) -> None:
    first = town.business()
    first.step()
    first.close()
    keys = town.asked()
    second = town.business()
    second.step()
    second.close()
    new = town.asked()[len(keys) :]
    assert new
    assert not set(new) & set(keys)


def test_a_job_that_could_not_be_acknowledged_is_delivered_again_after_a_new_start(town: Town) -> None:
    first = town.business()
    first.step()
    first.close()  # the provider was not there: nothing could leave
    assert town.open_jobs() == 2
    before = deliveries(town)
    second = town.business()
    second.step()
    second.close()
    assert deliveries(town) > before
    assert town.open_jobs() == 4, "those two, and two of the next emails"


def deliveries(town: Town) -> int:
    with town.database.transaction() as connection:
        row = connection.execute(
            "select count(*) from sendonce.duplicates where trigger_id in ('parcel_4', 'parcel_22')"
        ).fetchone()
    assert row is not None
    return int(row[0])
