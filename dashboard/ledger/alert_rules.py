"""The rules of alerts: what they are, how people change them, and where each stands."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.rows import class_row

from dashboard.ledger import audit
from dashboard.ledger.database import Connection, run, statement
from dashboard.ledger.measures import FACTS, Measure, Unit
from dashboard.ledger.refused import Refused
from dashboard.ledger.tables import AlertState, Severity

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
LONGEST = timedelta(days=7)
MOST_RULES = 200
"""Of one workspace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """It fires when ``measure`` was above ``threshold`` for ``hold_for``."""

    name: str
    measure: Measure
    threshold: float
    clears_at: float
    hold_for: timedelta
    span: timedelta = timedelta(minutes=15)
    least: int = 0
    severity: Severity = Severity.WARNING
    mailstream: str = ""
    enabled: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow(Rule):
    """A rule and where it stands."""

    state: AlertState
    since: datetime
    value: float | None
    looked_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DueRule(RuleRow):
    """A rule that this transaction has locked to look at."""

    workspace_id: UUID


def _rule(
    name: str, measure: Measure, threshold: float, clears_at: float, hold: int, severity: Severity, span: int = 15,
    least: int = 0,
) -> Rule:  # fmt: skip
    return Rule(
        name=name, measure=measure, threshold=threshold, clears_at=clears_at, hold_for=timedelta(minutes=hold),
        severity=severity, span=timedelta(minutes=span), least=least,
    )  # fmt: skip


_LOOK, _NOW = Severity.WARNING, Severity.CRITICAL

DEFAULTS: tuple[Rule, ...] = (
    _rule("outbox-stuck", Measure.OUTBOX_AGE, 120, 30, 1, _NOW),
    _rule("due-not-claimed", Measure.DUE_AGE, 600, 120, 2, _NOW),
    _rule("stale-claims", Measure.STALE_CLAIMS, 0, 0, 2, _LOOK),
    _rule("unknown-many", Measure.UNKNOWN, 50, 20, 5, _LOOK),
    _rule("held-too-long", Measure.HELD_AGE, 4 * 3600, 3600, 0, _LOOK),
    _rule("duplicate-claims", Measure.DUPLICATE_RATE, 0.2, 0.1, 5, _LOOK, 15, 50),
    _rule("mismatches", Measure.MISMATCHES, 0, 0, 0, _LOOK),
    _rule("not-accepted", Measure.GAP_RATE, 0.1, 0.05, 5, _NOW, 30, 20),
    _rule("unanswered-attempts", Measure.AMBIGUOUS_RATE, 0.05, 0.02, 5, _LOOK, 10, 20),
    _rule("refused-attempts", Measure.REJECTED_RATE, 0.2, 0.1, 5, _LOOK, 10, 20),
    _rule("bounces", Measure.BOUNCE_RATE, 0.05, 0.03, 10, _LOOK, 60, 100),
    _rule("complaints", Measure.COMPLAINT_RATE, 0.003, 0.001, 10, _LOOK, 24 * 60, 1000),
    _rule("dead-letters", Measure.DEAD_LETTERS, 0, 0, 0, _LOOK),
    _rule("account-paused", Measure.ACCOUNTS_PAUSED, 0, 0, 5, _NOW),
    _rule("account-broken", Measure.ACCOUNTS_BROKEN, 0, 0, 0, _LOOK),
    _rule("worker-lost", Measure.WORKERS_LOST, 0, 0, 0, _LOOK),
    _rule("accepted-twice", Measure.ACCEPTED_TWICE, 0, 0, 0, _NOW, 60),
    _rule("sending-off", Measure.SENDING_OFF, 0, 0, 0, _NOW),
)
"""What a new workspace is watched by. Rates need some mail before they say anything."""


def add_defaults(connection: Connection, workspace_id: UUID) -> list[str]:
    """Give a workspace the rules of :data:`DEFAULTS` that it lacks; their names."""
    lacking = {rule.name for rule in DEFAULTS} - {rule.name for rule in list_rules(connection, workspace_id)}
    for rule in DEFAULTS:
        if rule.name in lacking:
            _save(connection, workspace_id, rule)
    return sorted(lacking)


def list_rules(connection: Connection, workspace_id: UUID) -> list[RuleRow]:
    """The rules of a workspace: what fires first, then by name."""
    rows = connection.cursor(row_factory=class_row(RuleRow)).execute(
        """
        select name, measure, mailstream, threshold, clears_at, hold_for, span, least, severity::text as severity,
          enabled, state::text as state, since, value, looked_at
        from sendonce.alert_rules where workspace_id = %s
        order by array_position('{firing,clearing,rising,quiet}', state::text), severity desc, name
        """,
        (workspace_id,),
    )
    return rows.fetchall()


def find_rule(connection: Connection, workspace_id: UUID, name: str) -> RuleRow | None:
    """The rule of that name."""
    return next((rule for rule in list_rules(connection, workspace_id) if rule.name == name), None)


def put_rule(
    connection: Connection, rule: Rule, *, workspace_id: UUID, user_id: UUID | None, token_id: UUID | None = None
) -> None:
    """Make a rule, or change the one of that name; its clock starts anew. Raises :class:`Refused`."""
    check_rule(rule)
    present = {row.name for row in list_rules(connection, workspace_id)}
    if rule.name not in present and len(present) >= MOST_RULES:
        raise Refused(f"a workspace has at most {MOST_RULES} rules: remove one first")
    if rule.mailstream:
        known = connection.execute(
            "select from sendonce.mailstreams where workspace_id = %s and name = %s", (workspace_id, rule.mailstream)
        )
        if known.rowcount == 0:
            raise Refused(f"there is no mailstream {rule.mailstream!r}; leave it out to watch all of them")
    _close(connection, workspace_id, rule.name)
    _save(connection, workspace_id, rule)
    told = {name: str(value) for name, value in asdict(rule).items() if name != "name"}
    audit.record(
        connection, audit.Action.SET_ALERT_RULE, workspace_id=workspace_id, user_id=user_id, token_id=token_id,
        subject=rule.name, detail=told,
    )  # fmt: skip


