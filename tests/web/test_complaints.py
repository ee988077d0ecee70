"""The page of a complaint: what is asked, the answer, the reply, and what never shows."""

from __future__ import annotations

import json
import re

import pytest

from dashboard.insight.case import Finding
from tests.factories import ADDRESS, Factory
from tests.web.conftest import Browser, House

HOSTILE = '"><script>alert(1)</script>\N{RIGHT-TO-LEFT OVERRIDE}שלום\N{FOX FACE}' + "W" * 200


def ask(browser: Browser, who: str = "evt_1", complaint: str = "twice", **more: str) -> str:
    """File a complaint; the path of its answer."""
    browser.get("/")
    response = browser.post("/investigations", who=who, complaint=complaint, **more)
    assert response.status_code == 303, response.text
    return response.headers["Location"]


def test_the_first_page_asks_what_the_customer_says(house: House) -> None:
    page = house.browser("support").get("/").text
    for words in ("I got it twice", "I never got it", "It came late", "I did not want it"):
        assert words in page


def test_two_receipts_are_two_triggers_and_the_reply_is_there_to_copy(house: House) -> None:
    make = house.factory
    make.accepted(key="receipt:order", trigger="order_84721", content="same")
    make.accepted(key="receipt:invoice", trigger="invoice_7", content="same", message_id="m2", asked=60, answered=62)
    house.commit()
    browser = house.browser("support")
    page = browser.get(ask(browser, "order_84721")).text
    assert "Two sends with the same content were accepted" in page
    assert ">Proved<" in page
    assert re.search(r'data-copy="You are right, and we are sorry: the same email was sent to you twice', page)
    assert page.count("same A") == 2
    assert "/replies/" not in page, "an agent does not word replies"


def test_an_address_stands_in_no_url_title_or_page(house: House) -> None:
    house.factory.accepted()
    house.commit()
    browser = house.browser("support")
    path = ask(browser, f" {ADDRESS} ", "never")
    for answer in (browser.get(path), browser.get(f"{path}.json"), browser.get("/")):
        assert answer.status_code == 200
        assert ADDRESS not in answer.text
    assert "a•••@example.com" in browser.get(path).text
    assert ADDRESS.encode() not in bytes(str(house.rows("select question from sendonce.investigations")), "utf-8")
    assert house.rows("select action, detail ->> 'complaint' from sendonce.audit where action = 'investigate'") == [
        ("investigate", "never")
    ]


def test_a_link_may_be_passed_on_within_the_workspace_only(house: House) -> None:
    house.factory.accepted()
    house.commit()
    path = ask(house.browser("support"))
    assert house.browser("operator").get(path).status_code == 200
    other = Factory(house.factory.connection)
    house.factory.connection.execute("update sendonce.investigations set workspace_id = %s", [other.workspace])
    house.commit()
    assert house.browser("support").get(path).status_code == 404
    assert house.browser("support").get(f"{path}.json").status_code == 404


def test_the_facts_are_there_as_json(house: House) -> None:
    send = house.factory.accepted()
    house.commit()
    browser = house.browser("support")
    told = json.loads(browser.get(f"{ask(browser)}.json").text)
    assert (told["cause"], told["sureness"], told["send"]) == ("one_copy", "proved", str(send))
    assert told["proof"][0]["row"] == "attempt 1"
    assert [one["rests_on"] for one in told["not_looked_into"]] == ["replays as a new version", "imports"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"who": "", "complaint": "twice"}, "Say whom it is about"),
        ({"who": "x", "complaint": ""}, "Choose what the customer says"),
        ({"who": "x", "complaint": "twice", "when": "whenever"}, "yesterday evening"),
        ({"who": "x", "complaint": "twice", "zone": "Mars/Olympus"}, "Europe/Berlin"),
        ({"who": "x", "complaint": "twice", "zone": "../../etc/passwd"}, "Europe/Berlin"),
    ],
)
def test_what_cannot_be_asked_is_said_and_what_was_typed_is_kept(
    house: House, fields: dict[str, str], says: str
) -> None:
    browser = house.browser("support")
    answer = browser.post("/investigations", **fields)
    assert answer.status_code == 422
    assert says in answer.text
    assert f'value="{fields["who"]}"' in answer.text


def test_an_earlier_question_can_be_asked_differently(house: House) -> None:
    browser = house.browser("support")
    path = ask(browser, "order_7", "late", when="yesterday", zone="Asia/Tokyo")
    again = re.search(r'href="(/\?again=[^"]+)"', browser.get(path).text)
    assert again
    page = browser.get(again[1]).text
    for part in ('value="order_7"', 'value="late" required checked', 'value="yesterday"', 'value="Asia/Tokyo"'):
        assert part in page


