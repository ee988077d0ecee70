"""Mail that must not go any more: S17, S18."""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from uuid import UUID

from psycopg.types.json import Jsonb

from dashboard.insight.judging import Cause
from dashboard.insight.wording import at
from dashboard.ledger import holds
from dashboard.ledger.audit import AuditFilter, list_entries
from dashboard.ledger.cancelling import Cancelled, Refused, Remembered, cancel_send
from dashboard.lifecycle import Decision
from tests.conftest import SOAK
from tests.crew import HOUR, person, until
from tests.lanes import a_lane
from tests.scenarios.scene import Scene, request

# ── S17 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

RACES = 20 if SOAK else 2
PEOPLE = 8


def test_S17_cancel_and_claim_meet(scene: Scene) -> None:
    """The hundred sends; the campaign that is cancelled in mid-expansion needs campaigns. The page of an accepted send
    has no verdict *cancel came too late* yet: what the person was told is the answer they got, and the audit log.
    """
    scene.mailstream(policy="hold", keys=False)
    scene.simulator.configure(honour_keys=False)
    met: Counter[str] = Counter()
    for seed in range(RACES):
        met += _cancel_a_hundred_while_they_are_claimed(scene, seed)
    assert met["cancelled"] + met["too late"] == 100 * RACES
    assert met["cancelled"] > 0 < met["too late"], f"the two never met: {met}"


def _cancel_a_hundred_while_they_are_claimed(scene: Scene, seed: int) -> Counter[str]:
    dice = random.Random(seed)
    sends = scene.ask(*(f"order-{seed}:{i}" for i in range(100)))
    with scene.staff(only=("relay",)):
        until(lambda: scene.place.count("outbox") == 0)
    ana = person(scene.place, "ana")
    dice.shuffle(sends)
    barrier = threading.Barrier(PEOPLE + 1)
    answers: dict[UUID, Cancelled | Remembered | Refused] = {}

    def cancel(mine: list[UUID], pause: float) -> None:
        barrier.wait()
        threading.Event().wait(pause)
        for send in mine:
            with scene.place.database.transaction() as connection:
                answers[send] = cancel_send(
                    connection, workspace_id=scene.place.workspace, send_id=send, user_id=ana, reason="wrong price"
                )

    with a_lane(scene.place, places=20) as lane, ThreadPoolExecutor(PEOPLE) as people:
        busy = [people.submit(cancel, sends[i::PEOPLE], dice.random() * 0.05) for i in range(PEOPLE)]
        barrier.wait()
        while not all(each.done() for each in busy) or scene.of(*sends).sends().keys() - {"accepted", "cancelled"}:
            lane.go_round()
        for each in busy:
            each.result()
    cancelled = {send for send, answer in answers.items() if isinstance(answer, Cancelled)}
    too_late = answers.keys() - cancelled
    refused = {answer.reason for answer in answers.values() if isinstance(answer, Refused)}
    assert refused <= {"Too late: the provider has taken it."}, f"seed {seed}"
    taken = {UUID(row.send_id) for row in scene.simulator.books if row.send_id} & answers.keys()
    assert len(answers) == 100, f"seed {seed}"
    assert cancelled & taken == set(), f"seed {seed}: said cancelled, but taken"
    assert too_late - taken == set(), f"seed {seed}: said too late, but not taken"
    states = {"cancelled": len(cancelled), "accepted": len(too_late)}
    scene.of(*sends).show(
        sends={state: n for state, n in states.items() if n}, provider_took=len(too_late), most_copies=1
    )
    _each_decision_is_in_the_audit_log(scene, set(answers))
    for send in list(too_late)[:3]:
        scene.says_one_acceptance(send)
    for send in list(cancelled)[:3]:
        scene.says(send, Cause.CANCELLED, words="Cancelled by Ada")
    return Counter({"cancelled": len(cancelled), "too late": len(too_late)})


