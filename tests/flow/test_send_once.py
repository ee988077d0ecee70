"""send_once: the caller's own provider call, at most once for a key, however often its job comes (DESIGN §5.19)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from dashboard.identity import send_id
from dashboard.ledger import events, suppressions, work
from dashboard.ledger.events import Told
from dashboard.ledger.holds import decide
from dashboard.ledger.moves import Target, Who, cancel, release
from dashboard.ledger.suppressions import Statement
from dashboard.ledger.tables import SuppressionScope
from dashboard.lifecycle import By, Decision, EventType, Reason, State
from dashboard.producer import InProgress, Ledger, Mismatch, Outcome, send_once
from dashboard.providers import classify
from dashboard.providers.base import Accepted, Ambiguous, NeverWritten, Rejected, Scope
from dashboard.providers.base import Outcome as Answer
from dashboard.worker.reconcile import reconcile
from dashboard.worker.sweep import sweep
from tests.place import Place

KEY = "receipt:order_84721:recipient_2045:receipt-v3"


class Provider:
    """Takes calls, gives the answers it was told to give, and keeps its own books."""

    def __init__(self, *answers: Answer | Exception) -> None:
        self.answers = list(answers)
        self.keys: list[str] = []

    def __call__(self, idempotency_key: str) -> Answer:
        self.keys.append(idempotency_key)
        answer = self.answers.pop(0) if self.answers else Accepted(f"msg-{len(self.keys)}")
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def ledger(place: Place) -> Iterator[Ledger]:
    """A handle on the place's ledger, with connections of its own."""
    from dashboard.ledger.database import Database

    with Ledger(Database(place.database.url), place.vault) as handle:
        yield handle


def once(ledger: Ledger, submit: Callable[[str], Answer], **wanted: Any) -> Outcome:
    """One delivery of the job."""
    asked: dict[str, Any] = {
        "mailstream": "receipts",
        "key": KEY,
        "recipient_id": "recipient_2045",
        "address": "ada@example.com",
        "fingerprint": "receipt-v3 of order 84721",
        "trigger": ("order.paid", "evt_991"),
    }
    return send_once(ledger, submit=submit, **(asked | wanted))


def state_of(place: Place) -> str:
    row = place.one("select s.state::text as settled, w.state::text as open from sendonce.sends s "
                    "left join sendonce.work w on w.send_id = s.id")  # fmt: skip
    return str(row["open"] or row["settled"])


def attempts(place: Place) -> list[str]:
    rows = place.all("select status::text from sendonce.attempts order by n")
    return [row["status"] for row in rows]


def verdicts(place: Place) -> list[str]:
    rows = place.all("select verdict::text || ' ' || source as met from sendonce.duplicates order by id")
    return [row["met"] for row in rows]


# ── the straight path ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_job_delivered_three_times_calls_the_provider_once(place: Place, ledger: Ledger) -> None:
    provider = Provider(Accepted("49a3", request_id="req-1"))
    first, second, third = (once(ledger, provider) for _ in range(3))
    made = send_id(place.workspace, "receipts", KEY)
    assert provider.keys == [str(made)]
    assert first == Outcome(
        send_id=made, state=State.ACCEPTED, reason="answered", provider_message_id="49a3", replayed=False
    )
    assert (second, third) == (Outcome(
        send_id=made, state=State.ACCEPTED, reason="answered", provider_message_id="49a3", replayed=True
    ),) * 2  # fmt: skip
    assert verdicts(place) == ["duplicate queue", "duplicate queue"]
    attempt = place.one("select * from sendonce.attempts")
    assert (attempt["status"], attempt["settled_by"], attempt["request_id"]) == ("accepted", "caller", "req-1")
    assert place.one("select body, address is null as none from sendonce.messages") == {"body": None, "none": False}


def test_the_attempt_is_committed_before_the_call(place: Place, ledger: Ledger) -> None:
    seen: list[dict[str, Any]] = []

    def submit(_: str) -> Answer:
        seen.extend(
            place.all(
                "select a.status::text, w.state::text, w.open_attempt, w.lease_until > w.request_deadline as outlives"
                " from sendonce.attempts a join sendonce.work w using (send_id)"
            )
        )
        return Accepted("m")

    once(ledger, submit)
    assert seen == [{"status": "submitting", "state": "claimed", "open_attempt": 1, "outlives": True}]


