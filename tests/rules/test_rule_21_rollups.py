"""Rule 21: roll-ups say what the ledger says, whichever way they came to be."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

import pytest
from psycopg.rows import dict_row, namedtuple_row

from dashboard.ledger import attempts, events, outbox, retention, rollups
from dashboard.ledger.database import Connection
from dashboard.ledger.events import Told
from dashboard.ledger.metrics import SUMMED
from dashboard.ledger.tables import NO_ACCOUNT, metadata
from dashboard.lifecycle import Decision, EventType
from dashboard.worker.roll_up import roll_up
from tests.conftest import SOAK
from tests.factories import Factory, at
from tests.ledger.course import BACKOFF, Ledger, now_of
from tests.place import outcome_of

DERIVED = ("rollups", "rollup_hours", "latencies", "latency_hours", "carriers")
MEASURED = ("outbox_age_seconds", "unknown")

Row = tuple[object, ...]


def figures(connection: Connection) -> dict[str, list[Row]]:
    """All that is rolled up, but for what is measured at its moment."""
    found = {}
    for table in DERIVED:
        names = [column.name for column in metadata.tables[f"sendonce.{table}"].c if column.name not in MEASURED]
        listed = ", ".join(names)
        found[table] = connection.execute(
            f"select {listed} from sendonce.{table} where mailstream <> '' order by {listed}"  # type: ignore[call-overload]
        ).fetchall()
    return found


def roll_all_up(ledger: Ledger, limit: int = 3) -> None:
    """In small passes, as if a lot was waiting."""
    while True:
        with ledger.step() as connection:
            if roll_up(connection, limit) == 0:
                return


def rebuilt(ledger: Ledger) -> dict[str, list[Row]]:
    """Everything counted anew, from a ledger without any roll-up."""
    with ledger.step() as connection:
        for table in ("dirty", *DERIVED):
            connection.execute(f"delete from sendonce.{table}")  # type: ignore[call-overload]
        rollups.mark_all(connection)
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
        ledger.age(chance.choice([1, 2, 60]))


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
    assert set(map(len, figures(factory.connection).values())) == {0}


def test_a_backlog_of_many_minutes_is_counted_whole(factory: Factory) -> None:
    for minute in range(rollups.MINUTES + 5):
        factory.pending(asked=60 * minute)
    rollups.mark_all(factory.connection)
    assert rollups.roll_up(factory.connection, limit=10_000) == rollups.MINUTES + 5
    assert len(figures(factory.connection)["rollups"]) == rollups.MINUTES + 5
    hours = figures(factory.connection)["rollup_hours"]
    assert [hour[5] for hour in hours] == [60, 60, 5]


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


# ── random histories ─────────────────────────────────────────────────────────────────────────────────────────────────


class History:
    """Whatever may happen to a ledger, at random: the same seed gives the same history."""

    def __init__(self, ledger: Ledger, seed: int) -> None:
        self.ledger = ledger
        self.dice = random.Random(seed)
        self.keys = 0
        self.started: list[attempts.Started] = []
        self.told: list[tuple[UUID, EventType, dict[str, Any]]] = []
        second = ledger.add_stream("welcome")
        assert second != ledger.made.account, "figures of two accounts have to be told apart"

    def step(self) -> str:
        """One thing happens. Returns its name."""
        often = [self.ask] * 4 + [self.start] * 2 + [self.finish] * 4 + [self.hear] * 3 + [self.hear_again] * 2
        seldom = [self.sweep, self.ledger.reconcile, self.decide, self.age, self.strip]
        happening = self.dice.choice(often + seldom)
        happening()
        return happening.__name__

    def ask(self) -> None:
        self.keys += self.dice.random() < 0.7
        self.ledger.ask(
            f"k{self.dice.randint(max(self.keys - 3, 0), self.keys)}",
            subject=self.dice.choice(["Your receipt"] * 4 + ["Another one"]),
            mailstream=self.dice.choice(["receipts", "welcome"]),
            source=self.dice.choice(["outbox", "api", "queue"]),
            type=self.dice.choice(["order.paid", "order.shipped"]),
            endpoint=self.dice.choice(["/hooks/a", "/hooks/b"]),
        )

    def start(self) -> None:
        self.started += self.ledger.start()

    def finish(self) -> None:
        if self.started:
            one = self.started.pop(self.dice.randrange(len(self.started)))
            kind: Any = self.dice.choice(
                ["accepted", "accepted", "refused", "refused_for_now", "ambiguous", "never_written"]
            )
            self.ledger.finish(one, kind, f"m-{one.send_id}-{one.n}" if kind == "accepted" else None)

    def hear(self) -> None:
        """Of any send, whatever became of it: early, late, out of order, or ahead of our own clock."""
        with self.ledger.step() as connection:
            ids = connection.execute("select id from sendonce.sends order by id").fetchall()
            now = now_of(connection)
        if not ids:
            return
        words = [EventType.DELIVERED] * 3 + [
            EventType.BOUNCED,
            EventType.COMPLAINED,
            EventType.OPENED,
            EventType.DEFERRED,
        ]
        ago = timedelta(minutes=self.dice.choice([-600, -1, 0, 1, 5, 61, 4000]))
        facts = {"occurred_at": now - ago, "event_id": f"e{len(self.told)}"}
        self.told.append((self.dice.choice(ids)[0], self.dice.choice(words), facts))
        self.ledger.hear(self.told[-1][0], self.told[-1][1], **facts)

    def hear_again(self) -> None:
        if self.told:
            send_id, word, facts = self.dice.choice(self.told)
            other_id = {"event_id": f"again-{self.dice.random()}"} if self.dice.random() < 0.5 else {}
            self.ledger.hear(send_id, word, **(facts | other_id))

    def decide(self) -> None:
        self.ledger.decide(self.dice.choice([Decision.CANCEL, Decision.MARK_ACCEPTED, Decision.RESEND]))

    def sweep(self) -> None:
        if self.dice.random() < 0.3:
            self.ledger.claim()
        self.ledger.sweep()

    def age(self) -> None:
        self.ledger.age(self.dice.choice([1, 7, 60, 500]))

    def strip(self) -> None:
        """Retention takes away what it may."""
        with self.ledger.step() as connection:
            connection.execute("update sendonce.mailstreams set retain_for = interval '6 hours'")
            retention.strip(connection, self.ledger.vault)


def counted(connection: Connection) -> Counter[tuple[object, ...]]:
    """What the roll-ups should say, counted one by one from the rows of the ledger."""

    def rows(query: LiteralString) -> Iterator[Any]:
        with connection.cursor(row_factory=namedtuple_row) as cursor:
            yield from cursor.execute(query)

    def minute(at: datetime) -> datetime:
        return at.replace(second=0, microsecond=0)

    count: Counter[tuple[object, ...]] = Counter()
    sends = {row.id: row for row in rows("select * from sendonce.sends")}
    tries = {(row.send_id, row.n): row for row in rows("select * from sendonce.attempts")}

    def add(
        name: str, send_id: UUID, at: datetime, account: UUID = NO_ACCOUNT, *, source: str = "", n: int = 1
    ) -> None:
        send = sends[send_id]
        count[name, send.mailstream, account, source or send.source, minute(at)] += n

    for send in sends.values():
        add("recorded", send.id, send.recorded_at)
        add("due", send.id, send.due_at)
        if send.state == "accepted":
            add("due_accepted", send.id, send.due_at)
        elif send.state in ("suppressed", "cancelled"):
            add("due_stopped", send.id, send.due_at)
    for later in rows("select * from sendonce.duplicates"):
        add(later.verdict, later.send_id, later.at, source=later.source)
    for attempt in tries.values():
        add("attempts", attempt.send_id, attempt.started_at, attempt.account_id)
        add("claims", attempt.send_id, attempt.started_at, attempt.account_id)
        if attempt.status != "submitting":
            add(f"attempts_{attempt.status}", attempt.send_id, attempt.started_at, attempt.account_id)
        if attempt.doubted_at:
            add("doubted", attempt.send_id, attempt.doubted_at, attempt.account_id)
    for event in rows("select * from sendonce.events"):
        happened = min(event.occurred_at, event.received_at)
        if event.event_type in ("delivered", "bounced", "complained"):
            add(event.event_type, event.send_id, happened, event.account_id)
        if event.repeats + event.other_ids:
            add("event_repeats", event.send_id, happened, event.account_id, n=event.repeats + event.other_ids)
    for move in rows("select * from sendonce.moves"):
        attempt = tries.get((move.send_id, move.attempt))
        account = attempt.account_id if attempt else NO_ACCOUNT
        if move.made_by == "sweep":
            add("stale_claims", move.send_id, move.at, account)
        if move.to_state == "held":
            add("held", move.send_id, move.at, account)
        if move.from_state == "claimed" and not (attempt and attempt.claim_number == move.claim_number):
            add("claims", move.send_id, move.at, account)
    return count


def rolled_up(connection: Connection) -> Counter[tuple[object, ...]]:
    """The same, as the roll-ups say it."""
    count: Counter[tuple[object, ...]] = Counter()
    with connection.cursor(row_factory=dict_row) as cursor:
        for row in cursor.execute("select * from sendonce.rollups where mailstream <> ''"):
            for name in SUMMED:
                count[name, row["mailstream"], row["account_id"], row["source"], row["minute"]] += row[name]
    return +count


@pytest.mark.parametrize("seed", range(60 if SOAK else 4))
def test_after_any_history_the_roll_ups_are_the_ledgers_and_a_rebuild_changes_nothing(
    ledger: Ledger, seed: int
) -> None:
    history = History(ledger, seed)
    for _ in range(120):
        history.step()
        if history.dice.random() < 0.3:
            roll_all_up(ledger, limit=history.dice.choice([1, 20, 1000]))
    roll_all_up(ledger, limit=1000)
    with ledger.step() as connection:
        incremental = figures(connection)
        assert rolled_up(connection) == counted(connection)
    assert rebuilt(ledger) == incremental
    assert all(incremental.values()), "nothing was left out of the history"


# ── many sends ───────────────────────────────────────────────────────────────────────────────────────────────────────

SENDS, AT_ONCE = (100_000, 1_000) if SOAK else (200, 50)


class Crowd(History):
    """The same kinds of things, to many sends at once."""

    def ask_many(self, number: int) -> None:
        """So many new keys; one in five deliveries is of a key that was there before, also with other content."""
        requests = []
        for _ in range(number * 5 // 4):
            again = self.keys > 0 and self.dice.random() < 0.2
            self.keys += not again
            which = self.dice.randrange(self.keys) if again else self.keys - 1
            requests.append({
                "mailstream": ("receipts", "welcome")[which % 2], "key": f"k{which}",
                "recipient": {"id": "recipient_1", "address": "ada@example.com"},
                "trigger": {
                    "type": self.dice.choice(["order.paid", "order.shipped"]), "id": f"evt_{len(requests)}",
                    "endpoint": self.dice.choice(["/hooks/a", "/hooks/b"]),
                },
                "message": {
                    "from": "shop@example.com", "text": "!", "subject": "Hi" if self.dice.random() < 0.95 else "Ho",
                },
            })  # fmt: skip
        with self.ledger.step() as connection:
            connection.execute(
                "insert into sendonce.outbox (send_id, workspace_id, source, request)"
                " select sendonce.send_id(w, request ->> 'mailstream', request ->> 'key'), w, source, request"
                " from (select %s::uuid as w, unnest(%s::text[]) as source, unnest(%s::jsonb[]) as request) asked",
                [
                    self.ledger.made.workspace,
                    [self.dice.choice(["outbox", "api", "queue"]) for _ in requests],
                    [json.dumps(request) for request in requests],
                ],
            )
        relayed = 1
        while relayed:
            with self.ledger.step() as connection:
                relayed = len(outbox.relay(connection, self.ledger.vault, limit=1000, worker=self.ledger.worker).met)

    def finish_many(self) -> None:
        """Most calls end, in any order; the others are left for the sweep, or answer much later."""
        self.dice.shuffle(self.started)
        ended = [self.started.pop() for _ in range(len(self.started) * 4 // 5)]
        kinds: list[Any] = ["accepted"] * 6 + ["refused", "refused_for_now", "ambiguous", "never_written"]
        outcomes = []
        for one in ended:
            kind = self.dice.choice(kinds)
            message_id = f"m-{one.send_id}-{one.n}" if kind == "accepted" else None
            code = None if kind == "accepted" else "500"
            outcomes.append(outcome_of(one, kind, message_id, error_code=code))
        with self.ledger.step() as connection:
            attempts.finish(
                connection, self.ledger.worker, outcomes, backoff=BACKOFF, breaker=timedelta(microseconds=1)
            )

    def hear_many(self, number: int) -> None:
        """Events of any sends: late, ahead of our clock, out of order; and earlier ones again, also under other ids."""
        with self.ledger.step() as connection:
            rows = connection.execute(
                "select id from sendonce.sends order by md5(id::text || %s) limit %s",
                [str(len(self.told)), number],
            ).fetchall()
            now = now_of(connection)
        words = [EventType.DELIVERED] * 3 + [EventType.BOUNCED, EventType.COMPLAINED, EventType.DEFERRED]
        fresh = []
        for (send_id,) in rows:
            ago = timedelta(minutes=self.dice.choice([-600, -1, 0, 1, 5, 61, 4000]))
            facts: dict[str, Any] = {"occurred_at": now - ago, "event_id": f"e{len(self.told) + len(fresh)}"}
            fresh.append((send_id, self.dice.choice(words), facts))
        again = [
            (send_id, word, facts | ({"event_id": f"again-{self.dice.random()}"} if self.dice.random() < 0.5 else {}))
            for send_id, word, facts in self.dice.sample(self.told, min(len(self.told), number // 4))
        ]
        self.told += fresh
        told = [Told(event_type=word, send_id=str(send_id), **facts) for send_id, word, facts in [*fresh, *again]]
        self.dice.shuffle(told)
        with self.ledger.step() as connection:
            events.ingest(
                connection, self.ledger.vault, workspace_id=self.ledger.made.workspace,
                account_id=self.ledger.made.account, told=told, received_at=now,
            )  # fmt: skip


def test_the_roll_ups_of_many_sends_are_the_ledgers_and_a_rebuild_changes_nothing(ledger: Ledger) -> None:
    """200 sends here, 100,000 in the long form, with late, repeated and out-of-order events."""
    crowd = Crowd(ledger, seed=21)
    rounds = SENDS // AT_ONCE
    for number in range(rounds):
        crowd.ask_many(AT_ONCE)
        crowd.start()
        crowd.finish_many()
        crowd.hear_many(AT_ONCE)
        if crowd.dice.random() < 0.3:
            crowd.sweep()
            ledger.reconcile()
        if crowd.dice.random() < 0.7:
            with ledger.step() as connection:
                roll_up(connection, crowd.dice.choice([20, 1000, 100_000]))
        if number % max(rounds // 10, 2) == 1:
            ledger.age(crowd.dice.choice([1, 7, 60, 500]))
    roll_all_up(ledger, limit=100_000)
    with ledger.step() as connection:
        incremental = figures(connection)
        rolled, true = rolled_up(connection), counted(connection)
    assert rolled == true
    recorded = sum(number for name, number in rolled.items() if name[0] == "recorded")
    assert recorded >= SENDS * 0.95
    assert {str(name[0]) for name in rolled} >= {
        "recorded", "duplicate", "mismatch", "attempts_ambiguous", "delivered", "bounced", "complained",
        "event_repeats", "stale_claims",
    }  # fmt: skip
    assert rebuilt(ledger) == incremental
