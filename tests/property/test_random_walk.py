"""Seeded walks through the state machine on a real database, against providers whose books are beyond doubt.

Workers claim, start, finish late or never, and lose commits; time passes; events, people, cancels, replays, retention,
pauses and a change of provider come when they like. In the end the invariants hold, the ledger agrees with the
providers' books, and nobody got a mail twice except by a person's word.

A walk is its seed and its steps, each with dice of its own: what broke is made shorter by leaving steps out, printed,
and can be walked again alone.
"""

from __future__ import annotations

import random
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import cycle
from uuid import UUID, uuid4

import pytest
from psycopg.types.json import Jsonb

from dashboard.identity import send_id
from dashboard.ledger import holds, outbox
from dashboard.ledger.accounts import resume_account, save_account
from dashboard.ledger.attempts import Kind, Started
from dashboard.ledger.cancelling import cancel_send
from dashboard.ledger.database import Connection, Database
from dashboard.ledger.replay import replay_send
from dashboard.ledger.retention import strip
from dashboard.ledger.work import Claim
from dashboard.lifecycle import EventType
from dashboard.worker.reconcile import Reconciled
from dashboard.worker.sweep import Swept
from tests.conftest import SCHEDULES, SOAK
from tests.crew import (
    HOUR,
    Hand,
    attempts_age,
    decide,
    due_now,
    graces_end,
    hear,
    open_transaction,
    person,
    reconciled,
    record_in,
    sharing_a_call,
    swept,
    told,
    violations,
)
from tests.factories import own_database
from tests.place import Place, emptying

SEEDS = range(10_000) if SOAK else range(200)
GROUP = 1000 if SOAK else 100
"""So many walks in one test."""

STEPS = (5, 35)
"""The shortest and the longest walk."""

KEY_WINDOW = timedelta(hours=24)
ACCOUNTS = {"a": True, "b": True, "c": False}
"""Accounts, and whether their provider honours keys."""

EMPTY_LEDGER = emptying("workspaces", "accounts", "mailstreams", "users")
STREAMS = {"receipts": "release", "statements": "hold", "codes": "cancel", "news": "release"}
"""Mailstreams, and what they do where nobody knows whether a send was taken."""
_CLASSES = {"codes": "security", "news": "campaign"}
BATCHES = {"news"}
"""Those that send in batches."""


@dataclass
class Copy:
    """One message that a provider took."""

    message_id: str
    started: Started
    """The call with which it was taken first."""
    age: timedelta = timedelta(0)


@dataclass
class Books:
    """What all providers together took."""

    keyed: set[UUID] = field(default_factory=set)
    """Accounts that honour keys."""
    taken: dict[UUID, list[Copy]] = field(default_factory=dict)

    def take(self, started: Started) -> Copy:
        """Take a message. A repeat under a key that is honoured and remembered there gets the first answer again."""
        copies = self.taken.setdefault(started.send_id, [])
        for copy in copies:
            there = _key(copy.started) == _key(started)
            if there and started.account_id in self.keyed and copy.age < KEY_WINDOW:
                return copy
        copies.append(Copy(uuid4().hex, started))
        return copies[-1]


def _key(started: Started) -> tuple[object, ...]:
    """By what a provider recognises a repeat: a batch by its own key."""
    return started.account_id, started.endpoint, started.batch


@dataclass
class Call:
    """A call that was made and whose outcome is not stored yet."""

    hand: Hand
    started: Started
    kind: Kind
    message_id: str | None = None
    then: list[Claim] = field(default_factory=list)
    """Claims that are started again when this is stored."""


