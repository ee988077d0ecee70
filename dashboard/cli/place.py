"""``sendonce place``: where the ledger is, and what to do after it was restored, cloned or failed over."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from uuid import UUID

import click

from dashboard.cli import Mistake
from dashboard.cli.options import example
from dashboard.ledger import place as places
from dashboard.ledger import standby
from dashboard.ledger.access import find_person
from dashboard.ledger.database import Connection, Database
from dashboard.settings import Settings, read_settings


@click.group(invoke_without_command=True, epilog=example("sendonce place"))
@click.pass_context
def place(context: click.Context) -> int | None:
    """Show where the ledger is, and whether it sends. Exit code 1 where sending is off.

    A ledger that finds itself under another environment name, on another server or timeline does not send, since what
    it calls pending may have been sent elsewhere.
    """
    if context.invoked_subcommand is not None:
        return None
    settings = read_settings(os.environ)
    with _ledger(settings) as connection:
        return _show(connection, settings.environment)


@place.command(epilog=example("sendonce place adopt --user ada --reason 'restored from last night, see incident 12'"))
@click.option("--user", "login", required=True, metavar="LOGIN", help="Who answers for it.")
@click.option("--reason", required=True, help="Why; it stands in the audit log.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def adopt(login: str, reason: str, yes: bool) -> int | None:
    """Take the present place for the ledger's own, hold what is unsettled from before, and send again.

    Shows first how many sends will be held; each of them then waits for a person's decision.
    """
    settings = read_settings(os.environ)
    with _ledger(settings) as connection:
        places.check_place(connection, settings.environment)
        if _show(connection, settings.environment) == 0:
            return 0
    if not yes:
        click.confirm("Adopt this place?", abort=True)
    with _ledger(settings) as connection:
        person = _person(connection, login)
        held = places.adopt_place(connection, settings.environment, user_id=person, reason=reason)
    click.echo(f"Adopted. {held} sends are held; sending is on.")
    return None


@place.command("standby", epilog=example("sendonce place standby db2 --user ada --reason 'failover by itself'"))
@click.argument("name")
@click.option("--user", "login", required=True, metavar="LOGIN", help="Who answers for it.")
@click.option("--reason", required=True, help="Why; it stands in the audit log.")
def declare_standby(name: str, login: str, reason: str) -> None:
    """Let the synchronous standby NAME (its cluster_name) go on sending by itself after a failover.

    It must be in force now. From then on nothing is confirmed that it does not have, and nothing is sent while it is
    away.
    """
    with _ledger(read_settings(os.environ)) as connection:
        standby.declare(connection, name, user_id=_person(connection, login), reason=reason)
    click.echo(f"Declared. When {name} is promoted, it sends without being asked, and needs a declaration anew.")


@place.command("no-standby", epilog=example("sendonce place no-standby --user ada --reason 'db2 is being replaced'"))
@click.option("--user", "login", required=True, metavar="LOGIN", help="Who answers for it.")
@click.option("--reason", required=True, help="Why; it stands in the audit log.")
def withdraw_standby(login: str, reason: str) -> None:
    """Withdraw the declaration. Do it before the standby is taken away, or synchronous_standby_names changed.

    Where the standby is lost already, that is possible only some minutes later; be sure that it was not promoted.
    """
    with _ledger(read_settings(os.environ)) as connection:
        name = standby.withdraw(connection, user_id=_person(connection, login), reason=reason)
    click.echo(f"Withdrawn. When {name} is promoted, sending is off until a person adopts the place.")


def _person(connection: Connection, login: str) -> UUID:
    person = find_person(connection, login)
    if person is None:
        raise Mistake(f"nobody has the login {login!r}; see: sendonce user list")
    return person.id


def _show(connection: Connection, environment: str) -> int:
    here, remembered = places.read_place(connection, environment), places.remembered_place(connection)
    for field in fields(here):
        click.echo(f"{field.name.replace('_', ' ') + ':':20}{getattr(here, field.name) or 'unknown'}")
    for name in here.unknown:
        click.echo(f"The {name} is not compared: the database role may not ask for it.")
    if declared := standby.declared(connection):
        told = "in force" if declared.in_force else "not in force"
        click.echo(f"{'standby:':20}{declared.name}, {told}, last seen so at {declared.seen_at:%Y-%m-%d %H:%M:%S} UTC")
    if remembered is None:
        click.echo("No worker has started on this ledger yet; the first one writes its place down.")
        return 0
    off, moved = places.sending_off(connection), places.differences(remembered, here)
    if off is None:
        click.echo(f"Sending goes off with the next look of a worker. {' '.join(moved)}" if moved else "Sending is on.")
        return 1 if moved else 0
    click.echo(f"Sending is off since {off.since:%Y-%m-%d %H:%M:%S} UTC. {off.reason}")
    before = places.count_from_before(connection, off.since)
    click.echo(
        f"Unsettled from before: {before.pending} pending, {before.claimed} claimed, {before.unknown} unknown,"
        f" {before.held} held; {before.in_doubt} of them have an attempt that may have been taken."
    )
    if before.outbox:
        click.echo(f"{before.outbox} requests from before wait in the outbox; a worker must relay them first.")
    click.echo(f"Adopting the place will hold {before.to_hold} sends: sendonce place adopt --user LOGIN --reason …")
    return 1


@contextmanager
def _ledger(settings: Settings) -> Iterator[Connection]:
    database = Database(settings.database_url, pool_size=1, application_name="sendonce place")
    try:
        with database.transaction() as connection:
            yield connection
    except (places.CannotAdopt, standby.NotInForce) as refusal:
        raise Mistake(str(refusal)) from None
    finally:
        database.close()
