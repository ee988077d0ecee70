"""Cancelling a send from its trace: told before what it does, and after what it did."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from tests.web.conftest import Browser, House


def cancel(browser: Browser, send: UUID, reason: str = "The order was refunded") -> int:
    """Open the form, give a reason, send it."""
    assert browser.get(f"/sends/{send}/cancel").status_code == 200
    return browser.post(f"/sends/{send}/cancel", reason=reason).status_code


def test_a_waiting_send_is_cancelled_with_a_reason_and_an_audit_row(house: House) -> None:
    send = house.factory.pending()
    house.commit()
    browser = house.browser("operator")
    assert f'href="/sends/{send}/cancel"' in browser.get(f"/sends/{send}").text
    assert "Nothing has left" in browser.get(f"/sends/{send}/cancel").text
    assert cancel(browser, send) == 303
    page = browser.get(f"/sends/{send}").text
    assert "It is cancelled and will not be submitted again." in page
    assert "/cancel" not in page
    assert house.rows("select state::text, reason from sendonce.sends") == [("cancelled", "cancelled_by_person")]
    audited = house.rows("select user_id, subject, reason from sendonce.audit where action = 'cancel_send'")
    assert audited == [(house.people["operator"], str(send), "The order was refunded")]


def test_a_cancel_that_meets_a_call_says_before_and_after_that_it_may_be_too_late(house: House) -> None:
    send = house.factory.submitting()
    house.commit()
    browser = house.browser("operator")
    assert "the cancel comes too late" in browser.get(f"/sends/{send}/cancel").text
    assert cancel(browser, send) == 303
    page = browser.get(f"/sends/{send}").text
    assert "A call is running. If it is taken, the cancel comes too late" in page
    assert "too late if it is taken, else it becomes cancelled" in page
    assert f"/sends/{send}/cancel" not in page, "it is cancelled as far as can be"
    assert "cancelled already" in browser.get(f"/sends/{send}/cancel").text
    assert house.rows("select state::text, cancel_reason, cancelled_by from sendonce.work") == [
        ("claimed", "cancelled_by_person", house.people["operator"])
    ]


def test_beside_an_unanswered_attempt_it_says_that_the_mail_may_have_left(house: House) -> None:
    send = house.factory.unknown()
    house.commit()
    browser = house.browser("operator")
    assert "if that one was taken, the customer has it all the same" in browser.get(f"/sends/{send}/cancel").text
    assert cancel(browser, send) == 303
    assert "it may have left" in browser.get(f"/sends/{send}").text


def test_a_held_send_is_decided_on_its_own_page(house: House) -> None:
    send = house.factory.held()
    house.commit()
    browser = house.browser("operator")
    assert browser.get(f"/sends/{send}/cancel").headers["Location"] == f"/held/{send}"
    assert browser.post(f"/sends/{send}/cancel", reason="because").headers["Location"] == f"/held/{send}"
    assert house.rows("select state::text from sendonce.work") == [("held",)]


def test_what_came_to_its_end_meanwhile_is_told(house: House) -> None:
    send = house.factory.pending()
    ended = house.factory.accepted()
    house.commit()
    browser = house.browser("operator")
    assert f"/sends/{ended}/cancel" not in browser.get(f"/sends/{ended}").text
    assert "nothing to cancel" in browser.get(f"/sends/{ended}/cancel").text
    other = house.browser("admin")
    other.get(f"/sends/{send}/cancel")
    assert cancel(browser, send) == 303
    response = other.post(f"/sends/{send}/cancel", reason="me too")
    assert response.status_code == 409
    assert "Too late: it is cancelled already." in response.text


def test_it_needs_a_reason_a_form_of_ours_and_an_operator(house: House) -> None:
    send = house.factory.pending()
    house.commit()
    browser = house.browser("operator")
    assert cancel(browser, send, "  ") == 409
    browser.csrf = "forged"
    assert browser.post(f"/sends/{send}/cancel", reason="because").status_code == 400
    support = house.browser("support")
    assert "/cancel" not in support.get(f"/sends/{send}").text
    assert support.get(f"/sends/{send}/cancel").status_code == 403
    assert support.post(f"/sends/{send}/cancel", reason="because").status_code == 403
    assert house.rows("select state::text from sendonce.work") == [("pending",)]


@pytest.mark.parametrize("method", ["get", "post"])
def test_a_send_of_others_is_not_there(house: House, method: str) -> None:
    browser = house.browser("operator")
    assert getattr(browser, method)(f"/sends/{uuid4()}/cancel").status_code == 404
