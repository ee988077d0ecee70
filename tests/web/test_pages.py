"""What the pages show, and what they keep to themselves."""

from __future__ import annotations

import csv
import io
import re
from datetime import UTC, datetime

import pytest

from dashboard.ledger.audit import Action
from dashboard.lifecycle import EventType
from tests.factories import ADDRESS
from tests.web.conftest import House

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}"


def test_what_was_typed_reaches_no_url_and_lies_encrypted(house: House) -> None:
    browser = house.browser("support")
    response = browser.post("/search", q="nobody@example.com")
    assert re.fullmatch(r"/lookups/[\w-]{22}", response.headers["Location"])
    page = browser.get(response.headers["Location"])
    assert "n•••@example.com" in page.text
    assert "nobody@" not in page.text
    ((stored,),) = house.rows("select query from sendonce.lookups")
    assert b"nobody" not in bytes(stored)  # type: ignore[call-overload]
    assert "n•••@example.com" in browser.get("/").text, "among what one looked up last"


def test_one_exact_hit_goes_straight_to_its_trace(house: House) -> None:
    send = house.factory.accepted(trigger="evt_991")
    house.commit()
    browser = house.browser("support")
    assert browser.post("/search", q=" evt_991 ").headers["Location"] == f"/sends/{send}?by=trigger_id"
    assert "Found by" in browser.get(f"/sends/{send}?by=trigger_id").text


def test_several_hits_are_listed_under_the_reading_that_matched(house: House) -> None:
    sends = [house.factory.accepted(recipient="recipient_7", message_id=f"m{n}") for n in range(2)]
    house.commit()
    browser = house.browser("support")
    page = browser.get(browser.post("/search", q=ADDRESS).headers["Location"]).text
    assert "As an address" in page
    assert all(f"/sends/{send}" in page for send in sends)


def test_a_lookup_of_another_workspace_is_not_there(house: House) -> None:
    location = house.browser("support").post("/search", q="anything").headers["Location"]
    with house.database.transaction() as connection:
        connection.execute("update sendonce.lookups set workspace_id = gen_random_uuid()")
    assert house.browser("support").get(location).status_code == 404


def test_a_damaged_link_to_a_lookup_leads_nowhere(house: House) -> None:
    assert house.browser("support").get("/lookups/x%00y").status_code == 404


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_times_at_the_ends_of_the_calendar_are_shown_in_any_zone(house: House, zone: str) -> None:
    end = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    sends = [
        house.factory.accepted(triggered_at=datetime(1, 1, 1, tzinfo=UTC)),
        house.factory.accepted(triggered_at=end, due_at=end),
        house.factory.pending(key="k"),
    ]
    house.factory.connection.execute("update sendonce.sends set due_at = %s where key = 'k'", (end,))
    house.factory.connection.execute("update sendonce.work set due_at = %s, claim_at = %s", (end, end))
    house.commit()
    browser = house.browser("admin")
    browser.client.set_cookie("zone", zone)
    for path in (*(f"/sends/{send}" for send in sends), "/sends", "/overview", "/operations"):
        assert browser.get(path).status_code == 200


def test_a_search_for_nothing_stays_on_the_first_page(house: House) -> None:
    assert house.browser("support").post("/search", q="  ").headers["Location"] == "/"


def test_the_trace_opens_with_the_verdict_in_the_viewers_zone(house: House) -> None:
    send = house.factory.accepted()
    house.commit()
    browser = house.browser("support")
    assert "30 Nov 2026, 12:00:00 UTC" in browser.get(f"/sends/{send}").text
    browser.client.set_cookie("zone", "Asia/Tokyo")
    page = browser.get(f"/sends/{send}").text
    (verdict,) = re.findall(r"<h1>(.*?)</h1>", page)
    assert "21:00:02" in verdict
    browser.client.set_cookie("zone", "../../etc/passwd")
    assert "12:00:02" in browser.get(f"/sends/{send}").text


def test_a_trace_of_every_state_can_be_shown(house: House) -> None:
    make = house.factory
    sends = [
        make.pending(), make.claimed(), make.submitting(), make.unknown(), make.held(), make.held_late(),
        make.accepted(), make.failed(), make.suppressed(), make.cancelled(),
    ]  # fmt: skip
    house.commit()
    browser = house.browser("admin")
    for send in sends:
        response = browser.get(f"/sends/{send}")
        assert response.status_code == 200
        assert "<h1>" in response.text


