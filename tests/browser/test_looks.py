"""Every page in light and dark, wide and narrow: axe finds nothing, nothing overflows, the browser reports nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard.lifecycle import EventType
from tests.browser.conftest import Visit
from tests.web.conftest import House

HOSTILE = "W" * 120 + "<img src=x onerror=alert(1)>\N{RIGHT-TO-LEFT OVERRIDE}evil\N{FOX FACE}"


@pytest.fixture
def pages(house: House) -> list[str]:
    """The paths of all pages, with something of everything in them."""
    make = house.factory
    sends = [
        make.pending(), make.submitting(), make.unknown(), make.held(key="k" * 255), make.held_late(), make.failed(),
        make.suppressed(), make.cancelled(), make.accepted(recipient=HOSTILE, trigger=HOSTILE),
    ]  # fmt: skip
    make.duplicate(sends[-1], when=30)
    make.event(sends[-1], EventType.BOUNCED, occurred=9, bounce_class="hard", reason=HOSTILE)
    make.delivery(sends[-1], "bounced", when=9)
    house.commit()
    fixed = ["/", "/sends", "/sends?state=cancelled&verdict=mismatch", "/held", "/overview", "/operations", "/audit"]
    return [*fixed, *(f"/sends/{send}" for send in sends), f"/held/{sends[3]}", f"/sends/{sends[0]}/message", "/docs"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_no_page_has_anything_wrong(
    house: House, visit: Callable[..., Visit], pages: list[str], width: int, scheme: str
) -> None:
    window = visit(width=width, color_scheme=scheme)
    window.open("/login")
    found = {"/login": window.axe()}
    window.log_in("admin")
    window.search("evt_1")
    window.page.wait_for_url("**/lookups/*")
    found["/lookups"] = window.axe()
    for path in pages:
        window.open(path)
        if path == "/overview":
            window.page.wait_for_selector(".chart .main-svg")
        found[path] = window.axe()
        assert window.overflow() <= 0, f"{path} is wider than the window"
    assert {path: violations for path, violations in found.items() if violations} == {}
    assert window.complaints == []


def test_an_error_page_has_nothing_wrong_either(visit: Callable[..., Visit]) -> None:
    window = visit(color_scheme="dark")
    window.open("/nowhere")
    assert window.axe() == []
    window.log_in("support")
    window.open("/audit")
    assert window.page.get_by_role("heading", level=1).inner_text() == "This is not yours to open"
    assert window.axe() == []
