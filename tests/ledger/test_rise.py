"""A webhook is set up twice: what the worker rolls up lays the rise of duplicate claims at its door."""

from __future__ import annotations

from datetime import timedelta

from dashboard.insight.rise import PATTERNS, explain
from dashboard.insight.usual import rises, usual_bands
from dashboard.ledger.metrics import read_carriers, read_hours, read_series
from dashboard.worker.roll_up import roll_up
from tests.ledger.course import Ledger, now_of

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def test_the_endpoint_that_began_to_ask_again_is_named(ledger: Ledger) -> None:
    for number in range(40):
        ledger.ask(f"usual-{number}", type="order.paid", endpoint="/hooks/payments")
    ledger.ask("usual-0", type="order.paid", endpoint="/hooks/payments")
    rolled_up(ledger)
    ledger.age(120)
    for number in range(12):
        for endpoint in ("/hooks/payments", "/hooks/payments-2"):
            ledger.ask(f"later-{number}", type="order.paid", endpoint=endpoint)
    rolled_up(ledger)
    with ledger.step() as connection:
        now = now_of(connection).replace(second=0, microsecond=0) + MINUTE
        workspace = ledger.made.workspace
        history = read_hours(connection, workspace, now - 24 * HOUR, now - HOUR)
        series = read_series(connection, workspace, now - HOUR, now)
        (rise,) = rises(series.points, series.bucket, usual_bands(series.points, series.bucket, history))
        before = read_carriers(connection, workspace, rise.since - 24 * HOUR, rise.since)
        during = read_carriers(connection, workspace, rise.since, rise.until)
    found = explain(before, during)
    assert found is not None
    assert [(share.kind, share.value) for share in found.named] == [("endpoint", "/hooks/payments-2")]
    assert round(found.extra) == 12
    assert found.pattern == PATTERNS["webhook"]


def rolled_up(ledger: Ledger) -> None:
    with ledger.step() as connection:
        roll_up(connection)
