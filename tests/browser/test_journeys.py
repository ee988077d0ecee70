"""What people do with the dashboard, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.factories import ADDRESS
from tests.web.conftest import House

Open = Callable[..., Visit]


def test_an_agent_finds_what_became_of_an_order(house: House, visit: Open) -> None:
    send = house.factory.accepted(trigger="evt_991")
    house.factory.duplicate(send, when=20)
    house.commit()
    window = visit()
    window.log_in("support")
    window.search("evt_991")
    page = window.page
    page.wait_for_url(f"{window.address}/sends/{send}?by=trigger_id")
    expect(page.get_by_role("heading", level=1)).to_contain_text("21:00:02")  # Tokyo is nine hours ahead
    expect(page.locator("time").first).to_have_attribute("title", re.compile("UTC$"))
    expect(page.get_by_text("a•••@example.com")).to_be_visible()
    page.get_by_role("button", name="Reveal").click()
    expect(page.get_by_text(ADDRESS)).to_be_visible()
    assert page.url.endswith("by=trigger_id"), "only the address was swapped"
    assert window.complaints == []


def test_what_was_typed_is_nowhere_in_the_history(house: House, visit: Open) -> None:
    window = visit()
    window.log_in("support")
    requested: list[str] = []
    window.page.on("request", lambda request: requested.append(request.url))
    window.search("secret.person@example.com")
    window.page.wait_for_url("**/lookups/*")
    assert not [url for url in requested if "secret" in url]
    assert "secret.person" not in window.page.content()


def test_an_operator_decides_a_held_send(house: House, visit: Open) -> None:
    send = house.factory.held()
    house.commit()
    window = visit()
    window.log_in("operator")
    page = window.page
    page.get_by_role("link", name="Held").click()
    page.locator("a[data-row]").click()
    page.get_by_label("Cancel it").check()
    page.get_by_label("Why").fill("The customer has it already")
    page.get_by_role("button", name="Decide").click()
    page.wait_for_url(f"{window.address}/sends/{send}")
    expect(page.get_by_role("status").filter(has_text="It is cancelled")).to_be_visible()
    expect(page.locator(".verdict .badge")).to_have_text("cancelled")
    assert house.rows("select decision::text from sendonce.decisions") == [("cancel",)]
    assert window.complaints == []


def test_the_overview_draws_its_charts_and_follows_what_happens(house: House, visit: Open) -> None:
    window = visit()
    page = window.page
    page.clock.install()
    window.log_in("operator")
    window.open("/overview")
    expect(page.locator(".chart .main-svg").first).to_be_visible()
    held = page.locator(".tile", has_text="Held now").locator("dd").first
    expect(held).to_have_text("0")
    charts = page.locator(".chart")
    before = [charts.nth(number).bounding_box() for number in range(charts.count())]
    house.factory.held()
    house.commit()
    page.clock.fast_forward(10_500)
    expect(held).to_have_text("1")
    assert [charts.nth(number).bounding_box() for number in range(charts.count())] == before, "nothing jumps"
    assert page.locator(".chart .main-svg").count() >= charts.count(), "the charts are still drawn"
    assert window.complaints == []


def test_live_parts_wait_while_somebody_works_in_them(house: House, visit: Open) -> None:
    house.factory.unknown(key="first")
    house.commit()
    window = visit()
    page = window.page
    page.clock.install()
    window.log_in("operator")
    window.open("/operations")
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#operations-tables'))")
    page.clock.fast_forward(10_500)
    with page.expect_response("**/pulse"):
        page.clock.fast_forward(5_000)
    assert not [url for url in requested if url.endswith("/operations")]
    page.evaluate("getSelection().removeAllRanges()")
    with page.expect_response("**/operations"):
        page.clock.fast_forward(10_500)


def test_the_keyboard_is_enough(house: House, visit: Open) -> None:
    newer, older = house.factory.accepted(asked=60, key="k2"), house.factory.accepted(key="k1", message_id="m2")
    house.commit()
    window = visit()
    page = window.page
    window.log_in("support")
    window.open("/sends")
    page.keyboard.press("/")
    expect(page.locator("#q")).to_be_focused()
    page.locator("#q").blur()
    for key, expected in (("j", newer), ("j", older), ("j", older), ("k", newer), ("j", older)):
        page.keyboard.press(key)
        expect(page.locator(f'a[href="/sends/{expected}"]')).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    page.locator(f'a[href="/sends/{older}"]').focus()
    page.keyboard.press("t")
    page.wait_for_url(f"{window.address}/sends/{older}")


def test_filters_change_the_rows_and_the_address(house: House, visit: Open) -> None:
    house.factory.accepted(key="good-one")
    house.factory.failed(key="bad-one")
    house.commit()
    window = visit()
    page = window.page
    window.log_in("support")
    window.open("/sends")
    page.get_by_label("State").select_option("failed")
    expect(page.get_by_text("good-one")).to_have_count(0)
    expect(page.get_by_text("bad-one")).to_be_visible()
    page.wait_for_url(re.compile(r"state=failed"))
    page.reload()
    expect(page.get_by_label("State")).to_have_value("failed")
    expect(page.get_by_text("good-one")).to_have_count(0)


def test_everything_is_readable_and_usable_without_javascript(house: House, visit: Open) -> None:
    send = house.factory.held()
    house.commit()
    window = visit(java_script_enabled=False)
    page = window.page
    window.log_in("operator")
    window.search("evt_1")
    page.wait_for_url(f"{window.address}/sends/{send}?by=trigger_id")
    expect(page.locator("time").first).to_have_text("11:59:59")
    expect(page.locator(".copy").first).to_be_hidden()
    page.get_by_role("button", name="Reveal").click()
    expect(page.get_by_text(ADDRESS)).to_be_visible()
    window.open("/sends")
    page.get_by_label("State").select_option("held")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("a[data-row]")).to_have_count(1)
    window.open("/overview")
    page.get_by_text("As a table").first.click()
    expect(page.get_by_role("columnheader", name="From (UTC)").first).to_be_visible()
    window.open(f"/held/{send}")
    page.get_by_label("Count it as accepted").check()
    page.get_by_label("Why").fill("Seen in the provider's log")
    page.get_by_role("button", name="Decide").click()
    expect(page.locator(".verdict .badge")).to_have_text("accepted")


def test_what_is_found_while_typing_is_chosen_by_keyboard(house: House, visit: Open) -> None:
    older = house.factory.accepted(key="k1", trigger="order_84721")
    newer = house.factory.accepted(key="k2", trigger="order_84721", asked=60, message_id="m2")
    house.commit()
    window = visit()
    page = window.page
    window.log_in("support")
    window.open("/sends")
    requested: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.keyboard.press("/")
    page.keyboard.type("order_84721", delay=10)
    hits = page.locator(".ahead__hit")
    expect(hits).to_have_count(2)
    expect(page.locator("#search-ahead [role=status]")).to_have_text(re.compile("2 sends found"))
    assert window.axe() == []
    page.keyboard.press("ArrowDown")
    expect(hits.nth(0)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(hits.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#q")).to_be_focused()
    page.keyboard.press("Escape")
    expect(hits).to_have_count(0)
    page.keyboard.type(" ")
    expect(hits).to_have_count(2)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{window.address}/sends/{older}?by=trigger_id")
    assert not [url for url in requested if "order_84721" in url]
    assert str(newer) != str(older)
    assert window.complaints == []


def test_a_step_elsewhere_puts_away_what_was_found(house: House, visit: Open) -> None:
    house.factory.accepted(trigger="order_84721")
    house.commit()
    window = visit(width=390)
    page = window.page
    window.log_in("support")
    page.locator("#q").press_sequentially("order_84721")
    expect(page.locator(".ahead__hit")).to_have_count(1)
    assert window.overflow() <= 0
    page.get_by_role("heading", level=1).click(position={"x": 5, "y": 5}, force=True)
    expect(page.locator(".ahead__hit")).to_have_count(0)
    page.locator("#q").fill("84721")
    expect(page.locator(".ahead__hit")).to_have_count(1)
    page.locator("#q").fill("")
    expect(page.locator(".ahead__hit")).to_have_count(0)


def test_an_agent_keeps_the_ticket_and_finds_the_send_by_it(house: House, visit: Open) -> None:
    send = house.factory.accepted()
    house.commit()
    window = visit()
    page = window.page
    window.log_in("support")
    window.open(f"/sends/{send}")
    page.get_by_text("Add a ticket or a note").click()
    page.get_by_label("Ticket").fill("#ZD-4711")
    page.get_by_label("Note").fill("She forwards all mail\nto her assistant")
    page.get_by_role("button", name="Keep it").click()
    expect(page.locator(".notes__text")).to_have_text("She forwards all mail to her assistant")
    window.open("/")
    window.search("zd-4711")
    page.wait_for_url(f"{window.address}/sends/{send}?by=ticket")
    page.get_by_role("button", name="Remove this note").click()
    expect(page.locator(".notes__text")).to_have_count(0)
    assert window.complaints == []


def test_filters_are_saved_for_the_team_without_leaving_the_list(house: House, visit: Open) -> None:
    house.factory.failed(key="bad-one")
    house.commit()
    window = visit()
    page = window.page
    window.log_in("support")
    window.open("/sends")
    page.get_by_label("State").select_option("failed")
    page.get_by_label("Name of this view").fill("To be looked at")
    page.get_by_role("button", name="Save for the team").click()
    expect(page.get_by_role("link", name="To be looked at")).to_have_attribute("aria-current", "true")
    colleague = visit()
    colleague.log_in("operator")
    colleague.open("/sends")
    colleague.page.get_by_role("link", name="To be looked at").click()
    expect(colleague.page.get_by_text("bad-one")).to_be_visible()
    page.get_by_role("button", name="Remove the view To be looked at").click()
    expect(page.get_by_role("link", name="To be looked at")).to_have_count(0)


def test_what_is_folded_stays_unfolded_while_the_page_is_live(house: House, visit: Open) -> None:
    send = house.factory.unknown()
    met = {"verdict": "in_progress", "state_met": "unknown"}
    for number in range(9):
        house.factory.duplicate(send, when=40 + number, trigger_id=f"evt_{number}", **met)
    house.commit()
    window = visit()
    page = window.page
    page.clock.install()
    window.log_in("support")
    window.open(f"/sends/{send}")
    expect(page.get_by_text("evt_7")).to_be_hidden()
    page.get_by_text("Each of them").click()
    expect(page.get_by_text("evt_7")).to_be_visible()
    house.factory.duplicate(send, when=60, trigger_id="evt_later", **met)
    house.commit()
    with page.expect_response("**/pulse"):
        page.clock.fast_forward(15_500)
    expect(page.get_by_text("evt_7")).to_be_visible()
    page.get_by_text("Each of them").click()
    with page.expect_response(f"**/sends/{send}"):
        page.clock.fast_forward(5_500)
    expect(page.locator(".folded")).to_have_text("×10")


def test_the_evidence_opens_by_itself_and_fetches_nothing(house: House, visit: Open, tmp_path: Path) -> None:
    send = house.factory.accepted(key="k<img src=x onerror=alert(1)>")
    house.commit()
    window = visit()
    window.log_in("support")
    window.open(f"/sends/{send}")
    with window.page.expect_download() as download:
        window.page.get_by_role("link", name="Evidence").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    alone = visit(offline=True)
    alone.page.goto(file.as_uri())
    expect(alone.page.get_by_role("heading", level=1)).to_contain_text("Accepted by Resend once")
    expect(alone.page.get_by_text("k<img src=x onerror=alert(1)>", exact=True)).to_be_visible()
    assert alone.axe() == []
    assert alone.complaints == []
