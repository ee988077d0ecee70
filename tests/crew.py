"""Workers, callers and people whose every step is a transaction of its own, and races that do not depend on luck."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar
from uuid import UUID, uuid4

from dashboard.identity import send_id
from dashboard.ledger import attempts, events, holds, recording, work
from dashboard.ledger.attempts import Finished, Kind, Settled, Started, Windows
from dashboard.ledger.database import Connection
from dashboard.ledger.events import Told
from dashboard.ledger.recording import Recorded
from dashboard.ledger.requests import Request, read_request
from dashboard.ledger.retry import Backoff
from dashboard.ledger.verify import verify
from dashboard.ledger.work import Claim
from dashboard.lifecycle import Decision, EventType
from dashboard.worker.reconcile import Reconciled, reconcile
from dashboard.worker.sweep import Swept, sweep
from tests.place import Place, outcome_of

T = TypeVar("T")

WINDOWS = Windows()
LEASE = timedelta(minutes=1)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
BACKOFF = Backoff(timedelta(microseconds=1))
PATIENCE = 30.0
"""Seconds after which a wait for another thread or process has failed."""


# ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def request(
    place: Place, key: str, *, stream: str = "receipts", address: str = "ada@example.com", text: str = "Thank you",
    **more: Any,
) -> Request:  # fmt: skip
    """A checked request of the API for a send."""
    raw = {
        "mailstream": stream, "key": key, "recipient": {"id": "recipient_1", "address": address},
        "trigger": {"type": "order.paid", "id": "evt_1"},
        "message": {"from": "shop@example.com", "subject": "Your receipt", "text": text}, **more,
    }  # fmt: skip
    return read_request(raw, workspace_id=place.workspace, source="api", asked_at=datetime.now(UTC))


def ask(place: Place, *keys: str, **wanted: Any) -> list[UUID]:
    """Record a send for each key; their ids."""
    with place.database.transaction() as connection:
        recording.record(connection, place.vault, [request(place, key, **wanted) for key in keys])
    return [send_id(place.workspace, wanted.get("stream", "receipts"), key) for key in keys]


def ask_one(place: Place, key: str = "order:1", **wanted: Any) -> UUID:
    """Record one send; its id."""
    return ask(place, key, **wanted)[0]


def record_in(connection: Connection, place: Place, *keys: str, **wanted: Any) -> list[Recorded]:
    """Record in a transaction that somebody holds open."""
    return recording.record(connection, place.vault, [request(place, key, **wanted) for key in keys])


# ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Hand:
    """One worker, step by step."""

    place: Place
    windows: Windows = WINDOWS
    lease: timedelta = LEASE
    id: UUID = field(default_factory=uuid4)
    turn: int = 0
    part: attempts.Part | None = None
    """Which of those that may share a call do; None: none does."""

    def claim(self, limit: int = 100) -> list[Claim]:
        """Claim what is due."""
        with self.place.database.transaction() as connection:
            return self.claim_in(connection, limit)

    def claim_in(self, connection: Connection, limit: int = 100) -> list[Claim]:
        """Claim in a transaction that is held open."""
        self.turn += 1
        return work.claim(connection, worker=self.id, limit=limit, lease=self.lease, turn=self.turn)

    def start(self, claims: Sequence[Claim] | None = None) -> list[Started]:
        """Start what may start, of these claims or of all that is due."""
        chosen = self.claim() if claims is None else claims
        with self.place.database.transaction() as connection:
            return self.start_in(connection, chosen)

    def start_in(self, connection: Connection, claims: Sequence[Claim]) -> list[Started]:
        """Start in a transaction that is held open."""
        return attempts.start(connection, self.id, claims, self.windows, part=self.part)

    def finish(self, started: Started, kind: Kind, message_id: str | None = None, **more: Any) -> Settled:
        """Store what became of a call."""
        with self.place.database.transaction() as connection:
            return self.finish_in(connection, started, kind, message_id, **more)

    def finish_in(
        self, connection: Connection, started: Started, kind: Kind, message_id: str | None = None, **more: Any
    ) -> Settled:
        """Store it in a transaction that is held open."""
        return self.store_in(connection, [outcome_of(started, kind, message_id, **more)])

    def store_in(self, connection: Connection, finished: Sequence[Finished]) -> Settled:
        """Store what became of several calls, or of one that several sends share."""
        return attempts.finish(connection, self.id, finished, backoff=BACKOFF, breaker=timedelta(seconds=30))

    def send(self, kind: Kind = "accepted", message_id: str | None = "msg-1") -> Started:
        """Claim, start and finish the only send that is due."""
        (started,) = self.start()
        self.finish(started, kind, message_id if kind == "accepted" else None)
        return started


def all_together(candidates: Sequence[Started]) -> list[list[UUID]]:
    """One call for all that may share one, as far as they are of one account."""
    accounts = {one.account_id for one in candidates}
    return [[one.send_id for one in candidates if one.account_id == account] for account in accounts]


# ── time, and what comes with it ─────────────────────────────────────────────────────────────────────────────────────


def due_now(place: Place) -> None:
    """Waits for a next try are over."""
    place.run("update sendonce.work set claim_at = now() - interval '1 second' where state = 'pending'")


def leases_end(place: Place) -> None:
    """The leases of all claims are over, and with them every deadline of their calls."""
    place.run(
        "update sendonce.work set lease_until = now() - interval '1 second',"
        " submit_deadline = submit_deadline - interval '1 hour',"
        " request_deadline = request_deadline - interval '1 hour' where state = 'claimed'"
    )


def swept(place: Place) -> Swept:
    """One pass of the sweep after the end of every lease."""
    leases_end(place)
    with place.database.transaction() as connection:
        return sweep(connection)


def graces_end(place: Place) -> None:
    """Calls of unknown sends have ended for certain, and so have their grace periods."""
    place.run(
        "update sendonce.work set check_at = now(), settled_after = least(settled_after, now() - interval '1 second'),"
        " unknown_since = unknown_since - interval '365 days' where state = 'unknown'"
    )
    place.run("update sendonce.work set settled_after = now() - interval '1 second' where state = 'held'")


def reconciled(place: Place) -> Reconciled:
    """One pass of the reconciler, as time stands."""
    with place.database.transaction() as connection:
        return reconcile(connection, submit_window=WINDOWS.submit)


def attempt_ages(place: Place, send: UUID, by: timedelta) -> None:
    """The attempts of a send were made so much earlier."""
    attempts_age(place, [send], by)


def sharing_a_call(place: Place, send: UUID) -> list[UUID]:
    """A send and all that ever went in one call with it."""
    rows = place.all(
        "select o.send_id from sendonce.attempts e join sendonce.attempts o on o.batch = e.batch where e.send_id = %s",
        send,
    )
    return [send, *({row["send_id"] for row in rows} - {send})]


def attempts_age(place: Place, sends: Sequence[UUID], by: timedelta) -> None:
    """Those of many sends."""
    place.run(
        "update sendonce.work set ambiguous_since = ambiguous_since - %(by)s,"
        " first_attempt_at = first_attempt_at - %(by)s where send_id = any(%(sends)s)",
        by=by, sends=list(sends),
    )  # fmt: skip
    place.run(
        "update sendonce.attempts set started_at = started_at - %(by)s, claimed_at = claimed_at - %(by)s,"
        " submit_deadline = submit_deadline - %(by)s, request_deadline = request_deadline - %(by)s,"
        " finished_at = finished_at - %(by)s, doubted_at = doubted_at - %(by)s where send_id = any(%(sends)s)",
        by=by, sends=list(sends),
    )  # fmt: skip


# ── evidence and people ──────────────────────────────────────────────────────────────────────────────────────────────


def told(event_type: EventType, send: UUID | None = None, message_id: str | None = None, **facts: Any) -> Told:
    """An event with an id of its own."""
    given = {"event_id": uuid4().hex, "occurred_at": datetime.now(UTC), "raw": b"{}"} | facts
    return Told(event_type=event_type, send_id=send and str(send), provider_message_id=message_id, **given)


def hear(place: Place, *facts: Told, account: UUID | None = None) -> events.Intake:
    """One request of a provider."""
    with place.database.transaction() as connection:
        return hear_in(connection, place, *facts, account=account)


def hear_in(connection: Connection, place: Place, *facts: Told, account: UUID | None = None) -> events.Intake:
    """The same, in a transaction that is held open."""
    return events.ingest(
        connection, place.vault, workspace_id=place.workspace, account_id=account or place.account, told=facts,
        received_at=datetime.now(UTC),
    )  # fmt: skip


def person(place: Place, login: str = "ada") -> UUID:
    """Somebody who may decide."""
    row = place.one(
        "insert into sendonce.users (login, name, password_hash) values (%s, 'Ada', '-')"
        " on conflict (login) do update set name = excluded.name returning id",
        login,
    )
    made: UUID = row["id"]
    return made


def hold_of(place: Place) -> holds.OpenHold:
    """The only open hold."""
    with place.database.transaction() as connection:
        (hold,) = holds.open_holds(connection, place.workspace)
    return hold


def decide(
    place: Place, decision: Decision, *, hold: holds.OpenHold | None = None, evidence: int | None = None,
    reason: str = "the customer asked", login: str = "ada",
) -> holds.Decided | holds.Refused:  # fmt: skip
    """What a person decides about a hold, having seen ``evidence``."""
    seen = hold or hold_of(place)
    user = person(place, login)
    with place.database.transaction() as connection:
        return holds.decide(
            connection, workspace_id=place.workspace, hold_id=seen.hold_id, user_id=user, decision=decision,
            reason=reason, evidence=seen.evidence if evidence is None else evidence,
        )  # fmt: skip


# ── sends in a state, made by the real moves ─────────────────────────────────────────────────────────────────────────


def unknown(place: Place, key: str = "order:1", **wanted: Any) -> tuple[UUID, Hand, Started]:
    """A send whose call was not answered, with the worker that made it."""
    send, hand = ask_one(place, key, **wanted), Hand(place)
    (started,) = hand.start()
    hand.finish(started, "ambiguous", error_class="read_timeout")
    return send, hand, started


def held(place: Place, key: str = "order:1", **wanted: Any) -> tuple[UUID, Hand, Started]:
    """The same, held after its grace period."""
    made = unknown(place, key, **wanted)
    graces_end(place)
    assert reconciled(place).held == 1
    return made


def released(place: Place, key: str = "order:1", **wanted: Any) -> tuple[UUID, Hand, Started]:
    """The same, released by its key: pending, its release not used yet."""
    made = unknown(place, key, **wanted)
    graces_end(place)
    assert reconciled(place).released == 1
    return made


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def state_of(place: Place, send: UUID) -> str:
    """The state that people see."""
    row = place.one(
        "select coalesce(w.state::text, s.state::text) as state from sendonce.sends s"
        " left join sendonce.work w on w.send_id = s.id where s.id = %s",
        send,
    )
    state: str = row["state"]
    return state


def reason_of(place: Place, send: UUID) -> str:
    """Why it is there."""
    row = place.one(
        "select coalesce(w.reason, s.reason) as reason from sendonce.sends s"
        " left join sendonce.work w on w.send_id = s.id where s.id = %s",
        send,
    )
    reason: str = row["reason"]
    return reason


def work_of(place: Place, send: UUID) -> dict[str, Any]:
    """The work row."""
    return place.one("select * from sendonce.work where send_id = %s", send)


def attempts_of(place: Place, send: UUID) -> list[str]:
    """What became of its attempts, in their order."""
    return [
        row["status"]
        for row in place.all("select status::text from sendonce.attempts where send_id = %s order by n", send)
    ]


def verdicts_of(place: Place, send: UUID) -> list[str]:
    """What its later deliveries met, in their order."""
    rows = place.all("select verdict::text from sendonce.duplicates where send_id = %s order by id", send)
    return [row["verdict"] for row in rows]


def violations(place: Place) -> list[str]:
    """What ``sendonce verify`` finds."""
    with place.database.snapshot() as connection:
        return [f"{f.invariant} {row.send_id} {row.what}" for f in verify(connection) for row in f.rows]


# ── races ────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Rival(threading.Thread, Generic[T]):
    """Somebody else, who acts at the same time; ``result`` is what came of it."""

    def __init__(self, act: Callable[[], T]) -> None:
        super().__init__(daemon=True)
        self._act = act
        self._outcome: list[T] = []
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        """Act."""
        try:
            self._outcome.append(self._act())
        except BaseException as error:
            self._error = error

    @property
    def result(self) -> T:
        """What the act gave, once it has ended. Raises what it raised."""
        self.join(PATIENCE)
        assert not self.is_alive(), "the rival still waits"
        if self._error is not None:
            raise self._error
        return self._outcome[0]


@contextmanager
def open_transaction(place: Place, *, commit: bool = True) -> Iterator[Connection]:
    """A transaction on a connection of its own, held open until the block ends, then committed, or rolled back."""
    with place.database.transaction() as connection:
        yield connection
        if not commit:
            connection.rollback()


def wait_for_a_waiter(place: Place, rival: Rival[Any]) -> None:
    """Until the rival waits for a lock that somebody holds. Fails when it ends without having to wait."""
    waiting = (
        "select count(*) as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    )
    until(lambda: place.one(waiting)["n"] > 0 or not rival.is_alive())
    assert rival.is_alive(), f"the rival did not wait: {rival.result!r}"


def until(true: Callable[[], bool], *, seconds: float = PATIENCE, what: str = "what was waited for") -> None:
    """Wait for something that no event tells of: a row of another process, a lock of another backend."""
    end = time.monotonic() + seconds
    pause = threading.Event()
    while not true():
        assert time.monotonic() < end, f"{what} did not come in {seconds:.0f} s"
        pause.wait(0.005)
