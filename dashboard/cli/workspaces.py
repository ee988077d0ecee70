"""``sendonce workspace``: the tenants of an installation."""

from __future__ import annotations

import click

from dashboard.cli.ledger import ledger
from dashboard.cli.options import example
from dashboard.ledger import access, audit
from dashboard.ledger.alert_rules import add_defaults


@click.group(epilog=example("sendonce workspace add default --title 'Lovelace & Co.'"))
def workspace() -> None:
    """Workspaces: each has its own mailstreams, accounts, people, tokens and suppressions."""


@workspace.command("add", epilog=example("sendonce workspace add default --title 'Lovelace & Co.'"))
@click.argument("name")
@click.option("--title", default="", help="What people read; the name where it is not given.")
def add_workspace(name: str, title: str) -> None:
    """Make a workspace. Commands and producers that name none mean the one called default."""
    with ledger() as connection:
        workspace_id = access.add_workspace(connection, name=name, title=title)
        add_defaults(connection, workspace_id)
        audit.record(connection, audit.Action.ADD_WORKSPACE, workspace_id=workspace_id, subject=name)
    click.echo(f"The workspace {name} is there.")


@workspace.command("list", epilog=example("sendonce workspace list"))
def list_workspaces() -> None:
    """All workspaces, by name."""
    with ledger() as connection:
        for name, title in access.list_workspaces(connection):
            click.echo(f"{name}\t{title}")
