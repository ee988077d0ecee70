"""Workers, providers, dead letters, suspected duplicates and the audit log, on their pages."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import asdict
from uuid import UUID, uuid4

import pytest

from dashboard.ledger import dead_letters
from dashboard.ledger.account_checks import save_check
from dashboard.providers.findings import Finding
from tests.factories import at
from tests.web.conftest import House


def test_a_worker_is_asked_to_end_by_its_button_and_that_is_written_down(house: House) -> None:
    worker = UUID(int=7)
    house.factory.add("workers", id=worker, name="host-2:1:ab", version="1", loops=["relay"], in_flight=3)
    house.commit()
    browser = house.browser("operator")
    (action,) = re.findall(r'action="(/operations/workers/[^"]+/drain)"', browser.get("/operations").text)
    browser.post(action, reason=" ")
    assert "Give a reason" in browser.get("/operations").text
    browser.post(action, reason="new version")
    page = browser.get("/operations").text
    assert "host-2:1:ab finishes what it has in flight" in page
    assert "draining" in page
    assert house.rows("select drain_asked_at is not null from sendonce.workers where id = %s", worker) == [(True,)]
    assert house.rows("select action, subject, reason from sendonce.audit where action = 'drain_worker'") == [
        ("drain_worker", "host-2:1:ab", "new version")
    ]
    browser.post(f"/operations/workers/{uuid4()}/drain", reason="x")
    assert "No worker of this id is running" in browser.get("/operations").text


def test_a_provider_is_paused_and_resumed_with_a_reason(house: House) -> None:
    browser = house.browser("operator")
    assert browser.post("/operations/accounts/main/pause", reason=" ").status_code == 303
    assert "Give a reason" in browser.get("/operations/accounts").text
    browser.post("/operations/accounts/main/pause", reason="their status page is red")
    page = browser.get("/operations/accounts").text
    assert "until somebody resumes it: <bdi>their status page is red</bdi>" in page
    browser.post("/operations/accounts/main/resume", reason="")
    assert "reachable" in browser.get("/operations/accounts").text
    assert house.rows("select paused_until from sendonce.accounts") == [(None,)]
    written = house.rows("select action, user_id from sendonce.audit where action like '%%account' order by id")
    assert written == [(action, house.people["operator"]) for action in ("pause_account", "resume_account")]
    assert browser.post("/operations/accounts/nobody/pause", reason="x").status_code == 404


def test_a_mailstream_is_paused_and_resumed_with_a_reason(house: House) -> None:
    browser = house.browser("operator")
    where = "/operations/mailstreams/receipts"
    browser.post(f"{where}/pause", reason=" ")
    assert "Give a reason" in browser.get("/operations").text
    browser.post(f"{where}/pause", reason="wrong price in the text")
    assert "paused: wrong price in the text" in browser.get("/operations").text
    browser.post(f"{where}/resume", reason="")
    assert "paused: wrong price" not in browser.get("/operations").text
    written = house.rows("select action, user_id, reason from sendonce.audit where action like '%%stream' order by id")
    operator = house.people["operator"]
    assert written == [("pause_stream", operator, "wrong price in the text"), ("resume_stream", operator, None)]
    assert browser.post("/operations/mailstreams/nothing/pause", reason="x").status_code == 404


def test_all_sending_is_paused_and_resumed_with_a_reason(house: House) -> None:
    browser = house.browser("operator")
    browser.post("/operations/sending/pause", reason=" ")
    assert "Give a reason" in browser.get("/operations").text
    browser.post("/operations/sending/pause", reason="wrong prices went out")
    page = browser.get("/operations").text
    assert "All sending of this workspace is paused: <bdi>wrong prices went out</bdi>" in page
    assert "All sending of this workspace is paused by a person: wrong prices went out." in browser.get("/held").text
    browser.post("/operations/sending/resume", reason="")
    assert "wrong prices" not in browser.get("/operations").text
    written = house.rows("select action, user_id from sendonce.audit where action like '%%workspace' order by id")
    assert written == [(act, house.people["operator"]) for act in ("pause_workspace", "resume_workspace")]
    assert house.browser("support").post("/operations/sending/pause", reason="x").status_code == 403


def test_a_provider_shows_its_breaker_and_what_its_attempts_met_lately(house: House) -> None:
    house.factory.failed()
    house.factory.unknown()
    house.factory.connection.execute("update sendonce.moves set at = now() - interval '1 minute'")
    house.factory.connection.execute(
        "update sendonce.accounts set troubles = 3, paused_until = now() + interval '1 hour',"
        " paused_reason = 'connect timeout'"
    )
    house.commit()
    page = house.browser("operator").get("/operations/accounts").text
    assert "out of reach" in page
    assert "<strong>1</strong> not taken" in page
    assert "The from address is not verified" in page
    assert "<strong>1</strong> perhaps taken: read timeout" in page


def test_the_page_of_an_account_tells_its_check_and_the_address_to_paste_and_asks_for_another(house: House) -> None:
    house.commit()
    browser = house.browser("operator")
    page = browser.get("/operations/accounts/main/check").text
    assert "It was not checked yet" in page
    assert f"http://127.0.0.1:8000/webhooks/{house.factory.account}" in page.replace("<wbr>", "")
    assert browser.client.post("/operations/accounts/main/check").status_code == 400, "without the form's token"
    browser.post("/operations/accounts/main/check")
    page = browser.get("/operations/accounts/main/check").text
    assert "A worker will check it within seconds" in page
    assert 'hx-trigger="every 2s"' in page
    written = house.rows("select subject, user_id from sendonce.audit where action = 'check_account'")
    assert written == [("main", house.people["operator"])]
    found = Finding("spf", "wrong", "<b>Two</b> of them.", about="shop.example", rule="RFC 7208 §4.5", publish="one")
    with house.database.transaction() as connection:
        save_check(connection, house.factory.account, [asdict(found)])
    part = browser.get("/operations/accounts/main/check", htmx=True).text.replace("\N{NO-BREAK SPACE}", " ")
    assert "<html" not in part
    assert "hx-trigger" not in part, "nothing is awaited any more"
    for words in ("&lt;b&gt;Two", "shop.example", "RFC 7208 §4.5", "To publish"):
        assert words in part.replace("\N{NO-BREAK SPACE}", " ")
    assert "something is wrong with its set-up" in browser.get("/operations/accounts").text
    assert browser.get("/operations/accounts/nobody/check").status_code == 404
    assert browser.post("/operations/accounts/nobody/check").status_code == 404


def test_a_dead_letter_is_shown_without_what_it_holds_and_discarded(house: House) -> None:
    with house.database.transaction() as connection:
        dead_letters.bury_webhook(
            connection, house.factory.vault, workspace_id=house.workspace, account_id=house.factory.account,
            payload=b"ada@example.com", reason="no type",
        )  # fmt: skip
    browser = house.browser("operator")
    page = browser.get("/operations/dead-letters").text
    assert "no type" in page
    assert "ada@" not in page
    assert "requeue" not in page, "part of a webhook cannot be queued"
    (number,) = re.findall(r"/operations/dead-letters/(\d+)/discard", page)
    browser.post(f"/operations/dead-letters/{number}/requeue", reason="x")
    assert "only the provider can tell it again" in browser.get("/operations/dead-letters").text
    browser.post(f"/operations/dead-letters/{number}/discard", reason="a test of theirs")
    page = browser.get("/operations/dead-letters").text
    assert f"Dead letter {number} is discarded." in page
    assert "There are no dead letters." in page


def test_dead_letters_go_page_by_page(house: House) -> None:
    for n in range(52):
        house.factory.add(
            "dead_letters", workspace_id=house.workspace, source="outbox", reason=f"reason-{n:02}", payload=b"",
            at=at(n), outbox_id=uuid4(),
        )  # fmt: skip
    house.commit()
    browser = house.browser("operator")
    first = browser.get("/operations/dead-letters").text
    assert "reason-00" in first
    assert "reason-51" not in first
    (newer,) = re.findall(r'href="(/operations/dead-letters\?after=[^"]+)"', first)
    assert "reason-51" in browser.get(newer).text
    assert browser.get("/operations/dead-letters?after=x~1").status_code == 400


def test_the_same_content_for_the_same_person_under_two_keys_is_suspected(house: House) -> None:
    first = house.factory.accepted(key="welcome:1", message_id="m1")
    again = house.factory.accepted(key="welcome:2", asked=60, message_id="m2", trigger_type="user.created")
    house.factory.accepted(key="welcome:3", asked=60, message_id="m3", content="other")
    house.factory.accepted(key="welcome:4", asked=60, message_id="m4", recipient="recipient_2")
    house.factory.accepted(key="welcome:5", asked=90_000, message_id="m5")
    house.commit()
    page = house.browser("operator").get("/operations/suspects").text
    assert f"/sends/{first}" in page
    assert f"/sends/{again}" in page
    assert "two kinds of trigger ask for the same" in page
    assert page.count("<tr>") == 2, "the head, and one pair"
    assert "That was all" in house.browser("operator").get("/operations/suspects?before=2026-11-30T12:00:30Z").text


@pytest.mark.parametrize("before", ["x", "2026-11-30T12:00:00"])
def test_a_damaged_time_is_told(house: House, before: str) -> None:
    assert house.browser("operator").get(f"/operations/suspects?before={before}").status_code == 400


def test_the_audit_log_is_filtered_and_exported_whole(house: House) -> None:
    house.commit()
    house.browser("operator").post("/operations/accounts/main/pause", reason="=1+1")
    browser = house.browser("admin")
    assert "pause account" in browser.get("/audit?who=operator&subject=main").text
    assert "No entry fits" in browser.get("/audit?who=nobody").text
    today = house.rows("select now()::date::text")[0][0]
    assert "pause account" in browser.get(f"/audit?action=pause_account&since={today}&until={today}").text
    assert "No entry fits" in browser.get("/audit?until=2020-01-01").text
    assert browser.get("/audit?since=yesterday").status_code == 400
    answer = browser.get("/audit.csv?action=pause_account")
    rows = list(csv.reader(io.StringIO(answer.text)))
    assert rows[0] == ["id", "at", "who", "action", "subject", "reason", "detail"]
    assert [row[2:6] for row in rows[1:]] == [["operator", "pause_account", "main", "'=1+1"]]
    assert "export audit" in browser.get("/audit").text


def test_support_sees_none_of_it(house: House) -> None:
    browser = house.browser("support")
    for path in (
        "/operations",
        "/operations/accounts",
        "/operations/dead-letters",
        "/operations/suspects",
        "/audit.csv",
    ):
        assert browser.get(path).status_code == 403
    assert browser.post("/operations/accounts/main/pause", reason="x").status_code == 403
