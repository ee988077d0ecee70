"""``sendonce provider check``: what an account can do, without sending anything."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from werkzeug.serving import make_server

from dashboard.cli import run
from dashboard.ledger.database import Database
from dashboard.ledger.vault import Vault
from dashboard.settings import Settings
from dashboard.simulator import Config, Simulator
from dashboard.web import create_app
from tests.name_server import NameServer
from tests.place import KEYS

DER = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
API_KEY = "re_a_secret_nobody_may_see"


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(Config(api_key=API_KEY)) as running:
        yield running


@pytest.fixture
def web(ledger: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The web on a socket, known to the command as the public address."""
    settings = Settings(database_url="unused", secret_key="s" * 40, encryption_keys=KEYS)
    server = make_server("127.0.0.1", 0, create_app(settings, ledger, Vault(KEYS)), threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("SENDONCE_PUBLIC_URL", url)
    yield url
    server.shutdown()
    thread.join()
    server.server_close()


def add(simulator: Simulator, folder: Path, *, api_key: str = API_KEY, secret: str | None = None) -> None:
    (folder / "key").write_text(api_key)
    given = ["--secret-file", f"api_key={folder / 'key'}", "--set", f"base_url={simulator.http_url}"]
    given += ["--set", "sending_domains=shop.example"]
    if secret is not None:
        (folder / "secret").write_text(secret)
        given += ["--secret-file", f"webhook_secret={folder / 'secret'}"]
    assert run(["workspace", "add", "default", "--title", "Lovelace & Co."]) == 0
    assert run(["account", "add", "resend", "--provider", "resend", *given]) == 0


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    """The DNS, in which one domain signs, and says nothing of who may send."""
    key = base64.b64encode(rsa.generate_private_key(65537, 2048).public_key().public_bytes(*DER)).decode()
    zone = {
        "shop.example": ['TXT "v=spf1 -all"', 'TXT "v=spf1 ~all"'],
        "resend._domainkey.shop.example": [f'TXT "v=DKIM1; p={key[:200]}" "{key[200:]}"'],
    }
    with NameServer(zone) as server:
        monkeypatch.setenv("SENDONCE_DNS_SERVERS", f"127.0.0.1:{server.port}")
        yield server


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return {found["what"]: found["verdict"] for found in json.loads(capsys.readouterr().out)["findings"]}


def test_what_is_right_and_what_is_wrong_is_told_line_by_line(
    simulator: Simulator, web: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(simulator, tmp_path, secret=simulator.webhook_secret)
    capsys.readouterr()
    assert run(["provider", "check", "resend"]) == 1, "the address is no https"
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines] == [
        ["good", "credentials"], ["good", "events"], ["wrong", "address"], ["wrong", "spf"], ["good", "dkim"],
        ["wrong", "dmarc"], ["publish:", "_dmarc.shop.example"], ["to", "paste"],
    ]  # fmt: skip
    assert f"{web}/webhooks/" in lines[2]
    assert f"{web}/webhooks/" in lines[-1], "no second one: Resend hands in no mail"
    assert "2 SPF records" in lines[3]
    assert "(RFC 7208 §3.2, §4.5)" in lines[3]
    assert API_KEY not in "".join(lines)
    assert simulator.books == []


def test_a_wrong_key_and_a_missing_secret_are_found(
    simulator: Simulator, ledger: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add(simulator, tmp_path, api_key="re_another")
    capsys.readouterr()
    assert run(["provider", "check", "resend", "--json"]) == 1
    assert told(capsys).items() >= {("credentials", "wrong"), ("events", "wrong")}


def test_an_account_that_does_not_exist_is_a_users_mistake(
    ledger: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["workspace", "add", "default", "--title", "Lovelace & Co."]) == 0
    assert run(["provider", "check", "nobody"]) == 2
    assert "sendonce account list" in capsys.readouterr().err
