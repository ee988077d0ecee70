"""``sendonce rollups``: the figures behind the charts."""

from __future__ import annotations

import time

import click

from dashboard.cli.ledger import ledger
from dashboard.cli.options import example
from dashboard.ledger import rollups as ledger_rollups

PAUSE = 0.5
"""Seconds to wait while a worker rolls up."""


@click.group(epilog=example("sendonce rollups rebuild"))
def rollups() -> None:
    """The figures behind the charts: counts of each minute and hour."""


@rollups.command(epilog=example("sendonce rollups rebuild"))
@click.option("--limit", default=5_000, show_default=True, type=click.IntRange(1, 100_000), help="Minutes at once.")
def rebuild(limit: int) -> None:
    """Count everything again from the ledger, of all workspaces. Nothing changes where nothing was amiss.

    Reads the ledger whole. Workers may go on meanwhile, and help; safe to interrupt: what is marked by then is counted
    by them. What was measured at its moment, the outbox age and the sends unknown at once, stays as it was.
    """
    with ledger() as connection:
        last = ledger_rollups.mark_all(connection)
        left = ledger_rollups.count_marks(connection, last)
    while left:
        click.echo(f"{left} marks left …", err=True)
        with ledger() as connection:
            taken = ledger_rollups.roll_up(connection, limit=limit)
            left = ledger_rollups.count_marks(connection, last)
        if left and not taken:
            time.sleep(PAUSE)
    click.echo("Everything is counted again.")
