"""``/api/v1/alerts``: what fires, what is watched, and when nobody is to be told. The rules are those of the page."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any

from flask import Blueprint, Response, request

from dashboard.ledger import alert_rules
from dashboard.ledger import alerts as ledger_alerts
from dashboard.ledger.alert_rules import Rule, RuleRow
from dashboard.ledger.alerts import AlertRow, Silence
from dashboard.ledger.measures import Measure
from dashboard.ledger.refused import Refused
from dashboard.ledger.requests import BadRequest, storable
from dashboard.ledger.tables import Severity
from dashboard.web.api import problems, reading
from dashboard.web.api.problems import Problem
from dashboard.web.api.shown import answer, iso
from dashboard.web.bodies import raw_body
from dashboard.web.permissions import by_token
from dashboard.web.state import database

MAX_BODY = 20_000
LIMIT = 200

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


def _silence(one: Silence) -> dict[str, object]:
    return {
        "id": one.id, "rule": one.rule or None, "mailstream": one.mailstream or None, "until": iso(one.until),
        "reason": one.reason, "who": one.who,
    }  # fmt: skip
