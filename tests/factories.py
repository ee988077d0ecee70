"""Rows of a ledger, made directly: a factory per state, each as the worker would have left it.

Times are counted in seconds from :data:`NOON`, so that a test reads like a story: ``accepted(at=2, asked=0)``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from dashboard.identity import send_id
from dashboard.ledger import mail_replies
from dashboard.ledger.database import Connection
from dashboard.ledger.notes import add_note
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import Reason

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
ADDRESS = "ada@example.com"
FOREVER = datetime.max.replace(tzinfo=UTC)


@contextmanager
def own_database(server_url: str, template: str) -> Iterator[str]:
    """The URL of a clone of the migrated template database, dropped at the end."""
    name = f"sendonce_rows_{uuid4().hex[:12]}"
    address, question_mark, options = server_url.partition("?")
    with psycopg.connect(server_url, autocommit=True) as administrator:
        administrator.execute(
            sql.SQL("create database {} template {} strategy file_copy").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        yield f"{address.rpartition('/')[0]}/{name}{question_mark}{options}"
        administrator.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def at(seconds: float) -> datetime:
    """The moment so many seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def insert(connection: Connection, table: str, **values: Any) -> Any:
    """Insert a row; the value of its first column."""
    names = ", ".join(values)
    binds = ", ".join(f"%({name})s" for name in values)
    query = f"insert into sendonce.{table} ({names}) values ({binds}) returning *"
    row = connection.execute(query, values).fetchone()  # type: ignore[call-overload]
    return row[0]


