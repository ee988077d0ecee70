"""The stage of the scenarios: a whole installation on real sockets, and one way to say how its books must stand."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import urllib3
from psycopg.types.json import Jsonb

from dashboard.identity import send_id
from dashboard.insight.judging import Cause, Sureness
from dashboard.insight.timeline import Entry, timeline
from dashboard.insight.verdict import Verdict, verdict
from dashboard.ledger.access import add_token
from dashboard.ledger.accounts import save_account
from dashboard.ledger.database import Database
from dashboard.ledger.search import Hit, search
from dashboard.ledger.trace import Trace, read_trace
from dashboard.settings import Settings
from dashboard.simulator import Simulator
from dashboard.simulator.config import Webhooks
from dashboard.simulator.resend import signed_headers
from dashboard.web import create_app
from dashboard.worker.process import LOOPS, Worker
from tests.crew import HOUR, until, violations
from tests.flow.town import SECRET, Town
from tests.place import KEYS, WEBHOOK_SECRET, Place
from tests.serving import served

HASTY = {"lease_seconds": 2, "submit_window_seconds": 1, "request_timeout_seconds": 1}
"""Settings of a worker whose calls time out, and whose claims are taken over, within seconds."""

FREEZER = Path(__file__).with_name("freezer.py")


@dataclass(frozen=True)
class Answered:
    """What an HTTP caller got."""

    status: int
    body: bytes
    seconds: float

    @property
    def kind(self) -> str:
        """``2xx``, ``4xx`` or ``5xx``."""
        return f"{self.status // 100}xx"

    def json(self) -> dict[str, Any]:
        """The document."""
        document: dict[str, Any] = json.loads(self.body)
        return document


@dataclass
class Scene(Town):
    """A town with every way in: outbox, API, webhooks, worker processes and workers in threads."""

    url: str = ""
    token: str = ""
    http: urllib3.PoolManager = field(default_factory=lambda: urllib3.PoolManager(maxsize=64, retries=False))

    # ── who sends how ────────────────────────────────────────────────────────────────────────────────────────────

    def account(self, name: str = "main", *, keys: bool = True, place: Place | None = None) -> UUID:
        """An account at the simulator, which honours idempotency keys or not."""
        home = place or self.place
        with home.database.transaction() as connection:
            return save_account(
                connection, home.vault, workspace_id=home.workspace, name=name, provider="resend",
                settings={"base_url": self.simulator.http_url, "honours_keys": "true" if keys else "false"},
                secrets={"api_key": "re_test", "webhook_secret": WEBHOOK_SECRET},
                endpoint=f"{name} {self.simulator.http_url}", key_window=timedelta(hours=24) if keys else None,
            )  # fmt: skip

    def mailstream(
        self, name: str = "receipts", mail_class: str = "transactional", *, policy: str = "hold", keys: bool = True,
        grace: timedelta = HOUR, place: Place | None = None, **columns: Any,
    ) -> UUID:  # fmt: skip
        """A mailstream (or another form of one that is there) on an account of its own kind; the account's id."""
        home = place or self.place
        account = self.account("keyed" if keys else "keyless", keys=keys, place=home)
        home.run("delete from sendonce.mailstreams where workspace_id = %s and name = %s", home.workspace, name)
        home.stream(name, mail_class, account_id=account, unknown_policy=policy, grace=grace, **columns)
        return account

    # ── asking ───────────────────────────────────────────────────────────────────────────────────────────────────

    def ask(
        self, *keys: str, to: str = "ana+{}@example.test", trigger: str = "evt_1", stream: str = "receipts",
        **message: Any,
    ) -> list[UUID]:  # fmt: skip
        """Write outbox records in one transaction; ``to`` gets what stands behind the last colon of each key."""
        with self.place.database.transaction() as connection:
            for key in keys:
                asked = request(key, to=to, trigger=trigger, stream=stream, **message)
                connection.execute("select sendonce.enqueue(%s)", [Jsonb(asked)])
        return self.ids(*keys, stream=stream)

    def ids(self, *keys: str, stream: str = "receipts") -> list[UUID]:
        """The send ids of these keys."""
        return [send_id(self.place.workspace, stream, key) for key in keys]

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> Answered:
        """A request to the web; it is answered within twenty seconds."""
        began = time.monotonic()
        answer = self.http.request("POST", self.url + path, body=body, headers=dict(headers), timeout=20.0)
        return Answered(answer.status, answer.data, time.monotonic() - began)

    def call(self, asked: object, *, token: str | None = None) -> Answered:
        """The API asked for one send; bytes go as they are."""
        body = asked if isinstance(asked, bytes) else json.dumps(asked).encode()
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": "application/json"}
        return self.post("/api/v1/sends", body, headers)

    def tell(self, account: UUID, body: bytes, event_id: str | None = None, **headers: str) -> Answered:
        """A signed request of the provider about this account."""
        return self.post(f"/webhooks/{account}", body, signed(body, event_id or uuid4().hex) | headers)

    # ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def staff(self, number: int = 1, *, only: Sequence[str] = LOOPS, **tuning: Any) -> Iterator[list[Worker]]:
        """Workers in threads of this process, each with an identity and connections of its own."""
        settings = Settings(
            database_url=self.place.database.url, secret_key=SECRET, encryption_keys=KEYS,
            **({"retry_seconds": 0.05, "poll_seconds": 0.1} | tuning),
        )  # fmt: skip
        workers = [Worker(settings, only=only) for _ in range(number)]
        threads = [threading.Thread(target=worker.run) for worker in workers]
        for thread in threads:
            thread.start()
        try:
            yield workers
        finally:
            for worker in workers:
                worker.stop()
            for thread in threads:
                thread.join()

    def freezer(self, step: str) -> subprocess.Popen[bytes]:
        """A hasty worker process that stops itself, all its threads at once, when it comes to a step for the first
        time: ``start`` (it has claimed) or ``submit`` (the attempt is committed, no byte is written)."""
        return self.worker("relay", "dispatch", hasty=True, program=(str(FREEZER),), FREEZE_AT=step)

    def wait_frozen(self, process: subprocess.Popen[bytes]) -> None:
        """Until all threads of the process stand still."""
        until(lambda: _status(process.pid) == "T", what="the freeze")

    def wake(self, process: subprocess.Popen[bytes]) -> None:
        """It carries on where it stopped."""
        process.send_signal(signal.SIGCONT)

    def wait_for(self, **states: int) -> None:
        """Until all that was asked for is where it should be."""
        end = time.monotonic() + 60
        while (found := self.states()) != states:
            assert time.monotonic() < end, f"{found} instead of {states}: {self.errors()[-5:]}"
            time.sleep(0.03)

    # ── how it stands ────────────────────────────────────────────────────────────────────────────────────────────

    def of(self, *sends: UUID) -> Books:
        """The books as far as they are about these sends."""
        return Books(self, frozenset(sends))

    def shows(self, **expected: Any) -> None:
        """The books of the whole installation; see :meth:`Books.show`."""
        Books(self).show(**expected)

    def trace(self, send: UUID) -> Trace:
        """All that is known about a send."""
        with self.place.database.snapshot() as connection:
            found = read_trace(connection, self.place.workspace, send)
        assert found is not None, f"there is no send {send}"
        return found

    def timeline(self, send: UUID) -> list[Entry]:
        """The marks that its page shows."""
        return timeline(self.trace(send))

    def answer(self, send: UUID) -> Verdict:
        """What the page of a send says became of it."""
        return verdict(self.trace(send), datetime.now(UTC))

    def says_one_acceptance(self, send: UUID) -> Verdict:
        """*Got it twice*: one send, one acceptance, proved; whoever has two copies must look outside."""
        trace, found = self.trace(send), self.answer(send)
        assert (trace.state, trace.acceptances, found.sureness) == ("accepted", 1, Sureness.PROVED), found
        assert found.cause not in (Cause.ACCEPTED_MORE_THAN_ONCE, Cause.MARKED_ACCEPTED)
        assert found.sentence.startswith("Accepted by Resend once")
        return found

    def says(self, send: UUID, cause: Cause, sureness: Sureness = Sureness.PROVED, words: str = "") -> Verdict:
        """The page of a send names this cause, is so sure, and uses these words."""
        found = self.answer(send)
        assert (found.cause, found.sureness) == (cause, sureness), found
        assert words in found.sentence
        return found

    def finds(self, text: str) -> list[Hit]:
        """What the search box finds."""
        with self.place.database.snapshot() as connection:
            return search(connection, self.place.vault, self.place.workspace, text)

    def errors(self) -> list[str]:
        """What the worker processes logged beyond the ordinary course."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line for line in lines if '"level": "info"' not in line]

    @contextmanager
    def watched(self) -> Iterator[dict[UUID, set[str]]]:
        """Meanwhile the ledger is looked at every few milliseconds: which states each send was seen in, and never a
        violation of an invariant."""
        seen: dict[UUID, set[str]] = {}
        found: list[str] = []
        done = threading.Event()

        def look() -> None:
            while not done.is_set():
                found.extend(violations(self.place))
                for _ in range(10):
                    for row in self.place.all(STATES):
                        seen.setdefault(row["id"], set()).add(row["state"])
                    done.wait(0.02)

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            yield seen
        finally:
            done.set()
            watcher.join()
        assert found == []


STATES = (
    "select s.id, coalesce(w.state::text, s.state::text) as state from sendonce.sends s"
    " left join sendonce.work w on w.send_id = s.id"
)


def _status(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def request(
    key: str, *, to: str = "ana+{}@example.test", trigger: str = "evt_1", stream: str = "receipts", **message: Any
) -> dict[str, Any]:
    """A request for a send, as a business writes it."""
    last = key.rpartition(":")[2]
    return {
        "mailstream": stream, "key": key, "recipient": {"id": f"r-{last}", "address": to.format(last)},
        "trigger": {"type": "order.paid", "id": trigger},
        "message": {"from": "shop@example.test", "subject": "Your order", "text": f"Thank you for {key}", **message},
    }  # fmt: skip


def event(
    kind: str, message_id: str, *, send: UUID | None = None, at: str = "2026-11-30T10:00:04Z", **data: Any
) -> bytes:
    """The body of a request about one event, in Resend's words."""
    content: dict[str, Any] = {"email_id": message_id, "to": ["ana@example.test"], "subject": "Your order"} | data
    if send is not None:
        content["tags"] = {"send_id": str(send)}
    return json.dumps({"type": f"email.{kind}", "created_at": at, "data": content}).encode()


