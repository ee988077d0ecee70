"""``sendonce migrate``."""

from __future__ import annotations

import os

import click

from dashboard.cli.options import example
from dashboard.settings import read_database_url


@click.command(epilog=example("DATABASE_URL=postgresql://sendonce@db.internal/sendonce sendonce migrate"))
@click.option("--wait", "wait_seconds", default=0.0, metavar="SECONDS", help="Wait for a database that is starting.")
def migrate(wait_seconds: float) -> None:
    """Bring the database to the newest schema.

    Needs DATABASE_URL only. Safe to repeat, and to run from several machines at once.
    """
    from dashboard.ledger import database

    url = read_database_url(os.environ)
    if wait_seconds:
        database.wait_until_reachable(url, seconds=wait_seconds)
    database.migrate(url)
    click.echo("The database has the newest schema.")
