"""Tickets and notes on a send."""

from __future__ import annotations

import re

import pytest

from dashboard.ledger import notes
from dashboard.ledger.access import Refused
from tests.web.conftest import House

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>{{7*7}}\N{RIGHT-TO-LEFT OVERRIDE}\N{FOX FACE}"


def test_an_agent_keeps_a_ticket_and_a_note_and_finds_the_send_by_the_ticket(house: House) -> None:
    send = house.factory.accepted()
    house.commit()
    browser = house.browser("support")
    browser.get(f"/sends/{send}")
    answer = browser.post(f"/sends/{send}/notes", ticket="#ZD-4711", note="She forwards all her mail")
    assert answer.headers["Location"] == f"/sends/{send}#notes"
    page = browser.get(f"/sends/{send}").text
    assert "ZD-4711" in page
    assert "She forwards all her mail" in page
    assert "The support" in page
    assert browser.post("/search", q="zd-4711").headers["Location"] == f"/sends/{send}?by=ticket"
    ((stored,),) = house.rows("select note from sendonce.notes")
    assert b"forwards" not in bytes(stored)  # type: ignore[call-overload]
    assert house.rows("select action, subject, detail from sendonce.audit where subject = %s", str(send)) == [
        ("add_note", str(send), {"ticket": "ZD-4711"})
    ]


def test_a_ticket_is_a_link_where_the_workspace_has_told_its_ticket_system(house: House) -> None:
    send = house.factory.accepted()
    house.factory.note(send, ticket="a/b?c=&d")
    house.commit()
    browser = house.browser("support")
    assert "a/b?c=&amp;d" in browser.get(f"/sends/{send}").text
    assert 'target="_blank"' not in browser.get(f"/sends/{send}").text
    with house.database.transaction() as connection:
        notes.set_ticket_url(connection, house.workspace, "https://desk.example.com/t/{ticket}?full=1")
    (link,) = re.findall(
        r'<a href="(https://[^"]+)" target="_blank" rel="noopener noreferrer">', browser.get(f"/sends/{send}").text
    )
    assert link == "https://desk.example.com/t/a%2Fb%3Fc%3D%26d?full=1"


@pytest.mark.parametrize(
    "template",
    [
        "javascript:alert({ticket})", "data:text/html,{ticket}", "ftp://desk/{ticket}", "//desk/{ticket}", "{ticket}",
        "https://desk.example.com/", "https://{ticket}.example.com/", "https://desk/{ticket}/{ticket}",
        "https://ada:secret@desk/{ticket}", "https:///{ticket}", "https://desk/a b/{ticket}", "https://desk:0/{ticket}",
        "https://[/{ticket}", "JavaScript://desk/%0aalert(1){ticket}",
    ],
)  # fmt: skip
def test_only_a_web_address_with_one_place_for_the_ticket_is_taken(template: str) -> None:
    with pytest.raises(Refused, match="ticket system"):
        notes.check_ticket_url(template)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({}, "Give the number of a ticket"),
        ({"ticket": "x" * 61}, "at most 60 characters"),
        ({"ticket": "one\ntwo"}, "all in one line"),
        ({"ticket": "ada@example.com"}, "holds no address"),
        ({"note": "x" * 2_001}, "at most 2000 characters"),
    ],
)
def test_what_cannot_be_kept_is_told_why(house: House, fields: dict[str, str], told: str) -> None:
    send = house.factory.accepted()
    house.commit()
    browser = house.browser("support")
    browser.post(f"/sends/{send}/notes", **fields)
    assert told in browser.get(f"/sends/{send}").text
    assert house.rows("select count(*) from sendonce.notes") == [(0,)]


def test_a_send_has_room_for_so_many_notes_and_a_stripped_one_for_none(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "MAX_NOTES", 2)
    send = house.factory.accepted()
    for number in range(2):
        house.factory.note(send, f"note {number}")
    with pytest.raises(Refused, match="2 notes already"):
        house.factory.note(send, "one too many")
    house.factory.connection.rollback()
    gone = house.factory.accepted(stripped_at="2026-12-01T00:00:00Z")
    with pytest.raises(Refused, match="not kept any more"):
        house.factory.note(gone, "too late")


def test_one_removes_ones_own_note_and_nobody_elses(house: House) -> None:
    send = house.factory.accepted()
    house.factory.note(send, "Ada's")
    house.commit()
    browser = house.browser("support")
    browser.get(f"/sends/{send}")
    browser.post(f"/sends/{send}/notes", note="mine", ticket="T-1")
    (mine,) = re.findall(rf'action="(/sends/{send}/notes/\d+/remove)"', browser.get(f"/sends/{send}").text)
    assert house.browser("admin").post(mine).status_code == 404
    ((hers,),) = house.rows("select id from sendonce.notes where user_id = %s", house.factory.person)
    assert browser.post(f"/sends/{send}/notes/{hers}/remove").status_code == 404
    assert browser.post(mine).status_code == 303
    assert house.rows("select id from sendonce.notes") == [(hers,)]
    removed = house.rows("select detail from sendonce.audit where action = 'remove_note'")
    assert removed == [({"ticket": "T-1"},)]


def test_notes_of_another_workspace_are_out_of_reach(house: House) -> None:
    send = house.factory.accepted()
    house.factory.note(send, "secret")
    house.factory.connection.execute("update sendonce.sends set workspace_id = gen_random_uuid()")
    house.commit()
    browser = house.browser("admin")
    assert browser.post(f"/sends/{send}/notes", note="x").status_code == 404
    assert browser.get(f"/sends/{send}").status_code == 404


def test_hostile_notes_are_shown_as_text_and_addresses_in_them_are_masked(house: House) -> None:
    send = house.factory.accepted()
    house.factory.note(
        send, f"{HOSTILE} ada@example.com", ticket=HOSTILE[:60].replace("\N{RIGHT-TO-LEFT OVERRIDE}", "")
    )
    house.commit()
    page = house.browser("support").get(f"/sends/{send}").text
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "ada@example.com" not in page
    assert "{{7*7}}" in page


def test_a_note_whose_key_is_gone_says_so(house: House) -> None:
    send = house.factory.accepted()
    house.factory.note(send, "hello")
    house.factory.connection.execute("update sendonce.notes set note = '\\x026b39' || note")
    house.commit()
    assert "Its encryption key is gone." in house.browser("support").get(f"/sends/{send}").text
