"""``sendonce dead-letters``: what could not be taken. What it holds is never shown: it may be anybody's mail."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

import click

from dashboard.cli import Mistake
from dashboard.cli.ledger import answering, ledger
from dashboard.cli.options import example, user_option, workspace_option
from dashboard.ledger import dead_letters as letters
from dashboard.ledger.access import find_workspace
from dashboard.ledger.dead_letters import DeadLetter, Discarded, Requeued
from dashboard.ledger.holds import Refused
from dashboard.ledger.vault import Vault
from dashboard.settings import read_settings

reason_option = click.option("--reason", required=True, help="Why; it stands in the audit log.")
numbers = click.argument("numbers", metavar="NUMBER…", nargs=-1, required=True, type=int)


@click.group("dead-letters", epilog=example("sendonce dead-letters list"))
def dead_letters() -> None:
    """What could not be taken: look, queue again, discard.

    Requests and parts of webhooks that nobody could read, or that the ledger refused, are set aside here with the
    reason, encrypted, so that they hold nobody up.
    """


@dead_letters.command("list", epilog=example("sendonce dead-letters list --limit 20"))
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1000), help="At most so many.")
@workspace_option
def list_(limit: int, workspace: str) -> None:
    """What waits for a person, the oldest first: number, time, where from, why."""
    with ledger() as connection:
        found = letters.list_letters(connection, find_workspace(connection, workspace), limit=limit)
    for letter in found:
        click.echo(f"{letter.id}\t{letter.at:%Y-%m-%d %H:%M:%S}Z\t{_from(letter)}\t{letter.reason}")
    if not found:
        click.echo("There are no dead letters.")


@dead_letters.command("show", epilog=example("sendonce dead-letters show 17"))
@click.argument("number", type=int)
@workspace_option
def show(number: int, workspace: str) -> None:
    """All that is known of one, but for what it holds."""
    with ledger() as connection:
        letter = letters.find_letter(connection, find_workspace(connection, workspace), number)
    if letter is None:
        raise Mistake(f"{letters.NO_SUCH_LETTER} See: sendonce dead-letters list")
    told = {
        "number": letter.id, "set aside": f"{letter.at:%Y-%m-%d %H:%M:%S}Z", "from": _from(letter),
        "reason": letter.reason, "came again": letter.repeats, "outbox row": letter.outbox_id or "-",
        "bytes, encrypted": letter.bytes,
        "discarded": f"{letter.discarded_at:%Y-%m-%d %H:%M:%S}Z" if letter.discarded_at else "no",
    }  # fmt: skip
    for name, value in told.items():
        click.echo(f"{name}\t{value}")


def _from(letter: DeadLetter) -> str:
    return f"{letter.source} of {letter.account}" if letter.account else letter.source


@dead_letters.command(
    epilog=example("sendonce dead-letters requeue 17 --user ada --reason 'the mailstream is there now'")
)
@numbers
@user_option
@reason_option
@workspace_option
def requeue(numbers: tuple[int, ...], login: str, reason: str, workspace: str) -> int:
    """Put requests back into the outbox, once what was wrong is mended.

    Each is read first: one that would only be set aside again is left alone, and the line says what is still wrong.
    Exit code 1 where one was left alone. Needs the encryption keys.
    """
    vault = Vault(read_settings(os.environ).encryption_keys)

    def one(number: int) -> Requeued | Refused:
        with ledger() as connection:
            return letters.requeue(
                connection, vault, workspace_id=find_workspace(connection, workspace), letter_id=number,
                user_id=answering(connection, login), reason=reason,
            )  # fmt: skip

    return _each(numbers, one)


@dead_letters.command(epilog=example("sendonce dead-letters discard 17 --user ada --reason 'a test of the shop'"))
@numbers
@user_option
@reason_option
@workspace_option
def discard(numbers: tuple[int, ...], login: str, reason: str, workspace: str) -> int:
    """Let go of what they hold. This cannot be undone; that they were there stays on record.

    Exit code 1 where one was left alone.
    """

    def one(number: int) -> Discarded | Refused:
        with ledger() as connection:
            return letters.discard(
                connection, workspace_id=find_workspace(connection, workspace), letter_id=number,
                user_id=answering(connection, login), reason=reason,
            )  # fmt: skip

    return _each(numbers, one)


def _each(numbers: Iterable[int], act: Callable[[int], Requeued | Discarded | Refused]) -> int:
    left_alone = 0
    for number in dict.fromkeys(numbers):
        match act(number):
            case Requeued(send_id=send_id):
                told = f"is queued again, as send {send_id}"
            case Discarded():
                told = "is discarded"
            case Refused(reason=why):
                told = why
                left_alone += 1
        click.echo(f"{number}\t{told}")
    return 1 if left_alone else 0
