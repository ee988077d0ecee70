"""``sendonce suspects`` and ``sendonce audit``: the lists of the pages, as lines."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import click

from dashboard.cli.ledger import ledger
from dashboard.cli.options import example, workspace_option
from dashboard.identity import discreet
from dashboard.ledger.access import find_workspace
from dashboard.ledger.audit import Action, AuditFilter, list_entries
from dashboard.ledger.suspects import read_suspects


@click.command(epilog=example("sendonce suspects --limit 20"))
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1000), help="At most so many pairs.")
@workspace_option
def suspects(limit: int, workspace: str) -> int:
    """The same content to the same recipient under two keys: what, recipient, first and second send, their keys.

    Exit code 1 where there are any.
    """
    with ledger() as connection:
        found = read_suspects(connection, find_workspace(connection, workspace), limit=limit)
    for one in found:
        first, second = one.earlier, one.later
        click.echo(
            "\t".join((one.why, one.recipient_id, str(first.send_id), str(second.send_id), first.key, second.key))
        )
    if not found:
        click.echo("No email seems to have been asked for twice.")
    return 1 if found else 0


@click.command(epilog=example("sendonce audit --who ada --since 2026-11-30"))
@click.option("--action", type=click.Choice(sorted(one.value for one in Action)), help="Only this.")
@click.option("--who", metavar="NAME", help="Only of this login or token.")
@click.option("--subject", metavar="TEXT", help="Only to this: a send id, a mailstream, an account, a login, ….")
@click.option("--since", type=click.DateTime(), help="From then on, UTC.")
@click.option("--until", type=click.DateTime(), help="Until before then, UTC.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 10_000), help="At most so many.")
@workspace_option
def audit(
    action: str | None, who: str | None, subject: str | None, since: datetime | None, until: datetime | None,
    limit: int, workspace: str,
) -> None:  # fmt: skip
    """What people and programs did, the newest first: number, time, who, what, to what, why, more."""
    filters = AuditFilter(action=action, who=who, subject=subject, since=_utc(since), until=_utc(until))
    with ledger() as connection:
        found = list_entries(connection, find_workspace(connection, workspace), filters=filters, limit=limit)
    for one in found:
        detail = json.dumps(one.detail) if one.detail else ""
        at = f"{one.at:%Y-%m-%d %H:%M:%S}Z"
        click.echo(
            "\t".join((str(one.id), at, one.who or "-", one.action, one.subject, discreet(one.reason or ""), detail))
        )
    if not found:
        click.echo("No entry fits.")


def _utc(at: datetime | None) -> datetime | None:
    return at and at.replace(tzinfo=UTC)
