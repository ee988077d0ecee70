"""``sendonce stream``: the mailstreams of a workspace, and how each treats doubt, lateness and retries."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

import click

from dashboard.cli import Mistake
from dashboard.cli.ledger import answering_if_named, ledger
from dashboard.cli.options import example, maybe_user_option, span, workspace_option
from dashboard.ledger import accounts, audit, streams
from dashboard.ledger.access import find_workspace
from dashboard.ledger.database import Connection
from dashboard.ledger.metrics import read_streams
from dashboard.ledger.streams import BadStream, Rules, Stream
from dashboard.ledger.tables import Policy
from dashboard.lifecycle import MailClass

T = TypeVar("T")

CLASSES = [mail_class.value for mail_class in MailClass]

_SWITCHES = ("second_person", "batches")
"""Options that say something where they are off."""

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Duration(click.ParamType[timedelta]):
    """A time span such as 90s, 30m, 2h or 3d."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, context: click.Context | None) -> timedelta:
        """Read it, or fail with what it should be."""
        found = re.fullmatch(r"([0-9]{1,6})([smhd])", str(value))
        if found is None or not int(found[1]):
            self.fail(f"{value!r} is not a time span such as 90s, 30m, 2h or 3d", param, context)
        return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _rules_options(command: Any) -> Any:
    duration = Duration()
    for option in (
        click.option("--title", help="What people read."),
        click.option("--owner", help="The team that answers for it."),
        click.option(
            "--unknown",
            type=click.Choice([policy.value for policy in Policy]),
            help="After the grace period, a send that stayed unknown.",
        ),
        click.option("--grace", type=duration, metavar="SPAN", help="How long to wait for evidence, such as 30m."),
        click.option("--too-late-after", type=duration, metavar="SPAN", help="Past its due time nobody wants it."),
        click.option("--never-late", is_flag=True, help="It is never too late."),
        click.option(
            "--late", type=click.Choice([Policy.HOLD.value, Policy.CANCEL.value]), help="What becomes of a late one."
        ),
        click.option("--max-attempts", type=click.IntRange(1, 1000), help="Attempts before it fails."),
        click.option("--retry-for", type=duration, metavar="SPAN", help="How long to try."),
        click.option(
            "--retain-for", type=duration, metavar="SPAN", help="How long after its end a send keeps its message."
        ),
        click.option("--retain-for-ever", is_flag=True, help="Nothing is taken away."),
        click.option(
            "--reply-domain", metavar="DOMAIN", help="Where mail answers its sends, such as reply.shop.example."
        ),
        click.option("--no-reply-domain", is_flag=True, help="New sends get no reply address."),
        click.option(
            "--second-person/--one-person", default=None, help="Whether a second person agrees to each held send's end."
        ),
        click.option(
            "--batches/--one-by-one",
            default=None,
            help="Whether its sends may share calls to the provider: only for bulk classes.",
        ),
    ):
        command = option(command)
    return command


@click.group(
    epilog=example(
        "sendonce stream add receipts --class transactional --account resend --owner 'Payments team'",
        "sendonce stream list",
    )
)
def stream() -> None:
    """Mailstreams: one for each kind of mail, with its class, owner, account and rules."""


@stream.command(
    "add", epilog=example("sendonce stream add receipts --class transactional --account resend --owner 'Payments team'")
)
@click.argument("name")
@click.option(
    "--class",
    "mail_class",
    required=True,
    type=click.Choice(CLASSES),
    help="Decides what is not given.",
)
@click.option("--account", required=True, metavar="NAME", help="The provider account that it sends by.")
@_rules_options
@workspace_option
def add_stream(name: str, mail_class: str, account: str, workspace: str, **given: Any) -> None:
    """Add a mailstream. Its name never changes, since it is part of the identity of every send."""
    with ledger() as connection:
        workspace_id = find_workspace(connection, workspace)
        if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,62}", name):
            raise Mistake("a mailstream's name has 1 to 63 lower-case letters, digits, ., - or _, such as trial-day-7")
        if streams.read_stream(connection, workspace_id, name):
            raise Mistake(f"there is a mailstream {name} already; change it with: sendonce stream set {name}")
        account_id, key_window = _account(connection, workspace_id, workspace, account)
        rules = streams.rules_for(MailClass(mail_class), key_window)
        fresh = Stream(
            name=name, title=name, owner="", mail_class=MailClass(mail_class), account_id=account_id, rules=rules
        )
        _save(connection, workspace_id, _changed(fresh, given))
        audit.record(
            connection, audit.Action.ADD_STREAM, workspace_id=workspace_id, subject=name, detail={"class": mail_class}
        )
    click.echo(f"The mailstream {name} is there.")


