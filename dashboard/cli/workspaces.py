"""``sendonce workspace``: the tenants of an installation."""

from __future__ import annotations

import click

from dashboard.cli.ledger import ledger
from dashboard.cli.options import example
from dashboard.ledger import access, audit


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
        audit.record(connection, audit.Action.ADD_WORKSPACE, workspace_id=workspace_id, subject=name)
    click.echo(f"The workspace {name} is there.")


@workspace.command("set", epilog=example("sendonce workspace set default --second-person-above 20"))
@click.argument("name")
@click.option(
    "--second-person-above",
    "above",
    type=click.IntRange(0),
    metavar="NUMBER",
    help="Deciding more held sends than these at once needs a second person.",
)
@click.option("--no-second-person", "never", is_flag=True, help="No number of them does.")
def set_workspace(name: str, above: int | None, never: bool) -> None:
    """Change how a workspace decides."""
    if (above is None) != never:
        raise click.UsageError("give either --second-person-above or --no-second-person")
    with ledger() as connection:
        workspace_id = access.find_workspace(connection, name)
        access.set_second_person(connection, workspace_id, above=above)
        audit.record(
            connection,
            audit.Action.SET_WORKSPACE,
            workspace_id=workspace_id,
            subject=name,
            detail={"second_person_above": "never" if above is None else above},
        )
    click.echo(f"The workspace {name} is changed.")


@workspace.command("list", epilog=example("sendonce workspace list"))
def list_workspaces() -> None:
    """All workspaces, by name."""
    with ledger() as connection:
        for name, title in access.list_workspaces(connection):
            click.echo(f"{name}\t{title}")