class Walk:
    """Everything that may happen, one step at a time."""

    def __init__(self, place: Place, seed: int) -> None:
        self.place = place
        self.seed = seed
        self.dice = random.Random(seed)
        self.keys = self.dice.randint(1, 4)
        first = Hand(place)
        self.hands = [first, Hand(place), Hand(place, id=first.id)]
        """The last one is another lane of the first one's process."""
        self.claims: list[tuple[Hand, list[Claim]]] = []
        self.calls: list[Call] = []
        self.books = Books()
        self.asked: Counter[UUID] = Counter()
        self.log: list[str] = []
        with place.database.transaction() as connection:
            self.accounts = [self._account(connection, name) for name in ACCOUNTS]
        place.run(
            "update sendonce.mailstreams m set account_id = n.account_id, paused_at = null, paused_reason = null"
            " from unnest(%(streams)s::text[], %(accounts)s::uuid[]) n (name, account_id) where m.name = n.name",
            streams=list(STREAMS), accounts=[account for account, _ in zip(cycle(self.accounts), STREAMS)],
        )  # fmt: skip
        often = [self.ask, self.claim, self.start, self.finish, self.later, self.reconcile]
        seldom = [
            self.ask_by_outbox, self.ask_for_news, self.lose_a_commit, self.lapse, self.tell, self.hear_of_harm,
            self.cancel, self.forget, self.retain, self.pause,
        ]  # fmt: skip
        rarely_possible = [self.decide, self.replay, self.age, self.switch]
        # Each walk has its own mood: what never happens in it makes room for what else may happen often.
        self.weights: dict[Callable[[], bool], int] = {step: self.dice.choice([2, 4]) for step in often}
        self.weights |= {step: self.dice.choice([0, 0, 1, 4]) for step in seldom}
        self.weights |= {step: self.dice.choice([0, 2, 8]) for step in rarely_possible}

    def _account(self, connection: Connection, name: str, endpoint: str = "here") -> UUID:
        account = save_account(
            connection, self.place.vault, workspace_id=self.place.workspace, name=name, provider="resend",
            settings={}, secrets={}, endpoint=endpoint, key_window=KEY_WINDOW if ACCOUNTS[name] else None,
        )  # fmt: skip
        resume_account(connection, account)
        if ACCOUNTS[name]:
            self.books.keyed.add(account)
        return account

    def go(self, steps: Sequence[int]) -> None:
        """Make these steps of the walk. Each has dice of its own, so that one can be left out.

        A step says whether it found something to do; where it did not, another one is made in its place.
        """
        for number in steps:
            self.dice = random.Random(f"{self.seed}.{number}")
            drawn = {step: self.dice.random() ** (1 / weight) for step, weight in self.weights.items() if weight}
            for step in sorted(drawn, key=drawn.__getitem__, reverse=True):
                self.log.append(f"{number} {step.__name__}")
                if step():
                    break
                self.log.pop()

    def _an_open_send(self) -> UUID | None:
        """One that no worker holds."""
        rows = self.place.all(
            "select w.send_id from sendonce.work w join sendonce.sends s on s.id = w.send_id"
            " where w.state <> 'claimed' order by s.mailstream, s.key"
        )
        return self.dice.choice(rows)["send_id"] if rows else None

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _wanted(self) -> tuple[str, str, str, str]:
        number = self.dice.randrange(self.keys)
        words = "Thank you" if self.dice.random() < 0.9 else "Thank you again"
        return self.dice.choice(list(STREAMS)), f"order:{number}", f"person{number % 2}@example.com", words

    def _note(self, stream: str, key: str) -> None:
        send = send_id(self.place.workspace, stream, key)
        self.asked[send] += 1

    def ask(self) -> bool:
        stream, key, address, words = self._wanted()
        with self.place.database.transaction() as connection:
            record_in(connection, self.place, key, stream=stream, address=address, text=words)
        self._note(stream, key)
        return True

    def ask_by_outbox(self) -> bool:
        for _ in range(self.dice.randint(1, 3)):
            stream, key, address, words = self._wanted()
            request = {
                "mailstream": stream, "key": key, "recipient": {"id": "recipient_1", "address": address},
                "trigger": {"type": "order.paid", "id": "evt_1"},
                "message": {"from": "shop@example.com", "subject": "Your receipt", "text": words},
            }  # fmt: skip
            self.place.run("select sendonce.enqueue(%s)", Jsonb(request))
            self._note(stream, key)
        with self.place.database.transaction() as connection:
            outbox.relay(connection, self.place.vault, limit=100)
        return True

    def ask_for_news(self) -> bool:
        """Some at once, as campaigns do."""
        keys = [f"order:{number}" for number in range(self.dice.randint(2, 3))]
        with self.place.database.transaction() as connection:
            record_in(connection, self.place, *keys, stream="news")
        for key in keys:
            self._note("news", key)
        return True

    def claim(self) -> bool:
        hand = self.dice.choice(self.hands)
        claims = hand.claim(self.dice.randint(1, 4))
        if claims:
            self.claims.append((hand, claims))
        return bool(claims)

    def start(self) -> bool:
        """Start a claim of somebody, perhaps one that has ended long ago, and make the calls."""
        if not self.claims and not self.claim():
            return False
        hand, claims = self.claims.pop(self.dice.randrange(len(self.claims)))
        hand.part = self._part
        for started in hand.start(claims):
            self.calls.append(self._call(hand, started))
        if self.dice.random() < 0.1:
            self.claims.append((hand, claims))
        return True

    def _part(self, candidates: Sequence[Started]) -> list[list[UUID]]:
        """Calls of several, as an account's channel might choose them; some go alone."""
        calls: dict[tuple[UUID, int], list[UUID]] = {}
        for one in candidates:
            calls.setdefault((one.account_id, self.dice.randrange(2)), []).append(one.send_id)
        return list(calls.values())

    def _call(self, hand: Hand, started: Started) -> Call:
        kinds: list[Kind] = ["accepted", "ambiguous", "refused", "refused_for_now", "account_trouble", "never_written"]
        kind = self.dice.choices(kinds, weights=[3, 6, 2, 2, 1, 1])[0]
        taken = kind == "accepted" or (kind == "ambiguous" and self.dice.random() < 0.6)
        message_id = self.books.take(started).message_id if taken else None
        return Call(hand, started, kind, message_id if kind == "accepted" else None)

    def lose_a_commit(self) -> bool:
        """The write-ahead of a claim is not on record, and its worker knows only that nothing was written.

        A lane says that before it starts the same claim again.
        """
        if not self.claims:
            return False
        hand, claims = self.claims.pop(self.dice.randrange(len(self.claims)))
        with open_transaction(self.place, commit=False) as connection:
            lost = hand.start_in(connection, claims)
        again = {claim.send_id: claim for claim in claims}
        self.calls += [Call(hand, s, "never_written", then=[again[s.send_id]]) for s in lost]
        return True

    def finish(self) -> bool:
        """An outcome is stored, in time or late."""
        if not self.calls:
            return False
        call = self.calls.pop(self.dice.randrange(len(self.calls)))
        pause = None
        if call.kind == "account_trouble":
            pause = timedelta(microseconds=1) if self.dice.random() < 0.5 else HOUR
        for _ in range(self.dice.choice([1, 1, 1, 2])):
            call.hand.finish(call.started, call.kind, call.message_id, pause=pause)
        if call.then:
            self.claims.append((call.hand, call.then))
        return True

    def forget(self) -> bool:
        """A process dies with all its lanes: what it had under way is never stored."""
        dead = self.dice.choice(self.hands).id
        had = len(self.calls) + len(self.claims)
        self.calls = [call for call in self.calls if call.hand.id != dead]
        self.claims = [(hand, claims) for hand, claims in self.claims if hand.id != dead]
        reborn = uuid4()
        self.hands = [Hand(self.place, id=reborn) if hand.id == dead else hand for hand in self.hands]
        return had > len(self.calls) + len(self.claims)

    def lapse(self) -> bool:
        return swept(self.place) != Swept()

    def later(self) -> bool:
        due_now(self.place)
        with self.place.database.transaction() as connection:
            for account in self.accounts:
                resume_account(connection, account)
        return True

    def reconcile(self) -> bool:
        graces_end(self.place)
        return reconciled(self.place) != Reconciled()

    def tell(self) -> bool:
        """A provider tells of something that it took, or of something that settles nothing."""
        word = self.dice.choice([EventType.DELIVERED, EventType.OPENED, EventType.DEFERRED, EventType.UNKNOWN])
        return self._tell_of(word, None)

    def hear_of_harm(self) -> bool:
        """The recipient's address turns out dead, or its owner complains or unsubscribes."""
        word = self.dice.choice([EventType.BOUNCED, EventType.COMPLAINED, EventType.UNSUBSCRIBED])
        return self._tell_of(word, "hard" if word is EventType.BOUNCED else None)

    def _tell_of(self, word: EventType, bounce_class: str | None) -> bool:
        if not self.books.taken:
            return False
        send = self.dice.choice(list(self.books.taken))
        copy = self.dice.choice(self.books.taken[send])
        self._tell(send, copy, word, by_id=self.dice.random() < 0.7, bounce_class=bounce_class)
        return True

    def _tell(self, send: UUID, copy: Copy, word: EventType, *, by_id: bool, bounce_class: str | None = None) -> None:
        account = copy.started.account_id
        attempt = None if account in self.books.keyed else copy.started.n
        fact = told(word, send if by_id else None, copy.message_id, attempt=attempt, bounce_class=bounce_class)
        for _ in range(self.dice.choice([1, 1, 2])):
            hear(self.place, fact, account=account)

    def decide(self) -> bool:
        with self.place.database.transaction() as connection:
            found = holds.open_holds(connection, self.place.workspace)
        if not found:
            return False
        hold = self.dice.choice(found)
        return isinstance(decide(self.place, self.dice.choice(hold.choices), hold=hold), holds.Decided)

    def cancel(self) -> bool:
        if not self.asked or self.dice.random() < 0.6:
            return False
        user = person(self.place) if self.dice.random() < 0.5 else None
        send = self.dice.choice(list(self.asked))
        with self.place.database.transaction() as connection:
            done = cancel_send(
                connection, workspace_id=self.place.workspace, send_id=send, user_id=user, reason="no more"
            )
        return not isinstance(done, holds.Refused)

    def replay(self) -> bool:
        failed = self.place.all("select id from sendonce.sends where state = 'failed' order by key, mailstream")
        for row in failed:
            with self.place.database.transaction() as connection:
                replay_send(
                    connection, workspace_id=self.place.workspace, send_id=row["id"], user_id=person(self.place),
                    reason="once more",
                )  # fmt: skip
        return bool(failed)

    def retain(self) -> bool:
        """The retention of some settled send ends."""
        if not self.asked:
            return False
        send, long = self.dice.choice(list(self.asked)), timedelta(days=100)
        settled = self.place.all(
            "update sendonce.sends set settled_at = settled_at - %s, recorded_at = recorded_at - %s"
            " where id = %s and settled_at is not null returning id",
            long, long, send,
        )  # fmt: skip
        if settled:
            self._grow(send, long)
        with self.place.database.transaction() as connection:
            return strip(connection, self.place.vault) > 0

    def age(self) -> bool:
        """Hours pass for a send that is not on its way: its provider comes nearer to forgetting its key, or has."""
        if send := self._an_open_send():
            self._grow(send, HOUR * self.dice.choice([1, 5, 12, 23, 25]))
        return send is not None

    def _grow(self, send: UUID, by: timedelta) -> None:
        sends = sharing_a_call(self.place, send)
        attempts_age(self.place, sends, by)
        for copy in (copy for each in sends for copy in self.books.taken.get(each, ())):
            copy.age += by

    def switch(self) -> bool:
        """A mailstream goes to another account, or an account to another endpoint, where nothing of it is known."""
        if self.dice.random() < 0.6:
            self.place.run(
                "update sendonce.mailstreams set account_id = %s where name = %s",
                self.dice.choice(self.accounts), self.dice.choice(list(STREAMS)),
            )  # fmt: skip
        else:
            with self.place.database.transaction() as connection:
                self._account(connection, self.dice.choice(list(ACCOUNTS)), self.dice.choice(["here", "there"]))
        return True

    def pause(self) -> bool:
        self.place.run(
            "update sendonce.mailstreams set paused_at = case when paused_at is null then now() end,"
            " paused_reason = case when paused_at is null then 'a pause' end where name = %s",
            self.dice.choice(list(STREAMS)),
        )
        return True

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def come_to_rest(self) -> None:
        """Every outcome is stored, and time passes until nothing but held sends is open."""
        while self.calls:
            self.finish()
        self.claims.clear()
        self.place.run("update sendonce.mailstreams set paused_at = null, paused_reason = null")
        hand = Hand(self.place)
        for _ in range(50):
            swept(self.place)
            self.reconcile()
            self.later()
            for started in hand.start():
                hand.finish(started, "accepted", self.books.take(started).message_id)
            if not self.place.all("select from sendonce.work where state <> 'held'"):
                return
        raise AssertionError("it does not come to rest")

    def tell_all(self) -> None:
        """Sooner or later the providers tell of all that they took, under our own id."""
        for send, copies in self.books.taken.items():
            for copy in copies:
                self._tell(send, copy, EventType.DELIVERED, by_id=True)

    def disagreements(self) -> list[str]:
        """Where the ledger and the books differ in the end."""
        rows = self.place.all(
            "select s.id, s.mailstream, coalesce(w.state::text, s.state::text) as state, s.reason,"
            " s.taken_at is not null as taken, (select count(*) from sendonce.moves m where m.send_id = s.id"
            "   and m.move = 'release' and m.made_by = 'person') as by_person,"
            " 1 + (select count(*) from sendonce.duplicates d where d.send_id = s.id) as deliveries"
            " from sendonce.sends s left join sendonce.work w on w.send_id = s.id"
        )
        found = (
            [f"asked for {len(self.asked)} sends, and there are {len(rows)}"] if len(rows) != len(self.asked) else []
        )
        for row in rows:
            copies = len(self.books.taken.get(row["id"], ()))
            agrees = {
                "accepted": copies > 0 or row["reason"] == "marked_by_person",
                "failed": copies == 0, "held": copies == 0,
                "suppressed": row["taken"] == (copies > 0), "cancelled": row["taken"] == (copies > 0),
            }  # fmt: skip
            if not agrees.get(row["state"], False):
                found.append(f"taken {copies} times: {row}")
            if copies > 1 + row["by_person"]:
                found.append(f"taken {copies} times with {row['by_person']} words of people: {row}")
            if row["deliveries"] != self.asked[row["id"]]:
                found.append(f"asked for {self.asked[row['id']]} times: {row}")
        return found + self._denied() + self._misattributed()

    def _denied(self) -> list[str]:
        """Attempts of which the ledger says that they were not taken, and they were."""
        rows = self.place.all("select send_id, n from sendonce.attempts where status in ('rejected', 'abandoned')")
        taken = {(send, copy.started.n) for send, copies in self.books.taken.items() for copy in copies}
        return [f"attempt {row['n']} was taken: {row}" for row in rows if (row["send_id"], row["n"]) in taken]

    def _misattributed(self) -> list[str]:
        """Message ids that the ledger does not know, or has beside a call of another account."""
        rows = self.place.all(
            "select send_id, account_id, provider_message_id from sendonce.attempts"
            " where provider_message_id is not null"
            " union all select send_id, account_id, provider_message_id from sendonce.second_message_ids"
        )
        known = {(row["send_id"], row["account_id"], row["provider_message_id"]) for row in rows}
        true = {
            (send, copy.started.account_id, copy.message_id)
            for send, copies in self.books.taken.items()
            for copy in copies
        }
        return [f"the ledger lacks {true - known} and invents {known - true}"] if known != true else []


