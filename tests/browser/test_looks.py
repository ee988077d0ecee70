"""Every page in light and dark, wide and narrow: axe finds nothing, nothing overflows, the browser reports nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from psycopg.types.json import Jsonb

from dashboard.ledger import proposals
from dashboard.ledger.holds import HoldFilter
from dashboard.ledger.proposals import Proposal
from dashboard.lifecycle import Decision, EventType
from tests.browser.conftest import Visit
from tests.factories import at
from tests.web.conftest import House

HOSTILE = "W" * 120 + "<img src=x onerror=alert(1)>\N{RIGHT-TO-LEFT OVERRIDE}evil\N{FOX FACE}"


@pytest.fixture
def pages(house: House) -> list[str]:
    """The paths of all pages, with something of everything in them."""
    make = house.factory
    for some in (make.pending, make.submitting, make.unknown, make.failed, make.suppressed, make.cancelled):
        some()
    sends = [
        make.held(key="k" * 255), make.held_late(),
        make.accepted(key="<b>" * 80, recipient=HOSTILE, trigger=HOSTILE),
    ]  # fmt: skip
    make.duplicate(sends[-1], when=30)
    make.event(sends[-1], EventType.BOUNCED, occurred=9, bounce_class="hard", reason=HOSTILE)
    make.delivery(sends[-1], "bounced", when=9)
    for number in range(60):
        make.duplicate(sends[-1], when=40 + number, trigger_id=f"{HOSTILE}{number}")
        make.event(sends[-1], EventType.OPENED, occurred=2_000 + number)
    make.event(sends[-1], EventType.DELIVERED, occurred=-7, received=3)
    make.note(sends[-1], HOSTILE * 3, ticket=HOSTILE[:60])
    make.add(
        "views", workspace_id=make.workspace, list="sends", name=HOSTILE[:60], filters=Jsonb({"state": "failed"}),
        user_id=make.person,
    )  # fmt: skip
    waiting = make.pending()
    make.accepted(key="again", recipient=HOSTILE, message_id="m2", trigger="evt_2")
    make.add(
        "dead_letters", workspace_id=make.workspace, source="outbox", reason=HOSTILE, payload=b"", outbox_id=make.worker
    )
    make.add("workers", id=make.person, name="host-2:1:ab", version="1", loops=["relay"])
    findings = [
        {"what": "spf", "verdict": verdict, "words": HOSTILE, "about": HOSTILE, "rule": "RFC 7208", "publish": HOSTILE}
        for verdict in ("good", "weak", "wrong", "unknown")
    ]
    make.add(
        "account_checks", account_id=make.account, checked_at=at(0), broke_at=at(0), asked_at=at(1),
        findings=Jsonb(findings),
    )  # fmt: skip
    house.commit()
    with house.database.transaction() as connection:
        drafts = [
            proposals.preview(
                connection, workspace_id=house.workspace, user_id=house.people["admin"], decision=Decision.CANCEL,
                chosen=HoldFilter(),
            )
            for _ in range(3)
        ]  # fmt: skip
        ids = [draft.id for draft in drafts if isinstance(draft, Proposal)]
        connection.execute("update sendonce.proposals set second_person = 'x' where id = %s", (ids[1],))
        for id in ids[1:]:
            proposals.propose(
                connection, workspace_id=house.workspace, proposal_id=id, user_id=house.people["admin"], reason=HOSTILE
            )
    fixed = [
        "/", "/sends", "/sends?state=cancelled&verdict=mismatch", "/held", "/held?mailstream=receipts",
        "/held/proposals",
        *(f"/held/proposals/{id}" for id in ids), "/overview", "/operations", "/operations/accounts",
        "/operations/accounts/main/check", "/operations/dead-letters", "/operations/suspects", "/audit",
    ]  # fmt: skip
    return [
        *fixed,
        *(f"/sends/{send}" for send in (*sends, waiting)),
        f"/sends/{waiting}/cancel",
        f"/held/{sends[0]}",
        f"/sends/{sends[0]}/message",
        f"/sends/{sends[-1]}/rows/deliveries",
        f"/sends/{sends[-1]}/rows/moves",
        "/sends?state=failed",
        "/docs",
    ]


ON_A_PHONE = ("target-size", "scrollable-region-focusable", "color-contrast")
"""The rules whose outcome depends on the width of the window."""


def test_no_page_has_anything_wrong(visit: Callable[..., Visit], pages: list[str]) -> None:
    window = visit()
    window.log_in("admin")
    window.search("evt_1")
    window.page.wait_for_url("**/lookups/*")
    pages.append(window.page.url.removeprefix(window.address))
    window.search("evt_l")
    window.page.wait_for_url(lambda url: "/lookups/" in url and url != window.address + pages[-1])
    pages.append(window.page.url.removeprefix(window.address))
    pages.append("/login")
    found: dict[str, list[str]] = {}
    for path in pages:
        if path == "/login":
            window.page.context.clear_cookies()
        window.wear(width=1440, scheme="light")
        window.open(path)
        if path == "/overview":
            window.page.wait_for_selector(".chart .main-svg")
        wrong = window.axe()
        window.wear(width=1440, scheme="dark")
        wrong += window.axe("color-contrast")
        window.wear(width=390, scheme="light")
        wrong += window.axe(*ON_A_PHONE)
        if (pixels := window.overflow()) > 0:
            wrong.append(f"wider than the window by {pixels} pixels")
        if wrong:
            found[path] = wrong
    assert found == {}
    assert window.complaints == []


def test_lists_fit_at_every_width_and_a_recipient_stands_on_one_line(visit: Callable[..., Visit], house: House) -> None:
    for make in (house.factory.held, house.factory.accepted):
        make(recipient="recipient_104729")
        make(recipient="3f2b8c1e-9d4a-4c6e-b1f0-7a5d2e8c9b01", trigger="evt_3f2b8c1e-9d4a-4c6e-b1f0")
    house.commit()
    window = visit()
    window.log_in("operator")
    for path in (
        "/held",
        "/sends",
        "/operations",
        "/operations/accounts",
        "/operations/suspects",
    ):
        window.open(path)
        for width in (390, 600, 861, 900, 1000, 1180, 1181, 1280, 1440):
            window.wear(width=width, scheme="light")
            assert window.overflow() <= 0, f"{path} is too wide at {width}"
            edges = (
                "[...document.querySelectorAll('main .table')].map(t => t.scrollWidth - t.parentElement.clientWidth)"
            )
            assert max(window.page.evaluate(edges)) <= 0, f"{path} has a table that sticks out at {width}"
            broken = window.page.evaluate(
                "[...document.querySelectorAll('td.who bdi')].filter(id => id.textContent.length < 20"
                " && new Set([...id.getClientRects()].map(line => line.top)).size > 1).map(id => id.textContent)"
            )
            assert broken == [], f"{path} breaks a recipient's id at {width}"


def test_an_error_page_has_nothing_wrong_either(visit: Callable[..., Visit]) -> None:
    window = visit(color_scheme="dark")
    window.open("/nowhere")
    assert window.axe() == []
    window.log_in("support")
    window.open("/audit")
    assert window.page.get_by_role("heading", level=1).inner_text() == "This is not yours to open"
    assert window.axe() == []
