"""Rule 3 (G), its last sentence: a batch call is released only as that same batch. No batch is ever made again, so that
what went in one and is in doubt waits for evidence or a person; and only first attempts share a call."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID

import pytest

from dashboard.ledger import streams
from dashboard.ledger.attempts import Started
from dashboard.ledger.holds import Decided
from dashboard.ledger.streams import BadStream
from dashboard.lifecycle import Decision, EventType, MailClass
from tests.crew import (
    HOUR,
    Hand,
    all_together,
    ask,
    attempts_of,
    decide,
    due_now,
    graces_end,
    hear,
    hold_of,
    reason_of,
    reconciled,
    state_of,
    swept,
    told,
    violations,
    work_of,
)
from tests.place import Place, outcome_of


@pytest.fixture(autouse=True)
def _news_in_batches(place: Place) -> None:
    place.run("update sendonce.mailstreams set unknown_policy = 'release', batches = true where name = 'news'")


@pytest.fixture
def hand(place: Place) -> Iterator[Hand]:
    """A worker whose provider takes any number of messages with one call."""
    return Hand(place, part=all_together)


def in_doubt(place: Place, hand: Hand, number: int = 3) -> tuple[list[UUID], list[Started]]:
    """News that went in one call, which was not answered."""
    sends = ask(place, *(f"news:{i}" for i in range(number)), stream="news")
    started = hand.start()
    for one in started:
        hand.finish(one, "ambiguous", error_class="read_timeout")
    return sends, started


# ── one call, many attempts ──────────────────────────────────────────────────────────────────────────────────────────


def test_each_member_of_a_call_has_its_attempt_written_ahead_with_all_others(place: Place, hand: Hand) -> None:
    sends = ask(place, "news:1", "news:2", "news:3", stream="news")
    started = hand.start()
    assert {one.send_id for one in started} == set(sends)
    (batch,) = {one.batch for one in started}
    rows = place.all("select n, status::text, batch, idempotency_key, worker, started_at from sendonce.attempts")
    assert len(rows) == 3
    assert len({row["started_at"] for row in rows}) == 1, "one transaction"
    assert all((row["n"], row["status"], row["worker"]) == (1, "submitting", hand.id) for row in rows)
    assert {(row["batch"], row["idempotency_key"]) for row in rows} == {(batch, str(batch))}, "the call's own key"
    for send in sends:
        assert work_of(place, send)["open_attempt"] == 1
    for one, kind in zip(started, ("accepted", "refused", "ambiguous"), strict=True):
        hand.finish(one, kind, "msg-1" if kind == "accepted" else None)
    assert [state_of(place, one.send_id) for one in started] == ["accepted", "failed", "unknown"], "each by itself"


def test_no_key_is_on_record_where_none_is_honoured(place: Place, hand: Hand) -> None:
    place.run("update sendonce.accounts set key_window = null")
    place.run("update sendonce.mailstreams set unknown_policy = 'hold'")
    ask(place, "news:1", "news:2", stream="news")
    assert len({one.batch for one in hand.start()} - {None}) == 1
    assert place.all("select distinct idempotency_key from sendonce.attempts") == [{"idempotency_key": None}]


def test_only_mailstreams_that_say_so_share_calls_and_only_within_one_account(place: Place, hand: Hand) -> None:
    place.run(
        "insert into sendonce.accounts (id, workspace_id, name, provider)"
        " values (gen_random_uuid(), %s, 'two', 'resend')",
        place.workspace,
    )
    other = place.one("select id from sendonce.accounts where name = 'two'")["id"]
    place.stream("offers", "campaign", account_id=other, batches=True)
    place.stream("tips", "lifecycle", batches=True)
    place.stream("polls", "campaign")
    streams_of = {}
    for stream in ("news", "offers", "tips", "polls", "receipts"):
        for send in ask(place, f"{stream}:1", f"{stream}:2", stream=stream):
            streams_of[send] = stream
    calls: dict[UUID | None, set[str]] = {}
    for one in hand.start(hand.claim() + hand.claim()):  # urgent mail is claimed first
        calls.setdefault(one.batch, set()).add(streams_of[one.send_id])
    assert calls.pop(None) == {"polls", "receipts"}
    assert sorted(map(sorted, calls.values())) == [["news", "tips"], ["offers"]]


def test_what_would_share_a_call_with_nobody_goes_alone_under_its_own_key(place: Place, hand: Hand) -> None:
    (send,) = ask(place, "news:1", stream="news")
    (one,) = hand.start()
    assert one.batch is None
    assert place.one("select idempotency_key from sendonce.attempts")["idempotency_key"] == str(send)


def test_rule_2_each_member_takes_a_rate_token_of_its_own(place: Place, hand: Hand) -> None:
    place.run("update sendonce.accounts set rate_per_second = 2")
    place.run("insert into sendonce.account_tokens (account_id, tokens) values (%s, 2)", place.account)
    ask(place, *(f"news:{i}" for i in range(5)), stream="news")
    started = hand.start()
    assert (len(started), len({one.batch for one in started})) == (2, 1)
    assert place.count("attempts") == 2


@pytest.mark.parametrize("mail_class", [MailClass.SECURITY, MailClass.TRANSACTIONAL])
def test_urgent_mail_never_shares_a_call(place: Place, mail_class: MailClass) -> None:
    rules = streams.Rules(
        unknown_policy=streams.Policy.HOLD, grace=HOUR, too_late_after=None, max_attempts=5, retry_for=HOUR,
        batches=True,
    )  # fmt: skip
    with (
        pytest.raises(BadStream, match=f"{mail_class} mail goes one by one.*lifecycle, scheduled, campaign"),
        place.database.transaction() as connection,
    ):
        streams.save_stream(
            connection, workspace_id=place.workspace, name="news", mail_class=mail_class, account_id=place.account,
            rules=rules,
        )  # fmt: skip


def test_rule_18_one_refused_call_is_one_trouble_of_its_account_however_many_went_in_it(
    place: Place, hand: Hand
) -> None:
    ask(place, *(f"news:{i}" for i in range(4)), stream="news")
    started = hand.start()
    with place.database.transaction() as connection:
        finished = [outcome_of(one, "account_trouble", batch=one.batch, reason="busy") for one in started]
        hand.store_in(connection, finished)
    assert place.one("select troubles, paused_until from sendonce.accounts") == {"troubles": 1, "paused_until": None}
    assert place.all("select distinct state::text, counted_attempts from sendonce.work") == [
        {"state": "pending", "counted_attempts": 0}
    ]


# ── in doubt ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_policy_releases_a_member_of_an_unanswered_call(place: Place, hand: Hand) -> None:
    sends, _ = in_doubt(place, hand)
    graces_end(place)
    done = reconciled(place)
    assert (done.released, done.held) == (0, 3)
    assert [(state_of(place, send), reason_of(place, send)) for send in sends] == [("held", "went_in_a_batch")] * 3


def test_a_release_that_somebody_gave_a_member_starts_nothing(place: Place, hand: Hand) -> None:
    (send, *_), _ = in_doubt(place, hand)
    place.run(
        "update sendonce.work set state = 'pending', claim_at = now(), check_at = null, unknown_since = null,"
        " released_by = 'reconcile' where send_id = %s",
        send,
    )
    assert hand.start() == []
    assert (state_of(place, send), reason_of(place, send), attempts_of(place, send)) == (
        "held", "key_ended", ["ambiguous"],
    )  # fmt: skip


def test_a_person_may_release_one_which_then_goes_alone_under_its_own_key(place: Place, hand: Hand) -> None:
    (send, other), _ = in_doubt(place, hand, 2)
    graces_end(place)
    reconciled(place)
    hear(place, told(EventType.DELIVERED, other, "msg-other"))
    held = hold_of(place)
    assert (held.send_id, held.together, held.key_protects_until) == (send, 2, None), "what the page tells them"
    assert isinstance(decide(place, Decision.RESEND), Decided)
    graces_end(place)
    (second,) = hand.start()
    assert (second.n, second.batch) == (2, None)
    keys = place.all("select idempotency_key from sendonce.attempts where send_id = %s order by n", send)
    assert keys[1] == {"idempotency_key": str(send)} != keys[0]
    hand.finish(second, "ambiguous")
    graces_end(place)
    reconciled(place)
    assert (state_of(place, send), reason_of(place, send)) == ("held", "went_in_a_batch"), (
        "what the person allowed was one attempt"
    )


def test_a_lost_worker_leaves_every_member_in_doubt_and_events_settle_each_by_itself(place: Place, hand: Hand) -> None:
    sends = ask(place, "news:1", "news:2", "news:3", stream="news")
    hand.start()
    assert swept(place).doubted == 3
    hear(place, told(EventType.DELIVERED, sends[0], "msg-1"), told(EventType.BOUNCED, sends[1], "msg-2"))
    assert [state_of(place, send) for send in sends] == ["accepted", "accepted", "unknown"]
    graces_end(place)
    reconciled(place)
    assert state_of(place, sends[2]) == "held", "once the others have settled, it waits for evidence or a person"
    hear(place, told(EventType.OPENED, sends[2], "msg-3"))
    assert state_of(place, sends[2]) == "accepted"


# ── tried again ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_call_refused_for_now_is_tried_again_alone_under_its_own_key(place: Place, hand: Hand) -> None:
    sends = ask(place, "news:1", "news:2", stream="news")
    for one in hand.start():
        hand.finish(one, "refused_for_now", batch=one.batch)
    due_now(place)
    again = hand.start()
    assert {(one.send_id, one.n, one.batch) for one in again} == {(send, 2, None) for send in sends}
    keys = place.all("select send_id, idempotency_key from sendonce.attempts where n = 2")
    assert {row["send_id"]: row["idempotency_key"] for row in keys} == {send: str(send) for send in sends}


def test_what_went_alone_and_is_in_doubt_is_repeated_alone_though_others_share_a_call(place: Place, hand: Hand) -> None:
    (send,) = ask(place, "news:0", stream="news")
    (first,) = hand.start()
    hand.finish(first, "ambiguous")
    graces_end(place)
    assert reconciled(place).released == 1
    ask(place, "news:1", "news:2", stream="news")
    started = {one.send_id: one for one in hand.start()}
    assert (started[send].batch, len({one.batch for one in started.values()})) == (None, 2)
    keys = place.all("select idempotency_key from sendonce.attempts where send_id = %s", send)
    assert keys == [{"idempotency_key": str(send)}] * 2


def test_every_call_has_a_key_of_its_own(place: Place, hand: Hand) -> None:
    in_doubt(place, hand)
    ask(place, "news:8", "news:9", stream="news")
    hand.start()
    place.time_passes(timedelta(seconds=1))
    assert len(place.all("select distinct idempotency_key from sendonce.attempts")) == 2
    assert violations(place) == []
