"""Rule 6: neither a policy nor a person lets a send go on while its unanswered call may still be running."""

from __future__ import annotations

from datetime import timedelta

import pytest

from dashboard.ledger.holds import Decided, Refused
from dashboard.ledger.tables import Policy
from dashboard.lifecycle import Decision
from dashboard.worker.reconcile import Reconciled
from tests.crew import HOUR, Hand, ask_one, decide, reconciled, state_of, swept, unknown, work_of
from tests.place import Place


def _grace_ends(place: Place) -> None:
    place.run("update sendonce.work set check_at = now(), unknown_since = now() - interval '1 day'")


def test_the_call_counts_as_running_until_its_time_out_and_the_providers_settling_time_are_over(place: Place) -> None:
    place.run("update sendonce.accounts set settling_time = interval '20 minutes'")
    send, *_ = unknown(place)
    attempt = place.one("select request_deadline from sendonce.attempts")
    row = work_of(place, send)
    assert row["settled_after"] == attempt["request_deadline"] + timedelta(minutes=20)
    assert row["check_at"] >= row["settled_after"]


def test_a_call_of_a_lost_worker_counts_as_running_just_as_long(place: Place) -> None:
    place.run("update sendonce.accounts set settling_time = interval '2 hours'")
    send, hand = ask_one(place), Hand(place)
    hand.start()
    assert swept(place).doubted == 1
    attempt = place.one("select request_deadline from sendonce.attempts")
    assert work_of(place, send)["settled_after"] == attempt["request_deadline"] + 2 * HOUR


@pytest.mark.parametrize("policy", Policy)
def test_no_policy_acts_before_that(place: Place, policy: Policy) -> None:
    place.run("update sendonce.mailstreams set unknown_policy = %s where name = 'receipts'", str(policy))
    send, *_ = unknown(place)
    _grace_ends(place)
    assert reconciled(place) == Reconciled(waiting=1)
    assert state_of(place, send) == "unknown"


def test_the_grace_period_holds_even_when_the_call_has_ended_long_ago(place: Place) -> None:
    send, *_ = unknown(place)
    place.run("update sendonce.work set check_at = now(), settled_after = now() - interval '1 day'")
    assert reconciled(place) == Reconciled(waiting=1)
    assert work_of(place, send)["check_at"] == work_of(place, send)["unknown_since"] + timedelta(minutes=30)


def test_no_person_releases_it_before_that_either(place: Place) -> None:
    send, *_ = unknown(place)
    place.run("update sendonce.work set check_at = now(), unknown_since = now() - interval '1 day',"
              " settled_after = now() - interval '1 second'")  # fmt: skip
    assert reconciled(place) == Reconciled(held=1)
    place.run("update sendonce.work set settled_after = now() + interval '1 hour'")
    answer = decide(place, Decision.RESEND)
    assert isinstance(answer, Refused)
    assert "may still be running" in answer.reason
    assert state_of(place, send) == "held"
    place.run("update sendonce.work set settled_after = now() - interval '1 second'")
    assert isinstance(decide(place, Decision.RESEND), Decided)


def test_a_later_attempt_in_doubt_moves_that_moment_on(place: Place) -> None:
    place.run("update sendonce.mailstreams set unknown_policy = 'release'")
    send, *_ = unknown(place)
    place.run("update sendonce.work set check_at = now(), unknown_since = now() - interval '1 day',"
              " settled_after = now() - interval '1 hour'")  # fmt: skip
    assert reconciled(place) == Reconciled(released=1)
    hand = Hand(place)
    (second,) = hand.start()
    hand.finish(second, "ambiguous")
    attempt = place.one("select request_deadline from sendonce.attempts where n = 2")
    assert work_of(place, send)["settled_after"] == attempt["request_deadline"]
