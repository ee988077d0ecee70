"""Rule 3 (G): after an attempt that may have been taken, another one starts only by a release that holds right now."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from dashboard.ledger.accounts import save_account
from dashboard.ledger.holds import Decided
from dashboard.lifecycle import Decision
from dashboard.providers import provider
from dashboard.providers.base import Deadline, endpoint
from dashboard.simulator import Config, Simulator
from dashboard.worker.submit import Submitter
from tests.crew import (
    DAY,
    HOUR,
    WINDOWS,
    Hand,
    ask,
    attempt_ages,
    attempts_of,
    decide,
    graces_end,
    held,
    hold_of,
    reason_of,
    reconciled,
    released,
    state_of,
    unknown,
    violations,
    work_of,
)
from tests.lanes import point_at
from tests.place import WEBHOOK_SECRET, Place


@pytest.fixture(autouse=True)
def _policy(place: Place) -> None:
    place.run("update sendonce.mailstreams set unknown_policy = 'release' where name = 'receipts'")


def test_an_attempt_in_doubt_is_repeated_once_a_release_under_the_same_key_and_account(place: Place) -> None:
    send, _, first = released(place)
    (second,) = Hand(place).start()
    assert (second.n, second.account_id) == (2, first.account_id)
    keys = place.all("select idempotency_key, account_id from sendonce.attempts order by n")
    assert keys == [{"idempotency_key": str(send), "account_id": place.account}] * 2
    assert work_of(place, send)["released_by"] is None, "a release is good for one attempt"


def test_without_a_release_nothing_starts_even_if_somebody_made_the_row_pending(place: Place) -> None:
    send, *_ = unknown(place)
    _forget_the_doubt_of_the_state(place, send)
    assert Hand(place).start() == []
    assert (state_of(place, send), reason_of(place, send)) == ("held", "key_ended")
    assert attempts_of(place, send) == ["ambiguous"]


def test_a_release_that_waives_only_lateness_starts_nothing_beside_an_unanswered_attempt(place: Place) -> None:
    send, *_ = unknown(place)
    _forget_the_doubt_of_the_state(place, send)
    place.run("update sendonce.work set released_by = 'person', waived = '{late}' where send_id = %s", send)
    assert Hand(place).start() == []
    assert (state_of(place, send), attempts_of(place, send)) == ("held", ["ambiguous"])


def test_a_hold_of_a_late_send_names_the_doubt_as_well(place: Place) -> None:
    send, *_ = released(place)
    place.run("update sendonce.mailstreams set too_late_after = '1 microsecond' where name = 'receipts'")
    assert Hand(place).start() == []
    assert (state_of(place, send), reason_of(place, send)) == ("held", "late")
    assert place.all("select waives from sendonce.holds where closed_at is null") == [{"waives": ["late", "ambiguous"]}]


def _forget_the_doubt_of_the_state(place: Place, send: UUID) -> None:
    place.run(
        "update sendonce.work set state = 'pending', claim_at = now(), check_at = null, unknown_since = null"
        " where send_id = %s",
        send,
    )


@pytest.mark.parametrize(
    "age",
    [DAY + HOUR, DAY - WINDOWS.submit / 2],
    ids=["the key is forgotten", "it would be forgotten before the submit deadline"],
)
def test_a_policys_release_holds_only_while_the_provider_remembers_the_key(place: Place, age: timedelta) -> None:
    send, *_ = released(place)
    attempt_ages(place, send, age)
    assert Hand(place).start() == []
    assert (state_of(place, send), reason_of(place, send)) == ("held", "key_ended")


def test_just_inside_the_key_window_a_release_still_holds(place: Place) -> None:
    send, *_ = released(place)
    attempt_ages(place, send, DAY - WINDOWS.submit * 3)
    assert [s.send_id for s in Hand(place).start()] == [send]


def test_a_policys_release_ends_where_the_account_honours_keys_no_more(place: Place) -> None:
    send, *_ = released(place)
    place.run("update sendonce.accounts set key_window = null")
    assert Hand(place).start() == []
    assert (state_of(place, send), reason_of(place, send)) == ("held", "key_ended")


def test_the_window_counts_from_the_first_attempt_in_doubt(place: Place) -> None:
    send, *_ = released(place)
    attempt_ages(place, send, DAY - 2 * HOUR)
    hand = Hand(place)
    (second,) = hand.start()
    hand.finish(second, "ambiguous")
    graces_end(place)
    assert reconciled(place).released == 1, "the first key still counts for two hours"
    attempt_ages(place, send, 2 * HOUR)
    assert hand.start() == [], "the second attempt is fresh, the first one is a day old"
    assert (state_of(place, send), attempts_of(place, send)) == ("held", ["ambiguous", "ambiguous"])


def test_the_policy_does_not_release_what_could_not_start_before_the_key_ends(place: Place) -> None:
    send, *_ = unknown(place)
    attempt_ages(place, send, DAY - timedelta(seconds=30))
    graces_end(place)
    assert reconciled(place).held == 1


def test_a_retry_stays_on_the_account_of_the_attempt_in_doubt(place: Place) -> None:
    released(place)
    place.run(
        "insert into sendonce.accounts (id, workspace_id, name, provider, key_window)"
        " values (gen_random_uuid(), %s, 'new', 'resend', interval '1 day')",
        place.workspace,
    )
    place.run("update sendonce.mailstreams set account_id = (select id from sendonce.accounts where name = 'new')")
    (second,) = Hand(place).start()
    assert second.account_id == place.account


# ── the same endpoint ────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_account_changed_in_place_after_the_release_takes_the_release_away(place: Place) -> None:
    send, *_ = released(place)
    account_is_changed(place, api_key="re_another_team")
    assert Hand(place).start() == []
    assert (state_of(place, send), reason_of(place, send)) == ("held", "key_ended")
    assert hold_of(place).key_protects_until is None, "nobody is told that the key would protect"


def test_an_account_changed_in_place_before_the_grace_ends_is_no_ground_for_a_release(place: Place) -> None:
    send, *_ = unknown(place)
    account_is_changed(place, base_url="https://api.elsewhere.example")
    graces_end(place)
    assert (reconciled(place).held, state_of(place, send)) == (1, "held")


def test_where_the_account_is_changed_back_its_keys_count_again(place: Place) -> None:
    account_is_changed(place)
    send, *_ = unknown(place)
    account_is_changed(place, api_key="re_another_team")
    account_is_changed(place)
    graces_end(place)
    assert reconciled(place).released == 1
    assert [s.send_id for s in Hand(place).start()] == [send]


def test_another_webhook_secret_changes_nothing_about_where_a_call_goes(place: Place) -> None:
    account_is_changed(place)
    send, *_ = unknown(place)
    account_is_changed(place, webhook_secret="whsec_bmV3")
    graces_end(place)
    assert reconciled(place).released == 1
    assert [s.send_id for s in Hand(place).start()] == [send]


def test_one_attempt_elsewhere_is_enough_although_a_person_allowed_it(place: Place) -> None:
    send, *_ = released(place)
    account_is_changed(place, api_key="re_another_team")
    hand = Hand(place)
    assert hand.start() == []
    assert isinstance(decide(place, Decision.RESEND), Decided)
    (second,) = hand.start()
    hand.finish(second, "ambiguous")
    graces_end(place)
    assert reconciled(place).held == 1, "the first one may have been taken at the old endpoint"
    assert attempts_of(place, send) == ["ambiguous", "ambiguous"]
    assert violations(place) == []


def test_a_call_goes_to_the_endpoint_on_record_or_nowhere(place: Place) -> None:
    with Simulator(Config()) as old, Simulator(Config()) as new:
        point_at(place, old)
        first, second = ask(place, "order:1", "order:2")
        submitter = Submitter(place.database, place.vault, request_timeout=10.0)
        (one, two) = sorted(Hand(place).start(), key=lambda started: started.send_id != first)
        assert submitter.submit(one, Deadline.after(10)).kind == "accepted"
        point_at(place, new)
        assert submitter.submit(two, Deadline.after(10)).kind == "accepted", "its way is still open"
        fresh = Submitter(place.database, place.vault, request_timeout=10.0)
        assert fresh.submit(two, Deadline.after(10)).kind == "never_written"
        assert ([row.send_id for row in old.books], new.books) == ([str(first), str(second)], [])
        for each in (submitter, fresh):
            each.close()


def account_is_changed(place: Place, **settings: str) -> None:
    """Somebody changes settings of the account, in place; the others are those of always."""
    resend = provider("resend")
    given = {"api_key": "re_first", "webhook_secret": WEBHOOK_SECRET, **settings}
    with place.database.transaction() as connection:
        save_account(
            connection, place.vault, workspace_id=place.workspace, name="main", provider="resend", settings={},
            secrets=given, endpoint=endpoint(resend, given), key_window=DAY,
        )  # fmt: skip


# ── no key, no release ───────────────────────────────────────────────────────────────────────────────────────────────


def test_where_no_key_is_honoured_the_send_is_held_and_only_a_person_lets_it_go_on(place: Place) -> None:
    place.run("update sendonce.accounts set key_window = null")
    send, *_ = held(place)
    assert Hand(place).claim() == []
    assert isinstance(decide(place, Decision.RESEND), Decided)
    hand = Hand(place)
    (second,) = hand.start()
    hand.finish(second, "ambiguous")
    graces_end(place)
    assert reconciled(place).held == 1, "what the person allowed was one attempt"
    assert attempts_of(place, send) == ["ambiguous", "ambiguous"]


def test_nothing_is_started_beside_an_attempt_that_is_open(place: Place) -> None:
    send, *_ = released(place)
    hand = Hand(place)
    claims = hand.claim()
    assert len(hand.start(claims)) == 1
    assert hand.start(claims) == []
    assert attempts_of(place, send) == ["ambiguous", "submitting"]
