"""A support agent's desk beside a whole installation: people get mail by a real worker, then somebody complains."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import urllib3
from psycopg.types.json import Jsonb

from dashboard.identity import send_id
from dashboard.insight.case import Answer, Case, Complaint, Finding
from dashboard.insight.complaints import investigate
from dashboard.ledger import holds, outbox
from dashboard.ledger.accounts import save_account
from dashboard.ledger.cancelling import Cancelled, Refused, Remembered, cancel_send
from dashboard.ledger.database import Database
from dashboard.ledger.evidence import Evidence, Question, read_evidence
from dashboard.ledger.retry import Backoff
from dashboard.lifecycle import Decision
from dashboard.simulator import Config, Simulator
from dashboard.worker.dispatch import Lane
from dashboard.worker.sweep import sweep
from tests.crew import HOUR, person, reconciled, until
from tests.lanes import a_lane, point_at
from tests.place import WEBHOOK_SECRET, Place
from tests.scenarios.scene import Scene, the_scene

MOMENTS = {
    "outbox": ("asked_at",),
    "sends": ("triggered_at", "asked_at", "recorded_at", "due_at", "settled_at", "delivery_at", "taken_at"),
    "work": (
        "recorded_at", "due_at", "claim_at", "check_at", "claimed_at", "lease_until", "submit_deadline",
        "request_deadline", "first_attempt_at", "ambiguous_since", "settled_after", "unknown_since",
    ),
    "attempts": ("claimed_at", "started_at", "submit_deadline", "request_deadline", "finished_at", "doubted_at"),
    "moves": ("at", "next_try_at"),
    "duplicates": ("at",),
    "events": ("occurred_at", "received_at"),
    "holds": ("opened_at", "closed_at"),
    "decisions": ("at",),
    "audit": ("at",),
    "suppressions": ("said_at", "stored_at"),
}  # fmt: skip
"""The times of everything about a send. Those far ahead mean *never*, and stay."""


@dataclass(frozen=True)
class Person:
    """Somebody who gets mail; how theirs fares at the simulator stands in the address."""

    id: str
    address: str


@dataclass
class Desk:
    """The installation, a worker that goes round when it is told to, and whoever asks."""

    scene: Scene
    lane: Lane
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def place(self) -> Place:
        """The ledger."""
        return self.scene.place

    # ── what happens ─────────────────────────────────────────────────────────────────────────────────────────────

    def person(self, words: str = "ana") -> Person:
        """Somebody new, whose mail fares by these words (``simulator/recipients.py``)."""
        number = next(self.numbers)
        return Person(f"recipient_{number}", f"{words}+{number}@example.test")

    def stream(self, mail_class: str = "transactional", *, smtp: bool = False, **how: Any) -> str:
        """A mailstream of its own, owned by its own team.

        ``keys=False``: the provider forgets keys at once. ``smtp``: it sends by SMTP.
        """
        name = f"stream-{next(self.numbers)}"
        self.scene.mailstream(name, mail_class, owner=f"Team {name}", **{"policy": "hold", "grace": HOUR} | how)
        if smtp:
            with self.place.database.transaction() as connection:
                account = save_account(
                    connection, self.place.vault, workspace_id=self.place.workspace, name="smtp", provider="smtp",
                    settings={"host": "127.0.0.1", "port": str(self.scene.simulator.smtp_port), "security": "none"},
                    secrets={}, endpoint="smtp",
                )  # fmt: skip
            self.place.run("update sendonce.mailstreams set account_id = %s where name = %s", account, name)
        return name

    def ask(
        self, who: Person, *, key: str | None = None, trigger: str | None = None, stream: str = "receipts",
        text: str = "Thank you", at: datetime | None = None, not_before: datetime | None = None,
        trigger_type: str = "order.paid", place: Place | None = None, **message: Any,
    ) -> UUID:  # fmt: skip
        """A business asks for an email, in a transaction of its own."""
        number, home = next(self.numbers), place or self.place
        key = key or f"receipt:order_{number}:{who.id}"
        asked = {
            "workspace": home.name, "mailstream": stream, "key": key,
            "recipient": {"id": who.id, "address": who.address},
            "trigger": {
                "type": trigger_type, "id": trigger or f"order_{number}", "at": at.isoformat() if at else None,
            },
            "message": {"from": "shop@example.test", "subject": "Your order", "text": text, **message},
            "not_before": not_before.isoformat() if not_before else None,
        }  # fmt: skip
        self.place.run("select sendonce.enqueue(%s)", Jsonb(asked))
        return send_id(home.workspace, stream, key)

    def relay(self) -> None:
        """The relay takes all that was asked for."""
        with self.place.database.transaction() as connection:
            outbox.relay(connection, self.place.vault, limit=1_000)

    def dispatch(self) -> None:
        """The worker hands over all that is due, and stores what came of it."""
        until(lambda: not self.lane.go_round())

    def hear(self) -> None:
        """The provider tells all that it has to tell."""
        assert self.scene.simulator.wait_idle()

    def go(self) -> None:
        """All three."""
        self.relay()
        self.dispatch()
        self.hear()

    @contextmanager
    def silence(self) -> Iterator[None]:
        """Meanwhile the provider keeps back what it has to tell."""
        self.scene.simulator.configure(webhooks={"paused": True})
        try:
            yield
        finally:
            self.scene.simulator.configure(webhooks={"paused": False})
            self.hear()

    def later(self, by: timedelta, *sends: UUID) -> None:
        """So much time passes for these sends."""
        for table, columns in MOMENTS.items():
            own = {"sends": "id", "audit": "subject"}.get(table, "send_id")
            moved = ", ".join(f"{c} = case when {c} < '2200-01-01' then {c} - %(by)s else {c} end" for c in columns)
            self.place.run(
                f"update sendonce.{table} set {moved} where {own}::text = any(%(sends)s)",
                by=by,
                sends=[str(send) for send in sends],
            )

    def grace_ends(self, *sends: UUID) -> None:
        """The grace period of sends in doubt is over, and their policy is applied."""
        self.later(2 * HOUR, *sends)
        self.place.run("update sendonce.work set check_at = now() where send_id = any(%s)", list(sends))
        reconciled(self.place)

    def sweep(self) -> None:
        """Claims that ran out are taken back."""
        with self.place.database.transaction() as connection:
            sweep(connection)

    def decide(self, send: UUID, decision: Decision) -> None:
        """A person decides a held send, having seen what there is."""
        user = person(self.place)
        with self.place.database.transaction() as connection:
            (hold,) = [
                one for one in holds.open_holds(connection, self.place.workspace, limit=500) if one.send_id == send
            ]
            made = holds.decide(
                connection, workspace_id=self.place.workspace, send_id=send, hold_id=hold.hold_id, user_id=user,
                decision=decision, reason="the customer asked", evidence=hold.evidence,
            )  # fmt: skip
        assert isinstance(made, holds.Decided)

    def cancel(self, send: UUID) -> Cancelled | Remembered | Refused:
        """A person wants it cancelled."""
        user = person(self.place)
        with self.place.database.transaction() as connection:
            return cancel_send(
                connection, workspace_id=self.place.workspace, send_id=send, user_id=user, reason="ordered by mistake"
            )

    def beside(self, who: Person) -> None:
        """Some other program sends by the same account, without Sendonce."""
        body = {"from": "shop@example.test", "to": [who.address], "subject": "Your order", "text": "Thank you"}
        answer = urllib3.request(
            "POST", f"{self.scene.simulator.http_url}/emails", json=body, headers={"Authorization": "Bearer re_test"}
        )
        assert answer.status == 200, answer.data
        self.hear()

    def copies(self, send: UUID) -> int:
        """How many the provider took, by its own books."""
        return self.scene.of(send).provider_took()

    # ── who asks ─────────────────────────────────────────────────────────────────────────────────────────────────

    def evidence(
        self, who: str, *, around: tuple[datetime, datetime] | None = None, also: Sequence[UUID] = ()
    ) -> Evidence:
        """What is known about somebody or something."""
        return read_evidence(
            self.place.database, self.place.vault, workspace_id=self.place.workspace, also=also,
            question=Question(who=who, around=around),
        )  # fmt: skip

    def answer(
        self, complaint: Complaint, who: str, *, message_ids: tuple[str, ...] = (), **where: Any
    ) -> tuple[Case, Answer]:
        """What the engine says."""
        evidence = self.evidence(who, **where)
        case = Case(complaint, evidence, evidence.now, message_ids)
        return case, investigate(case)


@contextmanager
def a_desk(database_url: str, folder: Path) -> Iterator[Desk]:
    """An installation whose provider tells its events, and one worker."""
    database = Database(database_url)
    with (
        Simulator(Config(seed=7, retry_after_seconds=600)) as simulator,
        the_scene(Place(database), simulator, folder / "workers.log") as scene,
        a_lane(scene.place, places=16, backoff=Backoff(timedelta(minutes=1))) as lane,
    ):
        point_at(scene.place, simulator)
        scene.place.run("update sendonce.mailstreams set owner = 'Payments' where name = 'receipts'")
        url = f"{scene.url}/webhooks/{scene.place.account}"
        simulator.configure(webhooks={"url": url, "secret": WEBHOOK_SECRET, "delay_ms": 0.1})
        yield Desk(scene, lane)
        simulator.configure(webhooks={"url": None})
    database.close()


def now() -> datetime:
    """By the clock of this machine, which is the database's too."""
    return datetime.now(UTC)


def nobody() -> str:
    """An order that nobody ever asked anything for."""
    return f"order_{uuid4().hex}"


__all__ = ["Desk", "Finding", "Person", "a_desk", "nobody", "now"]
