"""Whether an account is set up: what is asked of the server, of the webhook's reader and of its address."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from dashboard.providers import provider
from dashboard.providers.checking import Finding, check_address, check_credentials, check_events, check_replies
from dashboard.providers.names import Names
from dashboard.simulator import Config, Simulator
from tests.name_server import NameServer
from tests.providers.rig import Server, http_answer, read_request, refused_port

NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


def answering(answer: bytes) -> Callable[[socket.socket, int], None]:
    def behave(connection: socket.socket, _: int) -> None:
        read_request(connection)
        connection.sendall(answer)

    return behave


# ── credentials ──────────────────────────────────────────────────────────────────────────────────────────────────────


def smtp(simulator: Simulator, **settings: str) -> Finding:
    account = {"host": simulator.smtp_host, "port": str(simulator.smtp_port), "security": "none", **settings}
    return check_credentials(provider("smtp"), account, request_timeout=5.0)


def test_a_mail_server_is_introduced_to_and_left_without_a_message() -> None:
    with Simulator(Config(smtp_password="right")) as simulator:
        assert smtp(simulator, username="shop", password="right").verdict == "good"
        wrong = smtp(simulator, username="shop", password="wr0ng")
        assert (wrong.verdict, "refuses this account" in wrong.words, "wr0ng" in wrong.words) == ("wrong", True, False)
        assert simulator.books == []
    assert smtp(simulator).verdict == "wrong", "nobody is there"


def test_a_server_that_takes_a_call_without_a_message_is_not_the_provider() -> None:
    with Server(answering(http_answer(b'{"id": "49a3"}'))) as server:
        found = check_credentials(provider("resend"), {"api_key": "re_x", "base_url": server.url}, request_timeout=5.0)
    assert (found.verdict, "it is not Resend" in found.words) == ("wrong", True)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (http_answer(b"<html>", status="502 Bad Gateway"), "no clear answer"),
        (http_answer(b"{}", status="429 Too Many Requests"), "come again later"),
        (http_answer(b"<html>", status="405 Method Not Allowed"), "gives no reason"),
    ],
)
def test_what_is_no_answer_to_the_question_leaves_it_open(answer: bytes, words: str) -> None:
    with Server(answering(answer)) as server:
        found = check_credentials(provider("resend"), {"api_key": "re_x", "base_url": server.url}, request_timeout=5.0)
    assert (found.verdict, words in found.words) == ("unknown", True)


def test_settings_that_cannot_work_are_told_without_a_call() -> None:
    found = check_credentials(provider("mailjet"), {"api_key": "public"}, request_timeout=5.0)
    assert (found.verdict, "secret_key" in found.words) == ("wrong", True)


# ── events ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "settings", "verdict"),
    [
        ("resend", {"webhook_secret": "whsec_c2VjcmV0"}, "good"),
        ("resend", {}, "wrong"),
        ("postal", {"webhook_secret": "no key at all"}, "wrong"),
        ("brevo", {"webhook_networks": "192.0.2.0/24"}, "good"),
        ("brevo", {"webhook_networks": "everywhere"}, "wrong"),
        ("ses", {"topic_arns": "arn:aws:sns:eu-west-1:123456789012:events"}, "good"),
        ("ses", {}, "wrong"),
    ],
)
def test_it_is_said_whether_any_event_could_be_verified(name: str, settings: dict[str, str], verdict: str) -> None:
    assert check_events(provider(name), settings, url="https://x.example/webhooks/1", now=NOW).verdict == verdict


# ── the address ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_address_that_answers_as_ours_does_is_good_by_https_alone(trusted_tls: ssl.SSLContext) -> None:
    ours = http_answer(b"ok\n")

    def behave(connection: socket.socket, number: int) -> None:
        with trusted_tls.wrap_socket(connection, server_side=True) as secure:
            answering(ours)(secure, number)

    with Server(behave) as server:
        secure = check_address(f"https://127.0.0.1:{server.port}/webhooks/1", request_timeout=5.0)
    with Server(answering(ours)) as server:
        plain = check_address(f"{server.url}/webhooks/1", request_timeout=5.0)
    assert (secure.verdict, plain.verdict, "no https" in plain.words) == ("good", "wrong", True)


def test_an_address_that_is_somebody_elses_or_nobodys_is_wrong() -> None:
    with Server(answering(http_answer(b"<html>Welcome</html>"))) as server:
        other = check_address(f"{server.url}/webhooks/1", request_timeout=5.0)
    nobody = check_address(f"http://127.0.0.1:{refused_port()}/webhooks/1", request_timeout=5.0)
    assert (other.verdict, "SENDONCE_PUBLIC_URL" in other.words) == ("wrong", True)
    assert (nobody.verdict, "connect refused" in nobody.words) == ("wrong", True)


def test_a_domain_of_replies_that_takes_no_mail_in_is_wrong() -> None:
    zone: dict[str, list[str] | str] = {
        "reply.shop.example": ["MX 10 mxb.mailgun.org.", "MX 10 mxa.mailgun.org."], "null.example": ["MX 0 ."],
        "silent.example": "broken",
    }  # fmt: skip
    with NameServer(zone) as server:
        names = Names(server.servers)
        told = {domain: check_replies(names, domain) for domain in (*zone, "nowhere.example")}
    assert [one.verdict for one in told.values()] == ["good", "wrong", "unknown", "wrong"]
    assert told["reply.shop.example"].words == "Mail goes to mxa.mailgun.org, mxb.mailgun.org."
