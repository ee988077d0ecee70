"""Every view declares who may use it, and the server holds to it."""

from __future__ import annotations

from uuid import uuid4

from dashboard.ledger import access
from dashboard.ledger.tables import Role
from dashboard.web.permissions import Open, permission_of
from tests.web.conftest import Browser, House

NEEDED = {
    "/": Role.SUPPORT,
    "/sends": Role.SUPPORT,
    "/overview": Role.SUPPORT,
    "/overview/figures": Role.SUPPORT,
    "/pulse": Role.SUPPORT,
    "/sends.csv": Role.OPERATOR,
    "/held": Role.OPERATOR,
    "/held/proposals": Role.OPERATOR,
    "/operations": Role.OPERATOR,
    "/alerts": Role.OPERATOR,
    "/alerts/rule": Role.OPERATOR,
    "/alerts/channel": Role.ADMIN,
    "/operations/accounts": Role.OPERATOR,
    "/operations/accounts/main/check": Role.OPERATOR,
    "/operations/dead-letters": Role.OPERATOR,
    "/operations/suspects": Role.OPERATOR,
    "/audit": Role.ADMIN,
}


def test_every_route_declares_its_permission(house: House) -> None:
    undeclared = [
        rule.rule for rule in house.app.url_map.iter_rules() if permission_of(house.app, rule.endpoint) is None
    ]
    assert undeclared == []


def test_only_these_routes_are_open_to_all(house: House) -> None:
    open_rules = {
        rule.rule
        for rule in house.app.url_map.iter_rules()
        if permission_of(house.app, rule.endpoint) is Open.TO_ALL and not rule.rule.startswith(("/openapi", "/docs"))
    }
    assert open_rules <= {"/login", "/logout", "/healthz", "/readyz", "/metrics", "/static/<path:filename>"}


def test_a_page_opens_for_its_role_and_those_above(house: House) -> None:
    for role in Role:
        browser = house.browser(role.value)
        answers = {path: browser.get(path).status_code for path in NEEDED}
        assert answers == {path: 200 if access.includes(role, needed) else 403 for path, needed in NEEDED.items()}


def test_navigation_shows_only_what_one_may_open(house: House) -> None:
    page = house.browser("support").get("/").text
    assert 'href="/sends"' in page
    assert 'href="/held"' not in page
    assert 'href="/audit"' not in page


def test_support_cannot_decide_a_held_send_by_posting_to_it(house: House) -> None:
    send = house.factory.held()
    house.commit()
    response = house.browser("support").post(
        f"/held/{send}", decision="cancel", reason="because", hold_id="1", evidence="0"
    )
    assert response.status_code == 403
    assert house.rows("select state::text from sendonce.work") == [("held",)]


def test_a_role_holds_in_its_own_workspace_only(house: House) -> None:
    other = uuid4()
    house.factory.add("workspaces", id=other, name="other", title="Other")
    access.put_role(house.factory.connection, user_id=house.people["support"], workspace_id=other, role=Role.ADMIN)
    send = house.factory.accepted()
    house.commit()
    browser = house.browser("support")
    assert browser.get("/audit").status_code == 200, "an admin of the other workspace starts there"
    assert browser.get("/sends").text.count(str(send)) == 0
    assert browser.post("/workspace", workspace=f"ws-{house.workspace}").status_code == 303
    assert browser.get("/audit").status_code == 403
    assert str(send) in browser.get("/sends").text


def test_nobody_enters_a_workspace_that_is_not_theirs(house: House) -> None:
    house.factory.add("workspaces", id=uuid4(), name="other")
    house.commit()
    assert house.browser("admin").post("/workspace", workspace="other").status_code == 404


def at_first(house: House, login: str, role: Role) -> Browser:
    """Somebody who works in a second workspace, *First*, with this role there."""
    other = uuid4()
    house.factory.add("workspaces", id=other, name="a-first", title="First")
    access.put_role(house.factory.connection, user_id=house.people[login], workspace_id=other, role=role)
    house.commit()
    browser = house.browser(login)
    assert browser.post("/workspace", workspace="a-first").status_code == 303
    return browser