def test_no_transaction_is_open_while_the_call_runs(place: Place, ledger: Ledger) -> None:
    idle: list[int] = []

    def submit(_: str) -> Answer:
        idle.append(
            place.one(
                "select count(*) as n from pg_stat_activity where state like 'idle in transaction%%'"
                " and datname = current_database()"
            )["n"]
        )
        return Accepted("m")

    once(ledger, submit)
    assert idle == [0]


def test_of_many_deliveries_at_once_one_calls_and_the_others_are_told_to_come_again(
    place: Place, ledger: Ledger
) -> None:
    inside, may_end = threading.Event(), threading.Event()
    calls: list[str] = []

    def submit(key: str) -> Answer:
        calls.append(key)
        inside.set()
        assert may_end.wait(20)
        return Accepted("m")

    def other() -> datetime:
        with pytest.raises(InProgress) as told:
            once(ledger, submit)
        return told.value.retry_at

    with ThreadPoolExecutor(5) as pool:
        winner = pool.submit(once, ledger, submit)
        assert inside.wait(20)
        lease = place.one("select lease_until from sendonce.work")["lease_until"]
        others = [pool.submit(other) for _ in range(4)]
        assert [future.result(20) for future in others] == [lease] * 4
        may_end.set()
        assert winner.result(20).state is State.ACCEPTED
    assert len(calls) == 1
    assert verdicts(place) == ["in_progress queue"] * 4


def test_another_content_under_the_key_is_a_mismatch_that_is_recorded_and_never_sent(
    place: Place, ledger: Ledger
) -> None:
    provider = Provider()
    once(ledger, provider)
    first_seen = place.one("select recorded_at from sendonce.sends")["recorded_at"]
    with pytest.raises(Mismatch) as told:
        once(ledger, provider, fingerprint="something else")
    assert told.value.first_seen == first_seen
    assert told.value.send_id == send_id(place.workspace, "receipts", KEY)
    assert len(provider.keys) == 1
    assert verdicts(place) == ["mismatch queue"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"key": "a@example.com"}, "key"),
        ({"fingerprint": b"short"}, "fingerprint"),
        ({"fingerprint": ""}, "fingerprint"),
        ({"address": "nobody"}, "recipient.address"),
        ({"mailstream": "recipes"}, "recipes"),
        ({"workspace": "elsewhere"}, "elsewhere"),
        ({"trigger": ("x", "NUL \0")}, "NUL"),
        ({"time_limit": timedelta(0)}, "time_limit"),
    ],
)
def test_bad_arguments_are_refused_and_nothing_is_stored(
    place: Place, ledger: Ledger, wrong: dict[str, Any], told: str
) -> None:
    provider = Provider()
    with pytest.raises(ValueError, match=told):
        once(ledger, provider, **wrong)
    assert (provider.keys, place.count("sends")) == ([], 0)


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_refusal_for_good_fails_the_send_and_is_repeated_to_later_deliveries(place: Place, ledger: Ledger) -> None:
    provider = Provider(Rejected(error_code="422", reason="unverified domain"))
    assert once(ledger, provider).state is State.FAILED
    again = once(ledger, provider)
    assert (again.state, again.reason, again.replayed) == (State.FAILED, "refused", True)
    assert len(provider.keys) == 1


def test_a_refusal_for_now_asks_for_a_later_delivery_which_then_sends(place: Place, ledger: Ledger) -> None:
    provider = Provider(Rejected(retryable=True, retry_after_seconds=90))
    with pytest.raises(InProgress) as told:
        once(ledger, provider)
    assert told.value.retry_at >= datetime.now(UTC) + timedelta(seconds=60)
    with pytest.raises(InProgress):
        once(ledger, provider)
    assert len(provider.keys) == 1, "before its time nothing is tried"
    place.time_passes(timedelta(minutes=5))
    assert once(ledger, provider).state is State.ACCEPTED
    assert provider.keys[0] == provider.keys[1]
    assert attempts(place) == ["rejected", "accepted"]


def test_what_was_never_written_may_be_tried_again_at_once(place: Place, ledger: Ledger) -> None:
    provider = Provider(NeverWritten("could not connect"))
    with pytest.raises(InProgress):
        once(ledger, provider)
    assert once(ledger, provider).state is State.ACCEPTED
    assert attempts(place) == ["abandoned", "accepted"]


