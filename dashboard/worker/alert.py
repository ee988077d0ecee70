"""Alert: look at the rules, let them fire and clear, and tell people.

No worker leads. Each look locks the rules that are due and passes over those that others have locked; it ends with its
transaction. Every time in it is the database's. Whatever fails for one workspace is said, undone, and tried again with
the next look; it keeps nobody else from being watched or told.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from itertools import groupby
from uuid import UUID

from dashboard.insight.alarm import Bounds, Stand, step
from dashboard.ledger import alert_rules, alerts
from dashboard.ledger.alert_rules import DueRule
from dashboard.ledger.database import Connection, database_now
from dashboard.ledger.measures import Measure, Question, read_measures
from dashboard.ledger.tables import AlertState
from dashboard.log import Action, log
from dashboard.worker.meters import ERRORS
from dashboard.worker.trouble import named

EVERY = timedelta(seconds=10)
"""So often each rule is looked at."""


def look(connection: Connection, *, every: timedelta = EVERY, limit: int = 500) -> int:
    """Look at the rules that are due, and make the notices of what changed, in the connection's transaction.

    Returns how many rules were due: 0 where none is, or others are at it.
    """
    rules = alert_rules.lock_due(connection, every=every, limit=limit)
    now = database_now(connection)
    rules.sort(key=lambda rule: (rule.workspace_id, rule.name))
    for workspace_id, group in groupby(rules, key=lambda rule: rule.workspace_id):
        of_it = list(group)
        if not _apart(connection, workspace_id, partial(_look_at, connection, workspace_id, of_it, now)):
            _apart(connection, workspace_id, partial(alert_rules.put_off, connection, of_it))
    for workspace_id in alerts.with_news(connection):
        _apart(connection, workspace_id, partial(alerts.make_notices, connection, workspace_id))
    return len(rules)


def _apart(connection: Connection, workspace_id: UUID, act: Callable[[], object]) -> bool:
    """Do it for one workspace. False where it failed, and was undone alone; a connection that is lost is lost for
    all."""
    try:
        with connection.transaction():
            act()
    except Exception as error:
        if connection.closed:
            raise
        ERRORS.labels("alert").inc()
        log.warning(Action.LOOP_FAILED, loop="alert", workspace=str(workspace_id), error=named(error))
        return False
    return True


def _look_at(connection: Connection, workspace_id: UUID, rules: list[DueRule], now: datetime) -> None:
    """Look at rules of one workspace, and store what was seen."""
    known = [rule for rule in rules if rule.measure in set(Measure)]  # a newer version may know more
    questions = [Question(Measure(rule.measure), rule.mailstream, rule.span, rule.least) for rule in known]
    looks = []
    for rule, value in zip(known, read_measures(connection, workspace_id, questions), strict=True):
        stand = step(
            Bounds(rule.threshold, rule.clears_at, rule.hold_for), Stand(rule.state, rule.since),
            value=value, now=now, looked_at=rule.looked_at,
        )  # fmt: skip
        looks.append((rule, value, stand.state, stand.since))
    alert_rules.save_looks(connection, looks)
    for rule, _, state, _ in looks:
        _say(rule, state)


def _say(rule: DueRule, state: AlertState) -> None:
    was_open, is_open = (s in (AlertState.FIRING, AlertState.CLEARING) for s in (rule.state, state))
    if was_open != is_open:
        action = Action.ALERT_FIRED if is_open else Action.ALERT_CLEARED
        log.warning(action, workspace=str(rule.workspace_id), rule=rule.name, severity=str(rule.severity))
