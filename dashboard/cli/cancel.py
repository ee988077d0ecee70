"""``sendonce cancel``: nobody wants these sends any more."""

from __future__ import annotations

from uuid import UUID

import click

from dashboard.cli.ledger import answering, ledger
from dashboard.cli.options import example, user_option, workspace_option
from dashboard.ledger.access import find_workspace
from dashboard.ledger.cancelling import Cancelled, Remembered, cancel_send
from dashboard.ledger.standing import read_standing
from dashboard.lifecycle import State


@click.command(epilog=example("sendonce cancel 5f0c… --user ada --reason 'the order was cancelled'"))
@click.argument("sends", metavar="SEND_ID…", nargs=-1, required=True, type=click.UUID)
@user_option
@click.option("--reason", required=True, help="Why; it stands in the trace and in the audit log.")
@workspace_option
def cancel(sends: tuple[UUID, ...], login: str, reason: str, workspace: str) -> int:
    """Cancel open sends, so that they are not submitted any more.

    A call that is running cannot be called back: the cancel is remembered, and too late if the call is taken. What has
    come to another end is left alone, and the line says why. Safe to repeat. Exit code 1 where one was left alone.
    """
    left_alone = 0
    for send_id in dict.fromkeys(sends):
        with ledger() as connection:
            workspace_id, user_id = find_workspace(connection, workspace), answering(connection, login)
            outcome = cancel_send(
                connection, workspace_id=workspace_id, send_id=send_id, user_id=user_id, reason=reason
            )
            standing = read_standing(connection, workspace_id, send_id)
        match outcome:
            case Cancelled():
                told = "is cancelled"
            case Remembered():
                told = "is being submitted: too late if it is taken, else it becomes cancelled"
            case _ if standing is not None and standing.state is State.CANCELLED and reason.strip():
                told = "is cancelled already"
            case _:
                told = outcome.reason
                left_alone += 1
        click.echo(f"{send_id}  {told}")
    return 1 if left_alone else 0
