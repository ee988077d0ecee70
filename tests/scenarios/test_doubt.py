"""What happens between the provider's yes and our knowing it, and workers that stop or freeze: S03 to S07."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from uuid import UUID

import pytest

from dashboard.insight.judging import Cause, Sureness
from dashboard.ledger import access
from dashboard.ledger.tables import Role
from dashboard.ledger.trace import Trace
from dashboard.lifecycle import State
from dashboard.settings import Settings
from dashboard.web import create_app
from tests.crew import graces_end, until
from tests.flow.town import SECRET
from tests.place import KEYS
from tests.scenarios.scene import HASTY, Scene, event, visible
from tests.web.conftest import PASSWORD, Browser

MINUTE = timedelta(minutes=1)


def redeliver(scene: Scene, *keys: str, times: int) -> None:
    """The jobs of these keys arrive again and again, each time in a transaction of its own."""
    for n in range(times):
        scene.ask(*keys, trigger=f"again-{n}")
    until(lambda: scene.place.count("outbox") == 0)


def states_on_record(trace: Trace) -> list[str]:
    """Where its history brought it, step by step."""
    return [move.to_state for move in trace.moves]


# ── S03 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S03_the_provider_took_the_mail_but_the_answer_never_came(scene: Scene) -> None:
    account = scene.mailstream(policy="hold", keys=False)
    scene.simulator.configure(honour_keys=False)
    with scene.staff(), scene.watched() as seen:
        (send,) = scene.ask("order:1", to="lost+{}@example.test")
        scene.wait_for(unknown=1)
        redeliver(scene, "order:1", times=5)
        scene.place.time_passes(11 * MINUTE)
        scene.shows(
            provider_took=1, sends={"unknown": 1}, attempts={"ambiguous": 1},
            deliveries={"won": 1, "in_progress": 5}, reconciliations={},
        )  # fmt: skip
        scene.says(send, Cause.UNKNOWN, Sureness.CANNOT_TELL)
        (accepted,) = scene.simulator.books
        assert scene.tell(account, event("delivered", accepted.message_id, send=send)).kind == "2xx"
        scene.wait_for(accepted=1)
    scene.shows(
        provider_took=1, sends={"accepted": 1}, attempts={"accepted": 1}, deliveries={"won": 1, "in_progress": 5},
        reconciliations={"event": 1}, claims=1,
    )  # fmt: skip
    trace = scene.trace(send)
    assert seen[send] <= {"pending", "claimed", "unknown", "accepted"}
    assert states_on_record(trace) == ["unknown", "accepted"], "never failed, never pending again"
    assert trace.provider_message_ids == [accepted.message_id]
    assert any(entry.what == "Attempt 1: no answer, it may have been taken" for entry in scene.timeline(send))
    assert "got no answer" in scene.says_one_acceptance(send).sentence, "the time in doubt stays visible"


# ── S04 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

WRITTEN = ("sends", "work", "attempts", "moves", "dirty", "workers")
"""What a worker writes when it stores an answer."""


@contextmanager
def no_write_succeeds(scene: Scene) -> Iterator[None]:
    """Every write to the ledger fails, as on a full disk."""
    scene.place.run(
        "create function refuse() returns trigger language plpgsql as"
        " $$ begin raise exception 'no' using errcode = 'disk_full'; end $$"
    )
    for table in WRITTEN:
        scene.place.run(
            f"create trigger refuse before insert or update or delete on sendonce.{table}"
            " for each statement execute function refuse()"
        )
    yield
    scene.place.run("drop function refuse cascade")


def test_S04_the_ledger_cannot_be_written_at_the_moment_the_provider_says_yes(scene: Scene) -> None:
    """The provider played here cannot be asked: its event takes the place of the look-up, so the evidence is
    ``event``. The lease and the redeliveries are as told, with the database's clock moved on.
    """
    account = scene.mailstream(policy="hold", keys=True)
    scene.simulator.hold_answers()
    (send,) = scene.ask("order:1")
    first = scene.worker()
    assert scene.simulator.wait_taken(1)
    with no_write_succeeds(scene):
        scene.simulator.release_answers()
        until(lambda: "DiskFull" in scene.log.read_text(), what="a failed write")
        scene.kill(first)
    scene.shows(sends={"claimed": 1}, attempts={"submitting": 1}, provider_took=1)
    with scene.staff(**HASTY), scene.watched() as seen:
        redeliver(scene, "order:1", times=1)
        scene.place.time_passes(MINUTE)
        scene.wait_for(unknown=1)
        redeliver(scene, "order:1", times=1)
        scene.place.time_passes(MINUTE)
        (accepted,) = scene.simulator.books
        assert scene.tell(account, event("delivered", accepted.message_id, send=send)).kind == "2xx"
        scene.wait_for(accepted=1)
    scene.shows(
        provider_took=1, sends={"accepted": 1}, attempts={"accepted": 1}, deliveries={"won": 1, "in_progress": 2},
        reconciliations={"event": 1},
    )  # fmt: skip
    trace = scene.trace(send)
    assert scene.errors(), "the worker said that it could not write"
    assert seen[send] <= {"claimed", "unknown", "accepted"}
    assert states_on_record(trace) == ["unknown", "accepted"], "never pending or failed"
    assert trace.provider_message_ids == [accepted.message_id]
    scene.says_one_acceptance(send)


# ── S05 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S05_a_worker_dies_in_mid_submission_and_nobody_can_say_what_happened(scene: Scene) -> None:
    """The page of the held send says *held, cannot tell* where the scenario says *held, proved*: that it is held is
    plain, but "never got it" asks whether it was taken, and nothing may be called proved that is not (DESIGN §4.11).
    """
    account = scene.mailstream("receipts", policy="hold", keys=False)
    scene.mailstream("codes", "security", policy="cancel", keys=False)
    scene.mailstream("statements", policy="release", keys=True)
    scene.simulator.hold_answers()
    asked = {stream: scene.ask("order:1", stream=stream)[0] for stream in ("receipts", "codes", "statements")}
    hold, cancel, release = asked.values()
    worker = scene.worker()
    assert scene.simulator.wait_taken(3)
    scene.kill(worker)
    scene.simulator.release_answers()
    scene.shows(attempts={"submitting": 3})
    with scene.staff(), scene.watched() as seen:
        scene.place.time_passes(MINUTE)
        scene.wait_for(unknown=3)
        for n in range(3):
            for stream in asked:
                scene.ask("order:1", stream=stream, trigger=f"again-{n}")
        until(lambda: scene.place.count("outbox") == 0)
        scene.shows(
            sends={"unknown": 3}, attempts={"ambiguous": 3}, deliveries={"won": 3, "in_progress": 9}, provider_took=3
        )
        graces_end(scene.place)
        scene.wait_for(held=1, cancelled=1, accepted=1)
        scene.of(hold).show(sends={"held": 1}, attempts={"ambiguous": 1})
        scene.of(cancel).show(sends={"cancelled": 1}, attempts={"ambiguous": 1})
        scene.of(release).show(sends={"accepted": 1}, attempts={"ambiguous": 1, "accepted": 1})
        scene.shows(provider_took=3, most_copies=1)
        scene.says(hold, Cause.HELD_IN_DOUBT, Sureness.CANNOT_TELL, "Held for a person")
        scene.says(cancel, Cause.MAY_HAVE_LEFT, Sureness.CANNOT_TELL)
        _hold_page_tells(scene, hold)
        for send in (hold, cancel):
            (accepted,) = [row for row in scene.simulator.books if row.send_id == str(send)]
            assert scene.tell(account, event("delivered", accepted.message_id, send=send)).kind == "2xx"
    scene.shows(sends={"accepted": 2, "cancelled": 1}, provider_took=3, most_copies=1)
    assert seen[hold] <= {"claimed", "unknown", "held", "accepted"}
    assert {attempt.idempotency_key for attempt in scene.trace(release).attempts} == {str(release)}
    scene.says(cancel, Cause.TAKEN, words="delivered to the mail server")
    assert any(entry.what == "Delivered to the mail server" for entry in scene.timeline(cancel))
    for send in (hold, release):
        scene.says_one_acceptance(send)


def _hold_page_tells(scene: Scene, send: UUID) -> None:
    """An operator sees what was attempted, how it failed, and that the provider cannot be asked."""
    with scene.place.database.transaction() as connection:
        person = access.add_person(connection, login="olga", name="Olga", password=PASSWORD)
        access.put_role(connection, user_id=person, workspace_id=scene.place.workspace, role=Role.OPERATOR)
    settings = Settings(database_url=scene.place.database.url, secret_key=SECRET, encryption_keys=KEYS)
    browser = Browser(create_app(settings, scene.place.database, scene.place.vault).test_client())
    assert browser.log_in("olga").status_code == 303
    listed = visible(browser.get("/held").text)
    assert "order:1" in re.sub(r"\u200b|\s", "", listed)
    assert "worker lost" in listed
    shown = visible(browser.get(f"/held/{send}").text)
    assert "Attempts 1, the first" in shown
    assert "this provider cannot prove that it has not taken something" in shown
    assert "does not protect: this account honours no keys" in shown


# ── S06 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S06_a_frozen_worker_wakes_up_after_its_claim_was_taken_over_before_any_attempt(scene: Scene) -> None:
    """Case 1: it had claimed. The times are a thirtieth of those told."""
    scene.mailstream(policy="hold")
    frozen = scene.freezer("start")
    (send,) = scene.ask("order:1")
    scene.wait_frozen(frozen)
    scene.shows(sends={"claimed": 1}, attempts={})
    with scene.staff(**HASTY), scene.watched():
        scene.wait_for(accepted=1)
        scene.wake(frozen)
        (other,) = scene.ask("order:2")
        scene.wait_for(accepted=2)
    _ends_politely(frozen)
    scene.of(send).show(
        provider_took=1, sends={"accepted": 1}, attempts={"accepted": 1}, claims=2, deliveries={"won": 1}
    )
    assert [attempt.claim_number for attempt in scene.trace(send).attempts] == [2], "the first claim left no attempt"
    scene.of(other).show(provider_took=1, sends={"accepted": 1})
    assert scene.errors() == []
    scene.says_one_acceptance(send)


@pytest.mark.parametrize("policy", ["release", "hold"])
def test_S06_a_frozen_worker_wakes_up_after_its_claim_was_taken_over_with_an_attempt(scene: Scene, policy: str) -> None:
    """Case 2: the attempt was committed and no byte of it written. The provider played here cannot be asked, so nobody
    can say that it never saw the send: it is repeated under its key, or waits for a person. The frozen worker itself,
    once awake, proves that its attempt never left.
    """
    scene.mailstream(policy=policy, keys=policy == "release", grace=timedelta(milliseconds=100))
    frozen = scene.freezer("submit")
    (send,) = scene.ask("order:1")
    scene.wait_frozen(frozen)
    scene.shows(sends={"claimed": 1}, attempts={"submitting": 1}, provider_took=0)
    with scene.staff(**HASTY), scene.watched():
        if policy == "release":
            scene.wait_for(accepted=1)
            scene.shows(attempts={"ambiguous": 1, "accepted": 1})
        else:
            scene.wait_for(held=1)
        scene.wake(frozen)
        until(lambda: scene.of(send).attempts().get("abandoned") == 1)
        scene.wait_for(accepted=1)
    _ends_politely(frozen)
    scene.of(send).show(
        provider_took=1, sends={"accepted": 1}, attempts={"abandoned": 1, "accepted": 1}, claims=2,
        deliveries={"won": 1},
    )  # fmt: skip
    first, _ = scene.trace(send).attempts
    assert (first.status, first.reason) == ("abandoned", "submit deadline passed")
    scene.says_one_acceptance(send)


def _ends_politely(worker: object) -> None:
    """It has carried on, to the end: what it was about to do when it froze is done or refused."""
    worker.terminate()  # type: ignore[attr-defined]
    assert worker.wait(30) == 0  # type: ignore[attr-defined]


# ── S07 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S07_a_worker_dies_between_claiming_and_submitting(scene: Scene) -> None:
    """*Got it late* has no verdict of its own yet: the timeline tells that the first worker stopped, and that the claim
    of the other led to acceptance. The lease is a thirtieth of the one told; the 30 s beyond it are allowed in full.
    """
    scene.mailstream(policy="hold", keys=False)
    scene.simulator.configure(honour_keys=False)
    keys = [f"order:{i}" for i in range(1, 21)]
    victim = scene.freezer("start")
    sends = scene.ask(*keys)
    scene.wait_frozen(victim)
    scene.shows(sends={"claimed": 20}, attempts={})
    with scene.staff(**HASTY), scene.watched() as seen:
        scene.kill(victim)
        killed_at = scene.place.one("select clock_timestamp() as at")["at"]
        scene.wait_for(accepted=20)
    scene.shows(
        provider_took=20, most_copies=1, sends={"accepted": 20}, attempts={"accepted": 20}, claims=40,
        deliveries={"won": 20}, reconciliations={},
    )  # fmt: skip
    last = scene.place.one("select max(settled_at) as at from sendonce.sends")["at"]
    assert last - killed_at < timedelta(seconds=2 + 30)
    for send in sends:
        assert seen[send] <= {"claimed", "pending", "accepted"}
        trace = scene.trace(send)
        assert states_on_record(trace) == [State.PENDING], "nothing but given back"
        scene.says_one_acceptance(send)
    told = {(entry.what, entry.detail) for entry in scene.timeline(sends[0])}
    assert ("Given back to the queue", "its worker stopped before any attempt") in told
    assert ("Claimed, claim 2", "this claim led to acceptance") in told
