"""Rule 11: who is claimed when, by whom, and what becomes of a send that workers stop on."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest

from dashboard.ledger.holds import Decided
from dashboard.lifecycle import Decision
from tests.crew import DAY, Hand, Rival, ask, ask_one, decide, due_now, open_transaction, reason_of, state_of, swept
from tests.place import Place

NOT_YET = {
    "its stream is paused": "update sendonce.mailstreams set paused_at = now(), paused_reason = 'p'",
    "its workspace is paused": "update sendonce.workspaces set paused_at = now()",
    "its account is paused": "update sendonce.accounts set paused_until = now() + interval '1 h', paused_reason = 'p'",
    "its account is paused for good": "update sendonce.accounts set paused_until = 'infinity', paused_reason = 'p'",
    "it is due later": "update sendonce.work set claim_at = now() + interval '1 hour'",
    "its caller sends it": "update sendonce.work set run_by = 'caller'",
}


@pytest.mark.parametrize("why", NOT_YET)
def test_what_may_not_be_sent_now_is_not_claimed(place: Place, why: str) -> None:
    send = ask_one(place)
    place.run(NOT_YET[why])
    assert Hand(place).claim() == []
    assert state_of(place, send) == "pending"


def test_a_send_that_changes_while_a_claim_looks_at_it_is_not_claimed(place: Place) -> None:
    send = ask_one(place)
    with open_transaction(place) as connection:
        connection.execute("update sendonce.work set claim_at = now() + interval '1 hour'")
        assert Hand(place).claim() == [], "what another one holds is passed over, not waited for"
    assert Hand(place).claim() == []
    assert state_of(place, send) == "pending"


def test_many_workers_at_once_claim_each_send_once(place: Place) -> None:
    ask(place, *(f"order:{i}" for i in range(200)))
    rivals = [Rival(lambda: _claim_all(Hand(place))) for _ in range(4)]
    claimed = [send for rival in rivals for send in rival.result]
    assert len(claimed) == len(set(claimed)) == 200
    assert place.one("select max(claim_number) as n from sendonce.work")["n"] == 1


def _claim_all(hand: Hand) -> list[UUID]:
    claimed: list[UUID] = []
    while claims := hand.claim(7):
        claimed += [claim.send_id for claim in claims]
    return claimed


def test_urgent_classes_come_first_and_a_tenth_is_kept_for_bulk(place: Place) -> None:
    place.stream("reset", "security")
    for stream in ("news", "receipts", "reset"):
        ask(place, *(f"{stream}:{i}" for i in range(60)), stream=stream)
    hand = Hand(place)
    rounds = [Counter(claim.mail_class.value for claim in hand.claim(20)) for _ in range(3)]
    assert rounds == [Counter(security=18, campaign=2)] * 3
    assert Counter(c.mail_class.value for c in hand.claim(20)) == Counter(security=6, campaign=2)
    assert Counter(c.mail_class.value for c in hand.claim(20)) == Counter(transactional=18, campaign=2)


def test_a_small_set_keeps_the_tenth_over_the_turns(place: Place) -> None:
    for stream in ("news", "receipts"):
        ask(place, *(f"{stream}:{i}" for i in range(30)), stream=stream)
    hand = Hand(place)
    claimed = Counter(claim.mail_class.value for _ in range(20) for claim in hand.claim(1))
    assert claimed == Counter(transactional=18, campaign=2)


def test_mailstreams_of_one_class_take_turns(place: Place) -> None:
    place.stream("invoices", "transactional")
    ask(place, *(f"receipt:{i}" for i in range(100)))
    ask(place, *(f"invoice:{i}" for i in range(5)), stream="invoices")
    claimed = [claim.send_id for claim in Hand(place).claim(10)]
    rows = place.all("select mailstream from sendonce.work where send_id = any(%s)", claimed)
    assert Counter(row["mailstream"] for row in rows) == Counter(receipts=5, invoices=5)


def test_a_paused_account_does_not_hold_up_the_mail_of_another_one(place: Place) -> None:
    place.stream("reset", "security")
    place.run(
        "insert into sendonce.accounts (workspace_id, name, provider, paused_until, paused_reason)"
        " values (%s, 'broken', 'resend', 'infinity', 'credentials')",
        place.workspace,
    )
    place.run(
        "update sendonce.mailstreams set account_id = (select id from sendonce.accounts where name = 'broken')"
        " where name = 'reset'"
    )
    ask(place, *(f"reset:{i}" for i in range(5)), stream="reset")
    (send,) = ask(place, "receipt:1")
    assert [claim.send_id for claim in Hand(place).claim(10)] == [send]


def test_the_oldest_of_a_mailstream_comes_first(place: Place) -> None:
    newer, older = ask(place, "newer", "older")
    place.run("update sendonce.work set claim_at = now() - interval '1 hour' where send_id = %s", older)
    assert [claim.send_id for claim in Hand(place).claim(1)] == [older]
    assert [claim.send_id for claim in Hand(place).claim(1)] == [newer]


def test_a_send_on_which_five_workers_stopped_is_held_for_a_person(place: Place) -> None:
    send = ask_one(place)
    for _ in range(4):
        Hand(place).claim()
        assert swept(place).given_back == 1
    Hand(place).claim()
    assert swept(place).held == 1
    assert (state_of(place, send), reason_of(place, send)) == ("held", "workers_stop_on_it")
    assert place.count("attempts") == 0
    assert isinstance(decide(place, Decision.RESEND), Decided)
    Hand(place).send("accepted")
    assert state_of(place, send) == "accepted"


def test_an_attempt_forgives_the_claims_that_lapsed_before_it(place: Place) -> None:
    send = ask_one(place)
    for _ in range(4):
        Hand(place).claim()
        swept(place)
    Hand(place).send("refused_for_now")
    due_now(place)
    Hand(place).claim()
    assert swept(place).given_back == 1
    assert state_of(place, send) == "pending"
    assert place.one("select lapses from sendonce.work")["lapses"] == 1


def test_a_send_asked_for_later_is_scheduled_and_not_late(place: Place) -> None:
    tomorrow = place.one("select now() + %s as at", DAY)["at"].isoformat()
    send = ask_one(place, not_before=tomorrow)
    assert Hand(place).claim() == []
    assert (state_of(place, send), reason_of(place, send)) == ("pending", "scheduled")