def test_trouble_of_the_account_pauses_it_and_no_delivery_claims_until_it_is_over(place: Place, ledger: Ledger) -> None:
    provider = Provider(Rejected(scope=Scope.ACCOUNT, reason="bad key"))
    with pytest.raises(InProgress):
        once(ledger, provider)
    place.time_passes(timedelta(hours=2))
    with pytest.raises(InProgress) as told:
        once(ledger, provider)
    assert told.value.reason == "provider_paused"
    assert len(provider.keys) == 1
    place.run("update sendonce.accounts set paused_until = now() - interval '1 second'")
    assert once(ledger, provider).state is State.ACCEPTED


# ── doubt ────────────────────────────────────────────────────────────────────────────────────────────────────────────


KEY_IN_USE = {"status": 409, "body": {"name": "concurrent_idempotent_requests"}}
"""What a client library gets that repeats a call by itself, while the first one is still being worked on."""


@pytest.mark.parametrize(
    "answer",
    [Ambiguous(error_class="read_timeout"), ConnectionResetError("cut"), None, classify("resend", KEY_IN_USE)],
)
def test_an_unknown_outcome_is_not_sent_again(place: Place, ledger: Ledger, answer: Any) -> None:
    calls: list[str] = []

    def submit(key: str) -> Answer:
        calls.append(key)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    with pytest.raises(InProgress) as told:
        once(ledger, submit)
    assert told.value.state is State.UNKNOWN
    assert told.value.__cause__ is (answer if isinstance(answer, Exception) else None)
    with pytest.raises(InProgress):
        once(ledger, submit)
    assert len(calls) == 1
    assert (state_of(place), attempts(place)) == ("unknown", ["ambiguous"])


def test_a_release_makes_it_pending_and_the_next_delivery_sends_it_under_the_same_key(
    place: Place, ledger: Ledger
) -> None:
    place.run("update sendonce.mailstreams set unknown_policy = 'release'")
    provider = Provider(Ambiguous(error_class="read_timeout"))
    with pytest.raises(InProgress):
        once(ledger, provider)
    place.time_passes(timedelta(hours=1))
    with place.database.transaction() as connection:
        assert reconcile(connection, submit_window=timedelta(seconds=10)).released == 1
        assert work.claim(connection, worker=UUID(int=1), limit=10, lease=timedelta(minutes=1)) == []
    assert state_of(place) == "pending"
    assert once(ledger, provider).state is State.ACCEPTED
    assert provider.keys[0] == provider.keys[1]


def test_a_held_send_waits_for_a_person_whose_decision_the_next_delivery_carries_out(
    place: Place, ledger: Ledger
) -> None:
    provider = Provider(Ambiguous(error_class="read_timeout"))
    with pytest.raises(InProgress):
        once(ledger, provider)
    place.time_passes(timedelta(hours=1))
    with place.database.transaction() as connection:
        assert reconcile(connection, submit_window=timedelta(seconds=10)).held == 1
    with pytest.raises(InProgress) as told:
        once(ledger, provider)
    assert told.value.state is State.HELD
    assert told.value.retry_at <= datetime.now(UTC) + timedelta(hours=1, minutes=1)
    with place.database.transaction() as connection:
        made = send_id(place.workspace, "receipts", KEY)
        asked = [Target(send_id=made, reason=Reason.RELEASED_BY_PERSON)]
        assert release(connection, Who(By.PERSON), asked, waived=["ambiguous"])
    assert once(ledger, provider).state is State.ACCEPTED
    assert len(provider.keys) == 2


def test_an_event_settles_an_unknown_send_and_the_next_delivery_is_told(place: Place, ledger: Ledger) -> None:
    provider = Provider(Ambiguous(error_class="read_timeout"))
    with pytest.raises(InProgress) as told:
        once(ledger, provider)
    delivered = Told(
        event_type=EventType.DELIVERED, event_id="e1", send_id=str(told.value.send_id), provider_message_id="49a3"
    )
    with place.database.transaction() as connection:
        events.ingest(
            connection, place.vault, workspace_id=place.workspace, account_id=place.account, told=[delivered],
            received_at=datetime.now(UTC),
        )  # fmt: skip
    again = once(ledger, provider)
    assert (again.state, again.provider_message_id, again.replayed) == (State.ACCEPTED, "49a3", True)
    assert len(provider.keys) == 1


