"""Every page in light and dark, wide and narrow: axe finds nothing, nothing overflows, the browser reports nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from psycopg.types.json import Jsonb

from dashboard.ledger import proposals
from dashboard.ledger.alert_rules import add_defaults
from dashboard.ledger.holds import HoldFilter
from dashboard.ledger.proposals import Proposal
from dashboard.lifecycle import Decision, EventType
from tests.browser.conftest import Visit
from tests.factories import NOON, at
from tests.web.conftest import House

HOSTILE = "W" * 120 + "<img src=x onerror=alert(1)>\N{RIGHT-TO-LEFT OVERRIDE}evil\N{FOX FACE}"
LONG = "a-name-as-long-as-any-name-may-be-although-nobody-gives-one-"

FILES = {
    "audit.export", "evidence.pack", "investigate.facts_as_json", "overview.export", "overview.figures",
    "send.message_html", "sends.export", "static", "health.alive", "health.metrics", "health.ready", "webhooks.probe",
    "webhooks.probe_replies",
}  # fmt: skip
"""What is fetched and is no page of ours, besides the API."""

ELSEWHERE = {"investigate.answer"}
"""Pages that ``test_complaints.py`` looks at."""


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
    event = make.event(sends[-1], EventType.BOUNCED, occurred=9, bounce_class="hard", reason=HOSTILE)
    make.delivery(sends[-1], "bounced", when=9)
    for number in range(25):
        make.duplicate(sends[-1], when=40 + number, trigger_id=f"{HOSTILE}{number}")
        make.event(sends[-1], EventType.OPENED, occurred=2_000 + number)
    make.event(sends[-1], EventType.DELIVERED, occurred=-7, received=3)
    for number in range(25):
        make.reply(sends[-1], automatic=number != 7, when=3_000 + number)
    reply = make.reply(sends[-1], text=HOSTILE * 9, sender=f"{'x' * 60}@{'long.' * 20}example", when=4_000)
    make.note(sends[-1], HOSTILE * 3, ticket=HOSTILE[:60])
    make.add(
        "views", workspace_id=make.workspace, list="sends", name=HOSTILE[:60], filters=Jsonb({"state": "failed"}),
        user_id=make.person,
    )  # fmt: skip
    waiting = make.pending()
    make.accepted(key="again", recipient=HOSTILE, message_id="m2", trigger="evt_2")
    _operate(house)
    house.commit()
    ids = _decide_together(house)
    return [
        "/", "/sends", "/sends?state=cancelled&verdict=mismatch", "/sends?state=failed",
        "/held", "/held?mailstream=receipts", f"/held/{sends[0]}",
        "/held/proposals", *(f"/held/proposals/{id}" for id in ids),
        f"/overview?mailstream={LONG}s&account={LONG}a",
        "/operations", "/operations/accounts", "/operations/accounts/main/check",
        "/operations/dead-letters", "/operations/suspects",
        "/alerts", "/alerts/rule", "/alerts/rule?name=outbox-stuck", "/alerts/channel",
        "/audit", "/audit?before=0", "/pulse",
        *(f"/sends/{send}" for send in (*sends, waiting)),
        f"/sends/{waiting}/cancel", f"/sends/{sends[0]}/message", f"/sends/{sends[-1]}/events/{event}",
        f"/sends/{sends[-1]}/replies/{reply}",
        f"/sends/{sends[-1]}/rows/deliveries", f"/sends/{sends[-1]}/rows/moves",
        "/replies", "/replies/one_copy", "/docs", "/docs/problems/mismatch", "/nowhere",
    ]  # fmt: skip


def _operate(house: House) -> None:
    """Workers, accounts, dead letters, markers, and alerts with all that belongs to them."""
    make = house.factory
    make.stream(f"{LONG}s")
    make.add("accounts", workspace_id=make.workspace, name=f"{LONG}a", provider="smtp", troubles=2)
    make.add("workers", id=make.person, name=f"{LONG}.internal:1:ab", version="1", loops=["relay"], drain_asked_at=NOON)
    make.add(
        "dead_letters", workspace_id=make.workspace, source="outbox", reason=HOSTILE, payload=b"", outbox_id=make.worker
    )
    findings = [
        {"what": "spf", "verdict": verdict, "words": HOSTILE, "about": HOSTILE, "rule": "RFC 7208", "publish": HOSTILE}
        for verdict in ("good", "weak", "wrong", "unknown")
    ]
    make.add(
        "account_checks", account_id=make.account, checked_at=at(0), broke_at=at(0), asked_at=at(1),
        findings=Jsonb(findings),
    )  # fmt: skip
    for kind in ("deploy", "incident"):
        make.add(
            "markers", workspace_id=make.workspace, kind=kind, title=HOSTILE, at=datetime.now(UTC), user_id=make.person
        )
    add_defaults(make.connection, make.workspace)
    make.add("alert_silences", workspace_id=make.workspace, until=NOON + timedelta(days=90_000), reason=HOSTILE)
    channel = make.add(
        "alert_channels", workspace_id=make.workspace, name=f"{LONG}c", kind="email", shown="a•••@example.com, " * 20,
        target=b"",
    )  # fmt: skip
    for closed in (None, NOON + timedelta(hours=2)):
        alert = make.add(
            "alerts", workspace_id=make.workspace, rule="outbox-stuck", measure="outbox_age", severity="critical",
            mailstream=f"{LONG}s", threshold=120, value=200, worst=123_456_789, opened_at=NOON, closed_at=closed,
        )  # fmt: skip
        make.add(
            "alert_notices", workspace_id=make.workspace, alert_id=alert, channel_id=channel, kind="fired", tries=3,
            last_error="it answered 503",
        )  # fmt: skip


def _decide_together(house: House) -> list[str]:
    """Three decisions about all held sends: one is looked at, one waits for a second person, one is carried out."""
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
    return [str(id) for id in ids]


def test_no_page_has_anything_wrong(visit: Callable[..., Visit], pages: list[str], house: House) -> None:
    window = visit()
    window.log_in("admin")
    window.search("evt_1")
    window.page.wait_for_url("**/lookups/*")
    pages.append(window.page.url.removeprefix(window.address))
    window.search("evt_l")
    window.page.wait_for_url(lambda url: "/lookups/" in url and url != window.address + pages[-1])
    pages.append(window.page.url.removeprefix(window.address))
    found: dict[str, list[str]] = {}
    for path in [*pages, "/login"]:
        if path == "/login":
            window.page.context.clear_cookies()
        if wrong := window.faults(path, once=".chart .main-svg" if path.startswith("/overview") else None):
            found[path] = wrong
    assert found == {}
    assert [said for said in window.complaints if "404" not in said] == []
    _nothing_is_left_out(house, {*pages, "/login"})


def _nothing_is_left_out(house: House, paths: set[str]) -> None:
    """A new page has to be among those that are looked at."""
    routes = house.app.url_map.bind("127.0.0.1")
    visited = {
        routes.match(path.partition("?")[0])[0] for path in paths if path != "/nowhere"
    }  # fmt: skip
    there = {rule.endpoint for rule in house.app.url_map.iter_rules() if "GET" in (rule.methods or ())}
    api = {endpoint for endpoint in there if endpoint.startswith("api_")} - {"api_docs.page", "api_docs.problem"}
    assert there - api - FILES - ELSEWHERE - visited == set()


def test_lists_fit_at_every_width_and_a_recipient_stands_on_one_line(visit: Callable[..., Visit], house: House) -> None:
    for make in (house.factory.held, house.factory.accepted):
        make(recipient="recipient_104729")
        make(recipient="3f2b8c1e-9d4a-4c6e-b1f0-7a5d2e8c9b01", trigger="evt_3f2b8c1e-9d4a-4c6e-b1f0")
    house.commit()
    window = visit()
    window.log_in("operator")
    for path in ("/held", "/sends", "/operations", "/operations/accounts", "/operations/suspects", "/alerts"):
        window.open(path)
        for width in (390, 600, 861, 900, 1000, 1180, 1181, 1280, 1440):
            window.wear(width=width, scheme="light")
            assert window.too_wide(width) == [], path
            broken = window.page.evaluate(
                "[...document.querySelectorAll('td.who bdi')].filter(id => id.textContent.length < 20"
                " && new Set([...id.getClientRects()].map(line => line.top)).size > 1).map(id => id.textContent)"
            )
            assert broken == [], f"{path} breaks a recipient's id at {width}"
    window.open("/audit")
    assert window.page.get_by_role("heading", level=1).inner_text() == "This is not yours to open"
    assert window.axe() == []
