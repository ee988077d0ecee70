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
    "/operations/accounts": Role.OPERATOR,
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
