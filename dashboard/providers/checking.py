"""Whether an account is set up so that it can send, and so that its provider can report. Nothing is sent.

Each question is asked of the part that will have to do it: the send endpoint is called without a message, the webhook's
reader is given a request that nobody signed, the webhook's address is asked from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from urllib.parse import urlsplit

from dashboard.providers.base import (
    Accepted,
    Ambiguous,
    CannotVerify,
    NeverWritten,
    NotAuthentic,
    Outcome,
    Provider,
    Rejected,
    Scope,
    Settings,
    WebhookRequest,
)
from dashboard.providers.http import HttpClient
from dashboard.providers.results import Answer, NoAnswer

Verdict = Literal["good", "wrong", "unknown"]


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question."""

    what: str
    verdict: Verdict
    words: str
    """What was seen, and what to do about it."""


def check_credentials(chosen: Provider, settings: Settings, *, request_timeout: float) -> Finding:
    """Call the send endpoint without a message: who may send is refused for that alone."""
    channel = chosen.open_channel(settings, request_timeout=request_timeout)
    try:
        verdict, words = _of_an_empty_call(chosen.title, channel.try_out())
    finally:
        channel.close()
    return Finding("credentials", verdict, words)


def _of_an_empty_call(title: str, outcome: Outcome) -> tuple[Verdict, str]:
    match outcome:
        case NeverWritten():
            return "good", f"{title} takes them."
        case Rejected(phase="connect", error_code=None):
            return "wrong", f"{title} is not reached: {outcome.reason}."
        case Rejected(scope=Scope.MESSAGE, retryable=False) if outcome.reason.startswith("HTTP "):
            return "unknown", f"What answers gives no reason that {title} would give: {outcome.reason}."
        case Rejected(scope=Scope.MESSAGE, retryable=False):
            return "good", f"{title} takes them, and refused a call without a message: {outcome.reason}."
        case Rejected(retryable=True):
            return "unknown", f"{title} asks to come again later: {outcome.reason}."
        case Rejected():
            return "wrong", f"{title} refuses this account: {outcome.reason}."
        case Ambiguous():
            return "unknown", f"{title} gave no clear answer: {outcome.reason}."
        case Accepted():
            return "wrong", f"What answers takes a call without a message: it is not {title}. See base_url."


def check_events(chosen: Provider, settings: Settings, *, url: str, now: datetime) -> Finding:
    """Have a request read that nobody signed: it must be refused, for that reason and no other."""
    names = [setting.name for setting in chosen.settings if setting.for_events]
    if not any(settings.get(name) for name in names):
        return Finding("events", "wrong", f"No event can be verified: none of {', '.join(names)} is set.")
    request = WebhookRequest(headers={}, body=b"{}", url=url, now=now)
    try:
        chosen.read_webhook(request, settings)
    except CannotVerify as error:
        return Finding("events", "wrong", f"No event can be verified: {error}.")
    except (NotAuthentic, ValueError):
        return Finding(
            "events", "good", f"Only what is {chosen.title}'s is taken; whether it has the same is not known."
        )
    return Finding("events", "wrong", "Anybody may report: a request without a signature or a password was taken.")


def check_address(url: str, *, request_timeout: float) -> Finding:
    """Ask the webhook's address whether it is ours, as providers do that look before they report."""
    parts = urlsplit(url)
    client = HttpClient(f"{parts.scheme}://{parts.netloc}", request_timeout=request_timeout)
    try:
        answer = client.get(parts.path, headers={})
    finally:
        client.close()
    match answer:
        case Answer(status=200, body=b"ok\n") if parts.scheme == "https":
            return Finding("address", "good", f"{url} is reached from here.")
        case Answer(status=200, body=b"ok\n"):
            return Finding(
                "address", "wrong", f"{url} is reached from here, but is no https: others can read what is reported."
            )
        case Answer():
            return Finding(
                "address", "wrong",
                f"{url} is answered by something else (HTTP {answer.status}): is SENDONCE_PUBLIC_URL right?",
            )  # fmt: skip
        case NoAnswer():
            return Finding("address", "wrong", f"{url} is not reached from here: {answer.error.replace('_', ' ')}.")
        case NeverWritten():
            return Finding("address", "unknown", f"{url} was not asked: {answer.reason}.")
