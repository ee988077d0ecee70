"""The environment is read once, and whoever sets it up learns of every mistake at once."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from dashboard.settings import Settings, SettingsError, read_database_url, read_settings

KEY = base64.b64encode(bytes(range(32))).decode()
OTHER_KEY = base64.urlsafe_b64encode(b"\xff" * 32).decode().rstrip("=")
GOOD = {
    "DATABASE_URL": "postgresql://sendonce:pa%40ss@db.internal:5433/sendonce?sslmode=require",
    "SENDONCE_SECRET_KEY": "s" * 32,
    "SENDONCE_ENCRYPTION_KEYS": f"k2:{KEY}",
}


def problems_of(changes: dict[str, str]) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read_settings(GOOD | changes)
    return caught.value.problems


def test_three_variables_are_enough() -> None:
    settings = read_settings(GOOD)
    assert settings.database_url == GOOD["DATABASE_URL"]
    assert settings.database_read_url is None
    assert settings.encryption_keys == (("k2", bytes(range(32))),)
    assert (settings.log, settings.environment, settings.public_url) == ("json", "production", "http://127.0.0.1:8000")
    assert (settings.lease_seconds, settings.in_flight, settings.set_size) == (60, 200, 500)


def test_every_mistake_is_reported_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        read_settings({"SENDONCE_LOG": "xml", "SENDONCE_LANES": "many", "SENDONCE_PUBLIC_URL": "mail.example.com"})
    assert {problem.split()[0] for problem in caught.value.problems} == {
        "DATABASE_URL",
        "SENDONCE_SECRET_KEY",
        "SENDONCE_ENCRYPTION_KEYS",
        "SENDONCE_LOG",
        "SENDONCE_LANES",
        "SENDONCE_PUBLIC_URL",
    }
    assert len(caught.value.problems) == 6
    assert str(caught.value).splitlines() == caught.value.problems


@pytest.mark.parametrize("number", ["-1", "11", "1.5", "all"])
def test_trusted_proxies_are_counted(number: str) -> None:
    (problem,) = problems_of({"SENDONCE_TRUSTED_PROXIES": number})
    assert problem.startswith("SENDONCE_TRUSTED_PROXIES is ")
    assert read_settings(GOOD).trusted_proxies == 0
    assert read_settings(GOOD | {"SENDONCE_TRUSTED_PROXIES": "2"}).trusted_proxies == 2


def test_name_servers_are_addresses_with_or_without_a_port() -> None:
    given = GOOD | {"SENDONCE_DNS_SERVERS": "192.0.2.53, [2001:db8::53]:5353,"}
    assert read_settings(given).dns_servers == (("192.0.2.53", 53), ("2001:db8::53", 5353))
    assert read_settings(GOOD).dns_servers == ()
    for wrong in ("ns.example.com", "192.0.2.53:x", "192.0.2.53/24"):
        (problem,) = problems_of({"SENDONCE_DNS_SERVERS": wrong})
        assert problem.startswith(f"SENDONCE_DNS_SERVERS has {wrong!r}")


def test_a_missing_secret_is_refused_with_the_command_that_makes_one() -> None:
    for name in ("SENDONCE_SECRET_KEY", "SENDONCE_ENCRYPTION_KEYS"):
        (problem,) = problems_of({name: ""})
        assert problem.startswith(f"{name} is not set")
        assert "python3 -c" in problem


def test_a_value_may_come_from_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("from-a-file-" + "x" * 32 + "\n")
    settings = read_settings(GOOD | {"SENDONCE_SECRET_KEY": "", "SENDONCE_SECRET_KEY_FILE": str(secret)})
    assert settings.secret_key == "from-a-file-" + "x" * 32


def test_a_file_that_is_missing_empty_or_given_beside_a_value_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.write_text("\n")
    without = {"SENDONCE_SECRET_KEY": ""}
    assert problems_of(without | {"SENDONCE_SECRET_KEY_FILE": str(tmp_path / "none")}) == [
        "SENDONCE_SECRET_KEY cannot be read from the file in SENDONCE_SECRET_KEY_FILE: No such file or directory"
    ]
    assert problems_of(without | {"SENDONCE_SECRET_KEY_FILE": str(empty)}) == [
        "SENDONCE_SECRET_KEY is empty: the file in SENDONCE_SECRET_KEY_FILE holds nothing"
    ]
    assert "is set twice" in problems_of({"SENDONCE_SECRET_KEY_FILE": str(empty)})[0]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("postgres://u@h/d", "postgresql://u@h/d"),
        ("postgresql+psycopg://u@h/d", "postgresql://u@h/d"),
        ("postgresql:///d?host=/run/postgresql", "postgresql:///d?host=/run/postgresql"),
        (
            "postgresql://u@h1:5432,h2:5433/d?target_session_attrs=read-write",
            "postgresql://u@h1:5432,h2:5433/d?target_session_attrs=read-write",
        ),
        ("postgresql://u@[::1]/d", "postgresql://u@[::1]/d"),
    ],
)
def test_any_libpq_uri_is_taken(given: str, read: str) -> None:
    assert read_settings(GOOD | {"DATABASE_URL": given}).database_url == read
    assert read_database_url({"DATABASE_URL": given}) == read


@pytest.mark.parametrize(
    "given", ["sendonce", "mysql://u@h/d", "postgresql://u:s3cret%@h/d", "postgresql://h/d?colour=s3cret"]
)
def test_a_bad_database_url_is_refused_without_quoting_it(given: str) -> None:
    (problem,) = problems_of({"DATABASE_URL": given})
    assert problem.startswith("DATABASE_URL is not")
    assert "s3cret" not in problem


def test_the_first_encryption_key_is_the_active_one_and_order_is_kept() -> None:
    settings = read_settings(GOOD | {"SENDONCE_ENCRYPTION_KEYS": f"new:{OTHER_KEY}, old:{KEY},"})
    assert [key_id for key_id, _ in settings.encryption_keys] == ["new", "old"]
    assert settings.encryption_keys[0][1] == b"\xff" * 32


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (KEY, "key 1 is not id:base64"),
        (f"a b:{KEY}", "key 1 is not id:base64"),
        ("k1:c2hvcnQ=", "key k1 is not 32 bytes in base64"),
        ("k1:%%%", "key k1 is not 32 bytes in base64"),
        (f"k1:{KEY},k1:{OTHER_KEY}", "has the id k1 twice"),
    ],
)
def test_a_bad_encryption_key_is_named_by_its_id_and_never_shown(given: str, told: str) -> None:
    (problem,) = problems_of({"SENDONCE_ENCRYPTION_KEYS": given})
    assert told in problem
    assert KEY not in problem


@pytest.mark.parametrize("given", ["0", "33", "1.5", "nan", "inf", "-1", "two"])
def test_a_number_out_of_bounds_is_refused(given: str) -> None:
    (problem,) = problems_of({"SENDONCE_LANES": given})
    assert problem.startswith("SENDONCE_LANES is")


def test_secrets_are_not_in_the_printed_form() -> None:
    settings = read_settings(GOOD)
    printed = repr(settings) + str(settings)
    for secret in (GOOD["SENDONCE_SECRET_KEY"], "pa%40ss", repr(bytes(range(32)))):
        assert secret not in printed


def test_settings_cannot_be_changed() -> None:
    settings = read_settings(GOOD)
    with pytest.raises(AttributeError):
        settings.__setattr__("log", "console")
    assert isinstance(settings, Settings)