SEEN: Counter[str] = Counter()
"""What the walks of one test came through."""

EVERYWHERE = {
    "accept", "doubt", "give_back", "retry_later", "fail", "hold", "cancel", "release", "suppress",
    "attempt accepted", "attempt rejected", "attempt ambiguous", "attempt abandoned", "delivery duplicate",
    "delivery in_progress", "delivery mismatch", "hold unconfirmed", "end accepted", "end failed", "end suppressed",
    "end cancelled", "end open", "stripped", "in a batch", "alone after a batch", "hold went_in_a_batch",
}  # fmt: skip
SELDOM = {"hold key_ended", "decided resend", "decided mark_accepted", "decided cancel", "replay"}
"""Where so few of the walks come that only a thousand of them surely do."""


def walked(place: Place, seed: int, steps: Sequence[int]) -> list[str]:
    """What is broken after these steps of a walk, in an empty ledger."""
    with place.database.transaction(durable=False) as connection:
        connection.execute(EMPTY_LEDGER)  # type: ignore[call-overload]
    walk = Walk(place, seed)
    try:
        walk.go(steps)
        broken = violations(place)
        walk.come_to_rest()
        walk.tell_all()
        broken += walk.disagreements() + violations(place)
    except Exception:
        broken = [traceback.format_exc()]
    SEEN.update(
        row["seen"]
        for row in place.all(
            "select move::text as seen from sendonce.moves"
            " union all select 'attempt ' || status from sendonce.attempts"
            " union all select 'delivery ' || verdict from sendonce.duplicates"
            " union all select 'hold ' || reason from sendonce.holds"
            " union all select 'end ' || state from sendonce.sends"
            " union all select 'stripped' from sendonce.sends where stripped_at is not null"
            " union all select 'decided ' || decision from sendonce.decisions"
            " union all select 'taken twice' from sendonce.second_message_ids"
            " union all select 'in a batch' from sendonce.attempts where batch is not null"
            " union all select 'alone after a batch' from sendonce.attempts e join sendonce.attempts r using (send_id)"
            "   where e.batch is not null and r.n > e.n"
        )
    )
    return [*broken, f"seed {seed}: {', '.join(walk.log)}"] if broken else []