def test_a_colleagues_link_shows_the_send_in_its_workspace_and_ones_own_choice_stays(house: House) -> None:
    send, held = house.factory.accepted(), house.factory.held()
    browser = at_first(house, "operator", Role.SUPPORT)
    page = browser.get(f"/sends/{send}")
    assert page.status_code == 200
    assert f"<bdi>ws-{house.workspace}</bdi>" in page.text, "it is said whose send this is"
    assert "<bdi>First</bdi>" in page.text
    assert 'href="/held"' not in page.text, "the navigation is that of the workspace one works in"
    assert browser.post(f"/sends/{send}/address").status_code == 200
    audited = house.rows("select workspace_id from sendonce.audit where action = 'reveal_address'")
    assert audited == [(house.workspace,)], "what is done there is on record there"
    assert browser.get(f"/held/{held}").status_code == 200, "an operator of that workspace"
    assert str(send) not in browser.get("/sends").text
    assert "This send belongs to" not in browser.get("/").text
    assert browser.get("/held").status_code == 403


def test_in_the_workspace_of_a_link_one_has_the_role_that_one_has_there(house: House) -> None:
    held = house.factory.held()
    browser = at_first(house, "support", Role.ADMIN)
    assert browser.get("/held").status_code == 200
    assert browser.get(f"/sends/{held}").status_code == 200
    assert browser.get(f"/held/{held}").status_code == 403


def test_a_link_into_a_workspace_of_others_leads_nowhere(house: House) -> None:
    send = house.factory.accepted()
    browser = at_first(house, "support", Role.SUPPORT)
    house.factory.connection.execute("delete from sendonce.roles where workspace_id = %s", (house.workspace,))
    house.commit()
    assert browser.get(f"/sends/{send}").status_code == 404


def test_whoever_has_no_role_sees_nothing(house: House) -> None:
    access.add_person(house.factory.connection, login="new", name="New", password="correct horse battery")
    house.commit()
    browser = house.browser()
    browser.log_in("new")
    assert browser.get("/").status_code == 403


# ── what one may see of other people ─────────────────────────────────────────────────────────────────────────────────


def give(house: House, login: str, role: Role, **rights: bool) -> Browser:
    """Somebody of this role with these rights."""
    access.put_role(
        house.factory.connection, user_id=house.people[login], workspace_id=house.workspace, role=role, **rights
    )
    house.commit()
    return house.browser(login)


def test_a_support_agent_sees_no_body_unless_allowed_and_each_look_is_written_down(house: House) -> None:
    send = house.factory.accepted(content="Dear Ada")
    house.commit()
    support = house.browser("support")
    paths = (f"/sends/{send}/message", f"/sends/{send}/message.html")
    assert [support.get(path).status_code for path in paths] == [403, 403]
    assert "Show the message" not in support.get(f"/sends/{send}").text
    support = give(house, "support", Role.SUPPORT, messages=True)
    assert "Show the message" in support.get(f"/sends/{send}").text
    assert "Dear Ada" in support.get(paths[0]).text
    looks = house.rows("select user_id, subject from sendonce.audit where action = 'view_message'")
    assert looks == [(house.people["support"], str(send))]


def test_whoever_may_not_reveal_sees_masked_addresses_alone(house: House) -> None:
    send = house.factory.accepted()
    fact = b"told once"
    raw = house.factory.vault.encrypt(b'{"to": "ada@example.com"}', fact)
    event = house.factory.event(send, "delivered", occurred=8, fact=fact, raw=raw)
    operator = give(house, "operator", Role.OPERATOR, reveal=False)
    page = operator.get(f"/sends/{send}").text
    assert "a•••@example.com" in page
    assert "Reveal" not in page
    assert "raw payload" not in page, "it holds the address"
    assert operator.post(f"/sends/{send}/address").status_code == 403
    assert operator.get(f"/sends/{send}/events/{event}").status_code == 403
    assert house.rows("select count(*) from sendonce.audit where action in ('reveal_address', 'view_raw_event')") == [
        (0,)
    ]


def test_rights_stay_as_they_are_while_the_role_changes(house: House) -> None:
    send = house.factory.accepted()
    give(house, "support", Role.SUPPORT, reveal=False, messages=True)
    browser = give(house, "support", Role.OPERATOR)
    assert browser.post(f"/sends/{send}/address").status_code == 403
    browser = give(house, "support", Role.SUPPORT, messages=False)
    assert browser.get(f"/sends/{send}/message").status_code == 403


