"""Long lists, as plain sends of one mailstream: the parts of S14 and S16 that need no campaign."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

from dashboard.insight.judging import Cause
from dashboard.ledger import events
from dashboard.ledger.events import Told
from dashboard.ledger.listing import SendFilter, list_sends
from dashboard.ledger.streams import pause_by_person, resume_by_person
from dashboard.lifecycle import EventType, State
from tests.crew import due_now, until
from tests.lanes import a_lane
from tests.scenarios.scene import Scene, event

# ── S14 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

RECIPIENTS = 500


def test_S14_a_long_list_is_paused_restarted_resumed_and_hit_by_an_outage(scene: Scene) -> None:
    """A tenth of the recipients, and the mailstream is paused instead of a campaign, whose status needs campaigns.
    The provider played here cannot be asked: its events settle what was under way when the workers were killed.
    """
    account = scene.mailstream("newsletter", "campaign", policy="hold", keys=False)
    scene.simulator.configure(honour_keys=False)
    sends = scene.ask(*(f"issue-7:{i}" for i in range(RECIPIENTS)), stream="newsletter")
    _at_a_rate(scene, account, 100)
    with scene.staff(only=("relay",)):
        until(lambda: scene.place.count("outbox") == 0)
    with scene.watched() as seen:
        with scene.staff(lanes=1, in_flight=4):
            until(lambda: _accepted(scene) >= 120)
            with scene.place.database.transaction() as connection:
                assert pause_by_person(
                    connection, workspace_id=scene.place.workspace, name="newsletter", reason="wrong picture"
                )
        _while_paused(scene, sends)
        _at_a_rate(scene, account, 1000)
        with scene.place.database.transaction() as connection:
            assert resume_by_person(connection, workspace_id=scene.place.workspace, name="newsletter")
        _outage(scene, account)
        four = _all_workers_are_killed_in_four_calls(scene)
        scene.place.time_passes(timedelta(minutes=1))
        with scene.staff():
            scene.wait_for(accepted=RECIPIENTS - 4, unknown=4)
            for send, message_id in four.items():
                assert scene.tell(account, event("delivered", message_id, send=send)).kind == "2xx"
            scene.wait_for(accepted=RECIPIENTS)
    scene.shows(
        provider_took=RECIPIENTS, most_copies=1, sends={"accepted": RECIPIENTS}, deliveries={"won": RECIPIENTS},
        reconciliations={"event": 4},
        delivery={"delivered": 4, None: RECIPIENTS - 4}, outbox_left=0,
    )  # fmt: skip
    assert set(seen) == set(sends), "at every moment there were as many as on the list"
    scene.says_one_acceptance(sends[0])


def _accepted(scene: Scene) -> int:
    return scene.states().get("accepted", 0)


def _at_a_rate(scene: Scene, account: UUID, per_second: float) -> None:
    scene.place.run("update sendonce.accounts set rate_per_second = %s where id = %s", per_second, account)
    scene.place.run(
        "insert into sendonce.account_tokens (account_id, tokens) values (%s, 1) on conflict do nothing", account
    )


def _while_paused(scene: Scene, sends: list[UUID]) -> None:
    """Nothing starts, whoever is asked about knows why, and who has not got it can be listed."""
    before = scene.states()
    assert before["pending"] + before["accepted"] == RECIPIENTS
    with scene.staff():
        until(lambda: len(scene.place.all("select from sendonce.workers where stopped_at is null")) == 1)
    assert scene.states() == before
    with scene.place.database.snapshot() as connection:
        waiting = list_sends(
            connection, scene.place.workspace, SendFilter(mailstream="newsletter", state=State.PENDING), limit=1000
        )
    assert len(waiting.rows) == before["pending"]
    scene.says(waiting.rows[-1].send_id, Cause.PAUSED, words="its mailstream newsletter is paused since")


PAUSED = "select from sendonce.accounts where id = %s and paused_until > now()"


def _outage(scene: Scene, account: UUID) -> None:
    """The provider refuses all connections until the breaker has paused it."""
    scene.simulator.refuse_connections()
    with scene.staff(lanes=1, in_flight=4):
        until(lambda: bool(scene.place.all(PAUSED, account)))
        scene.simulator.accept_connections()
        until(lambda: _accepted(scene) >= 300)


def _all_workers_are_killed_in_four_calls(scene: Scene) -> dict[UUID, str]:
    """The sends whose calls were running, all of them taken, with the provider's ids."""
    due_now(scene.place)
    scene.simulator.hold_answers()
    taken, worker = len(scene.simulator.books), scene.worker("dispatch", SENDONCE_LANES="1", SENDONCE_IN_FLIGHT="4")
    assert scene.simulator.wait_taken(taken + 4, timeout=30)
    scene.kill(worker)
    scene.simulator.release_answers()
    four = {UUID(row.send_id): row.message_id for row in scene.simulator.books[taken:] if row.send_id}
    submitting = scene.place.all("select send_id from sendonce.attempts where status = 'submitting'")
    assert {row["send_id"] for row in submitting} == four.keys()
    assert len(four) == 4
    return four


# ── S16 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S16_someone_unsubscribes_while_a_long_list_is_being_sent(scene: Scene) -> None:
    """A thousand sends of one mailstream stand for the campaign, whose own status and counts need campaigns."""
    account = scene.mailstream("newsletter", "campaign", policy="hold")
    scene.mailstream("receipts", policy="hold")
    sends = scene.ask(*(f"issue-7:{i}" for i in range(1, 1001)), stream="newsletter")
    early, late = sends[49], sends[899]
    with scene.staff(only=("relay",)):
        until(lambda: scene.place.count("outbox") == 0)
    first = [early, *(send for send in sends if send not in (early, late))][:100]
    scene.place.run("update sendonce.work set claim_at = claim_at - interval '1 minute' where send_id = any(%s)", first)
    with a_lane(scene.place, places=100) as lane:
        scene.simulator.hold_answers()  # so that the lane has no room for a second hundred
        lane.go_round()
        assert scene.simulator.wait_taken(100)
        for number in (50, 900):
            _unsubscribes(scene, account, f"ana+{number}@example.test", told_about=early)
        scene.simulator.release_answers()
        while scene.states() != {"accepted": 999, "suppressed": 1}:
            lane.go_round()
    with scene.staff():
        (receipt,) = scene.ask("order:900")
        scene.wait_for(accepted=1000, suppressed=1)
    scene.of(late).show(provider_took=0, sends={"suppressed": 1}, attempts={})
    scene.of(early).show(provider_took=1, sends={"accepted": 1})
    scene.of(receipt).show(provider_took=1, sends={"accepted": 1})
    scene.shows(suppressions=["unsubscribed", "unsubscribed"], provider_took=1000, most_copies=1)
    trace = scene.trace(early)
    (rule,) = trace.suppressions
    assert trace.attempts[0].started_at < rule.said_at, "accepted before the opt-out"
    assert "Accepted by Resend once" in scene.answer(early).sentence
    scene.says(late, Cause.SUPPRESSED, words="the recipient unsubscribed")


def _unsubscribes(scene: Scene, account: UUID, address: str, *, told_about: UUID) -> None:
    told = Told(
        event_type=EventType.UNSUBSCRIBED, event_id=uuid4().hex, send_id=str(told_about), recipient=address,
        occurred_at=datetime.now(UTC), raw=b"{}",
    )  # fmt: skip
    with scene.place.database.transaction() as connection:
        events.ingest(
            connection, scene.place.vault, workspace_id=scene.place.workspace, account_id=account, told=[told],
            received_at=datetime.now(UTC),
        )  # fmt: skip
