"""One contract for all adapters: every recorded sample gives exactly what its ``expected.json`` says."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.providers import PROVIDERS, NotAuthentic, classify, parse_events, provider, read_webhook
from dashboard.providers.base import Accepted, Ambiguous, Outcome, Rejected
from dashboard.providers.http_outcomes import retry_after
from dashboard.providers.reading import instant
from dashboard.providers.results import Answer, SmtpFailure, SmtpSession, body_bytes
from tests.providers.rig import JSON, SAMPLES, sample

SECRET_SETTINGS: dict[str, Callable[[Any], dict[str, str]]] = {
    "resend": lambda keys: {"webhook_secret": keys["signing_secret"]},
    "sendgrid": lambda keys: {"webhook_secret": keys["verification_key"]},
    "postmark": lambda keys: {"webhook_secret": "{username}:{password}".format(**keys["basic_auth"])},
    "mailgun": lambda keys: {"webhook_secret": keys["signing_key"]},
    "ses": lambda keys: {
        "topic_arns": keys["topic_arn"], "signing_certificate": "".join(keys["certificates"].values())
    },
    "usesend": lambda keys: {"webhook_secret": keys["signing_secret"]},
    "postal": lambda keys: {"webhook_secret": keys["public_key_der_b64"]},
    "mandrill": lambda keys: {"webhook_secret": keys["webhook_key"], "webhook_url": keys["webhook_url"]},
}  # fmt: skip
"""How a provider's ``_keys.json`` looks as an account's settings."""
SIGNED_BODIES = ("resend", "sendgrid", "usesend", "postal", "mandrill", "mailtrap")
"""Who signs the raw bytes of the body."""
WITHOUT_KEYS = ("brevo", "sparkpost", "mailjet", "mailtrap")
"""Whose samples come without what makes them authentic: they get a password here, Mailtrap's a signature."""
PASSWORD = "events:password-of-this-account"

EXPECTED = [
    (known.name, name, expected)
    for known in PROVIDERS
    for name, expected in sample(known.name, "expected.json").items()
]
WEBHOOKS = [case for case in EXPECTED if sample(*case[:2])["kind"] == "webhook"]
SENDS = [case for case in EXPECTED if sample(*case[:2])["kind"] in ("send_response", "send_failure")]
SESSIONS = [case for case in EXPECTED if sample(*case[:2])["kind"] == "smtp_session"]


def settings_of(name: str) -> dict[str, str]:
    if name in WITHOUT_KEYS:
        return {"webhook_secret": PASSWORD}
    return SECRET_SETTINGS[name](sample(name, "_keys.json"))


def request_of(name: str, recorded: Mapping[str, Any]) -> tuple[dict[str, str], bytes, datetime]:
    body = body_bytes(recorded["body_text"] if "body_text" in recorded else recorded["body"])
    headers = dict(recorded["headers"])
    if name == "mailtrap":
        headers["Mailtrap-Signature"] = hmac.digest(PASSWORD.encode(), body, "sha256").hex()
    elif name in WITHOUT_KEYS:
        headers["Authorization"] = f"Basic {base64.b64encode(PASSWORD.encode()).decode()}"
    return headers, body, datetime.fromisoformat(recorded["received_at"])


def word(outcome: Outcome) -> str:
    match outcome:
        case Accepted():
            return "accepted"
        case Rejected():
            return "retryable" if outcome.retryable else "rejected"
        case Ambiguous():
            return "ambiguous"
        case _:
            raise AssertionError(outcome)


def test_every_sample_is_judged_here() -> None:
    for known in PROVIDERS:
        files = {file.name for file in (SAMPLES / known.name).glob("*.json")}
        judged = {name for provider_name, name, _ in WEBHOOKS + SENDS + SESSIONS if provider_name == known.name}
        assert files - judged - {"expected.json", "_keys.json"} <= {"send_request.json"}