def test_what_was_answered_is_shown_as_a_message_is_and_its_sender_as_an_address_is(house: House) -> None:
    send = house.factory.accepted()
    reply = house.factory.reply(send, sender="joan@example.com", text="Wrong colour, please.")
    bare = house.factory.reply(send, sender="joan@example.com", when=20)
    house.commit()
    support, operator = house.browser("support"), house.browser("operator")
    path = f"/sends/{send}/replies/{reply}"
    page = support.get(f"/sends/{send}").text
    assert "j•••@example.com" in page
    assert path not in page
    assert support.get(path).status_code == 403
    assert path in operator.get(f"/sends/{send}").text
    assert "j•••@example.com" in operator.get(f"/sends/{send}/evidence.html").text
    shown = operator.get(path).text
    assert "Wrong colour, please." in shown
    assert "joan@example.com" in shown
    assert "is not kept" in operator.get(f"/sends/{send}/replies/{bare}").text
    assert operator.get(f"/sends/{house.factory.accepted(message_id='m-2')}/replies/{reply}").status_code == 404
    masked = give(house, "operator", Role.OPERATOR, reveal=False).get(path).text
    assert "j•••@example.com" in masked
    assert "joan@" not in masked


LOOKS = {
    "reveal": ("post", "/sends/{send}/address", "reveal_address"),
    "message": ("get", "/sends/{send}/message", "view_message"),
    "message as HTML": ("get", "/sends/{send}/message.html", "view_message"),
    "raw payload": ("get", "/sends/{send}/events/{event}", "view_raw_event"),
    "reply": ("get", "/sends/{send}/replies/{reply}", "view_reply"),
    "evidence": ("get", "/sends/{send}/evidence.html", "export_evidence"),
}


def test_every_look_at_personal_data_is_in_the_audit_log_and_no_other_page_shows_any(house: House) -> None:
    """Each page that there is for a send: it shows neither address nor body, or it is one whose every look counts."""
    send = house.factory.held(subject="Your secret receipt", content="Dear Ada Byron", address="joan@example.com")
    body = b"""{"from": "a@b.c", "subject": "Your secret receipt", "reply_to": null, "text": "Dear Ada Byron",
        "html": "Dear Ada Byron", "headers": {}}"""
    house.factory.connection.execute(
        "update sendonce.messages set body = %s", (house.factory.vault.encrypt(body, send.bytes),)
    )
    fact = b"told once"
    raw = house.factory.vault.encrypt(b'{"to": "joan@example.com"}', fact)
    event = house.factory.event(send, "delivered", occurred=8, fact=fact, raw=raw)
    reply = house.factory.reply(send, sender="joan@example.com", text="From Ada Byron, on her secret receipt")
    house.commit()
    browser = house.browser("admin")
    written: dict[str, list[object]] = {}
    for name, (method, path, action) in LOOKS.items():
        before = len(house.rows("select from sendonce.audit where action = %s", action))
        assert getattr(browser, method)(path.format(send=send, event=event, reply=reply)).status_code == 200, name
        written[name] = [len(house.rows("select from sendonce.audit where action = %s", action)) - before]
    assert written == {name: [1] for name in LOOKS}
    counted = {path.format(send=send, event=event, reply=reply) for _, path, _ in LOOKS.values()}
    seen = set()
    for rule in house.app.url_map.iter_rules():
        if "GET" in (rule.methods or ()) and rule.arguments <= {"send_id", "kind", "event", "reply"}:
            named = {"send_id": send, "kind": "events", "event": event, "reply": reply}
            path = rule.build(named, append_unknown=False)
            assert path is not None
            if path[1] in counted or rule.rule.startswith(("/webhooks", "/api")):
                continue
            seen.add(rule.rule)
            page = browser.get(path[1]).text
            assert not [word for word in ("joan@example.com", "Ada Byron", "secret receipt") if word in page], rule.rule
    assert {"/", "/sends", "/sends/<uuid:send_id>", "/held/<uuid:send_id>", "/audit"} <= seen
