"""The charts in the real browser: a point leads to its sends, a picture can be kept, tables stay open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.web.conftest import House
from tests.web.test_overview import busy


def test_the_page_stands_before_the_chart_library_is_asked_for(house: House, visit: Callable[..., Visit]) -> None:
    window = visit()
    window.log_in("operator")
    asked: list[str] = []
    window.page.on("request", lambda request: asked.append(request.url))
    window.page.route("**/plotly-basic.min.js*", lambda route: None)  # never answered
    with window.page.expect_request("**/plotly-basic.min.js*"):
        window.page.goto(f"{window.address}/overview", wait_until="domcontentloaded")
    expect(window.page.get_by_role("heading", name="Stale claims")).to_be_visible()
    expect(window.page.locator("html.js")).to_have_count(1)
    expect(window.page.locator(".tile", has_text="Held now").locator("dd").first).to_have_text("0")
    library = next(i for i, url in enumerate(asked) if "plotly-basic" in url)
    assert all(".css" not in url and "/js/" not in url for url in asked[library:]), "it is the last that is asked for"


def test_a_click_on_a_point_opens_its_sends_and_a_chart_can_be_kept_as_a_picture(
    house: House, visit: Callable[..., Visit], tmp_path: Path
) -> None:
    busy(house.factory)
    house.commit()
    window = visit()
    page = window.page
    window.log_in("operator")
    window.open("/overview")
    plot = page.locator("#plot-duplicate_claim_rate")
    expect(plot.locator(".main-svg").first).to_be_visible()
    assert window.axe() == []
    with page.expect_download() as download:
        page.get_by_role("button", name="Stale claims as PNG").click()
    download.value.save_as(tmp_path / "stale.png")
    assert (tmp_path / "stale.png").read_bytes().startswith(b"\x89PNG")
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + box["height"] / 2)
    expect(plot.locator(".hoverlayer .legend, .hoverlayer .hovertext").first).to_be_visible()
    page.mouse.click(box["x"] + box["width"] * 0.7, box["y"] + box["height"] / 2)
    page.wait_for_url("**/sends?behind=delivered_again&since=*&until=*")
    expect(page.get_by_text("whose key arrived again")).to_be_visible()
    assert window.complaints == []


def test_a_table_that_was_opened_stays_open_when_the_page_refreshes(house: House, visit: Callable[..., Visit]) -> None:
    window = visit()
    page = window.page
    page.clock.install()
    window.log_in("support")
    window.open("/overview")
    table = page.locator("#twin-stale_claims")
    table.locator("summary").click()
    with page.expect_response("**/overview"):
        page.clock.fast_forward(10_500)
    expect(page.locator("#overview-figures")).not_to_have_class("htmx-request")
    expect(table).to_have_attribute("open", "")
