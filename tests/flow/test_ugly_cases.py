"""The ugly cases: what happens between the moment a provider takes a mail and the moment that we know it."""

from __future__ import annotations

import pytest

from tests.crew import ask_one, attempts_of, reason_of, swept, until, verdicts_of
from tests.flow.town import Town

# ── a time-out after acceptance ──────────────────────────────────────────────────────────────────────────────────────


def test_a_time_out_after_acceptance_is_repeated_under_its_key_and_taken_once(town: Town) -> None:
    town.stream(policy="release", keys=True)
    (send,) = town.enqueue(["order:1"], to="timeout-quiet+{}@example.test")
    town.worker(hasty=True)
    town.wait_for(accepted=1)
    assert attempts_of(town.place, send) == ["ambiguous", "accepted"]
    assert town.copies() == {str(send): 1}
    assert town.simulator.counts()["replayed"] == 1
    keys = town.place.all("select distinct idempotency_key from sendonce.attempts")
    assert keys == [{"idempotency_key": str(send)}]
    moves = town.place.all("select move::text, reason from sendonce.moves order by id")
    assert [(row["move"], row["reason"]) for row in moves] == [("doubt", "no_answer"), ("release", "released_by_key")]


def test_where_keys_are_ignored_an_event_settles_what_timed_out(town: Town) -> None:
    town.stream(policy="hold", keys=False)
    town.simulator.configure(honour_keys=False, webhooks={"paused": True})
    with town.web():
        (send,) = town.enqueue(["order:1"], to="timeout+{}@example.test")
        town.worker(hasty=True)
        until(lambda: bool(town.place.all("select from sendonce.attempts where doubted_at is not null")))
        assert town.copies() == {str(send): 1}
        town.simulator.configure(webhooks={"paused": False})
        town.simulator.flush()
        town.wait_for(accepted=1)
        assert town.simulator.wait_idle()
    attempt = town.place.one("select status::text, settled_by::text, provider_message_id from sendonce.attempts")
    assert attempt == {
        "status": "accepted", "settled_by": "event", "provider_message_id": town.simulator.books[0].message_id,
    }  # fmt: skip
    assert town.copies() == {str(send): 1}
    assert town.place.one("select delivery::text from sendonce.sends") == {"delivery": "delivered"}


@pytest.mark.parametrize(("provider", "word"), [("resend", "timeout"), ("smtp", "timeout"), ("smtp", "lost")])
def test_without_key_and_without_event_it_is_held_and_never_sent_again(town: Town, provider: str, word: str) -> None:
    town.stream(policy="hold", keys=False, provider=provider)
    town.simulator.configure(honour_keys=False)
    (send,) = town.enqueue(["order:1"], to=f"{word}-quiet+{{}}@example.test")
    hasty = town.worker(hasty=True)
    town.wait_for(held=1)
    town.kill(hasty)
    town.worker()
    town.enqueue(["order:1"])  # the business asks again
    (other,) = town.enqueue(["order:2"])  # and the next worker goes on with everything else
    town.wait_for(held=1, accepted=1)
    assert attempts_of(town.place, send) == ["ambiguous"]
    assert (reason_of(town.place, send), verdicts_of(town.place, send)) == ("unconfirmed", ["in_progress"])
    assert town.copies() == {str(send): 1, str(other): 1}


# ── a worker that is killed after the provider took it, before the outcome is stored ─────────────────────────────────