def test_evidence_that_came_before_the_first_delivery_is_seen_before_the_call(place: Place, ledger: Ledger) -> None:
    made = send_id(place.workspace, "receipts", KEY)
    told = Told(event_type=EventType.DELIVERED, event_id="e1", send_id=str(made), provider_message_id="49a3")
    with place.database.transaction() as connection:
        events.ingest(
            connection, place.vault, workspace_id=place.workspace, account_id=place.account, told=[told],
            received_at=datetime.now(UTC),
        )  # fmt: skip
    provider = Provider()
    assert once(ledger, provider).state is State.ACCEPTED
    assert provider.keys == []


def test_an_answer_that_comes_after_its_claim_has_ended_still_counts(place: Place, ledger: Ledger) -> None:
    def slow(_: str) -> Answer:
        place.time_passes(timedelta(hours=1))
        with place.database.transaction() as connection:
            assert sweep(connection).doubted == 1
        return Accepted("late")

    outcome = once(ledger, slow)
    assert (outcome.state, outcome.provider_message_id) == (State.ACCEPTED, "late")
    assert attempts(place) == ["accepted"]


def test_a_deadline_that_is_over_before_the_call_means_no_call(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from dashboard.providers import base

    monkeypatch.setattr(base, "boot_time", iter([0.0, 100.0]).__next__)
    with Ledger(place.database, place.vault) as ledger:
        provider = Provider()
        with pytest.raises(InProgress):
            once(ledger, provider)
    assert (provider.keys, attempts(place)) == ([], ["abandoned"])


def test_without_a_committed_attempt_there_is_no_call_and_nothing_is_stored(place: Place, ledger: Ledger) -> None:
    place.run(
        "create function refuse() returns trigger language plpgsql as"
        " $$ begin raise exception 'no' using errcode = 'disk_full'; end $$"
    )
    place.run(
        "create constraint trigger refuse after insert on sendonce.attempts"
        " deferrable initially deferred for each row execute function refuse()"
    )
    provider = Provider()
    with pytest.raises(psycopg.errors.DiskFull):
        once(ledger, provider)
    assert (provider.keys, place.count("sends"), place.count("attempts")) == ([], 0, 0)
    place.run("drop trigger refuse on sendonce.attempts")
    assert once(ledger, provider).state is State.ACCEPTED


def test_an_outcome_is_stored_although_the_connections_were_cut_during_the_call(place: Place, ledger: Ledger) -> None:
    def submit(_: str) -> Answer:
        with psycopg.connect(place.database.url, autocommit=True) as other:
            other.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where datname = current_database() and pid <> pg_backend_pid()"
            )
        return Accepted("49a3")

    assert once(ledger, submit).provider_message_id == "49a3"
    assert attempts(place) == ["accepted"]


# ── what forbids a call ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_suppressed_recipient_is_not_called_for(place: Place, ledger: Ledger) -> None:
    with place.database.transaction() as connection:
        bounced = Statement(
            workspace_id=place.workspace, address_lookup=place.vault.lookup("ada@example.com"),
            scope=SuppressionScope.EVERYTHING, said_at=datetime.now(UTC), source="bounced",
        )  # fmt: skip
        suppressions.say(connection, [bounced])
    provider = Provider()
    outcome = once(ledger, provider)
    assert (outcome.state, outcome.reason, outcome.replayed) == (State.SUPPRESSED, "bounced_before", False)
    assert once(ledger, provider).replayed
    assert provider.keys == []


def test_a_send_that_is_too_late_is_cancelled_or_held_as_its_mailstream_says(place: Place, ledger: Ledger) -> None:
    place.stream("codes", "security", too_late_after=timedelta(minutes=10), late_policy="cancel")
    place.stream("statements", "scheduled", too_late_after=timedelta(minutes=10), late_policy="hold")
    provider = Provider(NeverWritten("no route"), NeverWritten("no route"))
    for stream in ("codes", "statements"):
        with pytest.raises(InProgress):
            once(ledger, provider, mailstream=stream)
    place.time_passes(timedelta(hours=1))
    assert once(ledger, provider, mailstream="codes").state is State.CANCELLED
    with pytest.raises(InProgress) as told:
        once(ledger, provider, mailstream="statements")
    assert (told.value.state, told.value.reason) == (State.HELD, "late")
    assert len(provider.keys) == 2


