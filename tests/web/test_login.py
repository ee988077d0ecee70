"""Logging in, sessions, and what slows down guessing."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from dashboard.ledger import access, sessions
from dashboard.web import create_app
from dashboard.web.login import own_path
from dashboard.web.state import NAME
from tests.web.conftest import PASSWORD, Browser, House


def test_whoever_is_not_logged_in_is_asked_to_and_then_gets_the_wanted_page(house: House) -> None:
    browser = house.browser()
    response = browser.get("/sends?state=failed")
    assert (response.status_code, response.headers["Location"]) == (303, "/login?next=/sends%3Fstate%3Dfailed")
    response = browser.log_in("support", wanted="/sends?state=failed")
    assert response.headers["Location"] == "/sends?state=failed"


def test_a_fragment_asked_for_after_the_session_ended_sends_the_whole_page_to_the_log_in(house: House) -> None:
    response = house.browser().get("/overview", htmx=True)
    assert response.status_code == 200
    assert response.headers["HX-Redirect"] == "/login"


def test_nobody_is_sent_to_another_site_after_logging_in(house: House) -> None:
    browser = house.browser()
    with house.app.test_request_context():
        for target in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/\t/evil"):
            assert own_path(target) == "/"
    assert browser.log_in("support", wanted="//evil.example").headers["Location"] == "/"


def test_an_unknown_login_and_a_wrong_password_get_the_same_answer(house: House) -> None:
    wrong = house.browser().log_in("support", "not the password")
    unknown = house.browser().log_in("nobody", "not the password")
    assert (wrong.status_code, unknown.status_code) == (401, 401)
    assert "Login or password is wrong." in wrong.text
    assert "Login or password is wrong." in unknown.text


def test_an_unknown_login_takes_as_long_as_a_wrong_password(house: House) -> None:
    def fastest(login: str) -> float:
        durations = []
        for number in range(3):
            started = time.perf_counter()
            sessions.log_in(
                house.database, house.factory.vault, login=login, password="wrong" * 4, client=f"{login}{number}"
            )
            durations.append(time.perf_counter() - started)
        return min(durations)

    assert fastest("nobody") > 0.5 * fastest("support")


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """So many tries of one client are free: a password takes long to check."""
    monkeypatch.setitem(sessions.FREE_TRIES, "client", 3)
    return 3


def tries_of_a_client(house: House, proxies: int, forwarded: Callable[[int], str]) -> int:
    """How many log-ins are looked at before the client has to wait; ``forwarded``: the header of each request."""
    settings = replace(house.app.extensions[NAME].settings, trusted_proxies=proxies)
    browser = Browser(create_app(settings, house.database, house.factory.vault).test_client())
    browser.get("/login")
    for number in range(5):
        given = {"csrf_token": browser.csrf, "login": f"nobody{number}", "password": "wrong password"}
        headers = {"X-Forwarded-For": forwarded(number)}
        if browser.client.post("/login", data=given, headers=headers).status_code == 429:
            return number
    return number + 1


@pytest.mark.usefixtures("few")
def test_behind_proxies_tries_count_for_the_client_and_not_for_the_proxy(house: House) -> None:
    assert tries_of_a_client(house, 1, lambda n: f"203.0.113.{n}") == 5, "each its own"
    assert tries_of_a_client(house, 2, lambda n: f"198.51.100.{n}, 10.0.0.2") == 5, "a proxy before a proxy"


def test_an_address_that_a_client_itself_writes_into_the_header_counts_for_nothing(house: House, few: int) -> None:
    assert tries_of_a_client(house, 1, lambda n: f"203.0.113.{n}, 192.0.2.1") == few, "before the proxy's own word"


def test_without_trusted_proxies_the_header_is_anybodys_word(house: House, few: int) -> None:
    assert tries_of_a_client(house, 0, lambda n: f"203.0.113.{n}") == few


def test_guessing_is_slowed_down_even_with_the_right_password(house: House) -> None:
    browser = house.browser()
    for _ in range(sessions.FREE_TRIES["login"]):
        assert browser.log_in("support", "wrong password").status_code == 401
    response = browser.log_in("support")
    assert response.status_code == 429
    assert int(response.headers["Retry-After"]) >= 3
    assert house.browser().log_in("operator").status_code == 303, "others of this client may still log in"


def test_one_client_cannot_try_many_logins(house: House) -> None:
    vault, tries = house.factory.vault, sessions.FREE_TRIES["client"]
    outcomes = [
        sessions.log_in(house.database, vault, login=f"guess{number}", password="wrong", client="10.0.0.1")
        for number in range(tries + 1)
    ]
    assert all(isinstance(outcome, sessions.NotLoggedIn) for outcome in outcomes[:-1])
    assert isinstance(outcomes[-1], sessions.TooManyTries)


def test_logging_in_forgets_the_failures_before_it_and_does_not_count_as_one(house: House) -> None:
    browser = house.browser()
    browser.log_in("support", "wrong password")
    assert browser.log_in("support").status_code == 303
    kept = house.rows("select subject from sendonce.login_failures")
    assert kept == [(house.factory.vault.keyed_hash("client:127.0.0.1"),)], "the failure stays with its client"


def test_the_waiting_time_ends(house: House) -> None:
    vault = house.factory.vault
    for _ in range(sessions.FREE_TRIES["login"]):
        sessions.log_in(house.database, vault, login="support", password="wrong", client="10.0.0.1")
    with house.database.transaction() as connection:
        connection.execute("update sendonce.login_failures set at = at - interval '1 minute'")
    outcome = sessions.log_in(house.database, vault, login="support", password=PASSWORD, client="10.0.0.1")
    assert isinstance(outcome, sessions.LoggedIn)


def test_a_session_from_before_the_log_in_is_not_carried_over(house: House) -> None:
    browser = house.browser()
    browser.get("/login")
    before = browser.client.get_cookie("sendonce")
    browser.log_in("support")
    tokens = house.rows("select token_hash from sendonce.sessions")
    assert before is not None
    assert len(tokens) == 1
    other = house.browser()
    other.client.set_cookie("sendonce", before.value)
    assert other.get("/").status_code == 303


def test_logging_out_ends_the_session_in_the_ledger(house: House) -> None:
    browser = house.browser("support")
    cookie = browser.client.get_cookie("sendonce")
    assert cookie is not None
    assert browser.post("/logout").headers["Location"] == "/login"
    assert house.rows("select 1 from sendonce.sessions") == []
    stolen = house.browser()
    stolen.client.set_cookie("sendonce", cookie.value)
    assert stolen.get("/").status_code == 303


def test_a_disabled_person_is_out_at_once(house: House) -> None:
    browser = house.browser("support")
    with house.database.transaction() as connection:
        access.disable_person(connection, login="support")
    assert browser.get("/").status_code == 303
    assert house.browser().log_in("support").status_code == 401


def test_a_new_password_ends_the_sessions_of_the_old_one(house: House) -> None:
    browser = house.browser("support")
    with house.database.transaction() as connection:
        access.set_password(connection, login="support", password="another horse battery")
    assert browser.get("/").status_code == 303
    assert house.browser().log_in("support", "another horse battery").status_code == 303


def test_a_session_ends_by_itself(house: House) -> None:
    browser = house.browser("support")
    with house.database.transaction() as connection:
        connection.execute(
            "update sendonce.sessions set expires_at = expires_at - %s", (sessions.LIFETIME + timedelta(seconds=1),)
        )
    assert browser.get("/").status_code == 303


def test_the_database_holds_neither_password_nor_session_token(house: House) -> None:
    browser = house.browser("support")
    with browser.client.session_transaction() as session:
        token = session["_user_id"]
    (hashed,) = house.rows("select password_hash from sendonce.users where login = 'support'")[0]
    (stored,) = house.rows("select token_hash from sendonce.sessions")[0]
    assert str(hashed).startswith("$argon2id$")
    assert token.encode() not in bytes(stored)  # type: ignore[call-overload]


def test_a_form_without_its_token_does_nothing(house: House) -> None:
    browser = house.browser("support")
    browser.csrf = "forged"
    assert browser.post("/logout").status_code == 400
    assert browser.get("/").status_code == 200