def test_an_open_send_asks_for_its_trace_again_and_a_settled_one_does_not(house: House) -> None:
    waiting, done = house.factory.unknown(), house.factory.accepted()
    house.commit()
    browser = house.browser("support")
    assert 'hx-trigger="every 5s"' in browser.get(f"/sends/{waiting}").text
    assert 'hx-trigger="every 5s"' not in browser.get(f"/sends/{done}").text
    fragment = browser.get(f"/sends/{waiting}", htmx=True).text
    assert "<html" not in fragment
    assert 'id="send-trace"' in fragment


def test_an_address_is_masked_until_it_is_revealed_and_each_reveal_is_written_down(house: House) -> None:
    send = house.factory.accepted()
    house.commit()
    browser = house.browser("support")
    page = browser.get(f"/sends/{send}").text
    assert "a•••@example.com" in page
    assert ADDRESS not in page
    assert ADDRESS in browser.post(f"/sends/{send}/address").text
    assert ADDRESS in browser.post(f"/sends/{send}/address", htmx=True).text
    audit = house.rows("select action, subject, user_id from sendonce.audit where action = 'reveal_address'")
    assert audit == [("reveal_address", str(send), house.people["support"])] * 2


def test_the_message_is_shown_in_a_frame_that_runs_and_fetches_nothing(house: House) -> None:
    send = house.factory.accepted(content="Hello <b>Ada</b>")
    house.commit()
    browser = house.browser("operator")
    page = browser.get(f"/sends/{send}/message").text
    assert "Hello &lt;b&gt;Ada&lt;/b&gt;" in page
    assert browser.get(f"/sends/{send}/message.html").status_code == 404, "it has no HTML part"
    assert house.rows("select action from sendonce.audit where action = 'view_message'") == [("view_message",)]
    assert house.browser("support").get(f"/sends/{send}/message").status_code == 403


def test_the_html_part_is_served_under_a_policy_of_its_own(house: House) -> None:
    send = house.factory.accepted()
    body = house.factory.vault.encrypt(
        b'{"from": "a@b.c", "subject": "Hi", "reply_to": null, "text": null, "html": "<p>Hi</p>", "headers": {}}',
        send.bytes,
    )
    house.factory.connection.execute("update sendonce.messages set body = %s where send_id = %s", (body, send))
    house.commit()
    response = house.browser("operator").get(f"/sends/{send}/message.html")
    policy = response.headers["Content-Security-Policy"]
    assert response.text == "<p>Hi</p>"
    assert "default-src 'none'" in policy
    assert "sandbox" in policy.split("; ")[-1]
    assert "script-src" not in policy


def test_a_raw_payload_is_one_click_away_for_operators(house: House) -> None:
    send = house.factory.accepted()
    fact = b"delivered, told once"
    raw = house.factory.vault.encrypt(b'{"type": "delivered"}', fact)
    event = house.factory.event(send, EventType.DELIVERED, occurred=8, fact=fact, raw=raw)
    house.commit()
    path = f"/sends/{send}/events/{event}"
    operator = house.browser("operator")
    assert path in operator.get(f"/sends/{send}").text
    assert "{&#34;type&#34;: &#34;delivered&#34;}" in operator.get(path).text
    assert path not in house.browser("support").get(f"/sends/{send}").text
    assert house.rows("select action from sendonce.audit where action = 'view_raw_event'") == [("view_raw_event",)]


def test_a_send_of_another_workspace_is_not_there(house: House) -> None:
    send = house.factory.accepted()
    house.factory.connection.execute("update sendonce.sends set workspace_id = gen_random_uuid()")
    house.commit()
    browser = house.browser("admin")
    paths = [f"/sends/{send}", f"/sends/{send}/message", f"/sends/{send}/message.html", f"/held/{send}"]
    assert [browser.get(path).status_code for path in paths] == [404] * 4
    assert browser.post(f"/sends/{send}/address").status_code == 404


def test_hostile_text_is_shown_as_text(house: House) -> None:
    key = "k" + HOSTILE.replace("\n", "")
    send = house.factory.failed(key=key, trigger=HOSTILE, recipient=HOSTILE)
    house.commit()
    browser = house.browser("admin")
    lookup = browser.post("/search", q=HOSTILE + "x").headers["Location"]
    for path in (f"/sends/{send}", "/sends", lookup, "/"):
        page = browser.get(path).text
        assert "<script>alert" not in page
        assert "<img src=x" not in page
        assert "49" not in re.sub(r"\d{3,}|[0-9a-f-]{8,}", "", page.split("onerror")[-1])[:20]


