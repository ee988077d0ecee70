"""A support agent on the first day: from what a customer says to a reply in the clipboard."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.test_looks import HOSTILE
from tests.factories import Factory
from tests.web.conftest import House

Open = Callable[..., Visit]

GRANT = ["clipboard-read", "clipboard-write"]


def two_receipts(make: Factory) -> None:
    """Order 84721 was paid, and its invoice too: both sent the receipt."""
    make.accepted(key="receipt:order_84721", trigger="order_84721", content="same")
    times = {"asked": 60, "started": 62, "answered": 62.4}
    make.accepted(key="receipt:invoice_7", trigger="invoice_7", content="same", message_id="m2", **times)


def clipboard(page: Page) -> str:
    text: str = page.evaluate("navigator.clipboard.readText()")
    return text


def test_a_reply_is_pasted_in_under_six_clicks(house: House, visit: Open) -> None:
    two_receipts(house.factory)
    house.commit()
    window = visit(permissions=GRANT)
    page = window.page
    window.log_in("support")
    page.evaluate("addEventListener('pointerup', () => sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1)")
    expect(page.locator("#who")).to_be_focused()
    page.keyboard.type("order 84721")
    page.get_by_text("I got it twice").click()
    page.get_by_role("button", name="Investigate").click()
    page.wait_for_url("**/investigations/*")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Two sends with the same content were accepted")
    page.evaluate("addEventListener('pointerup', () => sessionStorage.clicks = Number(sessionStorage.clicks ?? 0) + 1)")
    page.get_by_role("button", name="Copy the reply").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert clipboard(page).startswith("You are right, and we are sorry: the same email was sent to you twice")
    assert int(page.evaluate("sessionStorage.clicks")) < 6
    assert window.complaints == []


def test_the_same_by_keyboard_only(house: House, visit: Open) -> None:
    two_receipts(house.factory)
    house.commit()
    window = visit(permissions=GRANT)
    page = window.page
    window.log_in("support")
    expect(page.locator("#who")).to_be_focused()
    page.keyboard.press("/")
    expect(page.locator("#q"), "the search box takes / while nothing is typed").to_be_focused()
    page.locator("#who").focus()
    page.keyboard.type("order_84721")
    page.keyboard.press("Tab")
    page.keyboard.type("30 Nov 2026 evening")  # in Tokyo, where it was 21:00
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    page.keyboard.press("Enter")
    page.wait_for_url("**/investigations/*")
    page.keyboard.press("c")
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert "on 30 November at 21:00 and on 30 November at 21:01" in clipboard(page)
    page.keyboard.press("j")
    page.keyboard.press("t")
    page.wait_for_url("**/sends/*")


def test_without_javascript_the_reply_is_there_to_mark_and_copy(house: House, visit: Open) -> None:
    two_receipts(house.factory)
    house.commit()
    window = visit(java_script_enabled=False)
    page = window.page
    window.log_in("support")
    page.fill("#who", "order_84721")
    page.get_by_text("I got it twice").click()
    page.get_by_role("button", name="Investigate").click()
    expect(page.get_by_text("You are right, and we are sorry")).to_be_visible()
    expect(page.get_by_role("button", name="Copy the reply")).to_be_hidden()


def test_no_page_of_a_complaint_has_anything_wrong(house: House, visit: Open) -> None:
    make = house.factory
    two_receipts(make)
    other = {"recipient": HOSTILE, "trigger": HOSTILE, "address": "x@example.com"}
    hostile = make.accepted(key="<b>" * 80, message_id="m3", **other)
    make.duplicate(hostile, when=30, trigger_id=HOSTILE, verdict="mismatch")
    for number in range(30):
        make.pending(key=f"{number}" + "k" * 240, **other)
    make.held(trigger="held")
    house.commit()
    window = visit()
    page = window.page
    window.log_in("operator")
    paths = []
    asked = [("order_84721", "twice"), (str(hostile), "never"), (HOSTILE, "unwanted"), ("held", "late"), ("x", "never")]
    for who, complaint in asked:
        window.open("/")
        page.fill("#who", who)
        page.check(f"input[value={complaint}]")
        page.get_by_role("button", name="Investigate").click()
        page.wait_for_url("**/investigations/*")
        paths.append(page.url.removeprefix(window.address))
    found: dict[str, list[str]] = {}
    for path in paths:
        if wrong := window.faults(path):
            found[path] = wrong
    assert found == {}
    assert window.complaints == []
