"""Saved views of a list, shared by the team; the pages of rows; the evidence pack."""

from __future__ import annotations

import json
import re

import pytest

from dashboard.ledger import trace as trace_module
from dashboard.ledger import views
from tests.factories import ADDRESS
from tests.web.conftest import House


def test_filters_are_kept_under_a_name_for_the_whole_team(house: House) -> None:
    browser = house.browser("support")
    page = browser.get("/sends?state=failed&mailstream=receipts").text
    assert 'placeholder="Name these filters"' in page
    answer = browser.post("/views/sends", name="  Failed   receipts ", state="failed", mailstream="receipts")
    assert answer.headers["Location"] == "/sends?mailstream=receipts&state=failed"
    colleague = house.browser("operator").get("/sends").text
    assert 'href="/sends?state=failed&amp;mailstream=receipts"' in colleague
    assert "Failed receipts" in colleague
    assert "The support" in colleague
    assert "Save for the team" not in browser.get("/sends?state=failed&mailstream=receipts").text, (
        "they are kept already"
    )
    fragment = browser.get("/sends?state=held", htmx=True).text
    assert "Save for the team" in fragment, "what the filters are changed to can be kept"
    saved = house.rows("select action, subject, detail from sendonce.audit where action = 'save_view'")
    assert saved == [("save_view", "Failed receipts", {"list": "sends", "state": "failed", "mailstream": "receipts"})]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"name": "", "state": "failed"}, "needs a name"),
        ({"name": "x" * 61, "state": "failed"}, "at most 60 characters"),
        ({"name": "all"}, "Choose a filter first"),
        ({"name": "Taken", "state": "failed"}, "There is a view called Taken already"),
    ],
)
def test_what_is_no_view_is_told_why(house: House, fields: dict[str, str], told: str) -> None:
    browser = house.browser("support")
    browser.post("/views/sends", name="Taken", state="held")
    browser.post("/views/sends", **fields)
    assert told in browser.get("/sends").text
    assert house.rows("select count(*) from sendonce.views") == [(1,)]


def test_only_filters_of_the_list_are_kept(house: House) -> None:
    browser = house.browser("support")
    browser.post("/views/sends", name="v", state="failed", who="ada@example.com", after="x")
    assert house.rows("select filters from sendonce.views") == [({"state": "failed"},)]
    assert browser.post("/views/sends", name="w", state="sent").status_code == 400
    assert browser.post("/views/nothing", name="w").status_code == 404


def test_views_of_the_audit_log_are_for_those_who_may_read_it(house: House) -> None:
    assert house.browser("operator").post("/views/audit", name="v", action="log_in").status_code == 403
    admin = house.browser("admin")
    admin.post("/views/audit", name="Log-ins", action="log_in")
    assert 'href="/audit?action=log_in"' in admin.get("/audit").text


def test_one_removes_ones_own_view_and_an_admin_any(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "MAX_VIEWS", 2)
    support = house.browser("support")
    for name, state in (("a", "held"), ("b", "failed"), ("one too many", "pending")):
        support.post("/views/sends", name=name, state=state)
    removing = {
        name: f"/views/sends/{view}/remove"
        for view, name in house.rows("select id, name from sendonce.views order by name")
    }
    assert list(removing) == ["a", "b"]
    assert removing["a"] in support.get("/sends?state=held").text
    assert "/remove" not in house.browser("operator").get("/sends?state=held").text
    assert house.browser("operator").post(removing["a"]).status_code == 404
    assert support.post(removing["a"]).status_code == 303
    assert house.browser("admin").post(removing["b"]).status_code == 303
    assert house.rows("select subject from sendonce.audit where action = 'remove_view' order by 1") == [("a",), ("b",)]


def test_a_view_of_another_workspace_is_not_there(house: House) -> None:
    support = house.browser("support")
    support.post("/views/sends", name="v", state="held")
    with house.database.transaction() as connection:
        connection.execute("update sendonce.views set workspace_id = gen_random_uuid()")
    assert "bookmark" not in re.sub("bookmark-plus", "", support.get("/sends?state=held").text)
    ((view,),) = house.rows("select id from sendonce.views")
    assert house.browser("admin").post(f"/views/sends/{view}/remove").status_code == 404


# ── rows ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_trace_of_very_many_rows_leads_to_lists_of_all_of_them(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "LIMIT", 10)
    send = house.factory.accepted()
    for number in range(230):
        house.factory.event(send, "opened", occurred=100 + number // 3)
        house.factory.duplicate(send, when=1_000 + number, trigger_id=f"evt_{number:03}")
    house.commit()
    browser = house.browser("support")
    page = browser.get(f"/sends/{send}").text
    assert "220 more events from then on" in page
    assert "220 more deliveries from then on" in page
    assert page.count("<li") < 120, "what is folded stays small"
    for kind, word in (("events", r"event \d+"), ("deliveries", r"duplicate \d+")):
        seen: list[str] = []
        more: str | None = f"/sends/{send}/rows/{kind}"
        while more:
            page = browser.get(more).text
            seen += re.findall(rf">({word})<", page)
            later = re.search(r'href="(/sends/[^"]+after=[^"]+)">Later', page)
            more = later[1].replace("&amp;", "&") if later else None
        assert len(seen) == len(set(seen)) == 230, kind
    assert "This send has no moves." in browser.get(f"/sends/{send}/rows/moves").text
    assert browser.get(f"/sends/{send}/rows/others").status_code == 404
    assert browser.get(f"/sends/{send}/rows/events?after=x").status_code == 400
    assert browser.get(f"/sends/{house.workspace}/rows/events").status_code == 404


# ── evidence ─────────────────────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>"


def test_the_evidence_about_a_send_is_one_file_without_address_and_body(house: House) -> None:
    send = house.factory.accepted(content="Dear Ada, thank you", recipient=HOSTILE, trigger=HOSTILE)
    house.factory.event(send, "bounced", occurred=9, reason=f"550 <{ADDRESS}> {HOSTILE}")
    for number in range(8):
        house.factory.duplicate(send, when=20 + number, trigger_id=f"evt_{number}")
    house.factory.note(send, "for us alone")
    house.commit()
    browser = house.browser("support")
    answer = browser.get(f"/sends/{send}/evidence.html")
    assert answer.headers["Content-Disposition"] == f'attachment; filename="evidence-{send}.html"'
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    text = answer.text
    assert ADDRESS not in text
    assert "Dear Ada" not in text
    assert "for us alone" not in text
    assert not re.findall(r"(?:src|href)=", re.sub(r"&[^;]+;[^<]*|\\u003c[^<]*", "", text)), "nothing to be fetched"
    assert text.count("<script") == text.count("</script>") == 1
    facts = json.loads(re.findall(r'<script type="application/json" id="evidence">(.*?)</script>', text, re.S)[0])
    assert facts["send_id"] == str(send)
    assert facts["verdict"]["sentence"] in re.sub(r"&#34;", '"', re.sub("&lt;", "<", re.sub("&gt;", ">", text)))
    assert sum(len(entry.get("folded", ())) for entry in facts["timeline"]) == 8
    for number in range(8):
        assert f"evt_{number}" in text, "what is folded is told one by one"
    assert house.rows("select subject from sendonce.audit where action = 'export_evidence'") == [(str(send),)]