def _each_decision_is_in_the_audit_log(scene: Scene, sends: set[UUID]) -> None:
    with scene.place.database.transaction() as connection:
        entries = list_entries(
            connection, scene.place.workspace, filters=AuditFilter(action="cancel_send"), limit=10_000
        )
    mine = [entry for entry in entries if UUID(entry.subject) in sends]
    assert {UUID(entry.subject) for entry in mine} == sends
    assert {(entry.who, entry.reason) for entry in mine} == {("ana", "wrong price")}


# ── S18 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S18_the_system_was_down_when_the_mail_was_due(scene: Scene) -> None:
    """Played with sends that are asked for beforehand for a later time; what a calendar or a campaign adds (a time
    that is missed before any send is recorded) needs those. Four hours pass by moving the ledger's times back.

    One decision for all three hundred needs decisions over a filter; one of them is released here.
    """
    scene.mailstream("newsletter", "campaign", policy="hold", too_late_after=2 * HOUR, late_policy="hold")
    scene.mailstream("codes", "security", policy="cancel", too_late_after=timedelta(minutes=10), late_policy="cancel")
    scene.mailstream("receipts", policy="release", too_late_after=None)
    due = datetime.now(UTC).replace(microsecond=0) + 4 * HOUR
    newsletter = _ask_for(scene, "newsletter", [due] * 300)
    codes = _ask_for(scene, "codes", [due + timedelta(minutes=42 * i) for i in range(5)])
    receipts = _ask_for(scene, "receipts", [due + timedelta(minutes=5 * i) for i in range(40)])
    with scene.staff(only=("relay",)):
        until(lambda: scene.place.count("outbox") == 0)
    _time_passes(scene, 8 * HOUR)
    with scene.staff(), scene.watched():
        scene.wait_for(held=300, cancelled=5, accepted=40)
    scene.shows(
        sends={"held": 300, "cancelled": 5, "accepted": 40}, provider_took=40, most_copies=1, deliveries={"won": 345},
        attempts={"accepted": 40}, outbox_left=0,
    )  # fmt: skip
    scene.of(*newsletter).show(sends={"held": 300}, attempts={})
    scene.of(*codes).show(sends={"cancelled": 5}, attempts={})
    scene.of(*receipts).show(sends={"accepted": 40}, provider_took=40)
    for send in newsletter[::50]:
        trace = scene.trace(send)
        (opened,) = trace.holds
        assert opened.reason == "late"
        assert HOUR * 4 <= opened.opened_at - trace.send.due_at < HOUR * 4 + timedelta(minutes=10)
        words = scene.says(send, Cause.HELD, words="Held for a person since").sentence
        assert "no provider was asked to take it" in words
        assert f"(due {at(trace.send.due_at, datetime.now(UTC))}, 4 h late by then)" in words
    _release(scene, newsletter[0])
    with scene.staff():
        scene.wait_for(held=299, cancelled=5, accepted=41)
    scene.of(newsletter[0]).show(sends={"accepted": 1}, provider_took=1, reconciliations={})


def _ask_for(scene: Scene, stream: str, times: list[datetime]) -> list[UUID]:
    keys = [f"{stream}:{i}" for i in range(len(times))]
    with scene.place.database.transaction() as connection:
        for key, at in zip(keys, times, strict=True):
            asked = request(key, stream=stream) | {"not_before": at.isoformat()}
            connection.execute("select sendonce.enqueue(%s)", [Jsonb(asked)])
    return scene.ids(*keys, stream=stream)


def _time_passes(scene: Scene, by: timedelta) -> None:
    scene.place.time_passes(by)
    scene.place.run("update sendonce.work set recorded_at = recorded_at - %s", by)
    scene.place.run(
        "update sendonce.sends set asked_at = asked_at - %(by)s, recorded_at = recorded_at - %(by)s,"
        " due_at = due_at - %(by)s", by=by,
    )  # fmt: skip


def _release(scene: Scene, send: UUID) -> None:
    hold = scene.trace(send).open_hold
    assert hold is not None
    with scene.place.database.transaction() as connection:
        decided = holds.decide(
            connection, workspace_id=scene.place.workspace, hold_id=hold.id, user_id=person(scene.place),
            decision=Decision.RESEND, reason="still worth reading", evidence=0,
        )  # fmt: skip
    assert isinstance(decided, holds.Decided)