def test_lists_go_page_by_page_with_their_filters_in_the_url(house: House) -> None:
    for number in range(60):
        house.factory.accepted(asked=number, key=f"k{number:02}", message_id=f"m{number}")
    house.factory.failed(asked=100, key="refused-one")
    house.commit()
    browser = house.browser("support")
    first = browser.get("/sends?state=accepted").text
    assert "k59" in first
    assert "refused-one" not in first
    assert "k05" not in first
    (older,) = re.findall(r'href="(/sends\?after=[^"]+)"', first)
    second = browser.get(older.replace("&amp;", "&")).text
    assert "k05" in second
    assert "k59" not in second
    fragment = browser.get("/sends?state=failed", htmx=True).text
    assert "refused-one" in fragment
    assert "<html" not in fragment


def test_bad_filters_get_a_clear_answer(house: House) -> None:
    browser = house.browser("admin")
    response = browser.get("/sends?state=sent")
    assert response.status_code == 400
    assert "state is one of: pending, claimed" in response.text
    bad = ("/sends?after=x", "/sends?mailstream=a%00b", "/held?after=x", "/audit?before=x", "/overview?range=1y")
    assert [browser.get(path).status_code for path in bad] == [400] * len(bad)


def test_the_export_is_safe_against_formulas_and_written_down(house: House) -> None:
    house.factory.accepted(key="plain", trigger="=cmd()", recipient="+1", message_id="m1")
    house.factory.accepted(key="-dash", trigger="@x", recipient="\tr", message_id="m2")
    house.commit()
    response = house.browser("operator").get("/sends.csv")
    rows = list(csv.DictReader(io.StringIO(response.text)))
    cells = [cell for row in rows for cell in row.values()]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t"))]
    assert {row["trigger_id"] for row in rows} == {"'=cmd()", "'@x"}
    assert house.rows("select action from sendonce.audit where action = 'export_sends'") == [("export_sends",)]


def test_the_csv_holds_every_row_however_many_there_are(house: House) -> None:
    house.factory.accepted(key="the first")
    house.factory.connection.execute(
        "insert into sendonce.sends select (jsonb_populate_record(s, jsonb_build_object('id', gen_random_uuid(),"
        " 'key', 'k' || n, 'recorded_at', s.recorded_at + n / 3 * interval '1 second'))).*"
        " from sendonce.sends s, generate_series(1, 10500) n"
    )
    house.commit()
    response = house.browser("operator").get("/sends.csv")
    rows = list(csv.DictReader(io.StringIO(response.text)))
    assert {row["key"] for row in rows} == {"the first", *(f"k{n}" for n in range(1, 10_501))}
    assert len(rows) == 10_501, "each once, also where many were recorded at one moment"


def test_every_empty_page_says_what_to_do_next(house: House) -> None:
    browser = house.browser("admin")
    assert "Nothing has been sent yet." in browser.get("/sends").text
    assert "No send fits these filters." in browser.get("/sends?state=failed").text
    assert "Nothing waits for a decision." in browser.get("/held").text
    assert "sendonce worker" in browser.get("/operations").text or "No worker" in browser.get("/operations").text
    assert browser.get("/overview").status_code == 200
    location = browser.post("/search", q="nothing-like-it").headers["Location"]
    assert "No send matches this" in browser.get(location).text


def test_the_audit_log_tells_who_did_what(house: House) -> None:
    send = house.factory.accepted()
    house.commit()
    house.browser("support").post(f"/sends/{send}/address")
    browser = house.browser("admin")
    page = browser.get(f"/audit?action={Action.REVEAL_ADDRESS}").text
    assert "reveal address" in page
    assert f"/sends/{send}" in page
    assert "log in" not in browser.get(f"/audit?action={Action.REVEAL_ADDRESS}", htmx=True).text


def test_the_audit_log_of_a_workspace_keeps_the_people_of_others_to_themselves(house: House) -> None:
    (hashed,) = house.rows("select password_hash from sendonce.users where login = 'support'")[0]
    house.factory.add("users", login="stranger", name="Stranger", password_hash=hashed)
    house.commit()
    house.browser("stranger")
    house.browser("operator")
    page = house.browser("admin").get("/audit").text
    assert "operator" in page
    assert "stranger" not in page


def test_a_banner_names_what_stalls_and_what_to_do(house: House) -> None:
    house.factory.pending()
    house.factory.connection.execute("update sendonce.workers set heartbeat_at = now() - interval '1 hour'")
    house.commit()
    browser = house.browser("operator")
    fragment = browser.get("/pulse", htmx=True).text
    assert "Stalled" in fragment
    assert "sendonce worker" in fragment
    assert "<html" not in fragment


def test_figures_come_as_json_for_the_same_range(house: House) -> None:
    browser = house.browser("support")
    figures = browser.get("/overview/figures?range=24h").json
    assert figures is not None
    page = browser.get("/overview?range=24h").text
    assert set(re.findall(r'data-chart="(\w+)"', page)) == set(figures)
    assert page.count("<summary>As a table</summary>") == len(figures)
