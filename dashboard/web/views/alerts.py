"""Alerts: what fires, what is watched, whom it is told, and when nobody is to be told."""

from __future__ import annotations

from datetime import timedelta

from flask import Blueprint, abort, flash, request, url_for
from werkzeug.wrappers import Response

from dashboard.insight.alert_words import NEXT_STEPS, amount, condition
from dashboard.insight.health import named_checks
from dashboard.ledger import alert_channels, alert_rules
from dashboard.ledger import alerts as ledger_alerts
from dashboard.ledger.access import Refused
from dashboard.ledger.accounts import list_accounts
from dashboard.ledger.alert_rules import Rule, RuleRow
from dashboard.ledger.measures import FACTS, Measure, Unit
from dashboard.ledger.metrics import read_gauges, read_hearing, read_streams, read_workers
from dashboard.ledger.tables import ChannelKind, Role, Severity
from dashboard.web import args
from dashboard.web.permissions import needs
from dashboard.web.show import go, show
from dashboard.web.state import database, here, me, vault

blueprint = Blueprint("alerts", __name__, url_prefix="/alerts")

ROWS = 20
SILENCES = {"1h": timedelta(hours=1), "4h": timedelta(hours=4), "1d": timedelta(days=1), "7d": timedelta(days=7)}
"""How long a silence may be, by the choices of the form."""


@blueprint.get("")
@needs(Role.OPERATOR)
def page() -> Response:
    """The page; htmx asks for the tables alone."""
    return _page()


@blueprint.post("/silences")
@needs(Role.OPERATOR)
def silence() -> Response:
    """Tell nobody for a while."""
    lasts = SILENCES.get(args.posted("lasts"))
    if lasts is None:
        return _page(trouble="Choose how long the silence is to last.", status=422)
    try:
        with database().transaction() as connection:
            ledger_alerts.silence(
                connection, workspace_id=here().workspace_id, rule=args.posted("rule"),
                mailstream=args.posted("mailstream"), lasts=lasts, reason=args.posted("reason"), user_id=me().id,
            )  # fmt: skip
    except Refused as refusal:
        return _page(trouble=_sentence(refusal), status=422)
    flash("Nobody is told of these alerts until the silence ends. They stay on this page.")
    return go(url_for("alerts.page"))


@blueprint.post("/silences/<int:number>/end")
@needs(Role.OPERATOR)
def end_silence(number: int) -> Response:
    """Tell people again."""
    try:
        with database().transaction() as connection:
            ledger_alerts.end_silence(connection, number, workspace_id=here().workspace_id, user_id=me().id)
    except Refused as refusal:
        return _page(trouble=_sentence(refusal), status=409)
    flash("The silence has ended.")
    return go(url_for("alerts.page"))


# ── rules ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@blueprint.get("/rule")
@needs(Role.OPERATOR)
def rule() -> Response:
    """The form of a rule, or of a new one."""
    name = args.text("name", limit=63)
    with database().snapshot() as connection:
        present = alert_rules.find_rule(connection, here().workspace_id, name) if name else None
    if name and present is None:
        abort(404)
    return _rule_page(present)


@blueprint.post("/rule")
@needs(Role.OPERATOR)
def save_rule() -> Response:
    """Make a rule, or change one."""
    try:
        wanted = _wanted()
        with database().transaction() as connection:
            alert_rules.put_rule(connection, wanted, workspace_id=here().workspace_id, user_id=me().id)
    except Refused as refusal:
        return _rule_page(None, trouble=_sentence(refusal), status=422)
    flash(f"The rule {wanted.name} is saved; its clock starts anew.")
    return go(url_for("alerts.page"))


@blueprint.post("/rule/remove")
@needs(Role.OPERATOR)
def remove_rule() -> Response:
    """Watch for this no more."""
    try:
        with database().transaction() as connection:
            alert_rules.remove_rule(connection, args.posted("name"), workspace_id=here().workspace_id, user_id=me().id)
    except Refused as refusal:
        return _page(trouble=_sentence(refusal), status=409)
    flash("The rule is gone. What it had fired stays in the history.")
    return go(url_for("alerts.page"))


def _wanted() -> Rule:
    """The rule of the form; shares are typed in per cent. Raises :class:`Refused`."""
    try:
        measure = Measure(args.posted("measure"))
        severity = Severity(args.posted("severity"))
    except ValueError:
        raise Refused("choose what to watch, and how urgent it is") from None
    factor = 100 if FACTS[measure].unit is Unit.SHARE else 1
    above = _number("above", "the threshold") / factor
    clears = _number("clears_at", "what it clears at", above * factor / 2) / factor
    return Rule(
        name=args.posted("name"), measure=measure, threshold=above, clears_at=clears, severity=severity,
        hold_for=timedelta(minutes=_number("hold_for", "for how long", 0)),
        span=timedelta(minutes=_number("over", "what a rate is counted over", 15)),
        least=int(_number("least", "the least number", 0)), mailstream=args.posted("mailstream"),
        enabled=request.form.get("enabled") == "yes",
    )  # fmt: skip


def _number(name: str, what: str, otherwise: float | None = None) -> float:
    text = args.posted(name, limit=20)
    if not text and otherwise is not None:
        return otherwise
    try:
        number = float(text)
    except ValueError:
        raise Refused(f"{what} is a number") from None
    if not 0 <= number <= 1e9:
        raise Refused(f"{what} is a number from 0 on")
    return number