@dataclass
class Factory:
    """A workspace with one mailstream, one account, one worker and one person, and what is sent in it."""

    connection: Connection
    vault: Vault = field(default_factory=lambda: Vault([("k1", b"k" * 32)]))
    workspace: UUID = field(default_factory=uuid4)
    account: UUID = field(default_factory=uuid4)
    worker: UUID = field(default_factory=uuid4)
    person: UUID = field(default_factory=uuid4)
    mailstream: str = "receipts"
    mail_class: str = "transactional"
    provider: str = "resend"
    key_window: timedelta | None = timedelta(hours=24)
    unknown_policy: str = "hold"
    grace: timedelta = timedelta(minutes=30)
    too_late_after: timedelta | None = None
    late_policy: str = "hold"
    made: int = 0

    def __post_init__(self) -> None:
        self.add("workspaces", id=self.workspace, name=f"ws-{self.workspace}")
        self.add(
            "accounts",
            id=self.account,
            workspace_id=self.workspace,
            name="main",
            provider=self.provider,
            key_window=self.key_window,
        )
        self.stream(self.mailstream)
        self.add(
            "workers",
            id=self.worker,
            name="host-1:4711:abcd",
            version="0.1.0",
            loops=["dispatch"],
            started_at=at(-600),
            heartbeat_at=at(0),
        )
        self.add("users", id=self.person, login=f"ada-{self.person}", name="Ada", password_hash="-")

    def add(self, table: str, **values: Any) -> Any:
        """Insert a row; the value of its first column."""
        return insert(self.connection, table, **values)

    def stream(self, name: str) -> None:
        """One more mailstream."""
        self.add(
            "mailstreams",
            workspace_id=self.workspace,
            name=name,
            title=name.title(),
            owner="Shop",
            mail_class=self.mail_class,
            account_id=self.account,
            unknown_policy=self.unknown_policy,
            grace=self.grace,
            late_policy=self.late_policy,
            too_late_after=self.too_late_after,
            max_attempts=20,
            retry_for=timedelta(days=3),
        )

    # ── one factory per state ──────────────────────────────────────────────────────────────────────────────────────

    def pending(self, *, due: float = 0, claim_at: float | None = None, reason: str = Reason.DUE, **send: Any) -> UUID:
        """Waits for a worker."""
        made = self.send(due=due, **send)
        self.work(made, reason=reason, due_at=at(due), claim_at=at(due if claim_at is None else claim_at))
        return made

    def claimed(self, *, claimed: float = 1, lease: float = 60, **send: Any) -> UUID:
        """Owned by the worker, no attempt yet."""
        made = self.send(**send)
        self.work(made, **self._claim(claimed, lease))
        return made

    def submitting(self, *, started: float = 2, lease: float = 60, **send: Any) -> UUID:
        """Its call is running."""
        made = self.send(**send)
        self.attempt(made, started=started)
        self.work(
            made,
            **self._claim(started - 1, lease),
            last_attempt=1,
            counted_attempts=1,
            first_attempt_at=at(started),
            open_attempt=1,
            submit_deadline=at(started + 10),
            request_deadline=at(started + 40),
        )
        return made

    def unknown(self, *, started: float = 2, doubted: float = 32, **send: Any) -> UUID:
        """Its call got no answer."""
        made = self.send(**send)
        self.attempt(
            made, started=started, finished=doubted, status="ambiguous", doubted=doubted, error_class="read_timeout"
        )
        self.move(
            made,
            "doubt",
            "claimed",
            "unknown",
            Reason.NO_ANSWER,
            when=doubted,
            worker=self.worker,
            claim_number=1,
            attempt=1,
        )
        self.work(
            made, **self._doubt(started, doubted), state="unknown", reason=Reason.NO_ANSWER, unknown_since=at(doubted)
        )
        return made

    def held(self, *, started: float = 2, doubted: float = 32, opened: float = 1832, **send: Any) -> UUID:
        """Its call got no answer, and the grace period is over."""
        made = self.send(**send)
        self.attempt(
            made, started=started, finished=doubted, status="ambiguous", doubted=doubted, error_class="read_timeout"
        )
        self.move(
            made,
            "doubt",
            "claimed",
            "unknown",
            Reason.NO_ANSWER,
            when=doubted,
            worker=self.worker,
            claim_number=1,
            attempt=1,
        )
        self.move(made, "hold", "unknown", "held", Reason.UNCONFIRMED, when=opened, made_by="reconcile", attempt=1)
        self.work(made, **self._doubt(started, doubted), state="held", reason=Reason.UNCONFIRMED)
        self.hold(made, Reason.UNCONFIRMED, opened=opened, waives=["ambiguous"])
        return made

    def held_late(self, *, opened: float = 1800, **send: Any) -> UUID:
        """Held before any attempt."""
        made = self.send(**send)
        self.move(made, "hold", "claimed", "held", Reason.LATE, when=opened, worker=self.worker, claim_number=1)
        self.work(made, state="held", reason=Reason.LATE, claim_at=None, check_at=FOREVER, claim_number=1)
        self.hold(made, Reason.LATE, opened=opened, waives=["late"])
        return made

    def accepted(
        self, *, started: float = 2, answered: float = 2.4, message_id: str | None = "msg-1", **send: Any
    ) -> UUID:
        """Straight through."""
        made = self.settled("accepted", Reason.ANSWERED, settled=answered, attempts=1, **send)
        self.attempt(
            made,
            started=started,
            finished=answered,
            status="accepted",
            provider_message_id=message_id,
            settled_by="worker",
            duration_ms=int((answered - started) * 1000),
        )
        return made

    def failed(self, *, started: float = 2, answered: float = 2.4, **send: Any) -> UUID:
        """Refused for good."""
        made = self.settled("failed", Reason.REFUSED, settled=answered, attempts=1, **send)
        self.attempt(
            made,
            started=started,
            finished=answered,
            status="rejected",
            settled_by="worker",
            error_code="422",
            reason="The from address is not verified",
        )
        self.move(
            made,
            "fail",
            "claimed",
            "failed",
            Reason.REFUSED,
            when=answered,
            worker=self.worker,
            claim_number=1,
            attempt=1,
        )
        return made

    def suppressed(self, *, settled: float = 2, said: float = -3600, **send: Any) -> UUID:
        """Its address had bounced before."""
        made = self.settled("suppressed", Reason.BOUNCED_BEFORE, settled=settled, **send)
        self.move(
            made,
            "suppress",
            "claimed",
            "suppressed",
            Reason.BOUNCED_BEFORE,
            when=settled,
            worker=self.worker,
            claim_number=1,
        )
        self.suppression("bounced", said=said)
        return made

    def cancelled(self, *, settled: float = 2, **send: Any) -> UUID:
        """Cancelled by a person before any attempt."""
        made = self.settled("cancelled", Reason.CANCELLED_BY_PERSON, settled=settled, **send)
        self.move(
            made,
            "cancel",
            "pending",
            "cancelled",
            Reason.CANCELLED_BY_PERSON,
            when=settled,
            made_by="person",
            user_id=self.person,
        )
        return made

    # ── rows ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def send(
        self,
        *,
        key: str | None = None,
        asked: float = 0,
        due: float | None = None,
        mailstream: str | None = None,
        recipient: str = "recipient_1",
        trigger: str = "evt_1",
        address: str | None = ADDRESS,
        content: str = "hello",
        subject: str = "Your receipt",
        **columns: Any,
    ) -> UUID:
        """The ledger row and the message of a send, open unless ``columns`` say otherwise."""
        self.made += 1
        stream = mailstream or self.mailstream
        key = key or f"receipt:order_{self.made}:{recipient}"
        made = send_id(self.workspace, stream, key)
        values = {
            "id": made,
            "workspace_id": self.workspace,
            "mailstream": stream,
            "key": key,
            "recipient_id": recipient,
            "address_lookup": self.vault.lookup(address) if address else None,
            "fingerprint": hashlib.sha256(f"{content} {recipient}".encode()).digest(),
            "source": "outbox",
            "trigger_type": "order.paid",
            "trigger_id": trigger,
            "triggered_at": at(asked - 1),
            "asked_at": at(asked),
            "recorded_at": at(asked + 0.1),
            "due_at": at(asked if due is None else due),
        }
        self.add("sends", **(values | columns))
        body = {
            "from": "shop@example.com",
            "reply_to": None,
            "subject": subject,
            "text": content,
            "html": None,
            "headers": {},
        }
        self.add(
            "messages",
            send_id=made,
            body=self.vault.encrypt(json.dumps(body).encode(), made.bytes),
            address=self.vault.encrypt(address.encode(), made.bytes) if address else None,
            subject_lookup=self.vault.subject_lookup(self.workspace, subject),
            subject_at=(values | columns)["recorded_at"],
        )
        return made

    def reply(
        self, send: UUID, *, sender: str = ADDRESS, text: str | None = None, when: float = 10, automatic: bool = False,
        to: str = "shop@example.com",
    ) -> int:  # fmt: skip
        """A mail that answers a send; what it says is kept where there is a text. Its id."""
        self.made += 1
        mail_replies.set_keep_replies(self.connection, self.workspace, keep=text is not None)
        mail = mail_replies.Mail(
            message_id=f"reply-{self.made}@example.com", sender=sender, recipients=[to],
            names=[mail_replies.Name(send, None)], written_at=None, automatic=automatic, subject="Re: it", text=text,
        )  # fmt: skip
        mail_replies.keep(
            self.connection, self.vault, workspace_id=self.workspace, account_id=self.account, mails=[mail],
            received_at=at(when),
        )  # fmt: skip
        row = self.connection.execute("select max(id) from sendonce.mail_replies").fetchone()
        assert row is not None
        number: int = row[0]
        return number

    def note(self, send: UUID, text: str = "", *, ticket: str = "") -> int:
        """What the person kept with a send."""
        return add_note(
            self.connection, self.vault, workspace_id=self.workspace, send_id=send, user_id=self.person,
            ticket=ticket, text=text,
        )  # fmt: skip

    def settled(self, state: str, reason: str, *, settled: float, attempts: int = 0, **send: Any) -> UUID:
        """A send that has come to its end."""
        return self.send(
            state=state,
            reason=reason,
            settled_at=at(settled),
            account_id=self.account,
            last_claim=1,
            last_attempt=attempts,
            **send,
        )

    def work(self, send: UUID, **columns: Any) -> None:
        """The work row of an open send."""
        row = self.connection.execute(
            "select mailstream, recorded_at, due_at from sendonce.sends where id = %s", (send,)
        ).fetchone()
        assert row is not None
        values = {
            "send_id": send,
            "workspace_id": self.workspace,
            "mailstream": row[0],
            "mail_class": self.mail_class,
            "reason": Reason.DUE,
            "recorded_at": row[1],
            "due_at": row[2],
            "claim_at": row[2],
            "account_id": self.account,
        }
        self.add("work", **(values | columns))

    def _claim(self, claimed: float, lease: float) -> dict[str, Any]:
        return {
            "state": "claimed",
            "reason": Reason.CLAIMED,
            "claim_number": 1,
            "claimed_by": self.worker,
            "claimed_at": at(claimed),
            "lease_until": at(lease),
        }

    def _doubt(self, started: float, doubted: float) -> dict[str, Any]:
        return {
            "claim_at": None,
            "check_at": at(doubted) + self.grace,
            "claim_number": 1,
            "last_attempt": 1,
            "counted_attempts": 1,
            "first_attempt_at": at(started),
            "ambiguous_since": at(started),
            "settled_after": at(started + 40),
        }

    def attempt(
        self,
        send: UUID,
        *,
        n: int = 1,
        started: float = 2,
        finished: float | None = None,
        doubted: float | None = None,
        **columns: Any,
    ) -> None:
        """One provider call."""
        values = {
            "send_id": send,
            "n": n,
            "workspace_id": self.workspace,
            "mailstream": self.mailstream,
            "account_id": self.account,
            "worker": self.worker,
            "claim_number": n,
            "claimed_at": at(started - 1),
            "started_at": at(started),
            "submit_deadline": at(started + 10),
            "request_deadline": at(started + 40),
            "finished_at": None if finished is None else at(finished),
            "doubted_at": None if doubted is None else at(doubted),
            "status": "submitting",
            "idempotency_key": str(send),
        }
        self.add("attempts", **(values | columns))

    def share_a_call(self, *sends: UUID) -> UUID:
        """Have the first attempts of these sends be one call. Returns its batch."""
        batch = uuid4()
        self.connection.execute(
            "update sendonce.attempts set batch = %s, idempotency_key = %s where send_id = any(%s) and n = 1",
            (batch, str(batch), list(sends)),
        )
        return batch

    def move(
        self,
        send: UUID,
        move: str,
        before: str | None,
        after: str,
        reason: str,
        *,
        when: float,
        made_by: str = "worker",
        **columns: Any,
    ) -> int:
        """A row of history."""
        moved: int = self.add(
            "moves",
            send_id=send,
            workspace_id=self.workspace,
            at=at(when),
            move=move,
            from_state=before,
            to_state=after,
            made_by=made_by,
            reason=reason,
            **columns,
        )
        return moved

    def event(self, send: UUID, kind: str, *, occurred: float, received: float | None = None, **columns: Any) -> int:
        """A fact that the provider told, folded into the send as ``delivery`` where the test says so."""
        name = uuid4().hex
        values = {
            "workspace_id": self.workspace,
            "account_id": self.account,
            "event_id": name,
            "fact": name.encode(),
            "event_type": kind,
            "occurred_at": at(occurred),
            "received_at": at(occurred + 1 if received is None else received),
            "provider_message_id": "msg-1",
            "send_id": send,
            "matched_by": "send_id",
        }
        event: int = self.add("events", **(values | columns))
        return event

    def delivery(self, send: UUID, word: str, *, when: float) -> None:
        """Fold a delivery word into the send."""
        self.connection.execute(
            "update sendonce.sends set delivery = %s, delivery_at = %s where id = %s", (word, at(when), send)
        )

    def duplicate(
        self, send: UUID, *, when: float, verdict: str = "duplicate", state_met: str = "accepted", **columns: Any
    ) -> int:
        """A later delivery."""
        values = {
            "send_id": send,
            "workspace_id": self.workspace,
            "mailstream": self.mailstream,
            "source": "outbox",
            "trigger_type": "order.paid",
            "trigger_id": "evt_1",
            "at": at(when),
            "state_met": state_met,
            "verdict": verdict,
        }
        duplicate: int = self.add("duplicates", **(values | columns))
        return duplicate

    def hold(self, send: UUID, reason: str, *, opened: float, waives: list[str]) -> int:
        """An open hold."""
        row = self.connection.execute("select mailstream from sendonce.sends where id = %s", (send,)).fetchone()
        assert row is not None
        hold: int = self.add(
            "holds",
            send_id=send,
            workspace_id=self.workspace,
            mailstream=row[0],
            account_id=self.account,
            reason=reason,
            waives=waives,
            opened_at=at(opened),
        )
        return hold

    def decision(
        self, send: UUID, decision: str, *, when: float, after: str, reason: str = "the customer asked"
    ) -> None:
        """What the person decided on the open hold of a send, which closes it."""
        hold = self.connection.execute(
            "update sendonce.holds set closed_at = %s, closed_by = 'person'"
            " where send_id = %s and closed_at is null returning id",
            (at(when), send),
        ).fetchone()
        assert hold is not None
        self.add(
            "decisions",
            hold_id=hold[0],
            send_id=send,
            workspace_id=self.workspace,
            user_id=self.person,
            decision=decision,
            reason=reason,
            evidence=0,
            seen=Jsonb({}),
            before_state="held",
            after_state=after,
            at=at(when),
        )

    def settle(self, send: UUID, state: str, reason: str, *, when: float) -> None:
        """Bring an open send to its end: its work row goes."""
        self.connection.execute("delete from sendonce.work where send_id = %s", (send,))
        self.connection.execute(
            "update sendonce.sends set state = %s, reason = %s, settled_at = %s, last_attempt = 1 where id = %s",
            (state, reason, at(when), send),
        )

    def suppression(self, source: str, *, said: float, suppressed: bool = True, scope: str = "everything") -> None:
        """What was said about the address."""
        self.add(
            "suppressions",
            workspace_id=self.workspace,
            address_lookup=self.vault.lookup(ADDRESS),
            scope=scope,
            suppressed=suppressed,
            said_at=at(said),
            source=source,
            reason="550 no such user",
        )

    def rollup(self, minute: float, *, mailstream: str | None = None, **sums: int) -> None:
        """A minute of a mailstream."""
        self.add(
            "rollups",
            workspace_id=self.workspace,
            mailstream=self.mailstream if mailstream is None else mailstream,
            minute=NOON + timedelta(minutes=minute),
            **sums,
        )