@pytest.mark.parametrize("keys", [True, False], ids=["keys honoured", "keys ignored"])
def test_a_worker_killed_between_acceptance_and_storing_sends_nothing_twice(town: Town, keys: bool) -> None:
    town.stream(policy="release" if keys else "hold", keys=keys)
    town.simulator.configure(honour_keys=keys, hold_answers=True)
    (send,) = town.enqueue(["order:1"])
    victim = town.worker(hasty=True)
    assert town.simulator.wait_taken(1, timeout=30)
    town.kill(victim)
    assert attempts_of(town.place, send) == ["submitting"], "the attempt is on record, its outcome is not"
    town.simulator.release_answers()
    town.worker(hasty=True)
    town.wait_for(**({"accepted": 1} if keys else {"held": 1}))
    assert attempts_of(town.place, send) == (["ambiguous", "accepted"] if keys else ["ambiguous"])
    assert town.place.one("select error_class from sendonce.attempts where n = 1") == {"error_class": "worker_lost"}
    assert town.copies() == {str(send): 1}


def test_an_event_settles_the_attempt_of_a_killed_worker(town: Town) -> None:
    town.stream(policy="hold", keys=False)
    town.simulator.configure(honour_keys=False, hold_answers=True, webhooks={"paused": True})
    with town.web():
        (send,) = town.enqueue(["order:1"])
        victim = town.worker(hasty=True)
        assert town.simulator.wait_taken(1, timeout=30)
        town.kill(victim)
        town.simulator.configure(webhooks={"paused": False})
        town.simulator.flush()
        town.wait_for(accepted=1)
        assert town.simulator.wait_idle()
    assert attempts_of(town.place, send) == ["accepted"]
    assert town.copies() == {str(send): 1}


# ── the same webhook twice and out of order ──────────────────────────────────────────────────────────────────────────


def test_webhooks_that_come_twice_under_two_ids_and_in_disorder_give_the_same_sends(town: Town) -> None:
    town.stream(policy="hold", keys=True)
    town.simulator.configure(webhooks={"repeat": 1.0, "other_id": 1.0, "out_of_order": 1.0, "overtake": 0.5})
    words = ("complain", "bounce", "softbounce", "open", "click", "delay", "failed")
    with town.web():
        sends = [town.enqueue([f"order:{word}"], to=f"{word}+{{}}@example.test")[0] for word in words]
        town.worker()
        town.wait_for(accepted=len(words))
        while not town.simulator.wait_idle(0.05):
            town.simulator.flush()
    told = town.simulator.webhook_counts()
    assert (told["repeats"], told.get("failed", 0)) == (told["events"], 0)
    assert told["out_of_order"] >= len(words) - 1, "all but the one of which there is a single event"
    rows = town.place.all("select id, delivery::text from sendonce.sends")
    delivery = {row["id"]: row["delivery"] for row in rows}
    expected = ("complained", "bounced", "bounced", "delivered", "delivered", "delivered", "failed")
    assert [delivery[send] for send in sends] == list(expected)
    counts = town.place.one(
        "select count(*) as n, sum(repeats) as repeats, sum(other_ids) as others from sendonce.events"
    )
    assert counts["n"] == told["events"], "each fact is one event"
    assert counts["repeats"] + counts["others"] == told["acknowledged"] - told["events"], "and everything else a repeat"
    assert town.place.count("unmatched") == 0
    scopes = town.place.all("select scope::text from sendonce.suppressions where suppressed")
    assert sorted(row["scope"] for row in scopes) == ["bulk", "everything"], "one complaint and one hard bounce"


# ── a half-finished batch, run again ─────────────────────────────────────────────────────────────────────────────────


def test_a_relay_killed_in_the_middle_of_its_set_loses_and_doubles_nothing(town: Town) -> None:
    town.stream(policy="hold", keys=True)
    keys = [f"order:{i}" for i in range(60)]
    town.enqueue(keys)
    with town.place.database.transaction() as connection:
        # The relay has inserted its sends and work rows, and now waits to insert their messages.
        connection.execute("lock table sendonce.messages in exclusive mode")
        victim = town.worker("relay")
        until(lambda: _backends(town, "wait_event_type = 'Lock'") > 0)
        town.kill(victim)
        assert town.states() == {"asked": 60}
    until(lambda: _backends(town, "true") == 0)  # its server process finds nobody to answer to
    assert town.states() == {"asked": 60}
    town.enqueue(keys)  # and the job that asked runs again, too
    town.worker()
    town.wait_for(accepted=60)
    assert town.copies() == dict.fromkeys(map(str, _ids(town)), 1)
    assert town.place.count("duplicates") == 60