@stream.command("set", epilog=example("sendonce stream set receipts --grace 10m --unknown hold"))
@click.argument("name")
@click.option("--class", "mail_class", type=click.Choice(CLASSES), help="Its rules stay as they are.")
@click.option("--account", metavar="NAME", help="For sends that have not been tried yet.")
@_rules_options
@workspace_option
def set_stream(name: str, mail_class: str | None, account: str | None, workspace: str, **given: Any) -> None:
    """Change a mailstream; what is not named stays."""
    with ledger() as connection:
        workspace_id = find_workspace(connection, workspace)
        found = _known(streams.read_stream(connection, workspace_id, name), workspace, name)
        if mail_class is not None:
            found = replace(found, mail_class=MailClass(mail_class))
        if account is not None:
            found = replace(found, account_id=_account(connection, workspace_id, workspace, account)[0])
        _save(connection, workspace_id, _changed(found, given))
        said = {**given, "class": mail_class, "account": account}
        chosen = {key: value for key, value in said.items() if value or (key in _SWITCHES and value is not None)}
        detail = {key: str(value) for key, value in chosen.items()}
        audit.record(connection, audit.Action.SET_STREAM, workspace_id=workspace_id, subject=name, detail=detail)
    click.echo(f"The mailstream {name} is changed.")


@stream.command("list", epilog=example("sendonce stream list"))
@workspace_option
def list_streams(workspace: str) -> None:
    """The mailstreams: class, account, owner, what becomes of unknown sends, state."""
    with ledger() as connection:
        rows = read_streams(connection, find_workspace(connection, workspace))
    for row in rows:
        unknown = f"unknown: {row.unknown_policy} after {span(row.grace)}"
        state = f"paused: {row.paused_reason}" if row.paused_at else "active"
        way = ["in batches"] if row.batches else []
        click.echo("\t".join((row.name, row.mail_class, row.account, row.owner or "no owner", unknown, state, *way)))


@stream.command("pause", epilog=example("sendonce stream pause news --reason 'wrong price in the text' --user ada"))
@click.argument("name")
@click.option("--reason", required=True, help="Stands in every trace that waits for it.")
@maybe_user_option
@workspace_option
def pause_stream(name: str, reason: str, login: str | None, workspace: str) -> None:
    """Start no attempt of a mailstream until it is resumed. What is under way runs to its end."""
    with ledger() as connection:
        done = streams.pause_by_person(
            connection, workspace_id=find_workspace(connection, workspace), name=name, reason=reason,
            user_id=answering_if_named(connection, login),
        )  # fmt: skip
        _known(done or None, workspace, name)
    click.echo(f"{name} is paused.")


@stream.command("resume", epilog=example("sendonce stream resume news --user ada"))
@click.argument("name")
@click.option("--reason", help="Stands in the audit log.")
@maybe_user_option
@workspace_option
def resume_stream(name: str, reason: str | None, login: str | None, workspace: str) -> None:
    """End a pause; what waits leaves at once."""
    with ledger() as connection:
        done = streams.resume_by_person(
            connection, workspace_id=find_workspace(connection, workspace), name=name, reason=reason,
            user_id=answering_if_named(connection, login),
        )  # fmt: skip
        _known(done or None, workspace, name)
    click.echo(f"{name} is active.")


# ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _known(found: T | None, workspace: str, name: str) -> T:
    if found is None:
        raise Mistake(f"{workspace} has no mailstream {name}; see: sendonce stream list")
    return found


def _account(connection: Connection, workspace_id: UUID, workspace: str, name: str) -> tuple[UUID, timedelta | None]:
    for row in accounts.list_accounts(connection, workspace_id):
        if row.name == name:
            return row.id, row.key_window
    raise Mistake(f"{workspace} has no account {name}; see: sendonce account list")


def _changed(found: Stream, given: dict[str, Any]) -> Stream:
    rules = {
        "unknown_policy": given["unknown"] and Policy(given["unknown"]), "grace": given["grace"],
        "too_late_after": given["too_late_after"], "late_policy": given["late"] and Policy(given["late"]),
        "max_attempts": given["max_attempts"], "retry_for": given["retry_for"], "retain_for": given["retain_for"],
        "second_person": given["second_person"], "batches": given["batches"],
        "reply_domain": given["reply_domain"] and given["reply_domain"].strip().lower().rstrip("."),
    }  # fmt: skip
    changed: Rules = replace(found.rules, **{name: value for name, value in rules.items() if value is not None})
    if given["never_late"]:
        changed = replace(changed, too_late_after=None)
    if given["retain_for_ever"]:
        changed = replace(changed, retain_for=None)
    if given["no_reply_domain"]:
        changed = replace(changed, reply_domain=None)
    title, owner = given["title"], given["owner"]
    return replace(
        found,
        rules=changed,
        title=found.title if title is None else title,
        owner=found.owner if owner is None else owner,
    )


def _save(connection: Connection, workspace_id: UUID, found: Stream) -> None:
    try:
        streams.save_stream(
            connection, workspace_id=workspace_id, name=found.name, mail_class=found.mail_class,
            account_id=found.account_id, title=found.title, owner=found.owner, rules=found.rules,
        )  # fmt: skip
    except BadStream as error:
        raise Mistake(str(error)) from None
