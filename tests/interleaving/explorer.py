"""Plays schedules on the real code and a real database, thousands at once, and says which of them broke a promise.

Each schedule has a send of its own. In every round each send makes the next step of its own schedule; the sends that
make the same step in the same round are one set, as they are in production. A step is the product's own code: the
relay, the claim, the dispatch lane's write-ahead and store, the sweep, the reconciler, the intake of events, a person's
decision. Sends share nothing but their mailstream and account, so a schedule that fails in the crowd fails alone too.

Time passes for a send when its schedule says so: all that the database knows of it becomes older by so much.
"""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, cast
from uuid import UUID, uuid4

import psycopg
from psycopg.types.json import Jsonb

from dashboard.identity import send_id
from dashboard.ledger import holds, outbox, work
from dashboard.ledger.accounts import save_account
from dashboard.ledger.attempts import Finished, Started
from dashboard.ledger.cancelling import cancel_send
from dashboard.ledger.database import Connection, Database
from dashboard.ledger.events import Told, ingest
from dashboard.ledger.holds import Decided, OpenHold
from dashboard.ledger.replay import replay_send
from dashboard.ledger.retention import strip
from dashboard.ledger.retry import Backoff
from dashboard.ledger.verify import verify
from dashboard.lifecycle import Decision, EventType
from dashboard.outcomes import as_finished
from dashboard.providers.base import Deadline
from dashboard.worker.dispatch import Lane
from dashboard.worker.pool import Pool
from dashboard.worker.reconcile import reconcile
from dashboard.worker.submit import Submitter
from dashboard.worker.sweep import sweep
from tests.crew import Rival, person, told
from tests.interleaving.faults import TOO_LATE, Books
from tests.interleaving.lives import GRACE, HOUR, LEASE, SETTLING, WINDOWS, Call, Life
from tests.interleaving.schedules import Schedule, Step, Verb
from tests.place import Place

SWEPT, RESTED, RETAINED = LEASE + HOUR / 2, HOUR * 12, HOUR * 6
ALL = 1_000_000
EMPTIED = (
    "outbox", "sends", "work", "messages", "duplicates", "dead_letters", "attempts", "second_message_ids", "moves",
    "events", "unmatched", "suppressions", "holds", "decisions", "audit", "dirty",
)  # fmt: skip
REQUEST = {
    "recipient": {"id": "recipient_1", "address": "ada@example.com"},
    "trigger": {"type": "order.paid", "id": "evt_1"},
    "message": {"from": "shop@example.com", "subject": "Your receipt", "text": "Thank you"},
}
WORDS = (EventType.DELIVERED, EventType.DEFERRED, EventType.OPENED)
"""What the provider tells first, second, …: not in the order of their rank."""


class Died(Exception):
    """The worker's process is gone."""


class StagedDatabase(Database):
    """The product's database, whose next transaction is disturbed once, before or after its commit."""

    before_commit: Callable[[], None] | None = None
    after_commit: Callable[[], None] | None = None

    @contextmanager
    def transaction(self, *, durable: bool = True) -> Iterator[Connection]:
        """As the product's."""
        before, after = self.before_commit, self.after_commit
        self.before_commit = self.after_commit = None
        with super().transaction(durable=durable) as connection:
            yield connection
            if before:
                before()
        if after:
            after()


