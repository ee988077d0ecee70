"""What useSend, Postal, Brevo, SparkPost, Mailjet, Mandrill and Mailtrap are sent, and what their answers prove."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.providers import classify, provider
from dashboard.providers.base import Accepted, Ambiguous, NeverWritten, Outcome, Rejected, Scope, endpoint
from dashboard.providers.results import Answer, NoAnswer, body_bytes
from tests.providers.rig import (
    PATIENCE,
    SEND_ID,
    Server,
    http_answer,
    outgoing,
    read_request,
    refused_port,
    reset,
    sample,
)

CREDENTIALS = {"api_key": "a-key", "secret_key": "a-secret"}
NAMES = ["usesend", "postal", "brevo", "sparkpost", "mailjet", "mandrill", "mailtrap"]
WITH_KEYS = {"usesend": {}, "brevo": {}, "sparkpost": {"honours_keys": "true"}}
every_provider = pytest.mark.parametrize("name", NAMES)
RICH: dict[str, Any] = {
    "sender": "Acme, Inc. <shop@example.com>",
    "subject": "Grüße ✓",
    "reply_to": "Help <help@example.com>",
    "text": "Hallo {{name}}",
    "html": "<p>Hallo {{name}}</p>",
    "headers": {"X-Order": "84721", "List-Unsubscribe": "<https://example.com/u>"},
}


def submit(name: str, url: str, /, *, request_timeout: float = PATIENCE, **changes: Any) -> Outcome:
    settings = {**CREDENTIALS, "base_url": url, **changes.pop("settings", {})}
    channel = provider(name).open_channel(settings, request_timeout=request_timeout)
    try:
        return channel.submit(outgoing(**changes))
    finally:
        channel.close()


def answered(name: str, file: str) -> bytes:
    """A recorded answer as it comes over the wire."""
    recorded = sample(name, file)
    return http_answer(body_bytes(recorded["body"]), status=f"{recorded['status']} OK")


def requested(name: str, /, **changes: Any) -> tuple[str, dict[str, str], Any, bytes]:
    """(request line, headers, what the body says, the body) of one submission that is taken."""
    seen: list[bytes] = []

    def behave(connection: socket.socket, _: int) -> None:
        seen.append(read_request(connection))
        connection.sendall(answered(name, "send_ok.json"))

    with Server(behave) as server:
        assert isinstance(submit(name, f"{server.url}/prefix/", **changes), Accepted)
    head, _, body = seen[0].partition(b"\r\n\r\n")
    line, *lines = head.decode().split("\r\n")
    return line, {n.lower(): v for n, v in (one.split(": ", 1) for one in lines)}, json.loads(body), body


def missing(wanted: Any, sent: Any, path: str = "") -> list[str]:
    """Where a documented field is not in what was sent."""
    if isinstance(wanted, dict):
        inside = [missing(inner, sent.get(key), f"{path}.{key}") for key, inner in wanted.items() if key in sent]
        return [f"{path}.{key}" for key in wanted if key not in sent] + [one for some in inside for one in some]
    if isinstance(wanted, list):
        return missing(wanted[0], sent[0], f"{path}[0]")
    return [] if type(wanted) is type(sent) else [path]


# ── what goes out ────────────────────────────────────────────────────────────────────────────────────────────────────


@every_provider
def test_a_request_has_the_documented_shape(name: str) -> None:
    recorded = sample(name, "send_request.json")
    settings = {} if name != "sparkpost" else {"honours_keys": "true"}
    line, headers, sent, _ = requested(name, settings=settings)
    assert line == f"POST /prefix{urlsplit(recorded['url']).path} HTTP/1.1"
    assert recorded["headers"].keys() <= headers.keys()
    assert headers["content-type"] == "application/json"
    assert missing(recorded["body"], sent) == []


def test_credentials_travel_where_each_provider_wants_them() -> None:
    told = {name: requested(name)[1:3] for name in NAMES}
    assert told["usesend"][0]["authorization"] == told["mailtrap"][0]["authorization"] == "Bearer a-key"
    assert told["postal"][0]["x-server-api-key"] == told["brevo"][0]["api-key"] == "a-key"
    assert told["sparkpost"][0]["authorization"] == "a-key"
    assert told["mailjet"][0]["authorization"] == "Basic YS1rZXk6YS1zZWNyZXQ="
    assert told["mandrill"][1]["key"] == "a-key"


@every_provider
def test_our_id_and_every_part_of_the_message_travel(name: str) -> None:
    *_, sent, body = requested(name, name='Ada "the first" Ł', **RICH)
    written = json.dumps(sent, ensure_ascii=False)
    for part in (str(SEND_ID), "ada@example.com", "shop@example.com", "help@example.com", "Grüße ✓", "84721"):
        assert part in written
    for part in ("Hallo {{name}}", "<p>Hallo {{name}}</p>", "<https://example.com/u>", "Acme, Inc."):
        assert part in written
    assert "X-Send-Id" in written
    assert body.isascii() is False, "the text is UTF-8, not escapes"


@pytest.mark.parametrize(("name", "settings"), WITH_KEYS.items())
def test_under_a_key_every_attempt_has_the_same_bytes(name: str, settings: dict[str, str]) -> None:
    reordered = RICH | {"headers": dict(reversed(RICH["headers"].items()))}
    _, first_headers, _, first = requested(name, settings=settings, **RICH)
    _, headers, sent, second = requested(name, settings=settings, attempt=2, **reordered)
    assert first == second
    key = sent["headers"]["idempotencyKey"] if name == "brevo" else headers["idempotency-key"]
    assert key == str(SEND_ID)
    assert headers == first_headers | {"host": headers["host"]}
    assert provider(name).capabilities(settings).key_window is not None


@pytest.mark.parametrize("name", [name for name in NAMES if name != "usesend"])
def test_without_a_key_the_attempt_number_travels_and_no_key_does(name: str) -> None:
    settings = {"honours_keys": "false"}
    _, headers, sent, body = requested(name, settings=settings, attempt=7)
    assert b"idempotencykey" not in body.lower()
    assert "idempotency-key" not in headers
    assert provider(name).capabilities(settings).key_window is None
    if name != "postal":  # its tag holds our id and nothing else
        assert '"attempt": "7"' in json.dumps(sent).replace("\\", "")


def test_how_long_a_key_counts_is_what_the_provider_promises() -> None:
    windows = {name: provider(name).capabilities({}).key_window for name in NAMES}
    minutes = {name: window.total_seconds() / 60 for name, window in windows.items() if window is not None}
    assert minutes == {"usesend": 24 * 60, "brevo": 15}
    assert not any(provider(name).capabilities({}).look_up for name in NAMES)
    assert [name for name in NAMES if not provider(name).capabilities({}).metadata] == ["usesend"]


def test_an_empty_part_which_usesend_refuses_does_not_travel() -> None:
    assert "text" not in requested("usesend", text="", html="<p>Hi</p>")[2]
    assert "html" not in requested("usesend", html="")[2]


def test_sparkpost_does_not_read_the_content_as_its_template() -> None:
    assert requested("sparkpost")[2]["options"]["perform_substitutions"] is False


@every_provider
def test_what_says_nothing_of_where_a_call_goes_does_not_move_an_account(name: str) -> None:
    chosen = provider(name)
    settings = {**CREDENTIALS, "base_url": "https://api.example.com"}
    for one in chosen.settings:
        changed = endpoint(chosen, settings | {one.name: "another"}) != endpoint(chosen, settings)
        assert changed is not (one.for_events or one.for_checks), one.name


# ── what cannot go out ───────────────────────────────────────────────────────────────────────────────────────────────

CLOSED = f"http://127.0.0.1:{refused_port()}"
LINES = ("sender", "subject", "reply_to", "address", "name")


@every_provider
@pytest.mark.parametrize("poison", ["\ud800", "\0", "\r\nBcc: eve@example.com", "\x85"])
def test_poison_is_refused_for_good(name: str, poison: str) -> None:
    lines: list[dict[str, Any]] = [{field: f"shop{poison}@example.com"} for field in LINES]
    for changes in [*lines, {"headers": {"X-A": f"b{poison}"}}, {"headers": {"Bcc": "eve@example.com"}}]:
        outcome = submit(name, CLOSED, **changes)
        assert isinstance(outcome, NeverWritten)
        assert outcome.permanent


@given(st.dictionaries(st.sampled_from([*LINES, "text", "html"]), st.text(max_size=20)))
def test_no_content_makes_submit_raise(changes: dict[str, str]) -> None:
    for name in NAMES:
        outcome = submit(name, CLOSED, **changes)
        assert isinstance(outcome, Rejected) or (isinstance(outcome, NeverWritten) and outcome.reason)


@every_provider
@pytest.mark.parametrize(
    "settings",
    [{"api_key": ""}, {"api_key": "a\nb"}, {"api_key": "é"}, {"base_url": "api.example.com"}, {"base_url": "ftp://x"}],
)
def test_settings_that_cannot_work_are_the_accounts_fault(name: str, settings: dict[str, str]) -> None:
    outcome = submit(name, "https://api.example.com", settings=settings)
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable, outcome.error_code) == (Scope.ACCOUNT, False, "settings")


# ── what the answers prove, on real sockets ──────────────────────────────────────────────────────────────────────────


def answering(answer: bytes) -> Callable[[socket.socket, int], None]:
    def behave(connection: socket.socket, _: int) -> None:
        read_request(connection)
        connection.sendall(answer)

    return behave


def outcome_of(name: str, behave: Callable[[socket.socket, int], None], **timing: float) -> Outcome:
    with Server(behave) as server:
        outcome = submit(name, server.url, **timing)
        assert server.connections == 1, "one submission is one call"
    return outcome


@every_provider
def test_the_documented_yes_is_accepted_with_its_id(name: str) -> None:
    expected = sample(name, "expected.json")["send_ok.json"]
    expected = expected[0] if isinstance(expected, list) else expected
    outcome = outcome_of(name, answering(answered(name, "send_ok.json")))
    assert isinstance(outcome, Accepted)
    assert outcome.provider_message_id == expected["provider_message_id"]


@every_provider
def test_too_many_requests_is_a_no_for_now_and_a_wrong_key_one_for_the_account(name: str) -> None:
    limited = http_answer(b"{}", status="429 Too Many Requests", headers="Retry-After: 7\r\n")
    outcome = outcome_of(name, answering(limited))
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable, outcome.retry_after_seconds) == (Scope.ACCOUNT, True, 7.0)
    for status in ("401 Unauthorized", "403 Forbidden"):
        outcome = outcome_of(name, answering(http_answer(b"{}", status=status)))
        assert isinstance(outcome, Rejected)
        assert (outcome.scope, outcome.retryable) == (Scope.ACCOUNT, False)


def close_early(connection: socket.socket, _: int) -> None:
    connection.recv(1)
    reset(connection)


def reset_after(connection: socket.socket, _: int) -> None:
    read_request(connection)
    reset(connection)


DOUBTFUL = {
    "a reset while writing": close_early,
    "a reset after writing": reset_after,
    "a close after writing": lambda connection, _: read_request(connection),
    "garbage": answering(b"\0\1\2 not http\r\n\r\n"),
    "a page instead of the API": answering(http_answer(b"<html>Welcome to the wifi</html>")),
    "an empty yes": answering(http_answer(b"")),
    "a yes without an id": answering(http_answer(b'{"status":"success","success":true,"Messages":[],"results":{}}')),
    "another success": answering(http_answer(b'{"id":"x"}', status="202 Accepted")),
    "a created nothing": answering(http_answer(b"{}", status="201 Created")),
    "a list of nothing": answering(http_answer(b"[]")),
    "a cut-off yes": answering(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"emailId":"'),
    "a failure": answering(http_answer(b"{}", status="500 Internal Server Error")),
    "a gateway's failure": answering(http_answer(b"<html>", status="502 Bad Gateway")),
    "unavailable": answering(http_answer(b"{}", status="503 Service Unavailable")),
    "a gateway's patience": answering(http_answer(b"", status="504 Gateway Timeout")),
    "a conflict": answering(http_answer(b"{}", status="409 Conflict")),
    "a refusal without an end": answering(b"HTTP/1.1 422 Unprocessable\r\n\r\n{"),
}


@every_provider
@pytest.mark.parametrize("behave", DOUBTFUL.values(), ids=DOUBTFUL)
def test_once_written_what_is_no_documented_answer_is_in_doubt(
    name: str, behave: Callable[[socket.socket, int], None]
) -> None:
    outcome = outcome_of(name, behave)
    assert isinstance(outcome, Ambiguous), outcome
    assert outcome.error_class


@every_provider
def test_an_answer_that_never_comes_leaves_doubt_and_a_call_that_never_left_does_not(name: str) -> None:
    def silent(connection: socket.socket, _: int) -> None:
        read_request(connection)
        connection.recv(1)

    outcome = outcome_of(name, silent, request_timeout=0.3)
    assert isinstance(outcome, Ambiguous)
    assert outcome.error_class == "read_timeout"
    refused = submit(name, CLOSED)
    assert isinstance(refused, Rejected)
    assert (refused.scope, refused.retryable) == (None, True)
    assert submit(name, CLOSED, seconds=0) == NeverWritten("submit deadline passed")


# ── the tables ───────────────────────────────────────────────────────────────────────────────────────────────────────


def postal_error(code: str) -> Any:
    return {"status": "error", "data": {"code": code, "message": "ask ada@example.com", "token": "a-key"}}


def mandrill_error(name: str) -> Any:
    return {"status": "error", "code": -1, "name": name, "message": "ask ada@example.com"}


def mandrill_recipient(status: str, reason: str | None = None) -> Any:
    return [{"email": "ada@example.com", "status": status, "_id": "i", "reject_reason": reason}]


def mailjet_error(status: object) -> Any:
    return {"Messages": [{"Status": "error", "Errors": [{"ErrorCode": "send-0003", "StatusCode": status}]}]}


JUDGED: list[tuple[str, int, Any, str, str | None, str | None]] = [
    ("usesend", 400, {"error": {"code": "BAD_REQUEST", "message": "no"}}, "rejected", "message", "BAD_REQUEST"),
    ("usesend", 403, {"error": {"code": "FORBIDDEN", "message": "no"}}, "rejected", "account", "FORBIDDEN"),
    *[
        ("usesend", 400, {"error": {"code": "BAD_REQUEST", "message": words}}, "rejected", "account", "BAD_REQUEST")
        for words in (
            "Domain: shop.example of from email is wrong. Use the domain verified by useSend",
            "Domain: shop.example is not verified",
            "Domain is not verified",
        )
    ],
    ("usesend", 409, {"error": {"code": "NOT_UNIQUE", "message": "odd"}}, "ambiguous", None, "NOT_UNIQUE"),
    ("usesend", 409, {"error": {"message": "it is in progress"}}, "ambiguous", None, None),
    ("postal", 200, postal_error("InvalidServerAPIKey"), "rejected", "account", "InvalidServerAPIKey"),
    ("postal", 200, postal_error("ServerSuspended"), "rejected", "account", "ServerSuspended"),
    ("postal", 200, postal_error("NoContent"), "rejected", "message", "NoContent"),
    ("postal", 200, {"status": "parameter-error", "data": {"message": "no"}}, "rejected", "message", "parameter-error"),
    ("postal", 200, {"status": "error", "data": {}}, "ambiguous", None, None),
    ("postal", 200, {"status": "success", "data": {"messages": {"a": {"id": 1}, "b": {}}}}, "ambiguous", None, None),
    ("postal", 404, {}, "rejected", "account", None),
    ("brevo", 400, {"code": "duplicate_parameter", "message": "no"}, "ambiguous", None, "duplicate_parameter"),
    ("brevo", 400, {"code": "duplicate_request"}, "ambiguous", None, "duplicate_request"),
    ("brevo", 400, {"code": "not_enough_credits"}, "rejected", "account", "not_enough_credits"),
    ("brevo", 401, {"code": "unauthorized"}, "rejected", "account", "unauthorized"),
    ("brevo", 402, {"code": "not_enough_credits"}, "rejected", "account", "not_enough_credits"),
    ("sparkpost", 420, {"errors": [{"code": "2101", "message": "x"}]}, "retryable", "account", "2101"),
    ("sparkpost", 400, {"errors": [{"code": "1602"}]}, "rejected", "message", "1602"),
    ("sparkpost", 400, {"errors": [{"code": 7001}]}, "rejected", "account", "7001"),
    ("sparkpost", 403, {"errors": [{"code": "1601"}]}, "rejected", "account", "1601"),
    ("sparkpost", 409, {"errors": [{"code": "1602"}]}, "ambiguous", None, "1602"),
    ("sparkpost", 409, {"errors": "odd"}, "ambiguous", None, None),
    ("sparkpost", 420, {"errors": "odd"}, "ambiguous", None, None),
    (
        "sparkpost", 200, {"results": {"id": "i", "total_accepted_recipients": 0, "total_rejected_recipients": 1}},
        "rejected", "message", None,
    ),
    ("mailjet", 400, mailjet_error(400), "rejected", "message", "send-0003"),
    ("mailjet", 200, mailjet_error(400), "rejected", "message", "send-0003"),
    ("mailjet", 200, mailjet_error(403), "rejected", "account", "send-0003"),
    ("mailjet", 200, mailjet_error(429), "retryable", "account", "send-0003"),
    ("mailjet", 500, mailjet_error(500), "ambiguous", None, "send-0003"),
    ("mailjet", 200, mailjet_error(None), "ambiguous", None, "send-0003"),
    ("mailjet", 401, {"ErrorMessage": "no", "StatusCode": 401}, "rejected", "account", None),
    ("mandrill", 500, mandrill_error("Invalid_Key"), "rejected", "account", "Invalid_Key"),
    ("mandrill", 500, mandrill_error("ValidationError"), "rejected", "message", "ValidationError"),
    ("mandrill", 500, mandrill_error("PaymentRequired"), "rejected", "account", "PaymentRequired"),
    ("mandrill", 500, mandrill_error("GeneralError"), "ambiguous", None, "GeneralError"),
    ("mandrill", 400, mandrill_error("GeneralError"), "ambiguous", None, "GeneralError"),
    ("mandrill", 500, mandrill_error("Unheard_Of"), "ambiguous", None, "Unheard_Of"),
    ("mandrill", 500, {"name": "Invalid_Key"}, "ambiguous", None, "Invalid_Key"),
    ("mandrill", 200, mandrill_recipient("invalid"), "rejected", "message", "invalid"),
    ("mandrill", 200, mandrill_recipient("rejected", "unsigned"), "rejected", "account", "unsigned"),
    ("mandrill", 200, mandrill_recipient("odd"), "ambiguous", None, "odd"),
    ("mailtrap", 400, {"success": False, "errors": ["'to' is bad"]}, "rejected", "message", "400"),
    ("mailtrap", 401, {"error": "Incorrect API token"}, "rejected", "account", "401"),
    ("mailtrap", 200, {"success": False, "message_ids": ["i"]}, "ambiguous", None, None),
]  # fmt: skip


@pytest.mark.parametrize(("name", "status", "body", "verdict", "scope", "code"), JUDGED)
def test_an_answer_is_judged_by_its_table(
    name: str, status: int, body: Any, verdict: str, scope: str | None, code: str | None
) -> None:
    judged = classify(name, {"status": status, "body": body})
    (outcome,) = judged if isinstance(judged, list) else [judged]
    assert not isinstance(outcome, NeverWritten | Accepted)
    assert outcome.error_code == code
    assert "@" not in outcome.reason
    if verdict == "ambiguous":
        assert isinstance(outcome, Ambiguous)
        return
    assert isinstance(outcome, Rejected)
    assert (outcome.retryable, outcome.scope) == (verdict == "retryable", scope)


def test_brevo_says_in_a_header_of_its_own_when_its_limit_ends() -> None:
    told = {"status": 429, "body": {"code": "too_many_requests"}, "headers": {"x-sib-ratelimit-reset": "42"}}
    for headers, seconds in (({}, 42.0), ({"retry-after": "7"}, 7.0), ({"x-sib-ratelimit-reset": "soon"}, None)):
        outcome = classify("brevo", {**told, "headers": told["headers"] | headers})
        assert isinstance(outcome, Rejected)
        assert (outcome.retryable, outcome.retry_after_seconds) == (True, seconds)


def test_a_refusal_that_came_with_an_id_keeps_it() -> None:
    judged = classify("mandrill", {"status": 200, "body": mandrill_recipient("rejected", "spam")})
    assert isinstance(judged, list)
    assert isinstance(judged[0], Rejected)
    assert (judged[0].provider_message_id, judged[0].scope) == ("i", Scope.MESSAGE)


WORDS = [
    "error",
    "code",
    "name",
    "message",
    "status",
    "data",
    "messages",
    "errors",
    "results",
    "id",
    "Messages",
    "Status",
]
WORDS += ["Errors", "StatusCode", "To", "MessageID", "success", "message_ids", "messageId", "emailId", "_id"]
VALUES = st.sampled_from(
    [
        *("success", "error", "sent", "rejected", "Invalid_Key", "duplicate_parameter", "x" * 300, ""),
        *(True, 400, 0, None),
    ]
)
FLAT = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=4)
SAID = st.dictionaries(st.sampled_from(WORDS), VALUES | FLAT | st.lists(FLAT, max_size=2), max_size=4)


@given(status=st.integers(100, 599), said=SAID | st.lists(SAID, max_size=2), raw=st.binary(max_size=60))
def test_any_answer_has_an_outcome_and_only_the_documented_yes_is_one(status: int, said: Any, raw: bytes) -> None:
    for name in NAMES:
        for body in (body_bytes(said), raw):
            judged = classify(name, Answer(status=status, body=body))
            for outcome in judged if isinstance(judged, list) else [judged]:
                assert status == (201 if name == "brevo" else 200) or not isinstance(outcome, Accepted)
                refuses_inside = name in ("mandrill", "mailjet") or (status == 200 and name in ("postal", "sparkpost"))
                assert 300 <= status < 500 or refuses_inside or not isinstance(outcome, Rejected)


@every_provider
def test_a_recorded_failure_is_judged_by_what_was_written_and_another_protocol_is_refused(name: str) -> None:
    assert isinstance(classify(name, NoAnswer(error="reset", request_written=True)), Ambiguous)
    assert isinstance(classify(name, NoAnswer(error="dns", request_written=False)), Rejected)
    with pytest.raises(ValueError, match="HTTP"):
        classify(name, {"replies": []})
