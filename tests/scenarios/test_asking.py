"""From the business to the ledger: S09, S12, S13."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from uuid import UUID

import psycopg
from psycopg.types.json import Jsonb

from dashboard.insight.health import Motion, judge_health
from dashboard.insight.judging import Cause
from dashboard.ledger.metrics import read_gauges, read_workers
from tests.scenarios.scene import Scene, request

# ── S09 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S09_two_unsendable_messages_at_the_head_of_the_line(scene: Scene) -> None:
    scene.mailstream(policy="hold")
    scene.ask("notice:p1", to="nobody")
    (p2,) = scene.ask("notice:p2", text="Dear {{ name }}", variables={"order": "77"})
    scene.ask(*(f"notice:{i}" for i in range(200)))
    scene.shows(outbox_left=202)
    with scene.staff(relay_batch=10, set_size=10):
        scene.wait_for(accepted=200, failed=1)
    scene.shows(
        provider_took=200, most_copies=1, sends={"accepted": 200, "failed": 1}, attempts={"accepted": 200},
        deliveries={"won": 201}, dead_letters=1, outbox_left=0, claims=200,
    )  # fmt: skip
    letter = scene.place.one("select reason, payload from sendonce.dead_letters")
    assert "recipient.address" in letter["reason"]
    assert "nobody" not in letter["reason"]
    assert b"nobody" not in letter["payload"], "the address is kept encrypted"
    scene.of(p2).show(sends={"failed": 1}, attempts={}, claims=0)
    assert [move.move for move in scene.trace(p2).moves] == ["record"], "tried once"
    scene.says(p2, Cause.FAILED, words="'name' is undefined")


# ── S12 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def an_order(scene: Scene, number: int) -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """The shop's own transaction, in which an order is made and its mail asked for; left open."""
    with psycopg.connect(scene.place.database.url) as connection:
        connection.execute("insert into public.orders values (%s)", [number])
        connection.execute("select sendonce.enqueue(%s)", [Jsonb(request(f"order:{number}"))])
        yield connection


def test_S12_the_business_change_is_rolled_back_after_asking_for_mail(scene: Scene) -> None:
    """A complaint about a mail that nobody asked for has no send to ask about: the search finds nothing, and a verdict
    *never triggered* does not exist yet.
    """
    scene.mailstream(policy="hold")
    scene.place.run("create table public.orders (id int)")
    scene.worker()
    with an_order(scene, 1) as rolled_back:
        rolled_back.rollback()
    with an_order(scene, 2) as slow:
        threading.Event().wait(1)
        scene.shows(provider_took=0, sends={}, outbox_left=0)
        slow.commit()
        scene.wait_for(accepted=1)
    first, second = scene.ids("order:1", "order:2")
    scene.of(first).show(provider_took=0)
    scene.of(second).show(provider_took=1)
    scene.shows(sends={"accepted": 1}, attempts={"accepted": 1}, deliveries={"won": 1}, outbox_left=0)
    assert scene.place.all("select id from public.orders") == [{"id": 2}]
    assert scene.errors() == []
    for text in ("order:1", str(first), "ana+1@example.test", "r-1"):
        assert scene.finds(text) == [], "nothing is known of what was rolled back"
    scene.says_one_acceptance(second)


# ── S13 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S13_a_slow_transaction_commits_behind_a_faster_later_one(scene: Scene) -> None:
    """The slow transaction stays open for two seconds instead of ninety, the times for acceptance are as told. Asked
    while it is open, the search finds nothing; a verdict *never triggered* does not exist yet.
    """
    scene.mailstream(policy="hold")
    scene.place.run("create table public.orders (id int)")
    t1, t2, t3 = scene.ids("order:1", "order:2", "order:3")
    with scene.staff(), scene.watched():
        with an_order(scene, 1) as slow:
            with an_order(scene, 2) as fast:
                fast.commit()
                committed_at = _now(scene)
            with an_order(scene, 3) as rolled_back:
                rolled_back.rollback()
            scene.wait_for(accepted=1)
            assert _accepted_at(scene, t2) - committed_at < timedelta(seconds=5)
            threading.Event().wait(1)
            assert scene.finds("order:1") == []
            _nothing_waits(scene)
            slow.commit()
            committed_at = _now(scene)
        scene.wait_for(accepted=2)
        assert _accepted_at(scene, t1) - committed_at < timedelta(seconds=5)
        _nothing_waits(scene)
    for send, taken in ((t1, 1), (t2, 1), (t3, 0)):
        scene.of(send).show(provider_took=taken)
    scene.shows(sends={"accepted": 2}, deliveries={"won": 2}, attempts={"accepted": 2}, outbox_left=0)
    positions = scene.place.one("select last_value as n from sendonce.outbox_position_seq")["n"]
    assert positions == 3, "the third record left a gap"


def _now(scene: Scene) -> datetime:
    moment: datetime = scene.place.one("select clock_timestamp() as at")["at"]
    return moment


def _accepted_at(scene: Scene, send: UUID) -> datetime:
    moment: datetime = scene.place.one("select settled_at from sendonce.sends where id = %s", send)["settled_at"]
    return moment


def _nothing_waits(scene: Scene) -> None:
    """No gauge counts the open transaction or the gap, and the banner is calm."""
    with scene.place.database.snapshot() as connection:
        gauges, workers = read_gauges(connection, scene.place.workspace), read_workers(connection)
    assert (gauges.outbox, gauges.outbox_age, gauges.pending_due) == (0, None, 0)
    assert judge_health(gauges, workers).motion is Motion.IDLE
