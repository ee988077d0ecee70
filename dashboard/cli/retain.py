"""``sendonce retain``: retention now, instead of when a worker comes to it."""

from __future__ import annotations

import os

import click

from dashboard.cli.ledger import ledger
from dashboard.cli.options import example, span, workspace_option
from dashboard.ledger import mail_replies
from dashboard.ledger.access import find_workspace
from dashboard.ledger.database import database_now
from dashboard.ledger.retention import CAP, count_retained, strip
from dashboard.ledger.vault import Vault
from dashboard.settings import read_settings


@click.command(epilog=example("sendonce retain --dry-run", "sendonce retain"))
@click.option("--dry-run", is_flag=True, help="Only count what would be stripped.")
@workspace_option
def retain(dry_run: bool, workspace: str) -> None:
    """Strip the sends whose mailstream keeps them no longer: sendonce stream set NAME --retain-for SPAN.

    What became of them stays, and their keys stay taken; their messages, addresses and keys cannot be brought back.
    --dry-run counts those of one workspace; without it, all workspaces are done.
    """
    if dry_run:
        with ledger() as connection:
            counted = count_retained(connection, find_workspace(connection, workspace))
        for row in counted:
            click.echo(
                f"{row.mailstream}\tkept for {span(row.retain_for)}\t{row.number}{'+' * (row.number == CAP)} to strip"
            )
        if not counted:
            click.echo("Every mailstream keeps everything: see sendonce stream set --retain-for.")
        return
    vault = Vault(read_settings(os.environ).encryption_keys)
    stripped = 0
    while True:
        with ledger() as connection:
            done = strip(connection, vault)
        if not done:
            break
        stripped += done
        click.echo(f"{stripped} stripped …", err=True)
    with ledger() as connection:
        while mail_replies.forget(connection, database_now(connection)):
            pass
    click.echo(f"{stripped} sends are tombstones now.")
