"""``sendonce workspace``: the tenants of an installation."""

from __future__ import annotations

import click

from dashboard.cli.ledger import answering_if_named, ledger
from dashboard.cli.options import example, maybe_user_option, workspace_option
from dashboard.ledger import access, audit, notes, streams
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


@workspace.command("pause", epilog=example("sendonce workspace pause --reason 'wrong prices went out' --user ada"))
@click.option("--reason", required=True, help="Stands in every trace that waits for it.")
@maybe_user_option
@workspace_option
def pause_workspace(reason: str, login: str | None, workspace: str) -> None:
    """Stop all sending of a workspace until it is resumed. What is under way runs to its end."""
    with ledger() as connection:
        streams.pause_workspace(
            connection, workspace_id=access.find_workspace(connection, workspace), reason=reason,
            user_id=answering_if_named(connection, login),
        )  # fmt: skip
    click.echo(f"All sending of {workspace} is paused.")


@workspace.command("resume", epilog=example("sendonce workspace resume --user ada"))
@click.option("--reason", help="Stands in the audit log.")
@maybe_user_option
@workspace_option
def resume_workspace(reason: str | None, login: str | None, workspace: str) -> None:
    """End a pause of a workspace; what waits leaves at once."""
    with ledger() as connection:
        streams.resume_workspace(
            connection, workspace_id=access.find_workspace(connection, workspace), reason=reason,
            user_id=answering_if_named(connection, login),
        )  # fmt: skip
    click.echo(f"{workspace} is active.")


@workspace.command(
    "set",
    epilog=example(
        "sendonce workspace set --ticket-url 'https://desk.example.com/tickets/{ticket}'",
        "sendonce workspace set --second-person-above 20",
    ),
)
@click.option("--ticket-url", help="Where a ticket is, with {ticket} for its number; empty: nowhere.")
@click.option(
    "--second-person-above",
    "above",
    type=click.IntRange(0),
    metavar="NUMBER",
    help="Deciding more held sends than these at once needs a second person.",
)
@click.option("--no-second-person", "never", is_flag=True, help="No number of them does.")
@workspace_option
def set_workspace(ticket_url: str | None, above: int | None, never: bool, workspace: str) -> None:
    """Change a workspace: where the tickets are whose numbers agents keep with sends, and when two people decide."""
    if above is not None and never:
        raise click.UsageError("give either --second-person-above or --no-second-person")
    if ticket_url is None and above is None and not never:
        raise click.UsageError("say what to change")
    with ledger() as connection:
        workspace_id = access.find_workspace(connection, workspace)
        detail: dict[str, object] = {}
        if ticket_url is not None:
            notes.set_ticket_url(connection, workspace_id, ticket_url or None)
            detail["ticket_url"] = ticket_url
        if above is not None or never:
            access.set_second_person(connection, workspace_id, above=above)
            detail["second_person_above"] = "never" if above is None else above
        audit.record(
            connection, audit.Action.SET_WORKSPACE, workspace_id=workspace_id, subject=workspace, detail=detail
        )
    if ticket_url is not None:
        click.echo(f"Tickets of {workspace} are at {ticket_url}." if ticket_url else "Tickets are no links any more.")
    if above is not None or never:
        click.echo("One person decides, however many." if never else f"Above {above} sends two people decide.")
