"""What is written: the same bytes on every attempt, nothing that a field could smuggle in, nothing lost on the way."""

from __future__ import annotations

import email
import email.policy
import json
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.providers import provider
from dashboard.providers.base import NeverWritten, Rejected, Scope
from dashboard.providers.conversation import dot_stuffed
from dashboard.providers.mime import message_bytes
from dashboard.providers.resend import fields_of
from dashboard.providers.wording import for_people
from tests.providers.rig import PATIENCE, SEND_ID, Server, http_answer, outgoing, read_request, refused_port, sample

RICH: dict[str, Any] = {
    "sender": "Zoë’s Shop <shop@example.com>",
    "subject": "Grüße zu Ihrer Bestellung № 84721, die heute früh bei uns eingegangen ist ✓",
    "reply_to": "Help <help@example.com>",
    "text": "Hallo,\n.\n..dots\nein sehr langer Satz " + "wort " * 60 + "\r\nEnde",
    "html": "<p>Grüße</p>",
    "headers": {"List-Unsubscribe": f"<https://example.com/u/{'a' * 200}>", "X-Order": "84721"},
}


def submitted_with(settings: dict[str, str], **changes: Any) -> bytes:
    """The HTTP request of one submission."""
    seen: list[bytes] = []

    def behave(connection: socket.socket, _: int) -> None:
        seen.append(read_request(connection))
        connection.sendall(http_answer(b'{"id":"x"}'))

    with Server(behave) as server:
        channel = provider("resend").open_channel(
            {"api_key": "re_sample_key", "base_url": server.url + "/prefix/"} | settings, request_timeout=PATIENCE
        )
        channel.submit(outgoing(**changes))
        channel.close()
    return seen[0]


# ── Resend ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_resend_request_has_the_documented_shape() -> None:
    recorded = sample("resend", "send_request.json")
    head, _, body = submitted_with({}).partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
    assert lines[0] == "POST /prefix/emails HTTP/1.1"
    assert headers["idempotency-key"] == str(SEND_ID)
    assert headers["authorization"] == recorded["headers"]["authorization"]
    assert headers["content-type"] == recorded["headers"]["content-type"]
    sent = json.loads(body)
    assert set(sent) == set(recorded["body"])
    assert sent["to"] == ["ada@example.com"]
    assert sent["tags"] == [{"name": "send_id", "value": str(SEND_ID)}]
    assert sent["headers"] == {"X-Send-Id": str(SEND_ID)}


def test_under_a_key_every_attempt_has_the_same_bytes() -> None:
    first = submitted_with({}, **RICH).partition(b"\r\n\r\n")[2]
    reordered = RICH | {"headers": dict(reversed(RICH["headers"].items()))}
    assert submitted_with({}, attempt=2, **reordered).partition(b"\r\n\r\n")[2] == first


def test_without_a_key_window_the_attempt_number_travels_and_no_key_does() -> None:
    request = submitted_with({"honours_keys": "false"}, attempt=7)
    assert b"idempotency-key" not in request.lower()
    assert {"name": "attempt", "value": "7"} in json.loads(request.partition(b"\r\n\r\n")[2])["tags"]


def test_capabilities_follow_the_account() -> None:
    resend = provider("resend")
    declared = resend.capabilities({}).key_window
    assert declared is not None
    assert declared.total_seconds() == 24 * 3600
    assert resend.capabilities({"honours_keys": "false"}).key_window is None
    assert not resend.capabilities({}).look_up
    assert provider("smtp").capabilities({}).key_window is None


@pytest.mark.parametrize(
    ("sender", "written"),
    [
        ("shop@example.com", "shop@example.com"),
        ("Zoë’s Shop <shop@example.com>", "Zoë’s Shop <shop@example.com>"),
        ("Acme, Inc. <shop@example.com>", '"Acme, Inc." <shop@example.com>'),
        ('"a \\"b\\" @c" <shop@example.com>', '"a \\"b\\" @c" <shop@example.com>'),
        ("<shop@example.com>", "shop@example.com"),
    ],
)
def test_a_sender_is_written_with_quotes_where_they_are_needed(sender: str, written: str) -> None:
    assert fields_of(outgoing(sender=sender), honours_keys=True)["from"] == written
    assert read(sender=sender)["From"] == written


def test_a_name_is_quoted() -> None:
    body = fields_of(outgoing(name='Ada "the first" Ł'), honours_keys=True)
    assert body["to"] == ['"Ada \\"the first\\" Ł" <ada@example.com>']


