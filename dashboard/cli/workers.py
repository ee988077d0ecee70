"""``sendonce workers``: which workers run, and asking one to end."""

from __future__ import annotations

from uuid import UUID

import click

from dashboard.cli import Mistake
from dashboard.cli.ledger import answering, ledger
from dashboard.cli.options import example, user_option, workspace_option
from dashboard.ledger.access import find_workspace
from dashboard.ledger.holds import Refused
from dashboard.ledger.metrics import read_workers
from dashboard.ledger.workers import drain as ask_to_drain


@click.group(epilog=example("sendonce workers list", "sendonce workers drain 0b6e… --user ada --reason 'new version'"))
def workers() -> None:
    """Which workers run, and asking one to end. (``sendonce worker`` starts one.)"""


@workers.command("list", epilog=example("sendonce workers list"))
def list_() -> None:
    """The workers of the last day: id, state, name, version, calls in flight, last beat, loops."""
    with ledger() as connection:
        found = read_workers(connection)
    for one in found:
        beat = f"{one.heartbeat_at:%Y-%m-%d %H:%M:%S}Z"
        click.echo(
            "\t".join((str(one.id), one.state, one.name, one.version, str(one.in_flight), beat, ",".join(one.loops)))
        )
    if not found:
        click.echo("No worker has run in the last day.")


@workers.command("drain", epilog=example("sendonce workers drain 0b6e… --user ada --reason 'new version'"))
@click.argument("worker_id", metavar="WORKER", type=click.UUID)
@user_option
@click.option("--reason", required=True, help="Why; it stands in the audit log.")
@workspace_option
def drain(worker_id: UUID, login: str, reason: str, workspace: str) -> None:
    """Ask a worker to finish what it has in flight, give the rest back, and end. It obeys with its next heartbeat."""
    with ledger() as connection:
        outcome = ask_to_drain(
            connection, workspace_id=find_workspace(connection, workspace), worker_id=worker_id,
            user_id=answering(connection, login), reason=reason,
        )  # fmt: skip
    if isinstance(outcome, Refused):
        raise Mistake(f"{outcome.reason} See: sendonce workers list")
    click.echo(f"{outcome.name} finishes what it has in flight, and ends.")