@pytest.mark.parametrize(
    ("name", "file", "expected"), WEBHOOKS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_webhook_says_what_its_sample_expects(name: str, file: str, expected: Any) -> None:
    headers, body, received_at = request_of(name, sample(name, file))
    if expected == {"raises": True}:
        with pytest.raises(ValueError, match=r".+"):
            read_webhook(name, headers, body, settings_of(name), now=received_at)
        return
    events = parse_events(name, headers, body, settings_of(name), now=received_at)
    told = [{field: getattr(event, field) for field in fields} for event, fields in zip(events, expected, strict=True)]
    wanted = [fields | {"occurred_at": instant(fields["occurred_at"])} for fields in expected]
    assert told == wanted


@pytest.mark.parametrize(
    ("name", "file", "expected"),
    [case for case in WEBHOOKS if case[0] in SIGNED_BODIES],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_webhook_with_one_changed_byte_is_not_authentic(name: str, file: str, expected: Any) -> None:
    headers, body, received_at = request_of(name, sample(name, file))
    with pytest.raises(NotAuthentic):
        read_webhook(name, headers, body + b" ", settings_of(name), now=received_at)


@pytest.mark.parametrize(("name", "file", "expected"), SENDS, ids=lambda value: value if isinstance(value, str) else "")
def test_a_send_is_judged_as_its_sample_expects(name: str, file: str, expected: Any) -> None:
    outcome = classify(name, sample(name, file))
    outcomes = outcome if isinstance(outcome, list) else [outcome]
    wanted = expected if isinstance(expected, list) else [expected]
    assert isinstance(outcome, list) == isinstance(expected, list)
    for judged, fields in zip(outcomes, wanted, strict=True):
        assert word(judged) == fields["outcome"]
        assert getattr(judged, "provider_message_id", None) == fields["provider_message_id"]
        assert getattr(judged, "retry_after_seconds", None) == fields["retry_after_seconds"]
        assert getattr(judged, "error_code", None) == fields["error_code"]
        if isinstance(judged, Rejected):
            assert judged.scope == fields["scope"]


@pytest.mark.parametrize(
    ("name", "file", "expected"), SESSIONS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_an_smtp_session_is_judged_as_its_sample_expects(name: str, file: str, expected: Any) -> None:
    recorded = sample(name, file)
    judged = classify(name, recorded)
    if "recipients" in expected:
        assert isinstance(judged, list)
        assert dict(zip(recorded["to"], map(word, judged), strict=True)) == expected["recipients"]
        judged = judged[0]
    assert not isinstance(judged, list)
    assert word(judged) == expected["outcome"]
    assert getattr(judged, "phase", None) == expected["phase"]
    said = judged.request_id if isinstance(judged, Accepted) else getattr(judged, "error_code", None)
    codes = [str(expected[key]) for key in ("reply_code", "enhanced_code") if expected[key] is not None]
    assert (said or "").split()[: len(codes) or 1] == codes
    if isinstance(judged, Rejected):
        assert judged.scope == expected["scope"]


@given(
    status=st.integers(100, 599),
    body=st.binary(max_size=60)
    | st.dictionaries(st.sampled_from(["id", "name", "message", "data"]), JSON).map(body_bytes),
    end_marked=st.booleans(),
)
def test_any_http_answer_has_an_outcome_and_only_the_documented_yes_is_one(
    status: int, body: bytes, end_marked: bool
) -> None:
    judged = classify("resend", Answer(status=status, body=body, end_marked=end_marked))
    for outcome in judged if isinstance(judged, list) else [judged]:
        assert status == 200 or not isinstance(outcome, Accepted)
        assert 300 <= status < 500 or not isinstance(outcome, Rejected)


PHASES = ["banner", "ehlo", "starttls", "auth", "mail_from", "rcpt_to", "data", "data_body", "final_dot", "bdat_last"]
REPLIES = st.sampled_from(["220 x", "250 2.0.0 ok", "354 go", "421 x", "451 4.3.0 x", "550 5.1.1 x", "250"]) | st.text()


@given(
    replies=st.lists(st.tuples(st.sampled_from(PHASES), REPLIES), max_size=6),
    failure=st.none()
    | st.builds(
        SmtpFailure, phase=st.sampled_from(PHASES), error=st.just("x"), final_dot_written=st.none() | st.booleans()
    ),
    lmtp=st.booleans(),
    recipients=st.integers(1, 3),
)
def test_any_smtp_session_has_one_outcome_a_recipient_and_only_a_yes_after_the_end_is_one(
    replies: list[tuple[str, str]], failure: SmtpFailure | None, lmtp: bool, recipients: int
) -> None:
    session = SmtpSession(
        replies=tuple(replies), failure=failure, lmtp=lmtp, recipients=("a@example.com",) * recipients
    )
    judged = classify("smtp", session)
    outcomes = judged if isinstance(judged, list) else [judged]
    assert len(outcomes) == recipients
    verdicts = [text for phase, text in replies if phase in ("final_dot", "bdat_last")]
    for outcome in outcomes:
        if isinstance(outcome, Accepted):
            assert any(text.startswith("2") for text in verdicts)
        elif isinstance(outcome, Rejected) and failure and failure.final_dot_written:
            assert any(
                not text.startswith({"data": "354", "data_body": "none"}.get(phase, "2")) for phase, text in replies
            )


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("Mon, 30 Nov 2026 09:01:30 GMT", 90.0),
        ("Mon, 30 Nov 2026 08:00:00 GMT", 0.0),
        ("99999999999999999999", 31 * 86_400.0),
        *((odd, None) for odd in ("", "-5", "soon", "1.5e3", "nan", "٣", "9" * 5000 + "x", "Mon, 99 Foo 2026")),
    ],
)
def test_retry_after_is_seconds_or_a_date_and_never_negative(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": value}, now=datetime(2026, 11, 30, 9, 0, tzinfo=UTC)) == seconds


def test_a_date_to_come_again_counts_from_the_answers_own_date_and_not_from_our_clock() -> None:
    headers = {"retry-after": "Mon, 30 Nov 2026 09:02:00 GMT", "date": "Mon, 30 Nov 2026 09:00:00 GMT"}
    assert retry_after(headers, now=datetime(1999, 1, 1, tzinfo=UTC)) == 120.0
    assert retry_after({**headers, "date": "soon"}, now=datetime(2026, 11, 30, 9, 1, tzinfo=UTC)) == 60.0


def test_an_unknown_provider_is_refused_with_the_known_ones_named() -> None:
    with pytest.raises(ValueError, match=r"resend, .*smtp"):
        provider("carrier-pigeon")


def test_a_result_of_another_protocol_is_refused() -> None:
    with pytest.raises(ValueError, match="HTTP"):
        classify("resend", {"replies": []})
    with pytest.raises(ValueError, match="session"):
        classify("smtp", {"status": 200})
    with pytest.raises(ValueError, match="status"):
        classify("resend", {})
