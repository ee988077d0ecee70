"""Whether an account is set up so that it can send, and so that its provider can report. Nothing is sent.

Each question is asked of the part that will have to do it: the send endpoint is called without a message, the webhook's
reader is given a request that nobody signed, the webhook's address is asked from here, and the DNS of the domains that
the account sends from is asked as receivers ask it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlsplit

from dashboard.providers.base import (
    DKIM_SELECTORS,
    SENDING_DOMAINS,
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
from dashboard.providers.dkim import check_dkim
from dashboard.providers.dmarc import check_dmarc
from dashboard.providers.findings import Finding, Verdict
from dashboard.providers.http import HttpClient
from dashboard.providers.names import Names, Unanswered
from dashboard.providers.results import Answer, NoAnswer
from dashboard.providers.spf import check_spf

MOST_DOMAINS = 5
"""Of one account; more are not looked up."""
REQUEST_SECONDS = 10.0
"""For the call of the send endpoint, and for that of the webhook's address."""


def check_account(
    chosen: Provider, settings: Settings, *, url: str, domains: Sequence[str], names: Names, now: datetime,
    reply_domains: Sequence[str] = (),
) -> list[Finding]:  # fmt: skip
    """All questions about one account. It takes seconds, and no longer than its time-outs together (half a minute).

    ``url``: its webhook address. ``domains``: what its newest mail came from; the setting ``sending_domains`` goes
    before. ``reply_domains``: where answers to its mail are to go.
    """
    findings = [check_credentials(chosen, settings, request_timeout=REQUEST_SECONDS)]
    if chosen.capabilities(settings).webhooks:
        findings.append(check_events(chosen, settings, url=url, now=now))
        findings.append(check_address(url, request_timeout=REQUEST_SECONDS))
    findings += [check_replies(names, domain) for domain in reply_domains[:MOST_DOMAINS]]
    return findings + check_domains(chosen, settings, domains=domains, names=names)


def check_replies(names: Names, domain: str) -> Finding:
    """Whether mail to a domain of replies goes anywhere (RFC 5321 §5.1)."""
    records = names.records(domain, "MX")
    if isinstance(records, Unanswered):
        return Finding("replies", "unknown", f"Whether mail can come there is not known: {records.why}.", domain)
    hosts = sorted(host for record in records if (host := record.split()[-1].rstrip(".")))
    if not hosts:
        words = "No mail can come there, so that nobody can answer: let its MX record lead to whoever takes it in."
        return Finding("replies", "wrong", words, domain, "RFC 7505" if records else "RFC 5321 §5.1")
    return Finding("replies", "good", f"Mail goes to {', '.join(hosts)[:200]}.", domain)


def check_domains(chosen: Provider, settings: Settings, *, domains: Sequence[str], names: Names) -> list[Finding]:
    """SPF, DKIM and DMARC of the domains of an account, the first :data:`MOST_DOMAINS` of them."""
    named = settings.get(SENDING_DOMAINS, "").lower().split()
    all_of_them = list(dict.fromkeys(named or domains))
    if not all_of_them:
        words = "Nothing was sent yet, so its domain is not known: set sending_domains to have its DNS looked at."
        return [Finding("domain", "unknown", words)]
    selectors = settings.get(DKIM_SELECTORS, "").split()
    usual = next((one.default for one in chosen.settings if one.name == DKIM_SELECTORS), None) or ""
    findings = []
    for domain in all_of_them[:MOST_DOMAINS]:
        findings += check_spf(
            names, domain, title=chosen.title, own_return_path=chosen.capabilities(settings).own_return_path
        )
        findings += check_dkim(names, domain, selectors or usual.split(), title=chosen.title, each=bool(selectors))
        findings += check_dmarc(names, domain)
    if (left := len(all_of_them) - MOST_DOMAINS) > 0:
        words = f"{left} more were not looked at: {', '.join(all_of_them[MOST_DOMAINS:])[:200]}."
        findings.append(Finding("domain", "unknown", words))
    return findings


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