def test_nothing_of_what_users_supply_runs_or_breaks_a_page(house: House) -> None:
    make = house.factory
    make.connection.execute("update sendonce.mailstreams set owner = %s", [HOSTILE])
    send = make.accepted(key="<img/src=x>" + "k" * 240, recipient=HOSTILE, trigger=HOSTILE)
    make.event(send, "bounced", occurred=9, reason=HOSTILE, bounce_class="hard")
    make.delivery(send, "bounced", when=9)
    make.duplicate(send, when=30, trigger_id=HOSTILE, verdict="mismatch")
    house.commit()
    browser = house.browser("operator")
    for complaint in ("twice", "never", "late", "unwanted"):
        for who in (HOSTILE, str(send)):
            path = ask(browser, who, complaint, when="", headers=f"Message-ID: <{HOSTILE}>")
            page = browser.get(path).text
            assert "<script>alert" not in page
            assert "<img/src" not in page
            assert browser.get(f"{path}.json").status_code == 200


def test_what_only_another_of_ones_workspaces_has_is_shown_with_its_name(house: House) -> None:
    make, other = house.factory, Factory(house.factory.connection)
    make.accepted(trigger="order_7", content="same")
    theirs = other.accepted(content="same", message_id="m2")
    other.connection.execute("update sendonce.workspaces set title = 'The other shop' where id = %s", [other.workspace])
    other.add("roles", user_id=house.people["operator"], workspace_id=other.workspace, role="support")
    house.commit()
    path = ask(house.browser("operator"), "order_7")
    assert "The other shop" in house.browser("operator").get(path).text
    alone = house.browser("support").get(path).text
    assert "The other shop" not in alone
    assert str(theirs) not in alone


# ── wording ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_operator_words_a_reply_and_takes_it_back(house: House) -> None:
    house.factory.accepted()
    house.commit()
    browser = house.browser("operator")
    path = ask(browser)
    form = browser.get("/replies/one_copy")
    assert "Our records show that this email left us once" in form.text
    assert browser.post("/replies/one_copy", language="en", text="Only once, on {when}.").status_code == 303
    assert re.search(r'data-copy="Only once, on \d+ \w+ at', browser.get(path).text)
    assert browser.post("/replies/one_copy", language="de", text="Nur einmal.").status_code == 303
    assert "Nur einmal." in browser.get(f"{path}?language=de").text
    assert browser.get(f"{path}?language=fr").status_code == 404
    assert browser.post("/replies/one_copy", language="en", text="", forget="1").status_code == 303
    assert "left us once" in browser.get(path).text
    assert house.rows("select count(*) from sendonce.audit where action = 'set_reply'") == [(3,)]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"language": "en", "text": "to {address}"}, "{address} is not known here"),
        ({"language": "English!", "text": "x"}, "en, de or pt-BR"),
        ({"language": "en", "text": ""}, "Write what is to be answered"),
    ],
)
def test_a_wording_that_cannot_be_used_is_refused(house: House, fields: dict[str, str], says: str) -> None:
    answer = house.browser("operator").post("/replies/one_copy", **fields)
    assert answer.status_code == 422
    assert says in answer.text
    assert house.rows("select text from sendonce.replies") == []


def test_only_operators_word_replies(house: House) -> None:
    browser = house.browser("support")
    assert browser.get("/replies").status_code == 403
    assert browser.post("/replies/one_copy", language="en", text="x").status_code == 403
    assert house.browser("operator").get("/replies/no_such_cause").status_code == 404


def test_every_cause_can_be_worded(house: House) -> None:
    page = house.browser("operator").get("/replies").text
    for finding in Finding:
        assert f"/replies/{finding.value}" in page


def test_the_trace_of_a_send_shows_its_neighbours_in_ones_other_workspaces(house: House) -> None:
    make, other = house.factory, Factory(house.factory.connection)
    send = make.accepted()
    theirs = other.accepted(message_id="m2")
    other.connection.execute("update sendonce.workspaces set title = 'The other shop' where id = %s", [other.workspace])
    other.add("roles", user_id=house.people["operator"], workspace_id=other.workspace, role="support")
    house.commit()
    page = house.browser("operator").get(f"/sends/{send}").text
    assert f"/sends/{theirs}" in page
    assert "The other shop" in page
    assert str(theirs) not in house.browser("support").get(f"/sends/{send}").text


def test_an_address_within_an_id_or_a_reason_is_masked(house: House) -> None:
    send = house.factory.accepted(key="receipt:1", recipient="bob@example.org", trigger="for bob@example.org")
    house.factory.event(send, "bounced", occurred=9, reason="550 bob@example.org unknown", bounce_class="hard")
    house.factory.delivery(send, "bounced", when=9)
    house.commit()
    browser = house.browser("support")
    for complaint in ("never", "unwanted", "twice"):
        path = ask(browser, str(send), complaint)
        assert "bob@" not in browser.get(path).text
        assert "bob@" not in browser.get(f"{path}.json").text
