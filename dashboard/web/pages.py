"""What every page shows around its own content: who is here, where one may go, and how the ledger is doing."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from flask import Flask, g

from dashboard.insight.health import Health, banner, judge_health, named_checks
from dashboard.ledger.accounts import list_accounts
from dashboard.ledger.metrics import read_gauges, read_hearing, read_workers
from dashboard.ledger.tables import Right, Role
from dashboard.web.permissions import may, may_at_home
from dashboard.web.state import database, here, home


@dataclass(frozen=True, slots=True)
class Place:
    """An entry of the navigation."""

    endpoint: str
    title: str
    needs: Role
    also: tuple[str, ...] = ()
    """Further blueprints whose pages belong to it."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The blueprints of its pages."""
        return (self.endpoint.split(".")[0], *self.also)


PLACES = (
    Place("investigate.home", "Investigate", Role.SUPPORT),
    Place("sends.listing", "Sends", Role.SUPPORT),
    Place("held.queue", "Held", Role.OPERATOR, ("proposals",)),
    Place("overview.page", "Overview", Role.SUPPORT),
    Place("operations.page", "Operations", Role.OPERATOR, ("accounts", "dead_letters", "suspects")),
    Place("alerts.page", "Alerts", Role.OPERATOR),
    Place("audit.log", "Audit", Role.ADMIN),
)


def install(app: Flask) -> None:
    """Give the layout its data."""
    app.context_processor(_around)


class Pulse:
    """How this workspace is doing, and how many sends wait for a person: read once a page, and only where shown."""

    @cached_property
    def _read(self) -> tuple[Health, int]:
        with database().transaction(durable=False) as connection:
            gauges = read_gauges(connection, home().workspace_id)
            workers = read_workers(connection)
            checks = named_checks(
                gauges, workers, list_accounts(connection, home().workspace_id),
                read_hearing(connection, home().workspace_id),
            )  # fmt: skip
            return banner(judge_health(gauges, workers), checks, workers), gauges.held

    @property
    def health(self) -> Health:
        """What the banner says."""
        return self._read[0]

    @property
    def held(self) -> int:
        """The number beside *Held*."""
        return self._read[1]


def _around() -> dict[str, Any]:
    if g.get("membership") is None:
        return {"person": None, "places": (), "may": may, "Role": Role, "Right": Right}
    return {
        "person": g.person,
        "membership": home(),
        "elsewhere": here() if here() != home() else None,
        "places": [place for place in PLACES if may_at_home(place.needs)],
        "may": may,
        "Role": Role,
        "Right": Right,
        "pulse": Pulse(),
    }