def shortened(place: Place, seed: int, steps: list[int]) -> list[int]:
    """The fewest of these steps after which it is still broken, as far as leaving out piece after piece comes."""
    size = len(steps) // 2
    while size:
        for begin in range(0, len(steps), size):
            fewer = steps[:begin] + steps[begin + size :]
            if walked(place, seed, fewer):
                steps = fewer
                break
        else:
            size //= 2
    return steps


def steps_of(seed: int) -> list[int]:
    """The steps of a whole walk."""
    return list(range(random.Random(seed).randint(*STEPS)))


@pytest.fixture(scope="module")
def place(server_url: str, template_database: str) -> Iterator[Place]:
    """One place for all walks: each begins with an empty ledger."""
    with own_database(server_url, template_database) as url:
        database = Database(url, ping=False)
        made = Place(database)
        made.run("delete from sendonce.mailstreams")
        for name, policy in STREAMS.items():
            made.stream(
                name, _CLASSES.get(name, "transactional"), unknown_policy=policy, max_attempts=6,
                retain_for=timedelta(days=90), batches=name in BATCHES,
            )  # fmt: skip
        yield made
        database.close()


@pytest.mark.parametrize("first", SEEDS[::GROUP])
def test_random_walks_keep_every_promise(
    place: Place, record_property: Callable[[str, object], None], first: int
) -> None:
    with place.database.connect() as administrator:
        administrator.autocommit = True
        administrator.execute("vacuum")
    SEEN.clear()
    for seed in range(first, first + GROUP):
        if walked(place, seed, steps_of(seed)):
            fewest = shortened(place, seed, steps_of(seed))
            pytest.fail("\n".join([f"walked(place, {seed}, {fewest})", *walked(place, seed, fewest)]), pytrace=False)
    expected = EVERYWHERE | SELDOM if SOAK else EVERYWHERE
    assert set(SEEN) >= expected, expected - set(SEEN)
    record_property(SCHEDULES, GROUP)