def _rule_page(present: RuleRow | None, *, trouble: str | None = None, status: int = 200) -> Response:
    with database().snapshot() as connection:
        streams = [stream.name for stream in read_streams(connection, here().workspace_id)]
    given = dict(request.form) or (_typed(present) if present else {"severity": "warning", "enabled": "yes"})
    return show(
        "alert_rule", status=status, given=given, present=present, trouble=trouble, streams=streams, facts=FACTS,
        severities=list(Severity), Unit=Unit,
    )  # fmt: skip


def _typed(rule: RuleRow) -> dict[str, str]:
    """A rule as its form holds it."""
    factor = 100 if FACTS[Measure(rule.measure)].unit is Unit.SHARE else 1
    return {
        "name": rule.name, "measure": rule.measure, "severity": rule.severity, "mailstream": rule.mailstream,
        "above": f"{rule.threshold * factor:.10g}", "clears_at": f"{rule.clears_at * factor:.10g}",
        "hold_for": f"{rule.hold_for.total_seconds() / 60:.10g}", "over": f"{rule.span.total_seconds() / 60:.10g}",
        "least": str(rule.least), "enabled": "yes" if rule.enabled else "",
    }  # fmt: skip


# ── channels ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@blueprint.get("/channel")
@needs(Role.ADMIN)
def channel() -> Response:
    """The form of a new channel."""
    return _channel_page()


@blueprint.post("/channel")
@needs(Role.ADMIN)
def add_channel() -> Response:
    """Tell of alerts there, too. A webhook's secret is shown once."""
    try:
        kind = ChannelKind(args.posted("kind"))
        least = Severity(args.posted("least"))
    except ValueError:
        return _channel_page(trouble="Choose a kind, and from which severity on it is told.", status=422)
    try:
        match kind:
            case ChannelKind.EMAIL:
                target = alert_channels.email_target(args.posted("addresses").replace(",", "\n").split("\n"))
            case ChannelKind.SLACK:
                target = alert_channels.slack_target(args.posted("url"))
            case ChannelKind.WEBHOOK:
                target = alert_channels.webhook_target(args.posted("url"))
        name = args.posted("name")
        with database().transaction() as connection:
            alert_channels.add_channel(
                connection, vault(), workspace_id=here().workspace_id, name=name, kind=kind, target=target,
                least_severity=least, user_id=me().id,
            )  # fmt: skip
    except Refused as refusal:
        return _channel_page(trouble=_sentence(refusal), status=422)
    if target.secret:
        return show("alert_secret", name=name, secret=target.secret)
    flash(f"The channel {name} is there. Send it a test to see that it arrives.")
    return go(url_for("alerts.page"))


@blueprint.post("/channel/remove")
@needs(Role.ADMIN)
def remove_channel() -> Response:
    """Tell nobody there any more."""
    return _on_channel(alert_channels.remove_channel, "The channel is gone.")


@blueprint.post("/channel/test")
@needs(Role.OPERATOR)
def try_channel() -> Response:
    """Have a worker send a test there."""
    return _on_channel(
        alert_channels.try_channel, "A worker sends the test within seconds; the table says what came of it."
    )


def _on_channel(act: object, done: str) -> Response:
    try:
        with database().transaction() as connection:
            act(connection, args.posted("name"), workspace_id=here().workspace_id, user_id=me().id)  # type: ignore[operator]
    except Refused as refusal:
        return _page(trouble=_sentence(refusal), status=409)
    flash(done)
    return go(url_for("alerts.page"))


def _channel_page(*, trouble: str | None = None, status: int = 200) -> Response:
    return show(
        "alert_channel", status=status, trouble=trouble, given=request.form, kinds=list(ChannelKind),
        severities=list(Severity),
    )  # fmt: skip


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _page(*, trouble: str | None = None, status: int = 200) -> Response:
    before = args.number("before")
    workspace_id = here().workspace_id
    with database().snapshot() as connection:
        firing = ledger_alerts.list_alerts(connection, here().workspace_id, open_only=True, limit=200)
        history = ledger_alerts.list_alerts(connection, here().workspace_id, before=before, limit=ROWS + 1)
        rules = alert_rules.list_rules(connection, here().workspace_id)
        channels = alert_channels.list_channels(connection, here().workspace_id)
        silences = ledger_alerts.list_silences(connection, here().workspace_id)
        streams = [stream.name for stream in read_streams(connection, workspace_id)]
        checks = named_checks(
            read_gauges(connection, workspace_id), read_workers(connection), list_accounts(connection, workspace_id),
            read_hearing(connection, workspace_id),
        )  # fmt: skip
    shown = history[:ROWS]
    return show(
        "alerts", fragment="alerts_tables", status=status, trouble=trouble, firing=firing, history=shown, rules=rules,
        channels=channels, silences=silences, streams=streams, lasting=list(SILENCES), given=request.form,
        older=url_for("alerts.page", before=shown[-1].id) if len(history) > ROWS else None, first=before is None,
        checks=checks, facts=FACTS, amount=amount, condition=condition, next_steps=NEXT_STEPS,
    )  # fmt: skip


def _sentence(refusal: Refused) -> str:
    text = str(refusal)
    return f"{text[:1].upper()}{text[1:]}."
