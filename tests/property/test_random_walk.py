"""A seeded walk through the state machine on a real database, against a provider whose books are beyond doubt.

Workers claim, start, finish late or never; time passes; events, people and cancels come when they like. In the end the
invariants hold, the ledger agrees with the provider's books, and nobody got a mail twice except by a person's word.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from dashboard.ledger import holds
from dashboard.ledger.accounts import save_account
from dashboard.ledger.attempts import Kind, Started
from dashboard.ledger.cancelling import cancel_send
from dashboard.ledger.database import Database
from dashboard.ledger.work import Claim
from dashboard.lifecycle import EventType
from tests.conftest import SOAK
from tests.crew import Hand, decide, due_now, graces_end, hear, person, reconciled, record_in, swept, told, violations
from tests.place import Place

STEPS = 500
SEEDS = range(300) if SOAK else range(6)
STREAMS = {"receipts": True, "statements": False, "codes": True}
"""Mailstreams, and whether their provider honours keys."""


@dataclass
class Books:
    """What a provider really took: the message ids of each send."""

    taken: dict[UUID, list[str]] = field(default_factory=dict)

    def take(self, send: UUID, honours_keys: bool) -> str:
        """Take a message. A repeat under an honoured key gets the first answer again."""
        copies = self.taken.setdefault(send, [])
        if not copies or not honours_keys:
            copies.append(uuid4().hex)
        return copies[-1] if not honours_keys else copies[0]


@dataclass
class Call:
    """A call that was made and whose outcome is not stored yet."""

    hand: Hand
    started: Started
    kind: Kind
    message_id: str | None


class Walk:
    """Everything that may happen, one step at a time."""

    def __init__(self, place: Place, seed: int) -> None:
        self.place = place
        self.dice = random.Random(seed)
        self.hands = [Hand(place) for _ in range(3)]
        self.claims: list[tuple[Hand, list[Claim]]] = []
        self.calls: list[Call] = []
        self.books = Books()
        self.stream_of: dict[UUID, str] = {}
        self.attempt_of: dict[str, int] = {}
        self.steps: list[Callable[[], object]] = [
            self.ask, self.claim, self.claim, self.start, self.start, self.start, self.finish, self.finish, self.finish,
            self.lapse, self.later, self.later, self.reconcile, self.tell, self.tell, self.decide,
            self.cancel, self.forget,
        ]  # fmt: skip

    def go(self, steps: int) -> None:
        for _ in range(steps):
            self.dice.choice(self.steps)()

    # ── steps ────────────────────────────────────────────────────────────────────────────────────────────────────

    def ask(self) -> None:
        stream = self.dice.choice(list(STREAMS))
        words = "Thank you" if self.dice.random() < 0.9 else "Thank you again"
        with self.place.database.transaction() as connection:
            key = f"order:{self.dice.randrange(12)}"
            recorded = record_in(connection, self.place, key, stream=stream, text=words)
        self.stream_of[recorded[0].send_id] = stream

    def claim(self) -> None:
        hand = self.dice.choice(self.hands)
        if claims := hand.claim(self.dice.randint(1, 4)):
            self.claims.append((hand, claims))

    def start(self) -> None:
        """Start a claim of somebody, perhaps one that has ended long ago, and make the calls."""
        if not self.claims:
            return
        hand, claims = self.claims.pop(self.dice.randrange(len(self.claims)))
        for started in hand.start(claims):
            self.calls.append(self._call(hand, started))
        if self.dice.random() < 0.1:
            self.claims.append((hand, claims))

    def _call(self, hand: Hand, started: Started) -> Call:
        honours = STREAMS[self.stream_of[started.send_id]]
        kinds: list[Kind] = ["accepted", "ambiguous", "refused", "refused_for_now", "account_trouble", "never_written"]
        kind = self.dice.choices(kinds, weights=[4, 4, 2, 2, 1, 1])[0]
        message_id = None
        if kind == "accepted" or (kind == "ambiguous" and self.dice.random() < 0.6):
            message_id = self.books.take(started.send_id, honours)
            self.attempt_of.setdefault(message_id, started.n)
        return Call(hand, started, kind, message_id if kind == "accepted" else None)

    def finish(self) -> None:
        """An outcome is stored, in time or late."""
        if self.calls:
            self._store(self.calls.pop(self.dice.randrange(len(self.calls))))

    def _store(self, call: Call) -> None:
        pause = timedelta(microseconds=1) if call.kind == "account_trouble" else None
        call.hand.finish(call.started, call.kind, call.message_id, pause=pause)
        if self.dice.random() < 0.1:
            call.hand.finish(call.started, call.kind, call.message_id, pause=pause)

    def forget(self) -> None:
        """A worker dies: what it had under way is never stored."""
        if self.dice.random() < 0.3:
            dead = self.dice.randrange(3)
            self.calls = [call for call in self.calls if call.hand is not self.hands[dead]]
            self.claims = [(hand, claims) for hand, claims in self.claims if hand is not self.hands[dead]]
            self.hands[dead] = Hand(self.place)

    def lapse(self) -> None:
        swept(self.place)

    def later(self) -> None:
        due_now(self.place)

    def reconcile(self) -> None:
        graces_end(self.place)
        reconciled(self.place)

    def tell(self) -> None:
        """The provider tells of something that it took, or of something that settles nothing."""
        if not self.books.taken:
            return
        send = self.dice.choice(list(self.books.taken))
        word = self.dice.choice([EventType.DELIVERED, EventType.OPENED, EventType.DEFERRED, EventType.UNKNOWN])
        self._tell(send, self.dice.choice(self.books.taken[send]), word, by_id=self.dice.random() < 0.7)

    def _tell(self, send: UUID, message_id: str, word: EventType, *, by_id: bool) -> None:
        honours = STREAMS[self.stream_of[send]]
        fact = told(
            word, send if by_id else None, message_id,
            attempt=None if honours else self.attempt_of[message_id],
        )  # fmt: skip
        row = self.place.one("select account_id from sendonce.mailstreams where name = %s", self.stream_of[send])
        for _ in range(self.dice.choice([1, 1, 2])):
            hear(self.place, fact, account=row["account_id"])

    def decide(self) -> None:
        with self.place.database.transaction() as connection:
            found = holds.open_holds(connection, self.place.workspace)
        if found:
            hold = self.dice.choice(found)
            decide(self.place, self.dice.choice(hold.choices), hold=hold)

    def cancel(self) -> None:
        if self.stream_of and self.dice.random() < 0.3:
            send = self.dice.choice(list(self.stream_of))
            user = person(self.place) if self.dice.random() < 0.5 else None
            with self.place.database.transaction() as connection:
                cancel_send(connection, workspace_id=self.place.workspace, send_id=send, user_id=user, reason="no more")

    # ── the end ──────────────────────────────────────────────────────────────────────────────────────────────────

    def come_to_rest(self) -> None:
        """Every outcome is stored, and time passes until nothing but held sends is open."""
        while self.calls:
            self.finish()
        self.claims.clear()
        hand = Hand(self.place)
        for _ in range(50):
            swept(self.place)
            self.reconcile()
            due_now(self.place)
            for started in hand.start():
                honours = STREAMS[self.stream_of[started.send_id]]
                message_id = self.books.take(started.send_id, honours)
                self.attempt_of.setdefault(message_id, started.n)
                hand.finish(started, "accepted", message_id)
            if not self.place.all("select from sendonce.work where state <> 'held'"):
                return
        raise AssertionError("it does not come to rest")

    def tell_all(self) -> None:
        """Sooner or later the provider tells of all that it took, under our own id."""
        for send, copies in self.books.taken.items():
            for message_id in copies:
                self._tell(send, message_id, EventType.DELIVERED, by_id=True)

    def judge(self) -> Counter[str]:
        """Compare the ledger with the books. Returns how many sends ended where."""
        rows = self.place.all(
            "select s.id, s.mailstream, coalesce(w.state::text, s.state::text) as state, s.reason,"
            " s.taken_at is not null as taken, (select count(*) from sendonce.moves m where m.send_id = s.id"
            "   and m.move = 'release' and m.made_by = 'person') as by_person"
            " from sendonce.sends s left join sendonce.work w on w.send_id = s.id"
        )
        for row in rows:
            copies = len(self.books.taken.get(row["id"], ()))
            match row["state"]:
                case "accepted":
                    assert copies or row["reason"] == "marked_by_person", row
                case "failed" | "held":
                    assert not copies, row
                case "suppressed" | "cancelled":
                    assert row["taken"] == bool(copies), row
                case _:
                    raise AssertionError(row)
            assert copies <= 1 + row["by_person"], f"taken {copies} times: {row}"
        return Counter(row["state"] for row in rows)


@pytest.fixture
def walked(database_url: str) -> Iterator[Place]:
    database = Database(database_url)
    place = Place(database)
    with database.transaction() as connection:
        plain = save_account(
            connection, place.vault, workspace_id=place.workspace, name="plain", provider="smtp", settings={},
            secrets={}, endpoint="plain",
        )  # fmt: skip
    place.stream("statements", "scheduled", account_id=plain)
    place.stream("codes", "security", unknown_policy="cancel")
    place.run("update sendonce.mailstreams set unknown_policy = 'release', max_attempts = 6 where name = 'receipts'")
    yield place
    database.close()


SEEN: Counter[str] = Counter()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_walk_keeps_every_promise(walked: Place, seed: int) -> None:
    walk = Walk(walked, seed)
    for _ in range(4):
        walk.go(STEPS // 4)
        assert violations(walked) == []
    walk.come_to_rest()
    walk.tell_all()
    SEEN.update(walk.judge())
    assert violations(walked) == []
    SEEN.update(row["move"] for row in walked.all("select move::text from sendonce.moves"))
    SEEN.update(f"attempt {row['status']}" for row in walked.all("select status::text from sendonce.attempts"))
    SEEN.update(row["verdict"] for row in walked.all("select verdict::text from sendonce.duplicates"))


def test_the_walks_went_everywhere() -> None:
    everywhere = {
        "accept", "doubt", "give_back", "retry_later", "fail", "hold", "cancel", "release", "accepted", "failed",
        "cancelled", "attempt accepted", "attempt rejected", "attempt ambiguous", "attempt abandoned", "duplicate",
        "in_progress", "mismatch",
    }  # fmt: skip
    assert everywhere <= set(SEEN), everywhere - set(SEEN)
