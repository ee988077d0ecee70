"""Deciding about held sends."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from dashboard.ledger import moves, proposals
from dashboard.ledger.moves import Target, Who
from dashboard.lifecycle import By, Reason
from tests.web.conftest import Browser, House


def decide(browser: Browser, send: UUID, decision: str, reason: str = "The provider's log shows nothing") -> int:
    """Open the page, choose, give a reason, send."""
    return send_form(browser, send, form(browser, send), decision, reason)


def form(browser: Browser, send: UUID) -> dict[str, str]:
    """The hidden fields of the decision's form."""
    page = browser.get(f"/held/{send}").text
    return dict(re.findall(r'name="(hold_id|evidence)" value="(\d+)"', page))


def send_form(browser: Browser, send: UUID, hidden: dict[str, str], decision: str, reason: str) -> int:
    """Send the form as it was opened."""
    return browser.post(f"/held/{send}", decision=decision, reason=reason, **hidden).status_code


def test_the_queue_shows_what_waits_and_the_navigation_counts_it(house: House) -> None:
    sends = [house.factory.held(), house.factory.held_late()]
    house.commit()
    page = house.browser("operator").get("/held").text
    assert all(f"/held/{send}" in page for send in sends)
    assert 'id="held-count">2<' in page


def test_what_shared_an_unanswered_call_says_so_and_that_no_key_protects_it(house: House) -> None:
    sends = [house.factory.held(recipient="one"), house.factory.held(recipient="two")]
    house.factory.share_a_call(*sends)
    house.commit()
    browser = house.browser("operator")
    assert browser.get("/held").text.count("in one call with 1 other") == 2
    page = browser.get(f"/held/{sends[0]}").text
    assert "in one call with 1 other" in page
    assert "does not protect: it went out in one call with others" in page
    assert "If the unanswered attempt was taken after all, the customer gets it twice." in page


def test_each_decision_moves_the_send_and_says_so(house: House) -> None:
    ends = {"resend": "pending", "mark_accepted": "accepted", "cancel": "cancelled"}
    sends = {decision: house.factory.held(doubted=-90_000, started=-90_030, opened=-80_000) for decision in ends}
    house.commit()
    browser = house.browser("operator")
    for decision, send in sends.items():
        assert decide(browser, send, decision) == 303
        assert 'role="status"' in browser.get(f"/sends/{send}").text
    states = dict(
        house.rows(
            "select s.id, coalesce(w.state::text, s.state::text) from sendonce.sends s"
            " left join sendonce.work w on w.send_id = s.id"
        )
    )
    assert states == {send: ends[decision] for decision, send in sends.items()}
    made = house.rows("select decision::text, reason, user_id from sendonce.decisions order by id")
    assert made == [(decision, "The provider's log shows nothing", house.people["operator"]) for decision in ends]
    audited = house.rows("select action from sendonce.audit where action like 'held.%%' order by id")
    assert audited == [(f"held.{decision}",) for decision in ends]


def test_a_decision_needs_a_choice_and_a_reason(house: House) -> None:
    send = house.factory.held()
    house.commit()
    browser = house.browser("operator")
    assert decide(browser, send, "cancel", reason="  ") == 409
    assert decide(browser, send, "") == 422
    assert house.rows("select state::text from sendonce.work") == [("held",)]


def test_of_two_people_at_once_the_second_is_told_who_was_first(house: House) -> None:
    send = house.factory.held()
    house.commit()
    first, second = house.browser("operator"), house.browser("admin")
    theirs = form(second, send)
    assert decide(first, send, "cancel", "Customer has it already") == 303
    response = second.post(f"/held/{send}", decision="mark_accepted", reason="I saw it", **theirs)
    assert response.status_code == 409
    assert "somebody decided already" in response.text
    assert "The operator" in response.text
    assert "Customer has it already" in response.text
    assert house.rows("select decision::text from sendonce.decisions") == [("cancel",)]


def test_a_decision_on_old_evidence_is_refused(house: House) -> None:
    send = house.factory.held()
    house.commit()
    browser = house.browser("operator")
    hidden = form(browser, send)
    with house.database.transaction() as connection:
        connection.execute("update sendonce.work set evidence = evidence + 1")
    assert send_form(browser, send, hidden, "cancel", "old news") == 409
    assert decide(browser, send, "cancel", "looked again") == 303


def test_a_decision_is_told_in_the_words_of_its_button(house: House) -> None:
    send = house.factory.held(doubted=-90_000, started=-90_030, opened=-80_000)
    house.commit()
    browser = house.browser("operator")
    page = browser.get(f"/held/{send}").text
    assert "You have seen that Resend took it." in page
    assert "once, although an attempt was never answered" in page
    assert decide(browser, send, "resend") == 303
    assert "decided <strong>submit it again</strong>" in browser.get(f"/held/{send}").text
    audited = house.browser("admin").get("/audit").text
    assert "held: submit again" in audited
    assert "waives: <bdi>ambiguous</bdi>" in audited


