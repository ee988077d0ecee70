"""``sendonce marker``: deploys and incidents, drawn into the charts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click

from dashboard.cli import Mistake
from dashboard.cli.ledger import answering, ledger
from dashboard.cli.options import example, workspace_option
from dashboard.ledger.access import find_workspace
from dashboard.ledger.database import database_now
from dashboard.ledger.markers import AHEAD, Kind, add_marker, list_markers
from dashboard.ledger.requests import BadRequest


@click.group(epilog=example("sendonce marker add deploy 'shop 4.2'"))
def marker() -> None:
    """Deploys and incidents, drawn into the charts beside what came of them."""


@marker.command(epilog=example("sendonce marker add deploy 'shop 4.2'"))
@click.argument("kind", type=click.Choice([kind.value for kind in Kind]))
@click.argument("title")
@click.option("--at", metavar="TIME", help="When it was, such as 2026-11-30T09:00:00Z; now if it is left out.")
@click.option("--user", "login", metavar="LOGIN", help="Who marks it; a script may leave it out.")
@workspace_option
def add(kind: str, title: str, at: str | None, login: str | None, workspace: str) -> None:
    """Mark a moment."""
    try:
        with ledger() as connection:
            number = add_marker(
                connection, workspace_id=find_workspace(connection, workspace), kind=kind, title=title,
                at=None if at is None else _moment(at), user_id=answering(connection, login) if login else None,
            )  # fmt: skip
    except BadRequest as error:
        raise Mistake(f"the {error}") from None
    click.echo(f"Marker {number} stands in the charts.")


@marker.command("list", epilog=example("sendonce marker list --days 30"))
@click.option("--days", default=7, show_default=True, type=click.IntRange(1, 3650), help="So far back.")
@workspace_option
def list_(days: int, workspace: str) -> None:
    """The newest first: number, time, kind, title, who."""
    with ledger() as connection:
        now = database_now(connection)
        found = list_markers(
            connection, find_workspace(connection, workspace), now - timedelta(days=days), now + 2 * AHEAD
        )
    for one in found:
        click.echo(f"{one.id}\t{one.at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z\t{one.kind}\t{one.title}\t{one.who or '-'}")
    if not found:
        click.echo("There are no markers.")


def _moment(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
        if at.tzinfo is None:
            raise ValueError
        return at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Mistake("--at: give a time with a zone, such as 2026-11-30T09:00:00Z") from None