def _backends(town: Town, condition: str) -> int:
    number: int = town.place.one(
        "select count(*) as n from pg_stat_activity where datname = current_database()"
        f" and application_name = 'sendonce worker' and {condition}"
    )["n"]
    return number


def _ids(town: Town) -> list[str]:
    return [row["id"] for row in town.place.all("select id from sendonce.sends")]


def test_a_batch_that_broke_off_half_way_is_asked_again_and_nobody_gets_it_twice(town: Town) -> None:
    town.stream(policy="release", keys=True)
    keys = [f"order:{i}" for i in range(50)]
    town.enqueue(keys[:20])
    town.worker("relay")
    first = town.worker("dispatch", hasty=True)
    town.wait_for(accepted=20)
    town.simulator.hold_answers()
    town.enqueue(keys[20:40])
    assert town.simulator.wait_taken(40)
    town.kill(first)  # twenty are done, twenty are taken and nobody knows
    town.simulator.release_answers()
    town.enqueue(keys)  # the job runs again, in full: ten of its fifty are new
    town.worker(hasty=True)
    town.wait_for(accepted=50)
    assert town.copies() == dict.fromkeys(map(str, _ids(town)), 1)
    verdicts = town.place.all("select verdict::text, count(*) as n from sendonce.duplicates group by 1")
    assert {row["verdict"]: row["n"] for row in verdicts} == {"duplicate": 20, "in_progress": 20}


# ── two workers at once ──────────────────────────────────────────────────────────────────────────────────────────────


def test_two_workers_started_at_once_send_each_of_two_thousand_once(town: Town) -> None:
    town.stream(policy="hold", keys=False)
    town.simulator.configure(honour_keys=False)
    sends = town.enqueue([f"order:{i}" for i in range(2000)])
    for _ in range(2):
        town.worker()
    town.wait_for(accepted=2000)
    per_send = town.place.all(
        "select send_id, count(*) as n, count(*) filter (where status = 'accepted') as accepted"
        " from sendonce.attempts group by send_id"
    )
    assert {(row["n"], row["accepted"]) for row in per_send} == {(1, 1)}
    assert town.copies() == dict.fromkeys(map(str, sends), 1)
    workers = town.place.one("select count(distinct worker) as n from sendonce.attempts")
    assert workers["n"] == 2, "both had a part in it"


# ── a worker killed in the middle of a call that several share ───────────────────────────────────────────────────────


def test_a_worker_killed_in_a_shared_call_leaves_all_its_members_in_doubt_and_events_settle_each(town: Town) -> None:
    town.stream(policy="release", keys=True)
    town.place.run("update sendonce.mailstreams set unknown_policy = 'release', batches = true where name = 'news'")
    sends = [ask_one(town.place, f"news:{n}", stream="news", address=f"ada+{n}@example.test") for n in range(4)]
    with town.web():
        town.simulator.configure(hold_answers=True, webhooks={"paused": True})
        worker = town.worker("dispatch")
        assert town.simulator.wait_taken(4, 30)
        town.kill(worker)
        assert swept(town.place).doubted == 4
        assert len({row.call for row in town.simulator.books}) == 1
        assert {row.key for row in town.simulator.books} == {
            str(row["batch"]) for row in town.place.all("select distinct batch from sendonce.attempts")
        }
        town.simulator.configure(hold_answers=False, webhooks={"paused": False})
        town.simulator.flush()
        town.wait_for(accepted=4)
    assert [attempts_of(town.place, send) for send in sends] == [["accepted"]] * 4
    assert town.copies() == {str(send): 1 for send in sends}