# ── MIME ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def read(**changes: Any) -> email.message.EmailMessage:
    parsed = email.message_from_bytes(message_bytes(outgoing(**changes)), policy=email.policy.SMTP)
    assert isinstance(parsed, email.message.EmailMessage)
    assert not parsed.defects
    return parsed


def test_a_message_is_the_same_bytes_on_every_attempt() -> None:
    reordered = RICH | {"headers": dict(reversed(RICH["headers"].items()))}
    assert message_bytes(outgoing(attempt=1, **RICH)) == message_bytes(outgoing(attempt=2, seconds=5, **reordered))


def test_a_message_reads_back_as_it_was_meant() -> None:
    parsed = read(name="Ada Łovelace", **RICH)
    assert parsed["Subject"] == RICH["subject"]
    assert parsed["From"] == RICH["sender"]
    assert parsed["To"].addresses[0].display_name == "Ada Łovelace"
    assert parsed["To"].addresses[0].addr_spec == "ada@example.com"
    assert parsed["Reply-To"].addresses[0].addr_spec == "help@example.com"
    assert parsed["Message-ID"] == f"<{SEND_ID}@example.com>"
    assert parsed["X-Send-Id"] == str(SEND_ID)
    assert parsed["Date"].datetime == outgoing().message.date
    text, html = parsed.get_body(("plain",)), parsed.get_body(("html",))
    assert text is not None
    assert html is not None
    assert text.get_content().splitlines() == RICH["text"].splitlines()
    assert html.get_content().splitlines() == RICH["html"].splitlines()


def test_a_long_link_in_a_header_stays_one_readable_word() -> None:
    assert RICH["headers"]["List-Unsubscribe"].encode() in message_bytes(outgoing(**RICH))


def test_every_line_is_short_ascii_that_ends_in_crlf() -> None:
    written = message_bytes(outgoing(name="Ł" * 80, **RICH | {"html": "<p>" + "ß" * 3000}))
    assert written.isascii()
    assert b"\n" not in written.replace(b"\r\n", b"")
    assert b"\r" not in written.replace(b"\r\n", b"")
    assert max(map(len, written.split(b"\r\n"))) <= 998


@given(
    subject=st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=300),
    name=st.text(st.characters(exclude_categories=["C", "Zl", "Zp"]), max_size=100),
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=300),
)
def test_any_text_reads_back_and_adds_no_header(subject: str, name: str, text: str) -> None:
    parsed = email.message_from_bytes(message_bytes(outgoing(subject=subject, name=name, text=text)))
    assert [header.lower() for header in parsed] == [
        *("date", "message-id", "from", "to", "subject", "x-send-id"),
        *("mime-version", "content-type", "content-transfer-encoding"),
    ]
    payload = parsed.get_payload(decode=True)
    assert isinstance(payload, bytes)
    wanted = text.replace("\r\n", "\n").replace("\r", "\n")
    assert payload.decode().replace("\r\n", "\n").removesuffix("\n") == wanted.removesuffix("\n")
    shown = "".join(
        part if isinstance(part, str) else part.decode(charset or "ascii")
        for part, charset in email.header.decode_header(parsed["subject"].replace("\r\n", ""))
    )
    assert shown.split() == subject.split()


def test_a_part_cannot_end_the_message_early() -> None:
    text = f"--=_{SEND_ID.hex}--\n"
    body = read(text=text, html="<p>still here").get_body(("html",))
    assert body is not None
    assert body.get_content().strip() == "<p>still here"


def test_a_domain_in_another_script_travels_in_its_ascii_form() -> None:
    parsed = read(address="ada@straße.example", sender="shop@bücher.example")
    assert parsed["To"].addresses[0].domain == "xn--strae-oqa.example"
    assert parsed["Message-ID"] == f"<{SEND_ID}@xn--bcher-kva.example>"


@given(st.binary(max_size=200))
def test_no_content_can_hold_the_end_of_the_message(content: bytes) -> None:
    stuffed = dot_stuffed(content)
    assert b"\r\n.\r\n" not in stuffed
    assert not stuffed.startswith(b".\r\n")
    assert stuffed.endswith(b"\r\n")
    assert b"\n" not in stuffed.replace(b"\r\n", b"")


# ── what cannot be written ───────────────────────────────────────────────────────────────────────────────────────────

ONE_LINE = ("sender", "subject", "reply_to", "address", "name")
POISON = {"lone surrogate": "\ud800", "NUL": "\0", "CR": "\r", "LF": "\n", "CRLF": "\r\nBcc: eve@example.com"}
POISON |= {"next line": "\x85", "escape": "\x1b"}