class Explorer:
    """A ledger, two workers, their successor, and everybody else."""

    def __init__(self, database: StagedDatabase) -> None:
        self.database = database
        self.place = Place(database)
        self.watcher = database.connect()
        self.watcher.autocommit = True
        self.lives: dict[UUID, Life] = {}
        self.seen: Counter[str] = Counter()
        self._workers = {name: uuid4() for name in ("A", "B", "C")}
        self._user = person(self.place)
        self._number = 0
        self._looked_at: dict[UUID, OpenHold] = {}
        self._accounts = {keys: self._account(keys) for keys in (True, False)}

    def _account(self, keys: bool) -> UUID:
        with self.database.transaction() as connection:
            account = save_account(
                connection, self.place.vault, workspace_id=self.place.workspace, name=f"keys {keys}",
                provider="resend", settings={}, secrets={}, endpoint="here", settling_time=SETTLING,
                key_window=timedelta(days=300) if keys else None,
            )  # fmt: skip
        self.place.stream(
            _stream(keys), "transactional", account_id=account, unknown_policy="release" if keys else "hold",
            grace=GRACE, retry_for=timedelta(days=299), retain_for=RETAINED,
        )  # fmt: skip
        return account

    def close(self) -> None:
        """Close the connections."""
        self.watcher.close()
        self.database.close()

    # ── playing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def play(self, schedules: Iterable[Schedule]) -> list[str]:
        """Play these schedules at once, from an empty ledger. Returns what broke, each with its schedule."""
        self.watcher.execute(f"truncate {', '.join(f'sendonce.{name}' for name in EMPTIED)} cascade")
        self.lives = {life.id: life for life in map(self._life, schedules)}
        try:
            self._play()
        except Exception:  # a ledger that is broken enough makes the product itself stumble
            stumbled = [f"the product raised: {traceback.format_exc()}"]
        else:
            stumbled = []
        found = [f"{text}: {life.schedule}" for life in self.lives.values() for text in dict.fromkeys(life.found)]
        return found + stumbled

    def _play(self) -> None:
        while groups := self._round():
            for (step, overlapped, _), lives in groups.items():
                if overlapped is None:
                    self._prepare(step, lives)
                    self._act(step, lives)
                else:
                    self._overlap(step, overlapped, lives)
        self._verify()
        self._come_to_rest()
        self._judge()
        self._verify()

    def _life(self, schedule: Schedule) -> Life:
        self._number += 1
        stream, key = _stream(schedule.keys), f"order:{self._number}"
        books = Books(schedule.keys, schedule.faults)
        return Life(send_id(self.place.workspace, stream, key), key, stream, schedule, books)

    def _round(self) -> dict[tuple[Step, Step | None, bool], list[Life]]:
        """Who makes which step next."""
        groups: dict[tuple[Step, Step | None, bool], list[Life]] = {}
        for life in self.lives.values():
            if steps := life.next_steps():
                groups.setdefault((*steps, life.schedule.lanes), []).append(life)
        return groups

    def _overlap(self, step: Step, following: Step, lives: list[Life]) -> None:
        """The transaction of the first step is open until the second one has ended, or waits for it."""
        self._prepare(step, lives)
        self._prepare(following, lives)
        rivals: list[Rival[None]] = []

        def begin_the_other() -> None:
            rivals.append(Rival(lambda: self._act(following, lives)))
            self._until_it_waits(rivals[0])

        self.database.before_commit = begin_the_other
        self._act(step, lives)
        self.database.before_commit = None
        if rivals:
            _ = rivals[0].result
        else:  # the first had nothing to do, and no transaction
            self._act(following, lives)

    def _until_it_waits(self, rival: Rival[None]) -> None:
        waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
        while rival.is_alive() and not self.watcher.execute(waiting).rowcount:
            rival.join(0.001)
        self.seen["waited" if rival.is_alive() else "did not wait"] += 1

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _prepare(self, step: Step, lives: list[Life]) -> None:
        """What must have happened before the step, in transactions of its own."""
        match step.verb:
            case Verb.RELAY:
                self._ask(lives)
            case Verb.CLAIM:
                self._only_due(lives)
            case Verb.SWEEP:
                self._time_passes(lives, SWEPT)
            case Verb.REST:
                self._time_passes(lives, SWEPT)
                self._sweep()
                self._time_passes(lives, RESTED)
            case Verb.EARLY:
                self.place.run(
                    "update sendonce.work set check_at = now(), unknown_since = unknown_since - %(grace)s"
                    " where send_id = any(%(ids)s) and state = 'unknown'",
                    ids=_ids(lives), grace=GRACE,
                )  # fmt: skip
            case Verb.RESEND:
                self._look_at_holds(lives)
            case Verb.RETAIN:
                self._time_passes(lives, RESTED)
                self.place.run(
                    "update sendonce.sends set settled_at = settled_at - %(by)s, recorded_at = recorded_at - %(by)s"
                    " where id = any(%(ids)s)",
                    ids=_ids(lives), by=RESTED,
                )  # fmt: skip
            case _:
                pass

    def _act(self, step: Step, lives: list[Life]) -> None:
        """The step itself."""
        who = step.who
        match step.verb:
            case Verb.RELAY:
                with self.database.transaction() as connection:
                    outbox.relay(connection, self.place.vault, limit=len(lives))
            case Verb.CLAIM:
                self._claim(who, lives)
            case Verb.START | Verb.START_DIES | Verb.START_UNDONE | Verb.START_UNANSWERED:
                self._start(who, step.verb, [life for life in lives if who in life.claims])
            case Verb.SUBMIT:
                for life in lives:
                    self.make_call(who, life)
            case Verb.STORE | Verb.STORE_UNDONE | Verb.STORE_UNANSWERED:
                self._store(who, step.verb, [life for life in lives if who in life.outcomes])
            case Verb.SWEEP:
                self._sweep()
            case Verb.REST | Verb.EARLY:
                with self.database.transaction() as connection:
                    reconcile(connection, submit_window=WINDOWS.submit, limit=ALL)
            case Verb.EVENT:
                self._tell(lives)
            case Verb.RESEND:
                self._resend(lives)
            case Verb.CANCEL:
                self._cancel(lives)
            case Verb.REPLAY:
                self._replay(lives)
            case Verb.RETAIN:
                with self.database.transaction() as connection:
                    self.seen["stripped"] += strip(connection, self.place.vault, limit=ALL)

    def _ask(self, lives: list[Life]) -> None:
        """The business asks, each time with the same words."""
        for life in lives:
            life.asked += 1
        self.place.run(
            "select sendonce.enqueue(%(request)s || jsonb_build_object('mailstream', stream, 'key', key))"
            " from unnest(%(streams)s::text[], %(keys)s::text[]) asked (stream, key)",
            request=Jsonb(REQUEST), streams=[life.stream for life in lives], keys=[life.key for life in lives],
        )  # fmt: skip

    def _only_due(self, lives: list[Life]) -> None:
        """The waits of these sends are over, and of no others."""
        self.place.run(
            "update sendonce.work set claim_at = case when send_id = any(%(ids)s) then now() - interval '1 second'"
            " else now() + interval '9 years' end"
            " where state = 'pending' and (send_id = any(%(ids)s)) <> (claim_at <= now())",
            ids=_ids(lives),
        )

    def _claim(self, who: str, lives: list[Life]) -> None:
        with self.database.transaction(durable=False) as connection:
            claims = work.claim(connection, worker=self._identity(who, lives), limit=ALL, lease=LEASE)
        for claim in claims:
            life = self.lives[claim.send_id]
            life.claims[who] = claim
            life.claim = max(life.claim or ("", 0), (who, claim.number), key=lambda c: c[1])

    def _lane(self, who: str, lives: Sequence[Life], pool: HandedOver | None = None) -> Lane:
        lane = Lane(
            self.database, self._identity(who, lives), cast(Submitter, self), cast(Pool, pool), places=ALL,
            set_size=ALL, lease=LEASE, windows=WINDOWS, backoff=Backoff(timedelta(microseconds=1)), breaker=HOUR,
            poll=1.0, wake=threading.Event(), stopping=threading.Event(), may_send=lambda: True, unsure=lambda: None,
            at_home=lambda _: True,
        )  # fmt: skip
        if pool:
            pool.lane = lane
        return lane

    def _identity(self, who: str, lives: Sequence[Life]) -> UUID:
        return self._workers["A" if who == "B" and lives[0].schedule.lanes else who]

    def _start(self, who: str, verb: Verb, lives: list[Life]) -> None:
        """The lane's own write-ahead and handing over. A call that is handed over before its worker dies is made."""
        if not lives:
            return
        self._disturb(verb)
        lane = self._lane(who, lives, HandedOver(self, who, at_once=verb is Verb.START_DIES))
        with suppress(Died, psycopg.OperationalError):
            lane._start([life.claims[who] for life in lives])
        for outcome in lane._outcomes:
            self.lives[outcome.send_id].outcomes[who] = outcome
        if verb is Verb.START:
            for life in lives:
                del life.claims[who]

    def _disturb(self, verb: Verb) -> None:
        """Let the next commit fail as the step says."""
        if verb is Verb.START_DIES:
            self.database.before_commit = _die
        elif verb in (Verb.START_UNDONE, Verb.STORE_UNDONE):
            self.database.before_commit = _break
        elif verb in (Verb.START_UNANSWERED, Verb.STORE_UNANSWERED):
            self.database.after_commit = _break

    def look_at_handed(self, who: str, handed: Sequence[Started]) -> None:
        """A call may run as soon as it is handed over: is it on record, the only one, and under a claim that holds?"""
        rows = self.watcher.execute(
            "select send_id, n from sendonce.attempts where send_id = any(%s) and status = 'submitting'",
            [[started.send_id for started in handed]],
        ).fetchall()
        on_record = set(rows)
        for started in handed:
            life = self.lives[started.send_id]
            if (started.send_id, started.n) not in on_record:
                life.found.append("a call was handed over before its attempt was on record")
            if life.claim != (who, started.claim_number):
                life.found.append("an attempt was started under a claim that had ended")
            if life.may_be_taken:
                life.found.append(f"attempt {started.n} was started while an earlier one could still be taken")

    def part(self, candidates: Sequence[Started]) -> list[list[UUID]]:
        """Each goes alone: there is but one send."""
        return []

    def submit(self, started: Started, deadline: Deadline) -> Finished:
        """The provider, in the place of the worker's submitter."""
        life = self.lives[started.send_id]
        outcome = TOO_LATE if life.too_late(started.n) else life.books.call(started.n)
        return as_finished(started, outcome, 1)

    def make_call(self, who: str, life: Life) -> None:
        """Make the call that was handed over, if one was."""
        if call := life.calls.pop(who, None):
            call.make()
            life.outcomes[who] = call.lane._done.get_nowait()

    def _store(self, who: str, verb: Verb, lives: list[Life]) -> None:
        """The lane's own store. What could not be stored for certain is kept for the next time."""
        if not lives:
            return
        self._disturb(verb)
        lane = self._lane(who, lives)
        lane._outcomes = [life.outcomes[who] for life in lives]
        with suppress(psycopg.OperationalError):
            lane._store_outcomes()
        if verb is Verb.STORE:
            for life in lives:
                del life.outcomes[who]
        # What is trouble of the account would hold up all the others.
        self.place.run("update sendonce.accounts set paused_until = null, troubles = 0 where paused_until is not null")

    def _sweep(self) -> None:
        with self.database.transaction() as connection:
            sweep(connection, limit=ALL)

    def _time_passes(self, lives: Sequence[Life], span: timedelta) -> None:
        for life in lives:
            life.grow(span)
        self.place.run(
            "update sendonce.work set claim_at = claim_at - %(by)s, lease_until = lease_until - %(by)s,"
            " check_at = case when state = 'unknown' then check_at - %(by)s else check_at end,"
            " claimed_at = claimed_at - %(by)s, submit_deadline = submit_deadline - %(by)s,"
            " request_deadline = request_deadline - %(by)s, due_at = due_at - %(by)s,"
            " settled_after = settled_after - %(by)s, unknown_since = unknown_since - %(by)s,"
            " ambiguous_since = ambiguous_since - %(by)s, first_attempt_at = first_attempt_at - %(by)s"
            " where send_id = any(%(ids)s)",
            ids=_ids(lives), by=span,
        )  # fmt: skip
        self.place.run(
            "update sendonce.attempts set started_at = started_at - %(by)s, claimed_at = claimed_at - %(by)s,"
            " submit_deadline = submit_deadline - %(by)s, request_deadline = request_deadline - %(by)s,"
            " finished_at = finished_at - %(by)s, doubted_at = doubted_at - %(by)s where send_id = any(%(ids)s)",
            ids=_ids(lives), by=span,
        )  # fmt: skip

    def _tell(self, lives: list[Life]) -> None:
        facts: dict[UUID, list[Told]] = {}
        for life in lives:
            if copies := life.books.copies:
                copy, word = copies[life.told % len(copies)], WORDS[life.told % len(WORDS)]
                life.told += 1
                facts.setdefault(self._accounts[life.schedule.keys], []).append(self._fact(life, copy, word))
        self._hear(facts)

    def _fact(self, life: Life, copy: Any, word: EventType) -> Told:
        attempt = None if life.schedule.keys else copy.attempt
        return told(word, life.id, copy.message_id, attempt=attempt, occurred_at=datetime.now(UTC), raw=b"")

    def _hear(self, facts: dict[UUID, list[Told]]) -> None:
        if facts:
            with self.database.transaction() as connection:
                for account, told in facts.items():
                    ingest(
                        connection, self.place.vault, workspace_id=self.place.workspace, account_id=account, told=told,
                        received_at=datetime.now(UTC),
                    )  # fmt: skip

    def _look_at_holds(self, lives: list[Life]) -> None:
        """People open the pages of the sends that are held."""
        found = self.watcher.execute(
            "select id from sendonce.holds where send_id = any(%s) and closed_at is null", [_ids(lives)]
        ).fetchall()
        with self.database.transaction() as connection:
            for (hold_id,) in found:
                for hold in holds.read_holds(connection, self.place.workspace, [hold_id]).values():
                    self._looked_at[hold.send_id] = hold

    def _resend(self, lives: list[Life]) -> None:
        seen = [self._looked_at.pop(i) for i in sorted(_ids(lives)) if i in self._looked_at]
        if not seen:
            return
        with self.database.transaction() as connection:
            for hold in seen:
                decided = holds.decide(
                    connection, workspace_id=self.place.workspace, hold_id=hold.hold_id, user_id=self._user,
                    decision=Decision.RESEND, reason="it must arrive", evidence=hold.evidence,
                )  # fmt: skip
                self.seen[f"resend: {type(decided).__name__}"] += 1
                life = self.lives[hold.send_id]
                if isinstance(decided, Decided) and not life.may_be_taken:
                    life.words += 1

    def _cancel(self, lives: list[Life]) -> None:
        with self.database.transaction() as connection:
            for life in sorted(lives, key=lambda life: life.id):
                by_person = self._user if life.schedule.keys else None
                result = cancel_send(
                    connection, workspace_id=self.place.workspace, send_id=life.id, user_id=by_person, reason="no more"
                )
                self.seen[f"cancel: {type(result).__name__}"] += 1

    def _replay(self, lives: list[Life]) -> None:
        with self.database.transaction() as connection:
            for send in sorted(_ids(lives)):
                result = replay_send(
                    connection, workspace_id=self.place.workspace, send_id=send, user_id=self._user, reason="once more"
                )
                self.seen[f"replay: {type(result).__name__}"] += 1

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _come_to_rest(self) -> None:
        """The two workers are gone, a third one and time do the rest, until nothing but held sends is open."""
        for _ in range(40):
            rows = self.watcher.execute("select send_id from sendonce.work where state <> 'held'").fetchall()
            lives = [self.lives[row[0]] for row in rows]
            if not lives:
                return
            for verb in (Verb.REST, Verb.CLAIM, Verb.START, Verb.SUBMIT, Verb.STORE):
                step = Step("C" if verb is not Verb.REST else "", verb)
                self._prepare(step, lives)
                self._act(step, lives)
        raise AssertionError("it does not come to rest")

    def _judge(self) -> None:
        """Compare the ledger with the books, before and after the provider has told of what nobody knew yet."""
        for life in self.lives.values():
            life.books.settle()
        known: dict[UUID, set[str]] = {}
        for row in self._stands():
            life = self.lives[row["id"]]
            known[life.id] = set(row["messages"])
            if row["state"] == "failed" and life.books.copies:
                life.found.append("it is failed, and the provider took it")
        facts: dict[UUID, list[Told]] = {}
        for life in self.lives.values():
            for copy in life.books.copies:
                if life.told or copy.message_id not in known.get(life.id, ()):
                    facts.setdefault(self._accounts[life.schedule.keys], []).append(
                        self._fact(life, copy, EventType.ACCEPTED)
                    )
        self._hear(facts)
        stands = {row["id"]: row for row in self._stands()}
        for life in self.lives.values():
            self.seen.update([f"end: {stands[life.id]['state']}"] if life.id in stands else [])
            life.found += _disagreements(life, stands.get(life.id))

    def _stands(self) -> list[dict[str, Any]]:
        return self.place.all(
            """
            select s.id, coalesce(w.state::text, s.state::text) as state, s.taken_at is not null as taken, s.delivery,
              (select count(*) from sendonce.duplicates d where d.send_id = s.id) as later,
              array(select a.n::int from sendonce.attempts a
                where a.send_id = s.id and a.status in ('rejected', 'abandoned')) as denied,
              array(select a.provider_message_id from sendonce.attempts a
                where a.send_id = s.id and a.provider_message_id is not null
                union select m.provider_message_id from sendonce.second_message_ids m
                where m.send_id = s.id) as messages
            from sendonce.sends s left join sendonce.work w on w.send_id = s.id
            """
        )

    def _verify(self) -> None:
        """What ``sendonce verify`` finds, beside the schedule in which it is so."""
        with self.database.snapshot() as connection:
            for finding in verify(connection, shown=1000):
                for row in finding.rows:
                    assert row.send_id is not None, row.what
                    self.lives[row.send_id].found.append(f"invariant {finding.invariant}: {row.what}")


