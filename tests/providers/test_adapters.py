"""Each provider over HTTP, on real sockets: what is written, what each end of a call means, and that it is one call."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

import pytest

from dashboard.providers import classify, provider
from dashboard.providers.base import Accepted, Ambiguous, NeverWritten, Outcome, Rejected, Scope
from tests.providers.rig import (
    PATIENCE,
    SEND_ID,
    Server,
    http_answer,
    outgoing,
    read_request,
    refused_port,
    reset,
)

ID, MESSAGE_ID = str(SEND_ID), f"<{SEND_ID}@example.com>"


@dataclass(frozen=True)
class Case:
    """An adapter, an account of it, and how its provider says yes."""

    name: str
    path: str
    settings: dict[str, str]
    yes: bytes
    message_id: str


CASES = [
    Case("sendgrid", "/v3/mail/send", {"api_key": "SG.x"},
         http_answer(b"", status="202 Accepted", headers="X-Message-Id: abc\r\n"), "abc"),
    Case("postmark", "/email", {"server_token": "token"},
         http_answer(b'{"To":"a","MessageID":"m-1","ErrorCode":0,"Message":"OK"}'), "m-1"),
    Case("mailgun", "/v3/mg.example.com/messages", {"api_key": "key", "domain": "mg.example.com"},
         http_answer(b'{"id":"<m-1@mg.example.com>","message":"Queued. Thank you."}'), "m-1@mg.example.com"),
    Case("ses", "/v2/email/outbound-emails",
         {"access_key_id": "AKID", "secret_access_key": "secret", "region": "eu-west-1", "configuration_set": "events"},
         http_answer(b'{"MessageId":"0107-1"}'), "0107-1"),
]  # fmt: skip
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def submit(
    case: Case, url: str, *, request_timeout: float = PATIENCE, seconds: float = PATIENCE, **fields: Any
) -> Outcome:
    channel = provider(case.name).open_channel(case.settings | {"base_url": url}, request_timeout=request_timeout)
    try:
        return channel.submit(outgoing(seconds=seconds, **fields))
    finally:
        channel.close()


def answered(case: Case, answer: bytes) -> Outcome:
    with Server(answering(answer)) as server:
        return submit(case, server.url)


def answering(answer: bytes) -> Callable[[socket.socket, int], None]:
    def behave(connection: socket.socket, _: int) -> None:
        read_request(connection)
        connection.sendall(answer)

    return behave


def written(case: Case, **fields: Any) -> tuple[str, dict[str, str], bytes]:
    """The path, headers and body of one submission."""
    seen: list[bytes] = []

    def behave(connection: socket.socket, _: int) -> None:
        seen.append(read_request(connection))
        connection.sendall(case.yes)

    with Server(behave) as server:
        assert submit(case, server.url, **fields) == Accepted(case.message_id)
        assert server.connections == len(seen) == 1
    head, _, body = seen[0].partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return first.split()[1], headers, body


# ── the ends of a call ───────────────────────────────────────────────────────────────────────────────────────────────


@each_case
def test_the_documented_yes_is_accepted_with_its_id(case: Case) -> None:
    path, _, _ = written(case)
    assert path == case.path


@each_case
def test_before_the_first_byte_it_is_a_definite_no(case: Case) -> None:
    outcome = submit(case, f"http://127.0.0.1:{refused_port()}")
    assert isinstance(outcome, Rejected)
    assert (outcome.retryable, outcome.scope) == (True, None)
    with Server(answering(case.yes)) as server:
        assert submit(case, server.url, seconds=0) == NeverWritten("submit deadline passed")


@each_case
def test_a_time_out_after_the_request_is_in_doubt_whether_it_was_taken_or_not(case: Case) -> None:
    def behave(connection: socket.socket, _: int) -> None:
        read_request(connection)
        connection.recv(1)  # until the client gives up

    with Server(behave) as server:
        outcome = submit(case, server.url, request_timeout=0.3)
        assert server.connections == 1, "one attempt is one call"
    assert isinstance(outcome, Ambiguous)
    assert outcome.error_class == "read_timeout"


@each_case
@pytest.mark.parametrize("after", [0, 10])
def test_a_reset_while_or_after_writing_is_in_doubt(case: Case, after: int) -> None:
    def behave(connection: socket.socket, _: int) -> None:
        if after:
            connection.recv(after)
        else:
            read_request(connection)
        reset(connection)

    with Server(behave) as server:
        outcome = submit(case, server.url)
        assert server.connections == 1
    assert isinstance(outcome, Ambiguous)


@each_case
@pytest.mark.parametrize("status", ["500 Oops", "502 Bad Gateway", "503 Busy", "504 Slow"])
def test_a_failing_server_may_have_taken_it(case: Case, status: str) -> None:
    for body in (b"<html>proxy</html>", b'{"message":"oops"}'):
        assert isinstance(answered(case, http_answer(body, status=status)), Ambiguous)


@each_case
@pytest.mark.parametrize(
    "garbage", [b"", b"<html>", b"[]", b"[1]", b'{"id":', b'{"id":[],"MessageID":[],"MessageId":{}}']
)
def test_another_success_than_the_documented_one_is_in_doubt(case: Case, garbage: bytes) -> None:
    outcome = answered(case, http_answer(garbage, status="201 Created"))
    assert isinstance(outcome, Ambiguous)
    if case.name != "sendgrid":  # whose yes has no body at all
        assert isinstance(answered(case, http_answer(garbage)), Ambiguous)


@each_case
def test_an_answer_that_ends_early_is_in_doubt(case: Case) -> None:
    for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{}", b"HTTP/1.1 400 Bad\r\n\r\n{", b"SSH-2.0\r\n"):
        assert isinstance(answered(case, answer), Ambiguous)


@each_case
@pytest.mark.parametrize(
    ("status", "scope", "retryable"),
    [
        ("400 Bad Request", Scope.MESSAGE, False),
        ("401 Unauthorized", Scope.ACCOUNT, False),
        ("403 Forbidden", Scope.ACCOUNT, False),
        ("413 Too Large", Scope.MESSAGE, False),
        ("429 Too Many", Scope.ACCOUNT, True),
    ],
)
def test_a_documented_refusal_is_a_definite_no(case: Case, status: str, scope: Scope, retryable: bool) -> None:
    body = b'{"message":"no","Message":"no","errors":[{"message":"no"}]}'
    outcome = answered(case, http_answer(body, status=status, headers="Retry-After: 7\r\n"))
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable, outcome.reason) == (scope, retryable, "no")
    assert outcome.retry_after_seconds == (7.0 if retryable else None)


# ── what one table says ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "status", "body", "scope", "retryable"),
    [
        ("postmark", 422, {"ErrorCode": 401}, Scope.ACCOUNT, False),
        ("postmark", 422, {"ErrorCode": 413}, Scope.ACCOUNT, False),
        ("postmark", 422, {"ErrorCode": 999}, Scope.MESSAGE, False),
        ("postmark", 503, {"ErrorCode": 100}, Scope.ACCOUNT, True),
        ("ses", 400, {"__type": "com.amazon#ThrottlingException"}, Scope.ACCOUNT, True),
        ("ses", 400, {"__type": "MailFromDomainNotVerifiedException"}, Scope.ACCOUNT, False),
        ("ses", 404, {"__type": "NotFoundException"}, Scope.ACCOUNT, False),
        ("ses", 403, {"__type": "InvalidSignatureException"}, Scope.ACCOUNT, False),
    ],
)
def test_a_provider_tells_by_its_own_code_whose_fault_it_is(
    name: str, status: int, body: dict[str, Any], scope: Scope, retryable: bool
) -> None:
    outcome = classify(name, {"status": status, "body": body})
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable) == (scope, retryable)


@pytest.mark.parametrize("code", ["RequestTimeout", "RequestTimeoutException"])
def test_what_amazon_calls_a_passing_failure_may_have_been_carried_out(code: str) -> None:
    outcome = classify("ses", {"status": 400, "body": {"__type": f"com.amazon.coral.service#{code}"}})
    assert isinstance(outcome, Ambiguous)


def test_ses_names_its_error_in_a_header_with_a_link_behind_it() -> None:
    headers = {"x-amzn-ErrorType": "SendingPausedException:http://internal.amazon.com/", "x-amzn-RequestId": "r-1"}
    outcome = classify("ses", {"status": 400, "headers": headers, "body": {}})
    assert isinstance(outcome, Rejected)
    assert (outcome.error_code, outcome.request_id) == ("SendingPausedException", "r-1")


@pytest.mark.parametrize("status", ["FAILED", "SOMETHING_NEW", "", "SUCCESS"])
def test_ses_an_entry_of_a_bulk_call_that_nobody_explains_is_in_doubt(status: str) -> None:
    outcomes = classify("ses", {"status": 200, "body": {"BulkEmailEntryResults": [{"Status": status}]}})
    assert isinstance(outcomes, list)
    assert [type(outcome) for outcome in outcomes] == [Ambiguous]


def test_postmark_a_result_of_a_batch_that_names_nothing_is_in_doubt() -> None:
    outcomes = classify("postmark", {"status": 200, "body": [{}, 5, {"ErrorCode": "x"}, {"ErrorCode": 0}]})
    assert isinstance(outcomes, list)
    assert [type(outcome) for outcome in outcomes] == [Ambiguous] * 4


def test_sendgrid_says_by_the_clock_when_to_come_again() -> None:
    for reset_at, seconds in (("1796029242", 42.0), ("1", 0.0), ("soon", None)):
        told = {"status": 429, "headers": {"X-RateLimit-Reset": reset_at}, "received_at": "2026-11-30T09:00:00Z"}
        outcome = classify("sendgrid", told)
        assert isinstance(outcome, Rejected)
        assert outcome.retry_after_seconds == seconds


# ── what is written ──────────────────────────────────────────────────────────────────────────────────────────────────

RICH: dict[str, Any] = {
    "sender": "Zoë’s Shop, Ltd <shop@example.com>",
    "subject": "Grüße ✓",
    "reply_to": "Help <help@example.com>",
    "text": "Hallo ✓",
    "html": "<p>Grüße</p>",
    "headers": {"X-Order": "84721"},
}


def test_sendgrid_carries_everything_and_our_identity() -> None:
    _, headers, body = written(CASES[0], name="Ada", attempt=2, **RICH)
    assert (headers["authorization"], headers["content-type"]) == ("Bearer SG.x", "application/json")
    assert json.loads(body) == {
        "personalizations": [
            {
                "to": [{"email": "ada@example.com", "name": "Ada"}],
                "custom_args": {"send_id": ID, "send_attempt": "2"},
            }
        ],
        "from": {"email": "shop@example.com", "name": "Zoë’s Shop, Ltd"},
        "reply_to": {"email": "help@example.com", "name": "Help"},
        "subject": "Grüße ✓",
        "content": [{"type": "text/plain", "value": "Hallo ✓"}, {"type": "text/html", "value": "<p>Grüße</p>"}],
        "headers": {"X-Order": "84721", "Message-ID": MESSAGE_ID, "X-Send-Id": ID},
    }


def test_postmark_carries_everything_and_our_identity() -> None:
    _, headers, body = written(CASES[1], name="Ada", attempt=2, **RICH)
    assert headers["x-postmark-server-token"] == "token"
    assert json.loads(body) == {
        "From": '"Zoë’s Shop, Ltd" <shop@example.com>',
        "To": "Ada <ada@example.com>",
        "Subject": "Grüße ✓",
        "ReplyTo": "Help <help@example.com>",
        "TextBody": "Hallo ✓",
        "HtmlBody": "<p>Grüße</p>",
        "MessageStream": "outbound",
        "Metadata": {"send_id": ID, "attempt": "2"},
        "Headers": [
            {"Name": "X-Order", "Value": "84721"},
            {"Name": "Message-ID", "Value": MESSAGE_ID},
            {"Name": "X-PM-KeepID", "Value": "true"},
            {"Name": "X-Send-Id", "Value": ID},
        ],
    }


def test_mailgun_carries_everything_and_our_identity() -> None:
    _, headers, body = written(CASES[2], name="Ada", attempt=2, **RICH)
    assert headers["authorization"] == "Basic " + base64.b64encode(b"api:key").decode()
    assert {name: value for name, (value,) in parse_qs(body.decode(), strict_parsing=True).items()} == {
        "from": '"Zoë’s Shop, Ltd" <shop@example.com>',
        "to": "Ada <ada@example.com>",
        "subject": "Grüße ✓",
        "text": "Hallo ✓",
        "html": "<p>Grüße</p>",
        "v:send_id": ID,
        "v:attempt": "2",
        "h:X-Order": "84721",
        "h:Reply-To": "Help <help@example.com>",
        "h:Message-Id": MESSAGE_ID,
        "h:X-Send-Id": ID,
    }


def test_ses_carries_everything_and_our_identity() -> None:
    _, _, body = written(CASES[3], name="Ada", attempt=2, **RICH | {"headers": {"X-Word": "Grüße"}})
    said = json.loads(body)
    simple = said["Content"].pop("Simple")
    assert said == {
        "FromEmailAddress": "=?utf-8?b?Wm/Dq+KAmXMgU2hvcCwgTHRk?= <shop@example.com>",
        "ReplyToAddresses": ["Help <help@example.com>"],
        "Destination": {"ToAddresses": ["Ada <ada@example.com>"]},
        "ConfigurationSetName": "events",
        "EmailTags": [{"Name": "send_id", "Value": ID}, {"Name": "attempt", "Value": "2"}],
        "Content": {},
    }
    assert simple == {
        "Subject": {"Data": "Grüße ✓", "Charset": "UTF-8"},
        "Body": {
            "Text": {"Data": "Hallo ✓", "Charset": "UTF-8"},
            "Html": {"Data": "<p>Grüße</p>", "Charset": "UTF-8"},
        },
        "Headers": [{"Name": "X-Word", "Value": "=?utf-8?b?R3LDvMOfZQ==?="}, {"Name": "X-Send-Id", "Value": ID}],
    }


def test_ses_a_call_is_signed_by_signature_version_4() -> None:
    """The signature computed again, step by step, as "Signature Version 4" describes it."""
    path, headers, body = written(CASES[3])
    scope, names, signature = (part.split("=", 1)[1] for part in headers["authorization"].split(", "))
    _, day, *where = scope.split("/")
    assert where == ["eu-west-1", "ses", "aws4_request"]
    assert {"host", "x-amz-date", "content-type"} <= set(names.split(";"))
    lines = "".join(f"{name}:{headers[name]}\n" for name in names.split(";"))
    canonical = f"POST\n{path}\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
    signed = "\n".join(
        [
            "AWS4-HMAC-SHA256",
            headers["x-amz-date"],
            "/".join([day, *where]),
            hashlib.sha256(canonical.encode()).hexdigest(),
        ]
    )
    key = b"AWS4secret"
    for part in (day, *where):
        key = hmac.digest(key, part.encode(), hashlib.sha256)
    assert signature == hmac.digest(key, signed.encode(), hashlib.sha256).hex()


@each_case
def test_every_attempt_writes_the_same_bytes_but_for_its_number(case: Case) -> None:
    first, second, third = (written(case, attempt=attempt, **RICH)[2] for attempt in (1, 1, 2))
    assert first == second != third
    assert len(third) == len(first)


@each_case
@pytest.mark.parametrize(
    "fields",
    [
        {"subject": "a\r\nBcc: x@y.z"},
        {"text": None},
        {"headers": {"Message-ID": "<x@y>"}},
        {"address": "ada@example.com, eve@example.com"},
    ],
)
def test_what_cannot_be_sent_is_never_written(case: Case, fields: dict[str, Any]) -> None:
    outcome = submit(case, f"http://127.0.0.1:{refused_port()}", **fields)
    assert isinstance(outcome, NeverWritten)
    assert outcome.permanent


@each_case
@pytest.mark.parametrize("sender", ["Shop <shop@-ü-.example>"])
def test_a_sender_whose_domain_cannot_be_one_is_refused_for_good(case: Case, sender: str) -> None:
    outcome = submit(case, f"http://127.0.0.1:{refused_port()}", sender=sender)
    assert isinstance(outcome, NeverWritten)
    assert outcome.permanent


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("sendgrid", {}),
        ("sendgrid", {"api_key": "a\nb"}),
        ("postmark", {"server_token": "é"}),
        ("postmark", {"server_token": "t", "base_url": "api.postmarkapp.com"}),
        ("mailgun", {"api_key": "k"}),
        ("mailgun", {"api_key": "k", "domain": "a/../b"}),
        ("mailgun", {"domain": "mg.example.com"}),
        ("ses", {"access_key_id": "a", "secret_access_key": "b"}),
        ("ses", {"access_key_id": "a", "secret_access_key": "b", "region": "eu-west-1.evil.example/"}),
        ("ses", {"access_key_id": "a", "region": "eu-west-1"}),
    ],
)
def test_settings_that_cannot_work_are_the_accounts_fault(name: str, settings: dict[str, str]) -> None:
    outcome = provider(name).open_channel(settings, request_timeout=1).submit(outgoing())
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable) == (Scope.ACCOUNT, False)
    assert outcome.reason
