"""Alert: look at the rules, let them fire and clear, and tell people.

No worker leads. Each look locks the rules that are due and passes over those that others have locked; it ends with its
transaction. Every time in it is the database's.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby

from dashboard.insight.alarm import Bounds, Stand, step
from dashboard.ledger import alert_rules, alerts
from dashboard.ledger.alert_rules import DueRule
from dashboard.ledger.database import Connection, database_now
from dashboard.ledger.measures import Measure, Question, read_measures
from dashboard.ledger.tables import AlertState
from dashboard.log import Action, log

EVERY = timedelta(seconds=10)
"""So often each rule is looked at."""


def look(connection: Connection, *, every: timedelta = EVERY, limit: int = 500) -> int:
    """Look at the rules that are due, and make the notices of what changed, in the connection's transaction.

    Returns how many rules were looked at: 0 where none is due, or others are at it.
    """
    rules = alert_rules.lock_due(connection, every=every, limit=limit)
    if rules:
        now = database_now(connection)
        looks = []
        for rule, value in _valued(connection, rules):
            stand = step(
                Bounds(rule.threshold, rule.clears_at, rule.hold_for), Stand(rule.state, rule.since),
                value=value, now=now, looked_at=rule.looked_at,
            )  # fmt: skip
            looks.append((rule, value, stand.state, stand.since))
            _say(rule, stand.state)
        alert_rules.save_looks(connection, looks)
    alerts.make_notices(connection)
    return len(rules)


def _valued(connection: Connection, rules: list[DueRule]) -> list[tuple[DueRule, float]]:
    """Each rule with what its measure is now; each workspace's sources are read once."""
    valued: list[tuple[DueRule, float]] = []
    rules = sorted(rules, key=lambda rule: (rule.workspace_id, rule.name))
    for workspace_id, group in groupby(rules, key=lambda rule: rule.workspace_id):
        of_it = list(group)
        known = [rule for rule in of_it if rule.measure in set(Measure)]  # a newer version may know more
        questions = [Question(Measure(rule.measure), rule.mailstream, rule.span, rule.least) for rule in known]
        valued += zip(known, read_measures(connection, workspace_id, questions), strict=True)
    return valued


def _say(rule: DueRule, state: AlertState) -> None:
    was_open, is_open = (s in (AlertState.FIRING, AlertState.CLEARING) for s in (rule.state, state))
    if was_open != is_open:
        action = Action.ALERT_FIRED if is_open else Action.ALERT_CLEARED
        log.warning(action, workspace=str(rule.workspace_id), rule=rule.name, severity=str(rule.severity))