class HandedOver:
    """Stands in the place of a worker's threads: keeps the calls until the schedule makes them."""

    def __init__(self, explorer: Explorer, who: str, *, at_once: bool) -> None:
        self.lane: Lane | None = None
        self._explorer = explorer
        self._who = who
        self._at_once = at_once

    def submit(self, calls: Iterable[Callable[[], None]]) -> None:
        """Take calls over."""
        assert self.lane is not None
        handed = [(cast(Started, cast(partial[None], call).args[0]), call) for call in calls]
        self._explorer.look_at_handed(self._who, [started for started, _ in handed])
        for started, call in handed:
            life = self._explorer.lives[started.send_id]
            life.started[started.n] = life.age
            life.calls[self._who] = Call(started.n, call, self.lane)
            if self._at_once:
                self._explorer.make_call(self._who, life)


def _disagreements(life: Life, row: dict[str, Any] | None) -> list[str]:
    """Where the ledger and the books differ in the end."""
    copies = life.books.copies
    if row is None:
        return ["it was asked for, and the ledger does not know it"]
    found = []
    if row["later"] != life.asked - 1:
        found.append(f"it was asked for {life.asked} times, and the ledger counts {row['later'] + 1} deliveries")
    if len(copies) > 1 + life.words:
        found.append(f"it was taken {len(copies)} times, and a person asked for {life.words} repeats")
    if (row["state"] == "accepted" or row["taken"]) != bool(copies):
        found.append(f"it was taken {len(copies)} times, and the ledger says {row['state']}, taken {row['taken']}")
    if denied := {copy.attempt for copy in copies} & set(row["denied"]):
        found.append(f"attempts {denied} were taken, and the ledger says that they were not")
    if set(row["messages"]) != {copy.message_id for copy in copies}:
        found.append(f"{len(copies)} messages were taken, and the ledger knows {len(row['messages'])}")
    return found


def _stream(keys: bool) -> str:
    return "receipts_by_key" if keys else "receipts_without"


def _ids(lives: Iterable[Life]) -> list[UUID]:
    return [life.id for life in lives]


def _die() -> None:
    raise Died


def _break() -> None:
    raise psycopg.OperationalError("the connection is gone")
