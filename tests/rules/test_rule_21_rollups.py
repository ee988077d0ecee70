"""Rule 21: roll-ups say what the ledger says, whichever way they came to be."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta

from dashboard.ledger import rollups
from dashboard.ledger.database import Connection
from dashboard.lifecycle import Decision, EventType
from dashboard.worker.roll_up import roll_up
from tests.factories import Factory, at
from tests.ledger.course import Ledger

FIGURES = (
    "workspace_id, mailstream, minute, recorded, duplicate, in_progress, mismatch, due, due_accepted, due_stopped,"
    " attempts, attempts_accepted, attempts_rejected, attempts_ambiguous, doubted, delivered, bounced, complained,"
    " event_repeats, stale_claims"
)

MARK_ALL = """
insert into sendonce.dirty (workspace_id, mailstream, minute)
select workspace_id, mailstream, date_trunc('minute', recorded_at) from sendonce.sends
union select workspace_id, mailstream, date_trunc('minute', due_at) from sendonce.sends
union select workspace_id, mailstream, date_trunc('minute', at) from sendonce.duplicates
union select workspace_id, mailstream, date_trunc('minute', started_at) from sendonce.attempts
union select workspace_id, mailstream, date_trunc('minute', doubted_at) from sendonce.attempts
  where doubted_at is not null
union select e.workspace_id, s.mailstream, date_trunc('minute', e.received_at)
  from sendonce.events e join sendonce.sends s on s.id = e.send_id
union select h.workspace_id, s.mailstream, date_trunc('minute', h.at)
  from sendonce.moves h join sendonce.sends s on s.id = h.send_id where h.made_by = 'sweep'
