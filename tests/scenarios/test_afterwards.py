"""Long after a mail was settled: the parts of S29 and S30 that exist."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from dashboard.insight.judging import Cause, Sureness
from dashboard.ledger.accounts import save_account
from dashboard.ledger.audit import AuditFilter, list_entries
from dashboard.ledger.holds import Refused
from dashboard.ledger.replay import Replayed, replay_send
from tests.crew import DAY, attempt_ages, graces_end, person, until
from tests.scenarios.scene import Scene, event, request

# ── S29 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S29_the_old_row_is_gone_and_the_trigger_comes_back(scene: Scene) -> None:
    """The end of a replay horizon, after which even tombstones go, does not exist yet: they stay for ever."""
    account = scene.mailstream(policy="hold", keys=False, retain_for=30 * DAY)
    original = request("order-77:confirmation", to="olga@example.test", subject="Order 77", text="The very blue lamp")
    with scene.staff():
        answer = scene.call(original)
        scene.wait_for(accepted=1)
        old = UUID(answer.json()["id"])
        (held,) = scene.ask("order:2", to="lost-quiet+{}@example.test")
        scene.wait_for(accepted=1, unknown=1)
        graces_end(scene.place)
        scene.wait_for(accepted=1, held=1)
        later = request("order:3") | {"not_before": (datetime.now(UTC) + 60 * DAY).isoformat()}
        assert scene.call(later).kind == "2xx"
    _days_pass(scene, 45, old, held, *scene.ids("order:3"))
    assert _mentions(scene, "order-77"), "before"
    with scene.staff(only=("retain",)):
        until(lambda: bool(_tombstones(scene)), what="a tombstone")
    kept = scene.place.all(
        "select w.state::text as state from sendonce.messages m join sendonce.work w on w.send_id = m.send_id"
        " order by 1"
    )
    assert [row["state"] for row in kept] == ["held", "pending"]
    assert scene.place.count("messages") == 2
    assert _tombstones(scene) == [old]
    for words in ("olga", "Order 77", "very blue lamp", "order-77"):
        assert _mentions(scene, words) == [], f"{words} is nowhere any more"
    with scene.staff():
        again = scene.call(original)
        assert (again.kind, again.json()["id"]) == ("2xx", str(old))
        (row,) = [row for row in scene.simulator.books if row.send_id == str(old)]
        complaint = event("complained", row.message_id, send=old, to=["olga@example.test"])
        assert [scene.tell(account, complaint, "msg_1").kind for _ in range(2)] == ["2xx", "2xx"]
    scene.of(old).show(
        provider_took=1, sends={"accepted": 1}, deliveries={"won": 1, "duplicate": 1}, delivery={"complained": 1}
    )
    scene.shows(events={"stored": 1, "unmatched": 0, "quarantined": 0}, suppressions=["complained"], provider_took=2)
    scene.says_one_acceptance(old)


def _days_pass(scene: Scene, days: int, *sends: UUID) -> None:
    by = timedelta(days=days)
    scene.place.run(
        "update sendonce.sends set recorded_at = recorded_at - %(by)s, due_at = due_at - %(by)s,"
        " asked_at = asked_at - %(by)s, settled_at = settled_at - %(by)s",
        by=by,
    )
    scene.place.time_passes(by)
    for send in sends:
        attempt_ages(scene.place, send, by)


def _tombstones(scene: Scene) -> list[UUID]:
    return [row["id"] for row in scene.place.all("select id from sendonce.sends where stripped_at is not null")]


def _mentions(scene: Scene, words: str) -> list[str]:
    """The tables in any row of which these words stand; what is encrypted is readable with the key alone."""
    tables = scene.place.all("select tablename as name from pg_tables where schemaname = 'sendonce'")
    return [
        table["name"]
        for table in tables
        if scene.place.all(f"select from sendonce.{table['name']} t where position(%s in t::text) > 0 limit 1", words)
    ]


# ── S30 ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_S30_a_person_presses_replay_three_times(scene: Scene) -> None:
    """S2 and S3. A new version under a new key (S1, S4) and the page that answers 409 need the replay of a later issue;
    what that page will say is what a replay of an unknown send answers here.
    """
    account = _an_smtp_account(scene)
    scene.mailstream(policy="hold", keys=False)
    scene.place.run(
        "update sendonce.mailstreams set account_id = %s, max_attempts = 1 where name = 'receipts'", account
    )
    failed, unknown = scene.ids("order:2", "order:3")
    with scene.staff():
        scene.ask("order:2", to="greylist+{}@example.test")
        scene.ask("order:3", to="lost+{}@example.test")
        scene.wait_for(failed=1, unknown=1)
        answers = [_press_replay(scene, failed) for _ in range(3)]
        scene.wait_for(accepted=1, unknown=1)
        refused = _press_replay(scene, unknown)
    assert answers[0] == Replayed(failed)
    assert [type(answer) for answer in answers[1:]] == [Refused, Refused]
    assert isinstance(refused, Refused)
    assert "it is on its way, or waits for a decision" in refused.reason
    scene.of(failed).show(
        provider_took=1, sends={"accepted": 1}, attempts={"rejected": 1, "accepted": 1}, deliveries={"won": 1}
    )
    scene.of(unknown).show(provider_took=1, sends={"unknown": 1}, attempts={"ambiguous": 1})
    with scene.place.database.transaction() as connection:
        entries = list_entries(connection, scene.place.workspace, filters=AuditFilter(action="replay_send"))
    assert [(entry.who, entry.subject, entry.reason) for entry in entries] == [("ada", str(failed), "they are back")]
    scene.says(unknown, Cause.UNKNOWN, Sureness.CANNOT_TELL)


def _an_smtp_account(scene: Scene) -> UUID:
    with scene.place.database.transaction() as connection:
        return save_account(
            connection, scene.place.vault, workspace_id=scene.place.workspace, name="smtp", provider="smtp",
            settings={"host": "127.0.0.1", "port": str(scene.simulator.smtp_port), "security": "none"}, secrets={},
            endpoint="smtp",
        )  # fmt: skip


def _press_replay(scene: Scene, send: UUID) -> Replayed | Refused:
    user = person(scene.place)
    with scene.place.database.transaction() as connection:
        return replay_send(
            connection, workspace_id=scene.place.workspace, send_id=send, user_id=user, reason="they are back"
        )