def test_a_form_decides_only_about_the_send_of_its_own_page(house: House) -> None:
    send, other = house.factory.held(), house.factory.held()
    house.commit()
    browser = house.browser("operator")
    theirs = form(browser, other)
    response = browser.post(f"/held/{send}", decision="cancel", reason="because", **theirs)
    assert response.status_code == 409
    assert "belongs to another send" in response.text
    assert house.rows("select count(*) from sendonce.work where state = 'held'") == [(2,)]
    assert house.rows("select count(*) from sendonce.decisions") == [(0,)]


def test_a_form_of_a_hold_that_is_over_decides_nothing_about_the_next_one(house: House) -> None:
    send = house.factory.held(doubted=-90_000, started=-90_030, opened=-80_000)
    house.commit()
    browser = house.browser("operator")
    stale = form(browser, send)
    assert decide(browser, send, "resend") == 303
    with house.database.transaction() as connection:
        moves.hold(
            connection, Who(By.RECONCILE), [Target(send_id=send, reason=Reason.KEY_ENDED, waives=("ambiguous",))]
        )
    response = browser.post(f"/held/{send}", decision="cancel", reason="because", **stale)
    assert response.status_code == 409
    assert "not held any more" in response.text
    assert house.rows("select state::text from sendonce.work") == [("held",)]


@pytest.mark.parametrize("wrong", ["9" * 30, "٣", "-1", "", "1; drop", "9" * 5000])
def test_a_damaged_form_is_told_so(house: House, wrong: str) -> None:
    send = house.factory.held()
    house.commit()
    browser = house.browser("operator")
    good = form(browser, send)
    for name in ("hold_id", "evidence"):
        response = browser.post(f"/held/{send}", decision="cancel", reason="because", **{**good, name: wrong})
        assert response.status_code == 400
    assert house.rows("select state::text from sendonce.work") == [("held",)]


@pytest.mark.parametrize("after", ["x", "2026-01-01T00:00:00~1", "2026-01-01T00:00:00+00:00~" + "9" * 30])
def test_a_damaged_link_to_the_next_page_is_told_so(house: House, after: str) -> None:
    house.factory.held()
    house.commit()
    response = house.browser("operator").get("/held", query={"after": after})
    assert response.status_code == 400
    assert "start from the first page" in response.text


def test_a_send_that_was_cancelled_while_its_call_ran_is_not_offered_to_be_submitted_again(house: House) -> None:
    send = house.factory.held(doubted=-90_000, started=-90_030, opened=-80_000)
    house.factory.connection.execute("update sendonce.work set cancel_reason = 'cancelled_by_person'")
    house.commit()
    browser = house.browser("operator")
    page = browser.get(f"/held/{send}").text
    assert "cancelled while its call was running" in page
    assert 'value="resend"' not in page
    assert "It was cancelled before" in browser.get(f"/sends/{send}").text
    hidden = form(browser, send)
    refused = browser.post(f"/held/{send}", decision="resend", reason="because", **hidden)
    assert refused.status_code == 409
    assert "cannot be submitted again" in refused.text
    assert house.rows("select state::text from sendonce.work") == [("held",)]
    assert decide(browser, send, "cancel") == 303
    assert house.rows("select state::text from sendonce.sends") == [("cancelled",)]


def test_a_hold_without_attempt_offers_only_release_or_cancel(house: House) -> None:
    send = house.factory.held_late()
    house.commit()
    page = house.browser("operator").get(f"/held/{send}").text
    assert "Release it" in page
    assert "It is submitted once, although it is late." in page
    assert 'value="mark_accepted"' not in page


def test_what_may_still_be_running_cannot_be_released_yet(house: House) -> None:
    send = house.factory.held()
    house.factory.connection.execute(
        "update sendonce.work set settled_after = %s", (datetime.now(UTC) + timedelta(hours=1),)
    )
    house.commit()
    browser = house.browser("operator")
    page = browser.get(f"/held/{send}").text
    assert re.search(r'value="resend"[^>]*disabled', page)
    assert decide(browser, send, "resend") == 409


def test_the_queue_goes_page_by_page(house: House) -> None:
    for number in range(55):
        house.factory.held(key=f"k{number:02}", opened=1832 + number)
    house.commit()
    browser = house.browser("operator")
    first = browser.get("/held").text
    assert "k00" in first
    assert "k54" not in first
    (newer,) = re.findall(r'href="(/held\?after=[^"]+)"', first)
    assert "k54" in browser.get(newer).text


# ── many at once ─────────────────────────────────────────────────────────────────────────────────────────────────────


def previewed(browser: Browser, which: str, decision: str, **fields: str) -> str:
    """The address of the preview."""
    answer = browser.post("/held/proposals", which=which, decision=decision, **fields)
    assert answer.status_code == 303
    return answer.headers["Location"]