union select workspace_id, mailstream, minute from sendonce.rollups where mailstream <> ''
"""
"""Mark every minute that anything in the ledger tells of."""


def figures(connection: Connection) -> list[tuple[object, ...]]:
    return connection.execute(
        f"select {FIGURES} from sendonce.rollups where mailstream <> '' order by workspace_id, mailstream, minute"  # type: ignore[call-overload]
    ).fetchall()


def roll_all_up(ledger: Ledger, limit: int = 3) -> None:
    """In small passes, as if a lot was waiting."""
    while True:
        with ledger.step() as connection:
            if roll_up(connection, limit) == 0:
                return


def rebuilt(ledger: Ledger) -> list[tuple[object, ...]]:
    with ledger.step() as connection:
        connection.execute("delete from sendonce.rollups where mailstream <> ''")
        connection.execute("delete from sendonce.dirty")
        connection.execute(MARK_ALL)
    roll_all_up(ledger, limit=1000)
    with ledger.step() as connection:
        return figures(connection)


def test_rolling_up_as_it_comes_gives_what_a_rebuild_gives(ledger: Ledger) -> None:
    """Each change comes in a later minute than the last one, when all marks so far are used up."""
    changes = course(ledger)
    for step in changes:
        roll_all_up(ledger)
        with ledger.step() as connection:
            incremental = figures(connection)
        assert rebuilt(ledger) == incremental, step
        ledger.age(chance.choice([1, 2, 90]))


chance = random.Random(11)


def course(ledger: Ledger) -> Iterator[str]:
    """All kinds of changes, one after the other."""
    for key in ("accepted", "refused", "later", "doubtful", "answered late", "proved running", "lost"):
        ledger.ask(key)
    yield "recorded"
    for key, subject in (("accepted", "Your receipt"), ("later", "Another one")):
        ledger.ask(key, subject=subject)
    yield "delivered again"
    started = {ledger.key(one.send_id): one for one in ledger.start()}
    yield "started"
    ledger.finish(started["accepted"], "accepted", "m-1")
    yield "accepted"
    ledger.ask("accepted")
    yield "delivered after the end"
    ledger.finish(started["refused"], "refused")
    yield "refused"
    ledger.finish(started["later"], "refused_for_now")
    yield "refused for now"
    ledger.finish(started["doubtful"], "ambiguous")
    ledger.finish(started["answered late"], "ambiguous")
    yield "in doubt"
    ledger.hear(started["proved running"].send_id, EventType.BOUNCED, bounce_class="soft", event_id="bounce")
    yield "proved by an event while it ran"
    ledger.hear(started["proved running"].send_id, EventType.BOUNCED, bounce_class="soft", event_id="bounce")
    yield "told again"
    ledger.hear(started["refused"].send_id, EventType.DELIVERED)
    yield "a failed one proved taken"
    ledger.sweep()
    yield "swept a call that ran"
    ledger.reconcile()
    yield "released by key"
    repeated = {ledger.key(one.send_id): one for one in ledger.start()}
    yield "started again"
    ledger.hear(repeated["doubtful"].send_id, EventType.DELIVERED, attempt=1)
    yield "the first attempt proved by an event while the second ran"
    ledger.finish(started["answered late"], "accepted", "m-2")
    yield "the first attempt answered while the second ran"
    ledger.finish(repeated["later"], "refused")
    yield "refused at last"
    ledger.finish(repeated["lost"], "ambiguous")
    with ledger.step() as connection:
        connection.execute("update sendonce.mailstreams set unknown_policy = 'hold'")
    ledger.reconcile()
    yield "held"
    ledger.decide(Decision.CANCEL)
    yield "cancelled by a person"
    ledger.ask("idle")
    yield "one more"
    ledger.claim()
    yield "claimed"
    ledger.sweep()
    yield "swept a claim without an attempt"
    with ledger.step() as connection:
        connection.execute("update sendonce.work set lapses = 100")
    ledger.claim()
    yield "claimed once too often"
    ledger.sweep()
    yield "swept for the last time, and held"
    ledger.decide(Decision.RESEND)
    (claim,) = ledger.claim()
    with ledger.step() as connection:
        connection.execute(
            "update sendonce.work set cancel_reason = 'cancelled_by_person' where send_id = %s", (claim.send_id,)
        )
    yield "claimed and cancelled"
    ledger.sweep()
    yield "swept a claim that was cancelled"


def test_the_figures_are_those_of_the_ledger(ledger: Ledger) -> None:
    for key in ("a", "a", "b", "c", "d"):
        ledger.ask(key, subject=key)
    ledger.ask("b", subject="another")
    for started in ledger.start():
        kinds = {"a": "accepted", "b": "refused", "c": "ambiguous"}
        key = ledger.key(started.send_id)
        if key in kinds:
            ledger.finish(started, kinds[key])
        if key == "a":
            ledger.hear(started.send_id, EventType.DELIVERED)
    ledger.ask("a", subject="a")
    ledger.sweep()
    roll_all_up(ledger)
    with ledger.step() as connection:
        (total,) = connection.execute(
            "select sum(recorded), sum(duplicate), sum(in_progress), sum(mismatch), sum(due), sum(due_accepted),"
            " sum(due_stopped), sum(attempts), sum(attempts_accepted), sum(attempts_rejected), sum(attempts_ambiguous),"
            " sum(doubted), sum(delivered), sum(bounced), sum(event_repeats), sum(stale_claims) from sendonce.rollups"
        ).fetchall()
    assert [int(figure) for figure in total] == [4, 1, 1, 1, 4, 1, 0, 4, 1, 1, 2, 2, 1, 0, 1, 1]


def test_a_change_that_commits_during_a_roll_up_leaves_its_own_mark(ledger: Ledger) -> None:
    ledger.ask("first")
    with ledger.step() as slow:
        assert roll_up(slow) > 0
        ledger.ask("second")  # commits while the roll-up is still open
    roll_all_up(ledger)
    with ledger.step() as connection:
        assert connection.execute("select sum(recorded) from sendonce.rollups").fetchone() == (2,)


def test_only_one_roll_up_runs_at_a_time(ledger: Ledger) -> None:
    ledger.ask("first")
    with ledger.step() as one, ledger.step() as other:
        assert roll_up(one) > 0
        assert roll_up(other) == 0


def test_a_minute_in_which_nothing_is_left_has_no_row(factory: Factory) -> None:
    factory.rollup(0, recorded=3)
    factory.add("dirty", workspace_id=factory.workspace, mailstream=factory.mailstream, minute=at(0))
    assert rollups.roll_up(factory.connection, limit=10) == 1
    assert figures(factory.connection) == []


def test_a_backlog_of_many_minutes_is_counted_whole(factory: Factory) -> None:
    for minute in range(rollups.MINUTES + 5):
        factory.pending(asked=60 * minute)
    factory.connection.execute(MARK_ALL)
    assert rollups.roll_up(factory.connection, limit=10_000) == rollups.MINUTES + 5
    assert len(figures(factory.connection)) == rollups.MINUTES + 5


def test_the_outbox_age_and_the_unknown_sends_of_a_minute_are_the_greatest_measured(factory: Factory) -> None:
    def measured() -> tuple[float, int]:
        rollups.measure(factory.connection)
        rows = factory.connection.execute(
            "select outbox_age_seconds, unknown from sendonce.rollups where workspace_id = %s and mailstream = ''",
            (factory.workspace,),
        ).fetchall()
        (row,) = rows
        return row

    assert measured() == (0, 0)
    factory.unknown()
    factory.connection.execute(
        "insert into sendonce.outbox (send_id, workspace_id, request, asked_at)"
        " values (gen_random_uuid(), %s, '{}', clock_timestamp() - interval '90 seconds')",
        (factory.workspace,),
    )
    age, unknown = measured()
    assert timedelta(seconds=90) <= timedelta(seconds=age) < timedelta(seconds=120)
    assert unknown == 1
    factory.connection.execute("delete from sendonce.outbox")
    assert measured() == (age, unknown)