def test_a_cancelled_send_and_a_paused_mailstream_are_not_called_for(place: Place, ledger: Ledger) -> None:
    place.run("update sendonce.mailstreams set paused_at = now(), paused_reason = 'an incident'")
    provider = Provider()
    with pytest.raises(InProgress) as told:
        once(ledger, provider)
    assert told.value.reason == "stream_paused"
    with place.database.transaction() as connection:
        target = Target(send_id=told.value.send_id, reason=Reason.CANCELLED_BY_PERSON)
        assert cancel(connection, Who(By.PERSON), [target])
    assert once(ledger, provider).state is State.CANCELLED
    assert provider.keys == []


def test_a_rate_limit_asks_for_a_later_delivery_and_leaves_no_claim_behind(place: Place, ledger: Ledger) -> None:
    place.run("update sendonce.accounts set rate_per_second = 0.001")
    place.run("insert into sendonce.account_tokens (account_id, tokens) values (%s, 0)", place.account)
    provider = Provider()
    with pytest.raises(InProgress) as told:
        once(ledger, provider)
    assert (told.value.reason, state_of(place), provider.keys) == ("no_capacity", "pending", [])


def test_a_send_of_the_workers_is_not_the_callers_to_claim(place: Place, ledger: Ledger) -> None:
    provider = Provider(NeverWritten("no route"))
    with pytest.raises(InProgress):
        once(ledger, provider)
    place.run("update sendonce.work set run_by = 'worker'")
    with pytest.raises(InProgress):
        once(ledger, provider)
    assert len(provider.keys) == 1


# ── kills ────────────────────────────────────────────────────────────────────────────────────────────────────────────

KILLED_CALLER = """
import sys, time
from dashboard.ledger.database import Database
from dashboard.ledger.vault import Vault
from dashboard.producer import Ledger, send_once
def submit(key):
    print(key, flush=True)
    time.sleep(600)
send_once(
    Ledger(Database(sys.argv[1]), Vault([("k1", b"k" * 32)])), mailstream="receipts", key=sys.argv[2],
    recipient_id="recipient_2045", address="ada@example.com", fingerprint="receipt-v3 of order 84721",
    trigger=("order.paid", "evt_991"), submit=submit)
"""


def test_rule_19_a_caller_killed_in_its_call_leaves_a_doubt_and_its_job_is_not_sent_again(
    place: Place, ledger: Ledger
) -> None:
    command = [sys.executable, "-c", KILLED_CALLER, place.database.url, KEY]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline().strip() == str(send_id(place.workspace, "receipts", KEY))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    provider = Provider()
    with pytest.raises(InProgress) as told:
        once(ledger, provider)
    assert told.value.state is State.CLAIMED
    place.time_passes(timedelta(hours=1))
    with place.database.transaction() as connection:
        assert sweep(connection).doubted == 1
    with pytest.raises(InProgress) as told:
        once(ledger, provider)
    assert (told.value.state, provider.keys) == (State.UNKNOWN, [])


def test_rule_19_a_resend_that_a_person_decided_is_carried_out_by_the_callers_next_delivery(
    place: Place, ledger: Ledger
) -> None:
    provider = Provider(Ambiguous(error_class="read_timeout"))
    with pytest.raises(InProgress):
        once(ledger, provider)
    place.time_passes(timedelta(hours=1))
    place.run("insert into sendonce.users (login, name, password_hash) values ('ada', 'Ada', '-')")
    person = place.one("select id from sendonce.users")["id"]
    with place.database.transaction() as connection:
        reconcile(connection, submit_window=timedelta(seconds=10))
    hold = place.one("select h.id, w.evidence from sendonce.holds h join sendonce.work w using (send_id)")
    with place.database.transaction() as connection:
        decide(
            connection, workspace_id=place.workspace, hold_id=hold["id"], user_id=person, decision=Decision.RESEND,
            reason="the provider has no trace of it", evidence=hold["evidence"],
        )  # fmt: skip
    assert state_of(place) == "pending"
    assert once(ledger, provider).state is State.ACCEPTED
    assert len(provider.keys) == 2