def carry_out(house: House) -> None:
    """What the worker does."""
    while True:
        with house.database.transaction() as connection:
            if not proposals.carry_out(connection):
                return


def test_all_that_fit_are_decided_together_after_their_count_was_restated(house: House) -> None:
    house.factory.stream("welcome")
    sends = [house.factory.held(key=f"k{n}", opened=1832 + n) for n in range(3)]
    other = house.factory.held(key="other", mailstream="welcome")
    house.commit()
    browser = house.browser("operator")
    page = browser.get("/held", query={"mailstream": "receipts"}).text
    assert "k0" in page
    assert "other" not in page
    where = previewed(browser, "all", "cancel", mailstream="receipts")
    page = browser.get(where).text
    assert "Cancel 3 held sends?" in page
    assert "<bdi>receipts</bdi> <span" in page
    assert browser.post(where, act="propose", reason=" ").status_code == 409
    assert browser.post(where, act="propose", reason="the sale is over").status_code == 303
    assert "0 of 3 so far" in browser.get(where).text
    assert "The operator" in browser.get("/held").text
    carry_out(house)
    page = browser.get(where).text
    assert "Cancel 3 held sends: 3 decided" in page
    assert all(f"/sends/{send}" in page for send in sends)
    assert "the sale is over" in browser.get(f"/sends/{sends[0]}").text
    assert house.rows("select send_id from sendonce.work") == [(other,)]
    assert "held: propose" in house.browser("admin").get("/audit").text


def test_picked_ones_are_decided_and_what_changed_meanwhile_is_listed(house: House) -> None:
    send, other = house.factory.held(key="k1"), house.factory.held(key="k2")
    house.commit()
    browser = house.browser("operator")
    picks = dict(re.findall(r'value="(\d+~\d+)" aria-label="Select (k\d)"', browser.get("/held").text))
    (pick,) = [value for value, key in picks.items() if key == "k1"]
    where = previewed(browser, "picked", "mark_accepted", pick=pick)
    assert decide(house.browser("admin"), send, "cancel", "no longer wanted") == 303
    browser.post(where, act="propose", reason="seen at the provider")
    carry_out(house)
    page = browser.get(where).text
    assert "Count 1 held send as accepted: 0 decided, 1 left as it was" in page
    assert "somebody decided already" in page
    assert house.rows("select send_id from sendonce.work") == [(other,)]


def test_a_second_person_agrees_and_never_the_first(house: House) -> None:
    house.factory.connection.execute("update sendonce.mailstreams set second_person = true")
    send = house.factory.held(doubted=-90_000, started=-90_030, opened=-80_000)
    house.commit()
    first, second = house.browser("operator"), house.browser("admin")
    assert "a second person has to agree" in first.get(f"/held/{send}").text
    assert decide(first, send, "resend", "they wait for it") == 303
    (where,) = re.findall(r'href="(/held/proposals/[0-9a-f-]{36})"', first.get("/held").text)
    own = first.get(where).text
    assert "Withdraw" in own
    assert 'value="agree"' not in own
    assert first.post(where, act="agree").status_code == 409
    assert "they wait for it" in second.get(where).text
    assert second.post(where, act="agree").status_code == 303
    carry_out(house)
    assert "The admin agreed" in first.get(f"/sends/{send}").text
    assert house.rows("select state::text from sendonce.work") == [("pending",)]


def test_nothing_chosen_and_nothing_that_fits_is_told(house: House) -> None:
    house.factory.held_late(key="k1")
    house.commit()
    browser = house.browser("operator")
    for which, decision, told in (
        ("picked", "cancel", "Select the sends first."), ("all", "", "Choose what is to become of them."),
        ("all", "mark_accepted", "none of them allows this decision"),
    ):  # fmt: skip
        assert previewed(browser, which, decision) == "/held"
        assert told in browser.get("/held").text
    assert browser.post("/held/proposals", which="picked", decision="cancel", pick="1~x").status_code == 400


def test_a_preview_is_its_makers_alone(house: House) -> None:
    house.factory.held()
    house.commit()
    where = previewed(house.browser("operator"), "all", "cancel")
    assert house.browser("admin").get(where).status_code == 404


def test_the_page_tells_how_earlier_attempts_that_failed_so_turned_out(house: House) -> None:
    for _ in range(3):
        house.factory.event(house.factory.unknown(), "delivered", occurred=40)
    send = house.factory.held()
    house.commit()
    page = house.browser("operator").get(f"/held/{send}").text
    assert "3 of 3</strong> had been taken" in page
    assert "95 % sure: 43.9 % to 100 %" in page
    assert "1 more was never heard of" in page
    where = previewed(browser := house.browser("operator"), "all", "resend")
    assert "3 of 3</strong> had been taken" in browser.get(where).text
