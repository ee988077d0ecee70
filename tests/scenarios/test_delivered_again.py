"""The same mail is asked for, or its job delivered, more than once: S01, S02, S08, S10, S11."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from psycopg.types.json import Jsonb

from dashboard.identity import send_id
from dashboard.insight.judging import Cause
from dashboard.ledger.access import add_token
from dashboard.ledger.contents import opened
from dashboard.ledger.database import Database
from dashboard.ledger.metrics import read_series
from dashboard.lifecycle import State
from dashboard.producer import InProgress, Ledger, Outcome, send_once
from dashboard.providers import provider
from dashboard.providers.base import Deadline, Message, Outgoing
from dashboard.providers.base import Outcome as Answer
from dashboard.worker.roll_up import roll_up
from tests.conftest import SOAK
from tests.crew import due_now, until
from tests.place import Place
from tests.scenarios.scene import Scene, request


class Jobs:
    """Job workers of an outside queue, which make their provider call themselves through ``send_once``."""

    def __init__(self, scene: Scene, ledger: Ledger, **how: Any) -> None:
        self.ledger = ledger
        self.how = how
        settings = {"base_url": scene.simulator.http_url, "api_key": "re_test"}
        self.channel = provider("resend").open_channel(settings, request_timeout=20.0)

    def deliver(self, key: str) -> Outcome | None:
        """The job arrives at a worker. None: it is not acknowledged, the queue must deliver it again."""
        try:
            return send_once(
                self.ledger, mailstream="receipts", key=key, recipient_id=f"r-{key}", address="ana@example.test",
                fingerprint=f"receipt {key}", trigger=("job", key), submit=self.submit, **self.how,
            )  # fmt: skip
        except InProgress:
            return None

    def submit(self, idempotency_key: str) -> Answer:
        """One real call."""
        message = Message(sender="shop@example.test", subject="Receipt", text="Thank you", date=datetime.now(UTC))
        return self.channel.submit(
            Outgoing(
                send_id=UUID(idempotency_key), attempt=1, address="ana@example.test", recipient_name=None,
                message=message, deadline=Deadline.after(10.0),
            )
        )  # fmt: skip


@contextmanager
def a_queue(scene: Scene, **how: Any) -> Iterator[Jobs]:
    with Ledger(Database(scene.place.database.url, pool_size=24), scene.place.vault) as ledger:
        jobs = Jobs(scene, ledger, **how)
        yield jobs
        jobs.channel.close()


# ── S01 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

REPEATS, AT_ONCE = (200, 10) if SOAK else (40, 10)
"""Two hundred sends in the long form."""


def test_S01_two_workers_receive_the_same_job_at_the_same_instant(scene: Scene) -> None:
    """For several sends at a time, each of which two workers get from one barrier.

    A delivery to ``send_once`` has an identity of its own, so the worker that the trace names is the delivery itself.
    """
    scene.mailstream(policy="hold")
    keys = [f"order:{i}" for i in range(REPEATS)]
    with a_queue(scene) as jobs, ThreadPoolExecutor(2 * AT_ONCE) as workers:
        for first in range(0, REPEATS, AT_ONCE):
            _two_at_once(scene, jobs, workers, keys[first : first + AT_ONCE])
    for send in scene.ids(*keys):
        trace = scene.trace(send)
        assert {attempt.worker for attempt in trace.attempts} == {trace.claim_winner}, (
            "the trace names the one that won"
        )
        assert trace.claim_winner not in {duplicate.worker for duplicate in trace.duplicates}, "B never tried"
        scene.of(send).show(
            provider_took=1, sends={"accepted": 1}, deliveries={"won": 1, "in_progress": 1, "duplicate": 1},
            attempts={"accepted": 1},
        )  # fmt: skip
    scene.shows(provider_took=REPEATS, most_copies=1, outbox_left=0)
    scene.says_one_acceptance(scene.ids(keys[0])[0])


def _two_at_once(scene: Scene, jobs: Jobs, workers: ThreadPoolExecutor, keys: list[str]) -> None:
    taken, recorded = len(scene.simulator.books), scene.place.count("duplicates")
    scene.simulator.hold_answers()
    barrier = threading.Barrier(2 * len(keys))

    def deliver(key: str) -> Outcome | None:
        barrier.wait()
        return jobs.deliver(key)

    both = [[workers.submit(deliver, key) for _ in "AB"] for key in keys]
    assert scene.simulator.wait_taken(taken + len(keys))
    until(lambda: scene.place.count("duplicates") == recorded + len(keys))
    scene.simulator.release_answers()
    for pair in both:
        won, told = sorted((delivery.result(30) for delivery in pair), key=lambda outcome: outcome is None)
        assert won is not None
        assert (won.state, won.replayed, told) == (State.ACCEPTED, False, None)
    for later in [workers.submit(jobs.deliver, key) for key in keys]:
        outcome = later.result(30)
        assert outcome is not None
        assert outcome.replayed, "worker C is told that it is done"


# ── S02 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S02_the_queue_redelivers_while_the_first_submission_is_merely_slow(scene: Scene) -> None:
    """A hundred times as fast. ``send_once`` does not renew its lease: it takes one beyond the time limit at once."""
    scene.mailstream(policy="hold")
    scene.simulator.hold_answers()
    left: list[bool] = []
    with (
        a_queue(scene, time_limit=timedelta(seconds=20)) as jobs,
        ThreadPoolExecutor(4) as workers,
        scene.watched() as seen,
    ):
        first = workers.submit(jobs.deliver, "order:1")
        assert scene.simulator.wait_taken(1)
        for _ in range(3):
            threading.Event().wait(0.3)
            assert workers.submit(jobs.deliver, "order:1").result(20) is None, "not to be treated as done"
            left.append(scene.place.one("select lease_until > now() as holds from sendonce.work")["holds"])
        scene.simulator.release_answers()
        outcome = first.result(20)
    assert outcome is not None
    assert outcome.state is State.ACCEPTED
    (send,) = scene.ids("order:1")
    scene.shows(
        provider_took=1, sends={"accepted": 1}, deliveries={"won": 1, "in_progress": 3}, attempts={"accepted": 1},
        claims=1, reconciliations={},
    )  # fmt: skip
    assert left == [True] * 3, "the first claim never lapsed"
    assert seen[send] <= {"claimed", "accepted"}
    assert scene.trace(send).moves == [], "and nothing but the straight path is on record"
    scene.says_one_acceptance(send)


# ── S08 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S08_one_bad_recipient_in_a_job_of_fifty(scene: Scene) -> None:
    scene.mailstream(policy="hold", keys=False)
    scene.simulator.configure(honour_keys=False)
    keys = [f"supplier-notice:oc-12:{i}" for i in range(1, 51)]
    words = {keys[16]: "reject+{}@example.test"}
    refused, absent = scene.ids(keys[16], keys[30])

    def run_the_job(number: int) -> None:
        with scene.place.database.transaction() as connection:
            for key in keys:
                asked = request(key, to=words.get(key, "ana+{}@example.test"), trigger=f"run-{number}")
                connection.execute("select sendonce.enqueue(%s)", [Jsonb(asked)])

    run_the_job(1)
    with scene.staff(only=("relay",)):
        until(lambda: scene.place.count("outbox") == 0)
    _refuse_the_connection_of(scene, absent)
    with scene.staff():
        scene.wait_for(accepted=49, failed=1)
        for number in (2, 3, 4):
            run_the_job(number)
            until(lambda: scene.place.count("outbox") == 0)
    scene.shows(
        provider_took=49, most_copies=1, sends={"accepted": 49, "failed": 1}, attempts={"accepted": 49, "rejected": 2},
        deliveries={"won": 50, "duplicate": 150}, outbox_left=0,
    )  # fmt: skip
    scene.says(refused, Cause.FAILED, words="The `to` address is refused, as its name asks for")
    for send in scene.ids(*keys):
        trace = scene.trace(send)
        assert [trace.send.trigger_id, *(d.trigger_id for d in trace.duplicates)] == [
            "run-1",
            "run-2",
            "run-3",
            "run-4",
        ]
        if send != refused:
            scene.says_one_acceptance(send)


def _refuse_the_connection_of(scene: Scene, send: UUID) -> None:
    """The only one that is due yet meets a closed door, once."""
    scene.place.run("update sendonce.work set claim_at = claim_at + interval '1 hour' where send_id <> %s", send)
    scene.simulator.refuse_connections()
    with scene.staff(only=("dispatch",), retry_seconds=30.0):
        until(lambda: scene.of(send).attempts() == {"rejected": 1})
    scene.simulator.accept_connections()
    due_now(scene.place)
    scene.shows(attempts={"rejected": 1}, provider_took=0)


# ── S10 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

RACES = 20 if SOAK else 4


def test_S10_the_same_confirmation_is_asked_for_twice_at_the_same_moment(scene: Scene) -> None:
    scene.mailstream(policy="hold")
    with scene.staff():
        for seed in range(RACES):
            _ask_twenty_times(scene, seed)
    scene.shows(
        provider_took=RACES, most_copies=1, sends={"accepted": RACES}, attempts={"accepted": RACES}, outbox_left=0
    )


def _ask_twenty_times(scene: Scene, seed: int) -> None:
    key, barrier, dice = f"order-{1001 + seed}:confirmation", threading.Barrier(20), random.Random(seed)
    pauses = [dice.random() * 0.01 for _ in range(20)]

    def by_outbox(n: int) -> None:
        barrier.wait()
        threading.Event().wait(pauses[n])
        scene.ask(key, trigger=f"payment-{n}", text="Thank you")

    def by_api(n: int) -> tuple[str, str]:
        barrier.wait()
        threading.Event().wait(pauses[n])
        answer = scene.call(request(key, trigger=f"return-page-{n}", text="Thank you"))
        return answer.kind, answer.json()["id"]

    with ThreadPoolExecutor(20) as shop:
        written = [shop.submit(by_outbox, n) for n in range(10)]
        asked = [shop.submit(by_api, n) for n in range(10, 20)]
        for each in written:
            each.result(30)
        answers = [each.result(30) for each in asked]
    (send,) = scene.ids(key)
    until(lambda: scene.place.count("outbox") == 0 and scene.of(send).sends() == {"accepted": 1}, what=f"seed {seed}")
    assert answers == [("2xx", str(send))] * 10, f"seed {seed}"
    deliveries = scene.of(send).deliveries()
    assert deliveries.pop("won") == 1
    assert deliveries.keys() <= {"duplicate", "in_progress"}, f"seed {seed}"
    assert sum(deliveries.values()) == 19, f"seed {seed}"
    scene.of(send).show(provider_took=1, sends={"accepted": 1}, attempts={"accepted": 1})
    _names_all_twenty(scene, send)
    scene.says_one_acceptance(send)


def _names_all_twenty(scene: Scene, send: UUID) -> None:
    trace = scene.trace(send)
    met = [(trace.send.source, trace.send.trigger_id), *((d.source, d.trigger_id) for d in trace.duplicates)]
    assert sorted(met) == sorted(
        [("outbox", f"payment-{n}") for n in range(10)] + [("api", f"return-page-{n}") for n in range(10, 20)]
    )
    (won,) = [entry for entry in scene.timeline(send) if entry.what == "Asked for"]
    assert won.who == f"order.paid {trace.send.trigger_id}", "and the page says which one won"


# ── S11 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def elsewhere(scene: Scene) -> tuple[Place, str]:
    """Another workspace, with its token."""
    place = Place(scene.place.database, name="elsewhere")
    scene.mailstream(policy="hold", place=place)
    with place.database.transaction() as connection:
        return place, add_token(connection, workspace_id=place.workspace, name="another shop")[1]


def test_S11_the_same_key_comes_back_with_other_content(scene: Scene, elsewhere: tuple[Place, str]) -> None:
    """*Never got it* is asked about r-2, of whom the ledger keeps nothing (a mismatch stores no recipient): whoever
    looks for r-2 by the key or by the trigger of the refused call comes to S1, whose sentence tells of the refusal.
    """
    scene.mailstream(policy="hold")
    other, token = elsewhere
    key = "order-1001:confirmation"
    original = request(key, to="rosa@example.test", trigger="evt-1", text="The blue one", subject="Order of Rosa")
    with scene.staff():
        assert scene.call(original).kind == "2xx"
        scene.wait_for(accepted=1)
        (send,) = scene.ids(key)
        before = _stored_content(scene, send)
        wrong = request(key, to="rene@example.test", trigger="evt-2", text="The blue one", subject="Order of Rosa")
        wrong["recipient"]["id"] = "r-2"
        first = scene.call(wrong)
        turned = json.dumps(dict(reversed(original.items())), indent=4, separators=(" , ", " :  ")).encode()
        second = scene.call(turned)
        third = scene.call(original, token=token)
        scene.wait_for(accepted=2)
    assert (first.status, second.kind, third.kind) == (422, "2xx", "2xx")
    assert second.json()["id"] == str(send)
    assert third.json()["id"] == str(send_id(other.workspace, "receipts", key)) != str(send)
    scene.of(send).show(
        provider_took=1, sends={"accepted": 1}, deliveries={"won": 1, "mismatch": 1, "duplicate": 1},
        attempts={"accepted": 1},
    )  # fmt: skip
    scene.of(UUID(third.json()["id"])).show(provider_took=1, sends={"accepted": 1}, deliveries={"won": 1})
    scene.shows(provider_took=2, sends={"accepted": 2})
    assert not {word for word in (b"rosa", b"blue", b"Order of Rosa") if word in first.body}
    (mismatch,) = [d for d in scene.trace(send).duplicates if d.verdict == "mismatch"]
    assert (mismatch.source, mismatch.trigger_id) == ("api", "evt-2"), "the caller"
    assert mismatch.difference == ["content", "recipient", "address"]
    assert _mismatches_of(scene) == {"receipts": 1}, "ops see it"
    assert _stored_content(scene, send) == before
    assert {hit.send_id for hit in scene.finds(key)} == {send}
    refusal = "1 for having other content under the same key"
    assert refusal in scene.says_one_acceptance(send).sentence


def _stored_content(scene: Scene, send: UUID) -> dict[str, Any]:
    row = scene.place.one("select body from sendonce.messages where send_id = %s", send)
    return opened(scene.place.vault, send, row["body"])


def _mismatches_of(scene: Scene) -> Counter[str]:
    now = datetime.now(UTC)
    with scene.place.database.transaction() as connection:
        roll_up(connection)
        series = read_series(
            connection,
            scene.place.workspace,
            now - timedelta(hours=1),
            now + timedelta(minutes=1),
            mailstream="receipts",
        )
    return Counter({"receipts": series.total.mismatch})
