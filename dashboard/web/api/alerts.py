"""``/api/v1/alerts``: what fires, what is watched, who is told, and when nobody is. The rules are those of the page."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from flask import Blueprint, Response, request

from dashboard.ledger import alert_channels, alert_rules
from dashboard.ledger import alerts as ledger_alerts
from dashboard.ledger.alert_channels import ChannelRow, Target
from dashboard.ledger.alert_rules import Rule, RuleRow
from dashboard.ledger.alerts import AlertRow, Silence
from dashboard.ledger.measures import Measure
from dashboard.ledger.refused import Refused
from dashboard.ledger.requests import BadRequest, storable
from dashboard.ledger.tables import ChannelKind, Role, Severity
from dashboard.web.api import problems, reading
from dashboard.web.api.problems import Problem
from dashboard.web.api.shown import answer, iso
from dashboard.web.bodies import raw_body
from dashboard.web.permissions import by_token
from dashboard.web.state import database, vault

MAX_BODY = 20_000
LIMIT = 200

Word = TypeVar("Word", bound=StrEnum)

blueprint = Blueprint("api_alerts", __name__, url_prefix="/api/v1/alerts")
problems.install(blueprint)


@blueprint.get("")
@by_token
def list_alerts() -> Response:
    """The newest alerts; ``?open=true`` for those that fire now, ``?before=`` for older ones."""
    who = reading.operator()
    wanted = reading.query_text("open")
    if wanted not in (None, "true", "false"):
        raise BadRequest("open", "is true or false")
    before = reading.query_text("before")
    if before is not None and not (before.isascii() and before.isdecimal() and len(before) <= 18):
        raise BadRequest("before", "is the id of an alert")
    with database().transaction(durable=False) as connection:
        found = ledger_alerts.list_alerts(
            connection, who.workspace_id, before=int(before) if before else None, open_only=wanted == "true",
            limit=LIMIT,
        )  # fmt: skip
    return answer({"alerts": [_alert(alert) for alert in found]})


@blueprint.get("/rules")
@by_token
def list_rules() -> Response:
    """What is watched, and where each rule stands."""
    who = reading.operator()
    with database().transaction(durable=False) as connection:
        found = alert_rules.list_rules(connection, who.workspace_id)
    return answer({"rules": [_rule(rule) for rule in found]})


@blueprint.put("/rules/<string:name>")
@by_token
def put_rule(name: str) -> Response:
    """Make a rule, or replace it."""
    who = reading.operator()
    wanted = _wanted(name, _object())
    with database().transaction() as connection:
        _refusing(lambda: alert_rules.put_rule(connection, wanted, workspace_id=who.workspace_id, user_id=who.user_id))
        made = alert_rules.find_rule(connection, who.workspace_id, name)
    assert made is not None
    return answer(_rule(made))


@blueprint.delete("/rules/<string:name>")
@by_token
def remove_rule(name: str) -> Response:
    """Watch for this no more."""
    who = reading.operator()
    with database().transaction() as connection:
        if alert_rules.find_rule(connection, who.workspace_id, name) is None:
            raise Problem("not-found", "The workspace of this token has no rule of this name.")
        alert_rules.remove_rule(connection, name, workspace_id=who.workspace_id, user_id=who.user_id)
    return Response(status=204)


@blueprint.get("/silences")
@by_token
def list_silences() -> Response:
    """Those that last."""
    who = reading.operator()
    with database().transaction(durable=False) as connection:
        found = ledger_alerts.list_silences(connection, who.workspace_id)
    return answer({"silences": [_silence(one) for one in found]})


@blueprint.post("/silences")
@by_token
def silence() -> Response:
    """Tell nobody for so many seconds."""
    who = reading.operator()
    raw = _object()
    if unknown := raw.keys() - {"rule", "mailstream", "seconds", "reason"}:
        raise BadRequest(min(unknown), "is not a field of a silence")
    with database().transaction() as connection:
        number = _refusing(
            lambda: ledger_alerts.silence(
                connection, workspace_id=who.workspace_id, rule=_text(raw, "rule"),
                mailstream=_text(raw, "mailstream"), lasts=timedelta(seconds=_number(raw, "seconds")),
                reason=_text(raw, "reason", limit=reading.MAX_REASON), user_id=who.user_id,
            )
        )  # fmt: skip
        made = next(one for one in ledger_alerts.list_silences(connection, who.workspace_id) if one.id == number)
    return answer(_silence(made), 201)


@blueprint.delete("/silences/<int:number>")
@by_token
def end_silence(number: int) -> Response:
    """Tell people again."""
    who = reading.operator()
    with database().transaction() as connection:
        try:
            ledger_alerts.end_silence(
                connection, min(number, 2**62), workspace_id=who.workspace_id, user_id=who.user_id
            )
        except Refused:
            raise Problem("not-found", "The workspace of this token has no such silence that still lasts.") from None
    return Response(status=204)


@blueprint.get("/channels")
@by_token
def list_channels() -> Response:
    """Who is told, and what came of the last notice."""
    who = reading.operator()
    with database().transaction(durable=False) as connection:
        found = alert_channels.list_channels(connection, who.workspace_id)
    return answer({"channels": [_channel(one) for one in found]})


@blueprint.post("/channels")
@by_token
def add_channel() -> Response:
    """Tell of alerts there, too. The secret of a webhook is in this answer only."""
    who = reading.operator(Role.ADMIN)
    raw = _object()
    if unknown := raw.keys() - {"name", "kind", "url", "addresses", "least_severity"}:
        raise BadRequest(min(unknown), "is not a field of a channel")
    kind = _word(raw, "kind", ChannelKind)
    least = _word({"least_severity": Severity.WARNING, **raw}, "least_severity", Severity)
    name = _text(raw, "name")
    with database().transaction() as connection:
        target: Target = _refusing(lambda: _target(kind, raw))
        _refusing(
            lambda: alert_channels.add_channel(
                connection, vault(), workspace_id=who.workspace_id, name=name, kind=kind, target=target,
                least_severity=least, user_id=who.user_id,
            )
        )  # fmt: skip
        made = next(one for one in alert_channels.list_channels(connection, who.workspace_id) if one.name == name)
    return answer({**_channel(made), "secret": target.secret or None}, 201)


@blueprint.delete("/channels/<string:name>")
@by_token
def remove_channel(name: str) -> Response:
    """Tell nobody there any more."""
    who = reading.operator(Role.ADMIN)
    with database().transaction() as connection:
        _on_channel(
            lambda: alert_channels.remove_channel(
                connection, name, workspace_id=who.workspace_id, user_id=who.user_id
            )
        )  # fmt: skip
    return Response(status=204)


@blueprint.post("/channels/<string:name>/test")
@by_token
def try_channel(name: str) -> Response:
    """Have a worker send a test there."""
    who = reading.operator()
    with database().transaction() as connection:
        _on_channel(
            lambda: alert_channels.try_channel(connection, name, workspace_id=who.workspace_id, user_id=who.user_id)
        )
        (found,) = [one for one in alert_channels.list_channels(connection, who.workspace_id) if one.name == name]
    return answer(_channel(found), 202)


def _on_channel(act: Callable[[], None]) -> None:
    try:
        act()
    except Refused:
        raise Problem("not-found", "The workspace of this token has no channel of this name.") from None


def _target(kind: ChannelKind, raw: dict[str, Any]) -> Target:
    if kind is not ChannelKind.EMAIL:
        make = alert_channels.webhook_target if kind is ChannelKind.WEBHOOK else alert_channels.slack_target
        return make(_text(raw, "url", limit=alert_channels.LONGEST_URL))
    addresses = raw.get("addresses")
    if not isinstance(addresses, list) or not all(isinstance(one, str) and storable(one) for one in addresses):
        raise BadRequest("addresses", "must be a list of addresses")
    return alert_channels.email_target(addresses)


def _word(raw: dict[str, Any], name: str, words: type[Word]) -> Word:
    value = raw.get(name)
    if not isinstance(value, str) or value not in set(words):
        raise BadRequest(name, f"is one of: {', '.join(words)}")
    return words(value)


def _refusing(act: Any) -> Any:
    try:
        return act()
    except Refused as refusal:
        raise Problem("bad-request", f"{str(refusal)[:1].upper()}{str(refusal)[1:]}.") from None


def _object() -> dict[str, Any]:
    if request.mimetype != "application/json":
        raise Problem("wrong-content-type", "Send it as application/json.")
    raw = reading.parsed(raw_body(MAX_BODY))
    if not isinstance(raw, dict):
        raise BadRequest("request", "must be a JSON object")
    return raw


def _text(raw: dict[str, Any], name: str, *, limit: int = 255) -> str:
    value = raw.get(name) or ""
    if not isinstance(value, str) or len(value) > limit or not storable(value):
        raise BadRequest(name, f"must be text of at most {limit} characters")
    return value


def _number(raw: dict[str, Any], name: str, otherwise: float | None = None) -> float:
    value = raw.get(name, otherwise)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or abs(value) > 1e12:
        raise BadRequest(name, "must be a number")
    return min(float(value), 1e9)


def _wanted(name: str, raw: dict[str, Any]) -> Rule:
    known = {
        "measure", "threshold", "clears_at", "for_seconds", "over_seconds", "least", "severity", "mailstream", "enabled"
    }  # fmt: skip
    if unknown := raw.keys() - known:
        raise BadRequest(min(unknown), "is not a field of a rule")
    if raw.get("measure") not in set(Measure):
        raise BadRequest("measure", f"is one of: {', '.join(Measure)}")
    if raw.get("severity", Severity.WARNING.value) not in set(Severity):
        raise BadRequest("severity", f"is one of: {', '.join(Severity)}")
    if not isinstance(raw.get("enabled", True), bool):
        raise BadRequest("enabled", "is true or false")
    threshold = _number(raw, "threshold")
    return Rule(
        name=name, measure=Measure(raw["measure"]), threshold=threshold,
        clears_at=_number(raw, "clears_at", threshold / 2),
        hold_for=timedelta(seconds=_number(raw, "for_seconds", 300)),
        span=timedelta(seconds=_number(raw, "over_seconds", 900)), least=int(_number(raw, "least", 0)),
        severity=Severity(raw.get("severity", Severity.WARNING.value)), mailstream=_text(raw, "mailstream"),
        enabled=raw.get("enabled", True),
    )  # fmt: skip


def _alert(alert: AlertRow) -> dict[str, object]:
    return {
        "id": alert.id, "rule": alert.rule, "measure": str(alert.measure), "mailstream": alert.mailstream or None,
        "severity": str(alert.severity), "threshold": alert.threshold, "value": alert.value, "worst": alert.worst,
        "opened_at": iso(alert.opened_at), "closed_at": iso(alert.closed_at) if alert.closed_at else None,
        "silenced": alert.silenced,
        "notices": {
            "delivered": alert.delivered, "waiting": alert.waiting, "given_up": alert.given_up,
            "last_error": alert.last_error,
        },
    }  # fmt: skip


def _rule(rule: RuleRow) -> dict[str, object]:
    return {
        "name": rule.name, "measure": str(rule.measure), "mailstream": rule.mailstream or None,
        "threshold": rule.threshold, "clears_at": rule.clears_at, "for_seconds": rule.hold_for.total_seconds(),
        "over_seconds": rule.span.total_seconds(), "least": rule.least, "severity": str(rule.severity),
        "enabled": rule.enabled, "state": str(rule.state), "since": iso(rule.since), "value": rule.value,
    }  # fmt: skip


def _channel(one: ChannelRow) -> dict[str, object]:
    return {
        "name": one.name, "kind": str(one.kind), "to": one.shown, "least_severity": str(one.least_severity),
        "last_notice": iso(one.last_at) if one.last_at else None,
        "last_notice_arrived": iso(one.last_delivered_at) if one.last_delivered_at else None,
        "last_error": one.last_error,
    }  # fmt: skip


def _silence(one: Silence) -> dict[str, object]:
    return {
        "id": one.id, "rule": one.rule or None, "mailstream": one.mailstream or None, "until": iso(one.until),
        "reason": one.reason, "who": one.who,
    }  # fmt: skip
