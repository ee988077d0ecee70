"""``sendonce alerts``: what is watched, what fired, who is told, and when nobody is to be told."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import datetime, timedelta

import click

from dashboard.cli import Mistake
from dashboard.cli.ledger import answering, ledger
from dashboard.cli.options import example, json_option, span, user_option, workspace_option
from dashboard.cli.secrets import ask, read_file
from dashboard.cli.streams import Duration
from dashboard.insight.alert_words import amount, condition
from dashboard.ledger import alert_channels, alert_rules
from dashboard.ledger import alerts as ledger_alerts
from dashboard.ledger.access import find_workspace
from dashboard.ledger.alert_rules import Rule
from dashboard.ledger.measures import FACTS, Measure
from dashboard.ledger.tables import ChannelKind, Severity
from dashboard.ledger.vault import Vault
from dashboard.settings import read_settings

DURATION = Duration()


@click.group(epilog=example("sendonce alerts list", "sendonce alerts rules"))
def alerts() -> None:
    """What is watched, what fired, who is told."""


def _when(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S}Z" if at else "-"


@alerts.command("list", epilog=example("sendonce alerts list --open"))
@click.option("--open", "open_only", is_flag=True, help="Only what fires now.")
@click.option("--limit", default=50, show_default=True, type=click.IntRange(1, 1000), help="At most so many.")
@json_option
@workspace_option
def list_(open_only: bool, limit: int, as_json: bool, workspace: str) -> int:
    """What fired, the newest first: from when to when, the rule, the worst value, who was told.

    With --open the exit code is 1 where something fires.
    """
    with ledger() as connection:
        found = ledger_alerts.list_alerts(
            connection, find_workspace(connection, workspace), open_only=open_only, limit=limit
        )
    if as_json:
        rows = [
            {
                "id": row.id, "rule": row.rule, "measure": str(row.measure), "mailstream": row.mailstream or None,
                "severity": str(row.severity), "threshold": row.threshold, "value": row.value, "worst": row.worst,
                "opened_at": row.opened_at.isoformat(), "closed_at": row.closed_at and row.closed_at.isoformat(),
                "silenced": row.silenced, "delivered": row.delivered, "waiting": row.waiting,
                "given_up": row.given_up, "last_error": row.last_error,
            }
            for row in found
        ]  # fmt: skip
        click.echo(json.dumps(rows, indent=2))
        return 1 if open_only and found else 0
    for row in found:
        unit = FACTS[Measure(row.measure)].unit
        told = f"{row.delivered} told" + (f", {row.waiting} waiting" if row.waiting else "")
        told += f", {row.given_up} given up ({row.last_error})" if row.given_up else ""
        click.echo(
            f"{row.id}\t{_when(row.opened_at)}\t{_when(row.closed_at)}\t{row.severity}\t{row.rule}"
            f"\t{row.mailstream or '-'}\t{amount(row.worst, unit)}\t{'silenced' if row.silenced else told}"
        )
    if not found:
        click.echo("Nothing fires." if open_only else "Nothing has fired yet.")
    return 1 if open_only and found else 0


@alerts.command("rules", epilog=example("sendonce alerts rules"))
@workspace_option
def rules(workspace: str) -> None:
    """What is watched, what each rule waits for, and where it stands."""
    with ledger() as connection:
        found = alert_rules.list_rules(connection, find_workspace(connection, workspace))
    for rule in found:
        measure = Measure(rule.measure)
        value = "-" if rule.value is None else amount(rule.value, FACTS[measure].unit)
        waits = condition(measure, rule.threshold, hold_for=rule.hold_for, over=rule.span)
        state = rule.state if rule.enabled else "off"
        click.echo(f"{rule.name}\t{state}\t{rule.severity}\t{measure}\t{rule.mailstream or '-'}\t{waits}\tnow {value}")
    if not found:
        click.echo("There are no rules. See: sendonce alerts defaults")


@alerts.command("defaults", epilog=example("sendonce alerts defaults"))
@workspace_option
def defaults(workspace: str) -> None:
    """Bring back the rules that every workspace starts with, where they were removed."""
    with ledger() as connection:
        added = alert_rules.add_defaults(connection, find_workspace(connection, workspace))
    click.echo(f"Added: {', '.join(added)}" if added else "All of them are there.")


@alerts.command(
    "set",
    epilog=example(
        "sendonce alerts set slow-receipts --measure due_age --mailstream receipts --above 120 --for 2m --user ada"
    ),
)
@click.argument("name")
@click.option("--measure", type=click.Choice([measure.value for measure in Measure]), help="What to watch.")
@click.option("--above", type=float, help="It fires above this: seconds, a share of one (0.05), or a number.")
@click.option("--clears-at", type=float, help="It is quiet again at or below this; half of --above if not given.")
@click.option("--for", "hold_for", type=DURATION, metavar="SPAN", help="How long it must stay so, either way.")
@click.option("--at-once", is_flag=True, help="It fires with the first look.")
@click.option("--over", type=DURATION, metavar="SPAN", help="What a rate is counted over, such as 15m.")
@click.option("--least", type=click.IntRange(0), help="A rate of fewer counts as 0.")
@click.option("--severity", type=click.Choice([one.value for one in Severity]))
@click.option("--mailstream", help="Only this one; empty for all.")
@click.option("--on/--off", "enabled", default=None, help="Whether it is looked at.")
@user_option
@workspace_option
def set_(
    name: str, measure: str | None, above: float | None, clears_at: float | None, hold_for: timedelta | None,
    at_once: bool, over: timedelta | None, least: int | None, severity: str | None, mailstream: str | None,
    enabled: bool | None, login: str, workspace: str,
) -> None:  # fmt: skip
    """Make a rule, or change one: what is not given stays as it is."""
    with ledger() as connection:
        workspace_id = find_workspace(connection, workspace)
        present = alert_rules.find_rule(connection, workspace_id, name)
        if present is not None:
            base = Rule(**{field: getattr(present, field) for field in Rule.__slots__})
        elif measure is not None and above is not None:
            base = Rule(
                name=name, measure=Measure(measure), threshold=above, clears_at=above / 2,
                hold_for=timedelta(minutes=5),
            )  # fmt: skip
        else:
            raise Mistake(f"there is no rule {name} yet: a new one needs --measure and --above")
        threshold = base.threshold if above is None else above
        rule = replace(
            base,
            measure=Measure(measure or base.measure),
            threshold=threshold,
            clears_at=min(base.clears_at, threshold) if clears_at is None else clears_at,
            hold_for=timedelta() if at_once else hold_for or base.hold_for,
            span=over or base.span,
            least=base.least if least is None else least,
            severity=Severity(severity or base.severity),
            mailstream=base.mailstream if mailstream is None else mailstream,
            enabled=base.enabled if enabled is None else enabled,
        )
        alert_rules.put_rule(connection, rule, workspace_id=workspace_id, user_id=answering(connection, login))
    waits = condition(rule.measure, rule.threshold, hold_for=rule.hold_for, over=rule.span)
    click.echo(f"The rule {name} fires when {FACTS[rule.measure].title.lower()} is {waits}.")


@alerts.command("remove", epilog=example("sendonce alerts remove slow-receipts --user ada"))
@click.argument("name")
@user_option
@workspace_option
def remove(name: str, login: str, workspace: str) -> None:
    """Watch for this no more; what fired stays in the history."""
    with ledger() as connection:
        alert_rules.remove_rule(
            connection, name, workspace_id=find_workspace(connection, workspace), user_id=answering(connection, login)
        )
    click.echo(f"The rule {name} is gone.")


@alerts.command(
    "silence", epilog=example("sendonce alerts silence --rule held-too-long --for 2h --user ada --reason 'a migration'")
)
@click.option("--rule", default="", help="Only this rule; otherwise all.")
@click.option("--mailstream", default="", help="Only rules of this mailstream; otherwise all.")
@click.option("--for", "lasts", type=DURATION, required=True, metavar="SPAN", help="How long, such as 2h.")
@click.option("--reason", required=True, help="Why; it stands beside the silence and in the audit log.")
@user_option
@workspace_option
def silence(rule: str, mailstream: str, lasts: timedelta, reason: str, login: str, workspace: str) -> None:
    """Tell nobody for a while. What fires is kept and shown, and told afterwards where it goes on."""
    with ledger() as connection:
        number = ledger_alerts.silence(
            connection, workspace_id=find_workspace(connection, workspace), rule=rule, mailstream=mailstream,
            lasts=lasts, reason=reason, user_id=answering(connection, login),
        )  # fmt: skip
    click.echo(f"Silence {number} lasts for {span(lasts)}.")


@alerts.command("unsilence", epilog=example("sendonce alerts unsilence 3 --user ada"))
@click.argument("number", type=int)
@user_option
@workspace_option
def unsilence(number: int, login: str, workspace: str) -> None:
    """End a silence before its time."""
    with ledger() as connection:
        ledger_alerts.end_silence(
            connection, number, workspace_id=find_workspace(connection, workspace),
            user_id=answering(connection, login),
        )  # fmt: skip
    click.echo(f"Silence {number} has ended.")


@alerts.command("silences", epilog=example("sendonce alerts silences"))
@workspace_option
def silences(workspace: str) -> None:
    """The silences that last: number, until when, what, who, why."""
    with ledger() as connection:
        found = ledger_alerts.list_silences(connection, find_workspace(connection, workspace))
    for one in found:
        what = one.rule or "all rules"
        where = one.mailstream or "all mailstreams"
        click.echo(f"{one.id}\t{_when(one.until)}\t{what}\t{where}\t{one.who or '-'}\t{one.reason}")
    if not found:
        click.echo("Nothing is silenced.")


@alerts.command("channels", epilog=example("sendonce alerts channels"))
@workspace_option
def channels(workspace: str) -> None:
    """Whom alerts are told, and what came of the last notice of each."""
    with ledger() as connection:
        found = alert_channels.list_channels(connection, find_workspace(connection, workspace))
    for one in found:
        last = (
            "never used" if one.last_at is None else "arrived" if one.last_delivered_at else one.last_error or "waits"
        )
        click.echo(f"{one.name}\t{one.kind}\tfrom {one.least_severity}\t{one.shown}\t{last}")
    if not found:
        click.echo("Nobody is told of alerts yet. See: sendonce alerts add-channel --help")


@alerts.command(
    "add-channel",
    epilog=example(
        "sendonce alerts add-channel on-call --kind email --to ops@example.com --user ada",
        "sendonce alerts add-channel chat --kind slack --url-file slack-url.txt --user ada",
    ),
)
@click.argument("name")
@click.option("--kind", required=True, type=click.Choice([kind.value for kind in ChannelKind]))
@click.option("--to", multiple=True, metavar="ADDRESS", help="Of people; may be given again.")
@click.option("--url-file", metavar="FILE", help="A file that holds the URL, which for Slack is a secret.")
@click.option(
    "--from", "least", default=Severity.WARNING.value, show_default=True,
    type=click.Choice([one.value for one in Severity]), help="What is less urgent is not told here.",
)  # fmt: skip
@user_option
@workspace_option
def add_channel(
    name: str, kind: str, to: tuple[str, ...], url_file: str | None, least: str, login: str, workspace: str
) -> None:
    """Tell of alerts there, too. The URL is asked for, or comes from a file. Needs the encryption keys."""
    vault = Vault(read_settings(os.environ).encryption_keys)
    with ledger() as connection:
        if kind == ChannelKind.EMAIL:
            target = alert_channels.email_target(to)
        else:
            url = read_file(url_file) if url_file else ask("URL", needed=True, how_else="give it by --url-file FILE")
            make = alert_channels.webhook_target if kind == ChannelKind.WEBHOOK else alert_channels.slack_target
            target = make(url)
        alert_channels.add_channel(
            connection, vault, workspace_id=find_workspace(connection, workspace), name=name, kind=ChannelKind(kind),
            target=target, least_severity=Severity(least), user_id=answering(connection, login),
        )  # fmt: skip
    if target.secret:
        click.echo(f"The channel {name} is there. Its secret, shown this once, by which receivers check signatures:")
        click.echo(target.secret)
    else:
        click.echo(f"The channel {name} is there. Try it with: sendonce alerts test {name} --user {login}")


@alerts.command("remove-channel", epilog=example("sendonce alerts remove-channel chat --user ada"))
@click.argument("name")
@user_option
@workspace_option
def remove_channel(name: str, login: str, workspace: str) -> None:
    """Tell nobody there any more."""
    with ledger() as connection:
        alert_channels.remove_channel(
            connection, name, workspace_id=find_workspace(connection, workspace), user_id=answering(connection, login)
        )
    click.echo(f"The channel {name} is gone.")


@alerts.command("test", epilog=example("sendonce alerts test on-call --user ada"))
@click.argument("name")
@user_option
@workspace_option
def test(name: str, login: str, workspace: str) -> None:
    """Have a worker send a test there; `sendonce alerts channels` says what came of it."""
    with ledger() as connection:
        alert_channels.try_channel(
            connection, name, workspace_id=find_workspace(connection, workspace), user_id=answering(connection, login)
        )
    click.echo("A worker sends it within seconds. See: sendonce alerts channels")
