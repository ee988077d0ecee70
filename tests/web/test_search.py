"""The search box: typed ahead, what is close, and going on to older sends; and what it keeps to itself."""

from __future__ import annotations

import re

import pytest

from tests.factories import ADDRESS
from tests.web.conftest import House


def test_what_is_typed_is_answered_ahead_with_the_reading_and_is_not_filed(house: House) -> None:
    send = house.factory.accepted(key="receipt:order_84721:v3", trigger="order_84721", recipient="r1")
    house.factory.note(send, ticket="ZD-4711")
    house.commit()
    browser = house.browser("support")
    ahead = {
        text: browser.post("/search/ahead", htmx=True, q=text).text
        for text in ("order_84721", "84721", ADDRESS, "zd-4711", "your receipt", "receipt:ord", "or", "order_9")
    }
    found = {text: re.findall(r"as ([^<·]+) ·", answer) for text, answer in ahead.items()}
    assert found == {
        "order_84721": ["what triggered it"], "84721": ["the number in an id"], ADDRESS: ["an address"],
        "zd-4711": ["a ticket"], "your receipt": ["a subject"], "receipt:ord": ["the start of a key"], "or": [],
        "order_9": [],
    }  # fmt: skip
    assert "<html" not in ahead[ADDRESS]
    assert ADDRESS not in ahead[ADDRESS]
    assert house.rows("select count(*) from sendonce.lookups") == [(0,)]


def test_what_is_picked_while_typing_opens_its_trace_and_is_filed(house: House) -> None:
    sends = [house.factory.accepted(message_id=f"m{n}") for n in range(2)]
    house.commit()
    browser = house.browser("support")
    assert browser.post("/search", q=ADDRESS, pick=str(sends[0])).headers["Location"] == f"/sends/{sends[0]}?by=address"
    assert house.rows("select count(*) from sendonce.lookups") == [(1,)]
    for odd in ("0b6e2f1c-0000-5000-8000-000000000001", "x", "'"):
        assert browser.post("/search", q=ADDRESS, pick=odd).headers["Location"].startswith("/lookups/"), odd


def test_a_number_alone_opens_the_trace_of_its_order(house: House) -> None:
    send = house.factory.accepted(key="receipt:order_84721:v3", trigger="evt_991")
    house.commit()
    answer = house.browser("support").post("/search", q="order 84721")
    assert answer.headers["Location"] == f"/sends/{send}?by=number"


def test_a_mistyped_id_is_answered_with_what_is_close(house: House) -> None:
    send = house.factory.accepted(trigger="order_84721")
    house.commit()
    browser = house.browser("support")
    page = browser.get(browser.post("/search", q="order_84712").headers["Location"]).text
    assert "Nothing is called exactly that." in page
    assert f"/sends/{send}?by=slip" in page
    assert browser.post("/search/ahead", htmx=True, q="order_84712").text.count("<button") == 0, "guesses come last"


def test_one_goes_on_to_older_sends_by_an_opaque_link(house: House) -> None:
    for number in range(60):
        house.factory.accepted(asked=number, key=f"k{number:02}", message_id=f"m{number}")
    house.commit()
    browser = house.browser("support")
    lookup = browser.post("/search", q=ADDRESS).headers["Location"]
    first = browser.get(lookup).text
    assert "k59" in first
    assert "k05" not in first
    (older,) = re.findall(r'href="(/lookups/[^"]+before=[^"]+)"', first)
    assert "example.com" not in older
    second = browser.get(older.replace("&amp;", "&")).text
    assert "k05" in second
    assert "k59" not in second
    assert browser.get(f"{lookup}?before=x").status_code == 400
    assert browser.get(f"{lookup}?before=2026-01-01~{'0' * 32}").status_code == 400
    assert browser.get(f"{lookup}?reading=x").status_code == 400


@pytest.mark.parametrize("text", ["Joan <joan@example.com>", "mailto:joan@example.com", "joan@exam", "joan@exam.com."])
def test_an_address_is_masked_however_it_was_typed(house: House, text: str) -> None:
    browser = house.browser("support")
    page = browser.get(browser.post("/search", q=text).headers["Location"]).text
    assert "j•••@exam" in page
    assert "joan@" not in page
    assert "joan@" not in browser.get("/").text


def test_an_id_that_is_an_address_is_masked_on_every_page(house: House) -> None:
    send = house.factory.held(key="receipt:1", recipient="grace@example.com", trigger="of joan@example.com")
    house.commit()
    browser = house.browser("operator")
    lookup = browser.post("/search", q="receipt").headers["Location"]
    for path in (
        f"/sends/{send}",
        "/sends",
        lookup,
        "/held",
        f"/held/{send}",
        f"/sends/{send}/evidence.html",
        "/sends.csv",
    ):
        page = browser.get(path).text
        assert "grace@" not in page, path
        assert "joan@" not in page, path
