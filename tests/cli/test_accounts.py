"""``sendonce workspace``, ``account`` and ``stream``: from an empty ledger to one that may send by a real provider."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from dashboard.cli import run
from dashboard.ledger.accounts import Account, read_account
from dashboard.ledger.database import Database
from dashboard.ledger.vault import Vault
from tests.place import KEYS

API_KEY = "re_a_secret_nobody_may_see"
WEBHOOK_SECRET = "whsec_c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    file = tmp_path / "api_key"
    file.write_text(f"{API_KEY}\n")
    return f"api_key={file}"


@pytest.fixture
def resend(ledger: Database, key_file: str, capsys: pytest.CaptureFixture[str]) -> str:
    """A workspace with the account ``resend``; gives what was printed."""
    assert run(["workspace", "add", "default", "--title", "Lovelace & Co."]) == 0
    assert run(["account", "add", "resend", "--provider", "resend", "--secret-file", key_file]) == 0
    return capsys.readouterr().out


def stored(ledger: Database, name: str = "resend") -> Account:
    with ledger.transaction() as connection:
        row = connection.execute("select id from sendonce.accounts where name = %s", (name,)).fetchone()
        assert row is not None
        found = read_account(connection, Vault(KEYS), row[0])
    assert found is not None
    return found


def ask(ledger: Database, question: str) -> object:
    with ledger.transaction() as connection:
        row = connection.execute(question.encode()).fetchone()
    return row and row[0]


def type_in(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_an_account_prints_the_webhook_address_and_never_its_secret(resend: str, ledger: Database) -> None:
    account = stored(ledger)
    assert f"https://mail.example.com/webhooks/{account.id}\n" in resend
    assert "sendonce account rotate-webhook-secret resend" in resend
    assert API_KEY not in resend
    assert account.settings == {"api_key": API_KEY}
    assert ask(ledger, "select settings from sendonce.accounts") == {}
    assert API_KEY.encode() not in bytes(ask(ledger, "select secrets from sendonce.accounts"))  # type: ignore[call-overload]
    assert ask(ledger, "select extract(epoch from key_window)::int from sendonce.accounts") == 86_400


@pytest.mark.usefixtures("resend")
def test_accounts_are_listed_with_their_state_and_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["account", "pause", "resend", "--reason", "their status page is red"]) == 0
    assert run(["account", "list"]) == 0
    told = capsys.readouterr().out
    assert "paused until it is resumed: their status page is red\thttps://mail.example.com/webhooks/" in told
    assert run(["account", "resume", "resend"]) == 0
    assert run(["account", "list"]) == 0
    assert "\tactive\t" in capsys.readouterr().out


@pytest.mark.usefixtures("resend")
def test_the_old_webhook_secret_stays_good_until_it_is_ended(ledger: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for secret in ("whsec_b25l", "whsec_dHdv"):
        type_in(monkeypatch, f"{secret}\n")
        assert run(["account", "rotate-webhook-secret", "resend", "--secret-stdin"]) == 0
    assert stored(ledger).settings["webhook_secret"] == "whsec_dHdv whsec_b25l"
    assert run(["account", "rotate-webhook-secret", "resend", "--end"]) == 0
    assert stored(ledger).settings == {"api_key": API_KEY, "webhook_secret": "whsec_dHdv"}


@pytest.mark.usefixtures("resend")
def test_what_is_not_named_stays_when_an_account_is_changed(ledger: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(["account", "set", "resend", "--rate", "2"]) == 0
    type_in(monkeypatch, "re_the_next_one\n")
    assert run(["account", "set", "resend", "--secret-stdin", "api_key", "--set", "base_url=https://eu.example"]) == 0
    assert stored(ledger).settings == {"api_key": "re_the_next_one", "base_url": "https://eu.example"}
    assert ask(ledger, "select rate_per_second from sendonce.accounts") == 2
    assert run(["account", "set", "resend", "--set", "base_url="]) == 0
    assert stored(ledger).settings == {"api_key": "re_the_next_one"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--provider", "resend"], "api_key is needed: --secret-file api_key=FILE, or --secret-stdin api_key"),
        (["--provider", "resend", "--set", "api_key=re_x"], "others see the command line"),
        (["--provider", "resend", "--set", "colour=red"], "Resend has no setting colour; it has api_key, base_url"),
        (["--provider", "resend", "--secret-file", "base_url=/dev/null"], "/dev/null is empty"),
        (["--provider", "resend", "--secret-file", "api_key=/nowhere"], "/nowhere cannot be read"),
        (["--provider", "smtp"], "host is needed, by --set host="),
        (["--provider", "smtp", "--set", "host=a b"], "host must be a server's name or address"),
        (["--provider", "smtp", "--set", "host"], "--set takes NAME=…"),
    ],
)
def test_what_cannot_work_is_one_line_and_stores_nothing(
    arguments: list[str],
    told: str,
    ledger: Database,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    type_in(monkeypatch, "")
    assert run(["workspace", "add", "default"]) == 0
    assert run(["account", "add", "one", *arguments]) == 2
    captured = capsys.readouterr()
    assert told in captured.err
    assert captured.err.count("\n") == 1
    assert "re_x" not in captured.err
    assert ask(ledger, "select count(*) from sendonce.accounts") == 0


@pytest.mark.usefixtures("ledger")
def test_without_a_workspace_the_refusal_says_how_to_make_one(
    key_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["account", "add", "resend", "--provider", "resend", "--secret-file", key_file]) == 2
    assert "make it with: sendonce workspace add default" in capsys.readouterr().err


def test_an_smtp_account_has_no_webhook(ledger: Database, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["workspace", "add", "default"]) == 0
    assert run(["account", "add", "relay", "--provider", "smtp", "--set", "host=smtp.example.com"]) == 0
    assert "ebhook" not in capsys.readouterr().out
    assert stored(ledger, "relay").settings == {"host": "smtp.example.com"}
    assert run(["account", "rotate-webhook-secret", "relay", "--secret-stdin"]) == 2
    assert "SMTP has no webhooks" in capsys.readouterr().err


@pytest.mark.usefixtures("resend")
def test_a_mailstream_has_the_rules_of_its_class_except_those_that_are_given(
    ledger: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    add = ["stream", "add", "receipts", "--class", "transactional", "--account", "resend", "--owner", "Payments team"]
    assert run([*add, "--grace", "10m"]) == 0
    assert run(["stream", "list"]) == 0
    told = capsys.readouterr().out
    assert "receipts\ttransactional\tresend\tPayments team\tunknown: release after 10m\tactive\n" in told
    assert run(["stream", "set", "receipts", "--unknown", "hold", "--title", "Receipts"]) == 0
    query = "select title || owner || unknown_policy || grace || max_attempts from sendonce.mailstreams"
    assert ask(ledger, query) == "ReceiptsPayments teamhold00:10:0020"
    assert run(["stream", "set", "receipts", "--reply-domain", "Reply.Shop.example."]) == 0
    assert run(["stream", "set", "receipts", "--title", "All receipts"]) == 0
    assert ask(ledger, "select reply_domain from sendonce.mailstreams") == "reply.shop.example"
    assert run(["stream", "set", "receipts", "--reply-domain", "no domain"]) == 2
    assert run(["stream", "set", "receipts", "--no-reply-domain"]) == 0
    assert ask(ledger, "select reply_domain from sendonce.mailstreams") is None


@pytest.mark.usefixtures("resend")
def test_a_mailstream_whose_rules_make_no_sense_is_refused(
    ledger: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["account", "add", "relay", "--provider", "smtp", "--set", "host=smtp.example.com"]) == 0
    add = ["stream", "add", "receipts", "--class", "transactional", "--account"]
    assert run([*add, "relay", "--unknown", "release"]) == 2
    assert "an account that honours idempotency keys" in capsys.readouterr().err
    assert run([*add, "nobody"]) == 2
    assert "default has no account nobody" in capsys.readouterr().err
    assert run([*add, "resend", "--batches"]) == 2
    assert "transactional mail goes one by one" in capsys.readouterr().err
    assert run([*add, "resend", "--grace", "soon"]) == 2
    assert "'soon' is not a time span such as 90s" in capsys.readouterr().err
    assert ask(ledger, "select count(*) from sendonce.mailstreams") == 0


@pytest.mark.usefixtures("resend")
def test_a_bulk_mailstream_sends_in_batches_where_somebody_says_so(
    ledger: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["stream", "add", "news", "--class", "campaign", "--account", "resend"]) == 0
    assert ask(ledger, "select batches from sendonce.mailstreams") is False
    assert run(["stream", "set", "news", "--batches"]) == 0
    assert run(["stream", "list"]) == 0
    assert "\tactive\tin batches\n" in capsys.readouterr().out
    assert run(["stream", "set", "news", "--class", "security"]) == 2
    assert "security mail goes one by one" in capsys.readouterr().err
    assert run(["stream", "set", "news", "--one-by-one", "--class", "security"]) == 0
    assert ask(ledger, "select batches from sendonce.mailstreams") is False
    assert ask(ledger, "select detail ->> 'batches' from sendonce.audit order by id desc limit 1") == "False"


@pytest.mark.usefixtures("resend")
def test_an_account_cannot_stop_honouring_keys_that_a_mailstream_relies_on(
    ledger: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["stream", "add", "receipts", "--class", "transactional", "--account", "resend"]) == 0
    assert run(["account", "set", "resend", "--set", "honours_keys=false"]) == 2
    assert "the mailstream receipts could not keep its rules" in capsys.readouterr().err
    assert stored(ledger).settings == {"api_key": API_KEY}


@pytest.mark.usefixtures("resend")
def test_a_mailstream_is_paused_with_a_reason_and_resumed(ledger: Database, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["stream", "add", "news", "--class", "campaign", "--account", "resend"]) == 0
    assert run(["stream", "pause", "news", "--reason", "wrong price"]) == 0
    assert run(["stream", "list"]) == 0
    assert "paused: wrong price" in capsys.readouterr().out
    assert run(["stream", "resume", "news"]) == 0
    assert ask(ledger, "select paused_at from sendonce.mailstreams") is None
    assert run(["stream", "pause", "views", "--reason", "x"]) == 2
    assert run(["stream", "pause", "news", "--reason", "x", "--user", "nobody"]) == 2
    assert "default has no mailstream views" in capsys.readouterr().err


@pytest.mark.usefixtures("resend")
def test_each_change_is_in_the_audit_log_without_secrets(ledger: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    type_in(monkeypatch, f"{WEBHOOK_SECRET}\n")
    assert run(["account", "rotate-webhook-secret", "resend", "--secret-stdin"]) == 0
    assert run(["stream", "add", "news", "--class", "campaign", "--account", "resend"]) == 0
    with ledger.transaction() as connection:
        rows = connection.execute("select action, subject, detail::text from sendonce.audit order by id").fetchall()
    assert [(action, subject) for action, subject, _ in rows] == [
        ("add_workspace", "default"), ("add_account", "resend"), ("rotate_webhook_secret", "resend"),
        ("add_stream", "news"),
    ]  # fmt: skip
    assert not any(secret in str(rows) for secret in (API_KEY, WEBHOOK_SECRET))
