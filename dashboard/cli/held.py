"""``sendonce held``: what only a person may decide; one, some, or all that fit, with the rules of the pages."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any
from uuid import UUID

import click

from dashboard.cli import Mistake
from dashboard.cli.ledger import answering, ledger
from dashboard.cli.options import example, user_option, workspace_option
from dashboard.identity import discreet
from dashboard.insight.odds import odds
from dashboard.ledger import holds, proposals
from dashboard.ledger.access import find_workspace
from dashboard.ledger.alike import read_alike, read_failures
from dashboard.ledger.database import Connection
from dashboard.ledger.holds import HoldFilter, OpenHold, Refused
from dashboard.ledger.proposals import Outcome, Pick, Proposal
from dashboard.ledger.tables import Stage
from dashboard.lifecycle import Decision, Reason

reason_option = click.option("--reason", required=True, help="Why; it stands beside each decision.")
proposal_argument = click.argument("proposal_id", metavar="PROPOSAL", type=click.UUID)

WAYS = 6


def filter_options(command: Any) -> Any:
    """Which held sends."""
    for option in (
        click.option("--mailstream", metavar="NAME", help="Of this mailstream."),
        click.option("--account", metavar="NAME", help="Of this provider account."),
        click.option("--why", type=click.Choice([reason.value for reason in Reason]), help="Held for this reason."),
        click.option("--failure", metavar="CLASS", help="Whose last attempt ended so, such as read_timeout."),
    ):
        command = option(command)
    return command


@click.group(
    epilog=example(
        "sendonce held list --mailstream receipts",
        "sendonce held decide cancel --all --mailstream receipts --user ada --reason 'the sale is over'",
    )
)
def held() -> None:
    """What only a person may decide: look, decide one or many, agree as the second person."""


@held.command("list", epilog=example("sendonce held list --mailstream receipts --limit 20"))
@filter_options
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1000), help="At most so many.")
@workspace_option
def list_(
    limit: int, workspace: str, mailstream: str | None, account: str | None, why: str | None, failure: str | None
) -> None:
    """What waits, the longest-waiting first: send, since when, mailstream, why, how its last attempt ended."""
    filters = HoldFilter(mailstream=mailstream, account=account, reason=why, failure=failure)
    with ledger() as connection:
        found = holds.open_holds(connection, find_workspace(connection, workspace), filters=filters, limit=limit)
    for hold in found:
        since = f"{hold.opened_at:%Y-%m-%d %H:%M:%S}Z"
        click.echo("\t".join((str(hold.send_id), since, hold.mailstream, hold.reason, hold.error_class or "-")))
    if not found:
        click.echo("No held send fits.")


@held.command("show", epilog=example("sendonce held show 5f0c…"))
@click.argument("send_id", type=click.UUID)
@workspace_option
def show(send_id: UUID, workspace: str) -> None:
    """The evidence about one, and how earlier attempts that failed like it turned out."""
    with ledger() as connection:
        workspace_id = find_workspace(connection, workspace)
        hold = _hold(connection, workspace_id, send_id)
        alike = _alike(connection, workspace_id, [send_id])
    told = {
        "key": hold.key, "mailstream": hold.mailstream, "recipient": discreet(hold.recipient_id),
        "account": hold.account,
        "held because": hold.reason, "since": f"{hold.opened_at:%Y-%m-%d %H:%M:%S}Z", "attempts": hold.attempts,
        "last attempt": f"{hold.error_class or '-'} {hold.phase or ''}".strip(),
        "sends in that call": hold.together or 1,
        "key protects until": _time(hold.key_protects_until), "of use until": _time(hold.useful_until),
        "second person": "has to agree" if hold.second_person else "-",
        "may be decided": ", ".join(hold.choices),
    }  # fmt: skip
    for name, value in told.items():
        click.echo(f"{name}\t{value}")
    for line in alike:
        click.echo(line)


@held.command("decide", epilog=example("sendonce held decide resend 5f0c… --user ada --reason 'no trace of it there'"))
@click.argument("decision", type=click.Choice([one.value for one in Decision]))
@click.argument("sends", metavar="SEND_ID…", nargs=-1, type=click.UUID)
@click.option("--all", "every", is_flag=True, help="All that fit the filters, instead of single ones.")
@filter_options
@click.option("--yes", is_flag=True, help="Do not ask, having told how many they are.")
@user_option
@reason_option
@workspace_option
def decide(
    decision: str, sends: tuple[UUID, ...], every: bool, yes: bool, login: str, reason: str, workspace: str,
    mailstream: str | None, account: str | None, why: str | None, failure: str | None,
) -> int:  # fmt: skip
    """Decide held sends: resend, mark_accepted or cancel.

    Tells first how many they are, of which mailstreams, and how attempts that failed like theirs turned out, and asks.
    Where a second person has to agree it becomes a proposal. A line for each send says what came of it. Exit code 1
    where one was left as it was.
    """
    filters = HoldFilter(mailstream=mailstream, account=account, reason=why, failure=failure)
    if every == bool(sends):
        raise click.UsageError("name the sends, or give --all")
    if sends and any(asdict(filters).values()):
        raise click.UsageError("filters go with --all")
    with ledger() as connection:
        workspace_id, user_id = find_workspace(connection, workspace), answering(connection, login)
        picks = [Pick(h.hold_id, h.evidence) for h in (_hold(connection, workspace_id, one) for one in sends)]
        made = _made(
            proposals.preview(
                connection, workspace_id=workspace_id, user_id=user_id, decision=Decision(decision),
                chosen=filters if every else picks,
            )
        )  # fmt: skip
        alike = _alike(connection, workspace_id, proposals.sends_of(connection, made.id))
    streams = ", ".join(f"{name} {number}" for name, number in made.mailstreams.items())
    left_out = f"; {made.left_out} more do not allow it" if made.left_out else ""
    click.echo(f"{decision}: {made.sends} held ({streams}){left_out}", err=True)
    for line in alike:
        click.echo(line, err=True)
    if not yes:
        click.confirm("Decide them?", abort=True, err=True)
    with ledger() as connection:
        made = _made(
            proposals.propose(
                connection, workspace_id=workspace_id, proposal_id=made.id, user_id=user_id, reason=reason
            )
        )
    if made.stage is Stage.WAITING:
        click.echo(f"A second person has to agree, since {made.second_person}: sendonce held agree {made.id}")
        return 0
    return _carried_out(workspace_id, made.id)


@held.command("proposals", epilog=example("sendonce held proposals"))
@workspace_option
def list_proposals(workspace: str) -> None:
    """What was proposed, the newest first: proposal, stage, decision, number, who, why."""
    with ledger() as connection:
        found = proposals.list_proposals(connection, find_workspace(connection, workspace))
    for one in found:
        click.echo("\t".join((str(one.id), one.stage, one.decision, str(one.sends), one.person, one.reason or "")))
    if not found:
        click.echo("Nothing was proposed yet.")


@held.command("agree", epilog=example("sendonce held agree 0b6e… --user bob"))
@proposal_argument
@user_option
@workspace_option
def agree(proposal_id: UUID, login: str, workspace: str) -> int:
    """Agree to a proposal of somebody else, as the second person; it is carried out."""
    with ledger() as connection:
        workspace_id = find_workspace(connection, workspace)
        _made(
            proposals.agree(
                connection, workspace_id=workspace_id, proposal_id=proposal_id, user_id=answering(connection, login)
            )
        )
    return _carried_out(workspace_id, proposal_id)


@held.command("decline", epilog=example("sendonce held decline 0b6e… --user bob --reason 'ask the provider first'"))
@proposal_argument
@user_option
@click.option("--reason", required=True, help="Why; it stands beside the proposal.")
@workspace_option
def decline(proposal_id: UUID, login: str, reason: str, workspace: str) -> None:
    """Do not agree to a proposal; one's own is withdrawn. Nothing is decided."""
    with ledger() as connection:
        made = _made(
            proposals.decline(
                connection, workspace_id=find_workspace(connection, workspace), proposal_id=proposal_id,
                user_id=answering(connection, login), reason=reason,
            )
        )  # fmt: skip
    click.echo(f"{proposal_id}\tis {made.stage}")


# ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _hold(connection: Connection, workspace_id: UUID, send_id: UUID) -> OpenHold:
    found = holds.hold_of_send(connection, workspace_id, send_id)
    if found is None:
        raise Mistake(f"{send_id} is not held; see: sendonce held list")
    return found


def _made(outcome: Proposal | Refused) -> Proposal:
    if isinstance(outcome, Refused):
        raise Mistake(outcome.reason)
    return outcome


def _carried_out(workspace_id: UUID, proposal_id: UUID) -> int:
    """Carry it out here; a worker that does so at the same time takes what this one leaves."""
    left = 1
    while left:
        with ledger() as connection:
            decided = proposals.carry_out(connection, proposal_id)
            left = proposals.read_progress(connection, proposal_id).left
        if left and not decided:  # a worker is at it
            time.sleep(0.1)
    for outcome in _outcomes(proposal_id):
        click.echo(f"{outcome.send_id}\t{outcome.refused or 'is decided'}")
    with ledger() as connection:
        proposals.carry_out(connection, proposal_id)  # nothing is left: this ends it
        return 1 if proposals.read_progress(connection, proposal_id).refused else 0


def _outcomes(proposal_id: UUID) -> Iterator[Outcome]:
    after = None
    while True:
        with ledger() as connection:
            page = proposals.read_outcomes(connection, proposal_id, after=after, limit=1000)
        yield from page
        if len(page) < 1000:
            return
        after = page[-1].send_id


def _alike(connection: Connection, workspace_id: UUID, sends: list[UUID]) -> list[str]:
    lines = []
    for failure, number in read_failures(connection, sends)[:WAYS]:
        how = f"{failure.error_class or 'no answer'} at {failure.provider}"
        told = odds(read_alike(connection, workspace_id, failure))
        known = (
            f"of {told.cases} earlier ones that evidence settled, {told.taken} had been taken"
            f" ({told.low:.0%} to {told.high:.0%}, 95 % sure)"
            if told
            else "no earlier one was settled by evidence"
        )
        lines.append(f"{number} ended with {how}: {known}")
    return lines


def _time(at: Any) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}Z" if at else "-"