def remove_rule(
    connection: Connection, name: str, *, workspace_id: UUID, user_id: UUID | None, token_id: UUID | None = None
) -> None:
    """Watch for this no more; what fired stays in the history. Raises :class:`Refused`."""
    _close(connection, workspace_id, name)
    gone = connection.execute(
        "delete from sendonce.alert_rules where workspace_id = %s and name = %s", (workspace_id, name)
    )
    if gone.rowcount == 0:
        raise Refused(f"there is no rule {name!r}; see the list of rules")
    audit.record(
        connection, audit.Action.REMOVE_ALERT_RULE, workspace_id=workspace_id, user_id=user_id, token_id=token_id,
        subject=name,
    )  # fmt: skip


def check_rule(rule: Rule) -> None:
    """Raises :class:`Refused` where the rule makes no sense."""
    fact = FACTS[rule.measure]
    if not NAME.fullmatch(rule.name):
        raise Refused("a rule's name has 1 to 63 lower-case letters, digits or -, such as outbox-stuck")
    if not all(map(math.isfinite, (rule.threshold, rule.clears_at))) or min(rule.threshold, rule.clears_at) < 0:
        raise Refused("threshold and clears-at are numbers from 0 on")
    if rule.clears_at > rule.threshold:
        raise Refused("a rule clears at or below its threshold: clears-at must not be greater")
    if fact.unit is Unit.SHARE and rule.threshold >= 1:
        raise Refused("a rate is a share of one: give 0.05 for 5 %")
    if not timedelta() <= rule.hold_for <= LONGEST:
        raise Refused("for: from nothing to 7 days")
    if not timedelta(minutes=1) <= rule.span <= LONGEST:
        raise Refused("span: from a minute to 7 days")
    if not 0 <= rule.least <= 1_000_000_000:
        raise Refused("least: a whole number from 0 on")
    if rule.mailstream and not fact.by_stream:
        raise Refused(f"{rule.measure} is not counted by mailstream: leave the mailstream out")


def lock_due(connection: Connection, *, every: timedelta, limit: int) -> list[DueRule]:
    """Lock enabled rules that nobody looked at for so long, the longest waiting first, and pass over locked ones.

    The lock lasts to the transaction's end, and a look is stored with it: so each is looked at by one worker at a time.
    """
    rows = connection.cursor(row_factory=class_row(DueRule))
    return rows.execute(statement("lock_alert_rules"), {"every": every, "limit": limit}, binary=True).fetchall()


def save_looks(connection: Connection, looks: Sequence[tuple[DueRule, float, AlertState, datetime]]) -> None:
    """Store value, state and since of the rules that this transaction has locked; open and close their alerts."""
    columns: list[list[object]] = [[], [], [], [], []]
    for rule, value, state, since in looks:
        for column, part in zip(columns, (rule.workspace_id, rule.name, value, str(state), since), strict=True):
            column.append(part)
    names = ("workspace_id", "name", "value", "state", "since")
    run(connection, "save_alert_looks", **dict(zip(names, columns, strict=True)))


def put_off(connection: Connection, rules: Sequence[DueRule]) -> None:
    """Note of locked rules that somebody looked and saw nothing, so that it is the turn of others.

    What is not known did not stay as it was: a rule on its way to fire or to clear begins anew.
    """
    connection.execute(
        """
        update sendonce.alert_rules r set looked_at = now(),
          since = case when r.state in ('rising', 'clearing') then now() else r.since end
        from unnest(%b::uuid[], %b::text[]) unseen (workspace_id, name)
        where r.workspace_id = unseen.workspace_id and r.name = unseen.name
        """,
        ([rule.workspace_id for rule in rules], [rule.name for rule in rules]),
    )


def _save(connection: Connection, workspace_id: UUID, rule: Rule) -> None:
    connection.execute(
        """
        insert into sendonce.alert_rules as r (workspace_id, name, measure, mailstream, threshold, clears_at, hold_for,
          span, least, severity, enabled)
        values (%(workspace_id)s, %(name)s, %(measure)s, %(mailstream)s, %(threshold)s, %(clears_at)s, %(hold_for)s,
          %(span)s, %(least)s, %(severity)s::sendonce.severity, %(enabled)s)
        on conflict (workspace_id, name) do update set measure = excluded.measure, mailstream = excluded.mailstream,
          threshold = excluded.threshold, clears_at = excluded.clears_at, hold_for = excluded.hold_for,
          span = excluded.span, least = excluded.least, severity = excluded.severity, enabled = excluded.enabled,
          state = 'quiet', since = now(), value = null, looked_at = null
        """,
        {"workspace_id": workspace_id, **asdict(rule), "measure": str(rule.measure), "severity": str(rule.severity)},
    )


def _close(connection: Connection, workspace_id: UUID, name: str) -> None:
    """A rule that is changed or removed does not go on firing. Its row is locked first, as a look locks it."""
    connection.execute(
        "select from sendonce.alert_rules where workspace_id = %s and name = %s for update", (workspace_id, name)
    )
    connection.execute(
        "update sendonce.alerts set closed_at = now() where workspace_id = %s and rule = %s and closed_at is null",
        (workspace_id, name),
    )
