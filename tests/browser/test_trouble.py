"""Four troubles, one after the other, in a shop with real workers, provider and webhooks; and what people see of each.

Each shows on the overview, fires one alert, which is told once, and is laid at the right door. Only the waiting is cut
short: what would have to go on for minutes is made so much older.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from playwright.sync_api import Page, expect
from psycopg.types.json import Jsonb

from dashboard import __version__
from dashboard.ledger import access, alert_rules
from dashboard.ledger.alert_channels import add_channel, webhook_target
from dashboard.ledger.tables import ChannelKind, Role, Severity
from dashboard.simulator import Config, Simulator
from dashboard.worker.roll_up import roll_up
from tests.browser.conftest import Visit
from tests.crew import until
from tests.ear import Ear
from tests.ear import ear as ear
from tests.flow.town import Town, a_town
from tests.lanes import point_at
from tests.place import WEBHOOK_SECRET, Place
from tests.web.conftest import House

MINUTE = timedelta(minutes=1)
WATCHFUL = {
    "SENDONCE_ENVIRONMENT": "test", "SENDONCE_ALERT_SECONDS": "0.3", "SENDONCE_ALERT_PRIVATE_TARGETS": "yes",
}  # fmt: skip


@dataclass
class Shop:
    """A town with an operator who looks at the overview, and an ear that alerts go to."""

    town: Town
    window: Visit
    ear: Ear

    @property
    def page(self) -> Page:
        return self.window.page

    def ask(self, keys: Sequence[str], *, endpoint: str = "/hooks/payments", ago: timedelta = timedelta()) -> None:
        """A webhook of the shop asks for a receipt for each key."""
        with self.town.place.database.transaction() as connection:
            for key in keys:
                request = {
                    "workspace": "shop", "mailstream": "receipts", "key": key,
                    "recipient": {"id": f"of {key}", "address": "ada@example.test"},
                    "trigger": {"type": "order.paid", "id": f"evt {key}", "endpoint": endpoint},
                    "message": {"from": "shop@example.test", "subject": "Your receipt", "text": key},
                }  # fmt: skip
                connection.execute("select sendonce.enqueue(%s)", [Jsonb(request)])
            connection.execute("update sendonce.outbox set asked_at = asked_at - %s", [ago])

    def goes_on(self, rule: str) -> None:
        """What this rule sees has gone on for as long as it demands; then it fires."""
        until(lambda: self._rolled_up() and self._state(rule) in ("rising", "firing"), what=f"{rule} rises")
        self.town.place.run("update sendonce.alert_rules set since = since - hold_for where name = %s", rule)
        until(lambda: self._state(rule) == "firing", what=f"{rule} fires")
        until(lambda: self.told()["alert.fired", rule] > 0, what=f"{rule} is told")

    def _rolled_up(self) -> bool:
        """The worker does so too, but rests in between."""
        with self.town.place.database.transaction() as connection:
            roll_up(connection)
        return True

    def _state(self, rule: str) -> str:
        row = self.town.place.one("select state::text from sendonce.alert_rules where name = %s", rule)
        return str(row["state"])

    def unknown(self) -> int:
        """How many sends nobody knows the end of."""
        row = self.town.place.one("select count(*) from sendonce.work where state = 'unknown'")
        return int(row["count"])

    def silent_for(self, pid: int, by: timedelta) -> None:
        """A worker has not beaten for so much longer."""
        self.town.place.run(
            "update sendonce.workers set heartbeat_at = heartbeat_at - %s where name like %s", by, f"%:{pid}:%"
        )

    def told(self) -> Counter[tuple[str, str]]:
        """How often the ear heard what of which rule."""
        events: list[dict[str, Any]] = [json.loads(body) for _, body in self.ear.heard]
        return Counter((event["type"], event["data"]["rule"]) for event in events)

    def look(self) -> None:
        """Open the overview."""
        self.window.open("/overview?range=1h")

    def banner(self, text: str) -> None:
        """What the banner says."""
        expect(self.page.locator("#pulse")).to_contain_text(text)

    def tile(self, title: str, value: str | re.Pattern[str]) -> None:
        """What a tile says, and that it worries."""
        told = self.page.locator(".tile", has_text=title).locator("dd.worry")
        expect(told).to_have_text(value)

    def fired_once(self, rule: str) -> None:
        """On the page of alerts too."""
        self.window.open("/alerts")
        expect(self.page.locator("section[aria-labelledby=firing] tr", has_text=rule)).to_have_count(1)
        assert self.told()["alert.fired", rule] == 1


@pytest.fixture
def shop(house: House, visit: Callable[..., Visit], ear: Ear, tmp_path: Path) -> Iterator[Shop]:
    place = Place(house.database, name="shop")
    place.run("delete from sendonce.roles")
    with Simulator(Config()) as simulator, a_town(place, simulator, tmp_path / "workers.log") as town:
        point_at(place, simulator)
        with house.database.transaction() as connection:
            access.put_role(
                connection, user_id=house.people["operator"], workspace_id=place.workspace, role=Role.OPERATOR
            )
            alert_rules.add_defaults(connection, place.workspace)
            add_channel(
                connection, place.vault, workspace_id=place.workspace, name="on-call", kind=ChannelKind.WEBHOOK,
                target=webhook_target(ear.url), least_severity=Severity.WARNING, user_id=None,
            )  # fmt: skip
        window = visit()
        window.log_in("operator")
        url = f"{window.address}/webhooks/{place.account}"
        simulator.configure(webhooks={"url": url, "secret": WEBHOOK_SECRET, "delay_ms": 1.0})
        yield Shop(town, window, ear)


def test_each_trouble_shows_is_told_once_and_is_laid_at_the_right_door(shop: Shop) -> None:
    a_quiet_day(shop.town.place)
    worker = shop.town.worker(hasty=True, **WATCHFUL)

    # A webhook is configured twice.
    keys = [f"order:{i}" for i in range(40)]
    shop.ask(keys)
    shop.ask(keys, endpoint="/hooks/payments-2")
    shop.goes_on("duplicate-claims")
    shop.look()
    rise = shop.page.locator(".rise")
    expect(rise).to_contain_text("Duplicate claims rose from")
    expect(rise).to_contain_text(re.compile("endpoint /hooks/payments-2 carries [0-9]+ % of them, and carried none"))
    expect(rise).to_contain_text("look for a webhook that was changed or set up twice")
    shop.fired_once("duplicate-claims")

    # A provider accepts and times out.
    shop.town.simulator.configure(http={"accept_then_timeout": 1.0}, webhooks={"paused": True})
    shop.ask([f"unanswered:{i}" for i in range(25)])
    shop.goes_on("unanswered-attempts")
    until(lambda: shop.unknown() == 25, what="all are unknown")  # the banner is drawn again only after a while
    shop.look()
    shop.tile("Unknown now", "25")
    shop.banner("Account main: 25 of 65 attempts of the last 10 minutes were not answered.")
    shop.fired_once("unanswered-attempts")
    shop.town.simulator.configure(http={"accept_then_timeout": 0.0}, webhooks={"paused": False})
    shop.town.wait_for(accepted=65)

    # A worker dies with calls in flight, another one takes over.
    shop.town.simulator.hold_answers()
    shop.ask([f"orphaned:{i}" for i in range(3)])
    until(lambda: len(shop.town.simulator.books) == 68)
    shop.town.kill(worker)
    shop.town.simulator.release_answers()
    shop.town.worker(hasty=True, **WATCHFUL)
    shop.silent_for(worker.pid, MINUTE)
    shop.goes_on("worker-lost")
    shop.look()
    shop.banner(f":{worker.pid}:")
    shop.banner("without a word")
    shop.fired_once("worker-lost")
    shop.silent_for(worker.pid, 20 * MINUTE)

    # The relay is stuck: somebody builds an index on the ledger, which lets nobody write.
    with psycopg.connect(shop.town.place.database.url) as builder:
        builder.execute("lock table sendonce.sends in share mode")
        shop.ask(["stuck:1", "stuck:2"], ago=3 * MINUTE)
        shop.goes_on("outbox-stuck")
        shop.look()
        shop.tile("Outbox age", re.compile(r"^3\s+min"))
        shop.banner("The oldest request in the outbox has waited for more than a minute.")
        shop.fired_once("outbox-stuck")
        expect(shop.page.locator("section[aria-labelledby=checks] tr", has_text="Relay")).to_contain_text("stalled")
    shop.town.wait_for(accepted=70)
    assert set(shop.told().values()) == {1}, "nothing is told twice"
    assert shop.window.complaints == []


def a_quiet_day(place: Place) -> None:
    """A day in which one delivery in a hundred was a later one, all of them by one webhook."""
    place.run(
        "insert into sendonce.rollup_hours (workspace_id, mailstream, minute, recorded, duplicate)"
        " select %s, 'receipts', date_trunc('hour', now()) - h * interval '1 hour', 600, 6"
        " from generate_series(1, 26) h",
        place.workspace,
    )
    place.run(
        "insert into sendonce.carriers (workspace_id, mailstream, minute, source, trigger_type, endpoint, version,"
        " recorded, duplicate, in_progress, mismatch)"
        " select %s, 'receipts', date_trunc('minute', now()) - h * interval '1 hour', 'outbox', 'order.paid',"
        " '/hooks/payments', %s, 600, 6, 0, 0 from generate_series(1, 23) h",
        place.workspace,
        __version__,
    )