@pytest.mark.parametrize("adapter", ["resend", "smtp"])
@pytest.mark.parametrize("poison", POISON.values(), ids=POISON)
@pytest.mark.parametrize("field", [*ONE_LINE, "header name", "header value"])
def test_poison_in_a_line_is_refused_for_good(adapter: str, field: str, poison: str) -> None:
    if field == "header name":
        changes: dict[str, Any] = {"headers": {f"X-A{poison}": "b"}}
    elif field == "header value":
        changes = {"headers": {"X-A": f"b{poison}c"}}
    else:
        changes = {field: f"shop{poison}@example.com"}
    _assert_refused(adapter, changes)


@pytest.mark.parametrize("adapter", ["resend", "smtp"])
@pytest.mark.parametrize("poison", ["\ud800", "\0"])
@pytest.mark.parametrize("field", ["text", "html"])
def test_poison_in_a_body_is_refused_for_good(adapter: str, field: str, poison: str) -> None:
    _assert_refused(adapter, {field: f"before{poison}after"})


@pytest.mark.parametrize("adapter", ["resend", "smtp"])
@pytest.mark.parametrize(
    "changes",
    [
        {"text": None},
        {"address": "nobody"},
        {"address": "a@example.com, b@example.com"},
        {"address": "Ada <ada@example.com>"},
        {"sender": ""},
        {"sender": "Shop"},
        {"sender": "a@example.com, B <b@example.com>"},
        {"sender": "A <a@example.com> <b@example.com>"},
        {"sender": '"A <a@example.com>'},
        {"sender": "a@example.com, b@example.com"},
        {"reply_to": "not an address"},
        {"headers": {"Bcc": "eve@example.com"}},
        {"headers": {"cc": "eve@example.com"}},
        {"headers": {"Content-Type": "text/plain"}},
        {"headers": {"X A": "b"}},
        {"headers": {"": "b"}},
        {"headers": {"X-A": "b", "x-a": "c"}},
    ],
)
def test_what_no_adapter_may_write_is_refused_for_good(adapter: str, changes: dict[str, Any]) -> None:
    _assert_refused(adapter, changes)


@given(st.dictionaries(st.sampled_from([*ONE_LINE, "text", "html"]), st.text(max_size=20)))
def test_no_content_makes_submit_raise(changes: dict[str, str]) -> None:
    for adapter in ("resend", "smtp"):
        outcome = _submit(adapter, changes)
        assert isinstance(outcome, Rejected) or (isinstance(outcome, NeverWritten) and outcome.reason)


def test_a_domain_that_cannot_be_one_is_refused_for_good_by_smtp() -> None:
    outcome = _submit("smtp", {"address": "ada@-ü-.example"})
    assert isinstance(outcome, NeverWritten)
    assert outcome.permanent


@pytest.mark.parametrize(
    ("adapter", "settings"),
    [
        ("resend", {}),
        ("resend", {"api_key": "a\nb"}),
        ("resend", {"api_key": "é"}),
        ("resend", {"api_key": "k", "base_url": "api.resend.com"}),
        ("resend", {"api_key": "k", "base_url": "https://user@host"}),
        ("resend", {"api_key": "k", "base_url": "https://host:99999"}),
        ("smtp", {}),
        ("smtp", {"host": "a b"}),
        ("smtp", {"host": "h", "port": "smtp"}),
        ("smtp", {"host": "h", "port": "0"}),
        ("smtp", {"host": "h", "security": "ssl"}),
        ("smtp", {"host": "h", "local_hostname": "a\r\nMAIL"}),
    ],
)
def test_settings_that_cannot_work_are_the_accounts_fault(adapter: str, settings: dict[str, str]) -> None:
    outcome = provider(adapter).open_channel(settings, request_timeout=1).submit(outgoing())
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable) == (Scope.ACCOUNT, False)
    assert outcome.reason


def test_a_providers_words_are_kept_without_addresses() -> None:
    assert (
        for_people("550 <ada@example.com>: user\r\n\0unknown, ask x@y.z")
        == "550 <<address>>: user unknown, ask <address>"
    )
    assert len(for_people("word " * 1000)) <= 300


def _submit(adapter: str, changes: dict[str, Any]) -> object:
    port = str(CLOSED_PORT)
    settings = {"api_key": "k", "base_url": f"http://127.0.0.1:{port}", "host": "127.0.0.1", "port": port}
    channel = provider(adapter).open_channel(settings | {"security": "none"}, request_timeout=PATIENCE)
    return channel.submit(outgoing(**changes))


CLOSED_PORT = refused_port()


def _assert_refused(adapter: str, changes: dict[str, Any]) -> None:
    outcome = _submit(adapter, changes)
    assert isinstance(outcome, NeverWritten)
    assert outcome.permanent
    assert outcome.reason.isprintable()
