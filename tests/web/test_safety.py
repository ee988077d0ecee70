"""Headers, static files, error pages, and what machines ask."""

from __future__ import annotations

import re

from dashboard.ledger.database import Database
from dashboard.settings import Settings
from dashboard.web import create_app
from tests.web.conftest import House


def test_every_page_forbids_foreign_and_inline_code_and_is_not_kept(house: House) -> None:
    browser = house.browser("admin")
    for path in ("/", "/sends", "/overview", "/held", "/operations", "/audit", "/nowhere", "/login"):
        response = browser.get(path)
        policy = dict(part.split(" ", 1) for part in response.headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        assert not re.findall(
            r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|https?://(?!www\.w3\.org)", response.text
        )


def test_the_cookie_is_kept_from_scripts_and_other_sites(house: House) -> None:
    cookie = house.browser().get("/login").headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Secure" not in cookie, "the public address is plain HTTP on this machine"


def test_the_cookie_is_secure_wherever_the_public_address_is_not_this_machine(house: House) -> None:
    for address in ("https://mail.example.com", "http://mail.internal"):
        settings = Settings(
            database_url=house.database.url,
            secret_key="s" * 40,
            encryption_keys=(("k1", b"k" * 32),),
            public_url=address,
        )
        client = create_app(settings, house.database, house.factory.vault).test_client()
        cookie = client.get("/login").headers["Set-Cookie"]
        assert cookie.startswith("__Host-sendonce=")
        assert "Secure" in cookie


def test_static_files_are_kept_for_ever_under_the_hash_of_their_content(house: House) -> None:
    browser = house.browser()
    page = browser.get("/login").text
    (address,) = re.findall(r'href="(/static/css/tokens\.css\?v=[0-9a-f]{12})"', page)
    with browser.get(address) as response:
        assert "immutable" in response.headers["Cache-Control"]
        assert response.headers["ETag"]
    with browser.get("/static/css/tokens.css") as response:
        assert response.headers["Cache-Control"] == "no-cache"


def test_a_fault_shows_a_number_and_no_traceback(house: House) -> None:
    with house.database.transaction() as connection:
        connection.execute("alter table sendonce.mailstreams rename to elsewhere")
    response = house.browser("operator").get("/operations")
    assert response.status_code == 500
    assert re.search(r"fault <code>[0-9a-f]{8}</code>", response.text)
    assert "Traceback" not in response.text
    assert "elsewhere" not in response.text


def test_an_unknown_address_says_what_to_do(house: House) -> None:
    response = house.browser("support").get("/nowhere")
    assert response.status_code == 404
    assert "Search for an address" in response.text
    assert 'href="/sends"' in response.text
    assert house.browser().get("/nowhere").status_code == 404


def test_without_its_database_the_app_says_so_on_every_page(house: House) -> None:
    browser = house.browser("support")
    cookie = browser.client.get_cookie("sendonce")
    assert cookie is not None
    unreachable = Database("postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=1")
    settings = Settings(database_url="-", secret_key="s" * 40, encryption_keys=(("k1", b"k" * 32),))
    client = create_app(settings, unreachable, house.factory.vault).test_client()
    client.set_cookie("sendonce", cookie.value)
    for path in ("/", "/sends", "/readyz", "/nowhere"):
        response = client.get(path)
        assert response.status_code == 503, path
        assert "127.0.0.1:1" not in response.text
    assert "The ledger cannot be reached" in client.get("/").text
    assert client.get("/healthz").status_code == 200
    unreachable.close()


def test_readiness_asks_for_the_newest_schema(house: House) -> None:
    browser = house.browser()
    assert browser.get("/readyz").status_code == 200
    with house.database.transaction() as connection:
        connection.execute("update sendonce.alembic_version set version_num = 'older'")
    response = browser.get("/readyz")
    assert response.status_code == 503
    assert "sendonce migrate" in response.text
