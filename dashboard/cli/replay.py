"""``sendonce replay``: send again, under its own key, what every provider call was refused for."""

from __future__ import annotations

from uuid import UUID

import click

from dashboard.cli.ledger import answering, ledger
from dashboard.cli.options import example, user_option, workspace_option
from dashboard.ledger.access import find_workspace
from dashboard.ledger.holds import Refused
from dashboard.ledger.replay import replay_send


@click.command(
    epilog=example(
        "sendonce replay 5f0c…  --user ada --reason 'their domain is verified now' --dry-run",
        "sendonce replay 5f0c… 81aa… --user ada --reason 'their domain is verified now'",
    )
)
@click.argument("sends", metavar="SEND_ID…", nargs=-1, required=True, type=click.UUID)
@user_option
@click.option("--reason", required=True, help="Why; it stands in the trace and in the audit log.")
@click.option("--dry-run", is_flag=True, help="Only say what would become of each.")
@workspace_option
def replay(sends: tuple[UUID, ...], login: str, reason: str, dry_run: bool, workspace: str) -> int:
    """Make failed sends pending again, under their own keys.

    A send that was taken, stopped, or is on its way is left alone, and the line says why; so is one whose message is
    gone. Exit code 1 where one was left alone.
    """
    left_alone = 0
    for send_id in dict.fromkeys(sends):
        with ledger() as connection:
            workspace_id, user_id = find_workspace(connection, workspace), answering(connection, login)
            with connection.transaction(force_rollback=dry_run):
                result = replay_send(
                    connection, workspace_id=workspace_id, send_id=send_id, user_id=user_id, reason=reason
                )
        refused = isinstance(result, Refused)
        left_alone += refused
        told = (
            result.reason if isinstance(result, Refused) else "would be sent again" if dry_run else "is pending again"
        )
        click.echo(f"{send_id}  {told}")
    return 1 if left_alone else 0