def signed(body: bytes, event_id: str = "msg_1", secret: str = WEBHOOK_SECRET) -> dict[str, str]:
    """The headers of an authentic request."""
    return {"content-type": "application/json"} | signed_headers(Webhooks(secret=secret), event_id, body, time.time())


# ── the books ────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Books:
    """What the provider took, by its own books, and what the ledger says; of some sends or, without any, of all."""

    scene: Scene
    only: frozenset[UUID] | None = None

    def show(self, **expected: Any) -> None:
        """Each named figure is exactly this. Counts by a word are complete: a word that is not listed counts nothing.

        Fails with all figures that differ.
        """
        real = {name: getattr(self, name)() for name in expected}
        wrong = {name: real[name] for name in expected if real[name] != expected[name]}
        assert not wrong, f"{wrong} instead of {expected}"

    def provider_took(self) -> int:
        """How many messages the simulator accepted."""
        return sum(self._copies().values())

    def most_copies(self) -> int:
        """The largest number of messages that it accepted for one send."""
        return max(self._copies().values(), default=0)

    def _copies(self) -> Counter[str]:
        wanted = None if self.only is None else set(map(str, self.only))
        rows = self.scene.simulator.books
        return Counter(row.identity for row in rows if wanted is None or row.send_id in wanted)

    def sends(self) -> dict[str, int]:
        """Sends by the state that people see."""
        return self._by(f"select id as send_id, state as word from ({STATES}) s")

    def deliveries(self) -> dict[str, int]:
        """Arrivals of keys: the first of each, and the later ones by what they met."""
        return self._by(
            "select id as send_id, 'won' as word from sendonce.sends"
            " union all select send_id, verdict::text from sendonce.duplicates"
        )

    def attempts(self) -> dict[str, int]:
        """Provider calls by what became of them."""
        return self._by("select send_id, status::text as word from sendonce.attempts")

    def claims(self) -> int:
        """Claim numbers issued."""
        rows = self._rows(
            "select s.id as send_id, coalesce(w.claim_number, s.last_claim) as n from sendonce.sends s"
            " left join sendonce.work w on w.send_id = s.id"
        )
        return sum(row["n"] for row in rows)

    def reconciliations(self) -> dict[str, int]:
        """Unknown or held sends that were settled by evidence or by a person, by what proved it."""
        return self._by(
            "select send_id, reason as word from sendonce.moves"
            " where move in ('accept', 'fail') and from_state in ('unknown', 'held')"
        )

    def events(self) -> dict[str, int]:
        """Distinct facts that the provider told: stored, of these unmatched, and what could not be understood."""
        told = {
            "stored": len(self._rows("select send_id from sendonce.events")),
            "unmatched": self.scene.place.count("unmatched"),
            "quarantined": self.scene.place.one(
                "select count(*) as n from sendonce.dead_letters where source = 'webhook'"
            )["n"],
        }
        return told | {"stored": told["stored"] + told["unmatched"]}

    def delivery(self) -> dict[str | None, int]:
        """Sends by their delivery outcome."""
        return dict(Counter(row["word"] for row in self._rows(
            "select id as send_id, delivery::text as word from sendonce.sends"
        )))  # fmt: skip

    def dead_letters(self) -> int:
        """What waits for a person because nobody could read it."""
        return self.scene.place.count("dead_letters")

    def suppressions(self) -> list[str]:
        """What each suppression in force comes from."""
        rows = self.scene.place.all("select source from sendonce.suppressions where suppressed order by source")
        return [row["source"] for row in rows]

    def outbox_left(self) -> int:
        """Outbox records that were not relayed."""
        return self.scene.place.count("outbox")

    def _by(self, query: str) -> dict[str, int]:
        return dict(Counter(row["word"] for row in self._rows(query)))

    def _rows(self, query: str) -> list[dict[str, Any]]:
        rows = self.scene.place.all(query)
        return [row for row in rows if self.only is None or row["send_id"] in self.only]


# ── beginning and end ────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def the_scene(place: Place, simulator: Simulator, log: Path) -> Iterator[Scene]:
    """Everything is there, and nobody works yet. At the end no invariant is violated."""
    scene = Scene(place, simulator, log)
    with place.database.transaction() as connection:
        _, scene.token = add_token(connection, workspace_id=place.workspace, name="shop")
    database = Database(place.database.url, pool_size=24)
    settings = Settings(database_url=database.url, secret_key=SECRET, encryption_keys=KEYS)
    with served(create_app(settings, database, place.vault)) as scene.url:
        try:
            yield scene
        finally:
            for process in scene.workers:
                if process.poll() is None:
                    process.send_signal(signal.SIGCONT)
            scene.end()
            scene.http.clear()
    database.close()
    found = violations(place)
    assert found == [], "\n".join(found)


def visible(html: str) -> str:
    """The text of a page as people see it, without its tags."""
    from html import unescape

    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", html)))
