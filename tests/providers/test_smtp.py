"""A scripted server fails at every stage: a definite no up to the message's end, doubt only between it and a reply."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from dashboard.providers import provider
from dashboard.providers.base import Accepted, Ambiguous, Channel, Deadline, NeverWritten, Outcome, Rejected, boot_time
from tests.providers.rig import PATIENCE, SEND_ID, Server, outgoing, refused_port, reset

POLITE = {
    "banner": "220 mx ESMTP",
    "EHLO": "250-mx\r\n250-PIPELINING\r\n250 8BITMIME",
    "MAIL": "250 2.1.0 Ok",
    "RCPT": "250 2.1.5 Ok",
    "DATA": "354 go on",
    "end": "250 2.0.0 Ok: queued as 4C0FFEE",
    "RSET": "250 2.0.0 Ok",
    "QUIT": "221 2.0.0 Bye",
}
RESET, CLOSE, SILENT, DRIP = "reset", "close", "silent", "drip"
Script = Mapping[str, str | bytes]


class Dialogue:
    """One side of SMTP by a script: a reply for each command, or RESET, CLOSE, SILENT, DRIP in its place."""

    def __init__(self, script: Script, tls: ssl.SSLContext | None = None) -> None:
        self.script: dict[str, str | bytes] = {**POLITE, **script}
        self.commands: list[str] = []
        self.messages: list[bytes] = []
        self.tls = tls
        self.stop = threading.Event()

    def __call__(self, connection: socket.socket, _: int) -> None:
        self._talk(connection, greet=True)

    def _talk(self, connection: socket.socket, *, greet: bool) -> None:
        lines = connection.makefile("rb")
        if greet and not self._answer(connection, "banner"):
            return
        for raw in lines:
            line = raw.decode().rstrip("\r\n")
            self.commands.append(line)
            if not self._answer(connection, line.partition(" ")[0] if line else ""):
                return
            if line == "STARTTLS" and self.tls:
                with self.tls.wrap_socket(connection, server_side=True) as secured:
                    self._talk(secured, greet=False)
                return
            if line == "DATA" and str(self.script["DATA"]).startswith("354"):
                message = b""
                while not message.endswith(b"\r\n.\r\n"):
                    chunk = lines.readline()
                    if not chunk:
                        return
                    message += chunk
                    if "body" in self.script and not self._answer(connection, "body"):
                        return
                self.messages.append(message)
                if not self._answer(connection, "end"):
                    return

    def _answer(self, connection: socket.socket, key: str) -> bool:
        reply = self.script.get(key, "250 Ok")
        if reply == RESET:
            reset(connection)
        elif reply == SILENT:
            self.stop.wait(PATIENCE)
        elif reply == DRIP:
            for _ in range(200):
                if self.stop.wait(0.02):
                    break
                connection.sendall(b"2")
        elif reply != CLOSE:
            connection.sendall(reply if isinstance(reply, bytes) else f"{reply}\r\n".encode())
            return True
        return False


def opened(server: Server, *, request_timeout: float = PATIENCE, **settings: str) -> Channel:
    given = {"host": "127.0.0.1", "port": str(server.port), "security": "none"} | settings
    return provider("smtp").open_channel(given, request_timeout=request_timeout)


def submit(
    dialogue: Callable[[socket.socket, int], None], *, request_timeout: float = PATIENCE, **rest: Any
) -> tuple[Outcome, Dialogue]:
    settings = {name: rest.pop(name) for name in ("security", "username", "password", "local_hostname") if name in rest}
    with Server(dialogue) as server:
        channel = opened(server, request_timeout=request_timeout, **settings)
        outcome = channel.submit(outgoing(**rest))
        channel.close()
        if isinstance(dialogue, Dialogue):
            dialogue.stop.set()
    assert isinstance(dialogue, Dialogue)
    return outcome, dialogue


# ── the straight path ────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_message_is_handed_over_in_one_transaction() -> None:
    outcome, server = submit(Dialogue({}), local_hostname="worker.example.com")
    assert outcome == Accepted(None, request_id="250 2.0.0 Ok: queued as 4C0FFEE", phase="final_dot")
    assert server.commands[:4] == [
        *("EHLO worker.example.com", "MAIL FROM:<shop@example.com>", "RCPT TO:<ada@example.com>", "DATA")
    ]
    assert f"Message-ID: <{SEND_ID}@example.com>\r\n".encode() in server.messages[0]


def test_dots_are_stuffed_on_the_wire() -> None:
    _, server = submit(Dialogue({}), text=".\n..two\nend")
    assert b"\r\n..\r\n" in server.messages[0] or b"\r\n=2E\r\n" in server.messages[0]
    assert b"\r\n...two\r\n" in server.messages[0] or b"\r\n=2E.two\r\n" in server.messages[0]


@pytest.mark.parametrize("after", [RESET, CLOSE, SILENT])
def test_after_the_yes_nothing_matters(after: str) -> None:
    outcome, _ = submit(Dialogue({"QUIT": after}))
    assert isinstance(outcome, Accepted)


def test_starttls_secures_the_talk_and_asks_again_what_is_offered(trusted_tls: ssl.SSLContext) -> None:
    dialogue = Dialogue({"EHLO": "250-mx\r\n250-STARTTLS\r\n250 AUTH LOGIN PLAIN", "STARTTLS": "220 go"}, trusted_tls)
    outcome, server = submit(dialogue, security="starttls", username="u", password="pä")
    assert isinstance(outcome, Accepted)
    assert [command.partition(" ")[0] for command in server.commands[:4]] == ["EHLO", "STARTTLS", "EHLO", "AUTH"]
    assert base64.b64decode(server.commands[3].rpartition(" ")[2]).decode() == "\0u\0pä"


def test_tls_from_the_first_byte(trusted_tls: ssl.SSLContext) -> None:
    dialogue = Dialogue({})

    def behave(connection: socket.socket, number: int) -> None:
        with trusted_tls.wrap_socket(connection, server_side=True) as secured:
            dialogue(secured, number)

    with Server(behave) as server:
        channel = opened(server, security="tls")
        assert isinstance(channel.submit(outgoing()), Accepted)
        assert isinstance(channel.submit(outgoing()), Accepted)
        channel.close()
    assert dialogue.commands.count("DATA") == 2


def test_log_in_falls_back_to_the_older_way() -> None:
    replies = {"EHLO": "250-mx\r\n250 AUTH LOGIN", "AUTH": "334 VXNlcm5hbWU6", "dQ==": "334 UGFzcw==", "cA==": "235 ok"}
    outcome, server = submit(Dialogue(replies), username="u", password="p")
    assert isinstance(outcome, Accepted)
    assert server.commands[1:4] == ["AUTH LOGIN", "dQ==", "cA=="]


# ── failing at every stage ───────────────────────────────────────────────────────────────────────────────────────────

STAGES = {
    "banner": "banner",
    "EHLO": "ehlo",
    "MAIL": "mail_from",
    "RCPT": "rcpt_to",
    "DATA": "data",
    "end": "final_dot",
}
ACCOUNT = {"banner", "EHLO"}


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(("reply", "repeatable"), [("451 4.3.0 later", True), ("554 5.7.1 never", False)])
def test_a_refusal_at_any_stage_is_a_definite_no(stage: str, reply: str, repeatable: bool) -> None:
    outcome, server = submit(Dialogue({stage: reply}))
    assert (
        outcome
        == Rejected(
            scope="account" if stage in ACCOUNT else "message",  # type: ignore[arg-type]
            retryable=repeatable,
            error_code=reply[:9],
            reason=reply,
            phase=STAGES[stage],
        )
    )
    assert len(server.messages) == (1 if stage == "end" else 0)


@pytest.mark.parametrize("failure", [RESET, CLOSE, SILENT, "\0\0??", "nonsense", "999 odd"])
@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "end"])
def test_a_failure_before_the_body_is_a_definite_no_for_now(stage: str, failure: str) -> None:
    outcome, server = submit(Dialogue({stage: failure}), request_timeout=0.4 if failure == SILENT else PATIENCE)
    assert isinstance(outcome, Rejected)
    assert outcome.retryable
    # A reset in place of a banner may overtake the news that the connection stands.
    assert outcome.phase == STAGES[stage] or (stage, failure, outcome.phase) == ("banner", RESET, "connect")
    assert server.messages == []


@pytest.mark.parametrize("failure", [RESET, CLOSE])
def test_a_failure_while_the_body_is_written_is_a_definite_no_for_now(failure: str) -> None:
    outcome, server = submit(Dialogue({"body": failure}), text="line of text\n" * 600_000)
    assert isinstance(outcome, Rejected)
    assert (outcome.retryable, outcome.phase) == (True, "data_body")
    assert server.messages == []


def test_a_server_that_stops_reading_the_body_is_a_definite_no_for_now() -> None:
    outcome, server = submit(Dialogue({"body": SILENT}), text="line of text\n" * 600_000, request_timeout=0.4)
    assert isinstance(outcome, Rejected)
    assert (outcome.retryable, outcome.phase) == (True, "data_body")
    assert server.messages == []


def test_a_refusal_in_the_middle_of_the_body_is_heard_before_the_end_is_written() -> None:
    outcome, server = submit(Dialogue({"DATA": b"354 go\r\n552 5.3.4 too big\r\n"}))
    assert isinstance(outcome, Rejected)
    assert (outcome.retryable, outcome.phase, outcome.error_code) == (False, "data_body", "552 5.3.4")
    assert server.messages == []


def test_a_yes_that_nobody_asked_for_is_not_taken_as_the_verdict() -> None:
    outcome, server = submit(Dialogue({"DATA": b"354 go\r\n250 2.0.0 taken\r\n"}))
    assert isinstance(outcome, Rejected)
    assert outcome.retryable
    assert server.messages == []


def test_a_reply_that_nobody_asked_for_ends_the_talk_before_the_next_command() -> None:
    outcome, server = submit(Dialogue({"MAIL": b"250 ok\r\n250 ok\r\n"}))
    assert isinstance(outcome, Rejected)
    assert outcome.retryable
    assert "DATA" not in server.commands


AFTER_THE_END = [
    RESET,
    CLOSE,
    SILENT,
    "\0\0??",
    "nonsense",
    "999 odd",
    "354 go",
    b"250-half a reply\r\n",
    b"250 no line end",
]


@pytest.mark.parametrize("failure", AFTER_THE_END)
def test_without_a_readable_reply_to_the_end_it_is_in_doubt(failure: str | bytes) -> None:
    unfinished = failure == SILENT or isinstance(failure, bytes)
    outcome, server = submit(Dialogue({"end": failure}), request_timeout=0.4 if unfinished else PATIENCE)
    assert isinstance(outcome, Ambiguous)
    assert outcome.phase == "final_dot"
    assert len(server.messages) == 1


def test_a_reply_that_drips_cannot_outlast_the_request_time_out() -> None:
    dialogue = Dialogue({"end": DRIP})
    with Server(dialogue) as server:
        began = boot_time()
        outcome = opened(server, request_timeout=0.4).submit(outgoing())
        assert boot_time() - began < 2
        dialogue.stop.set()
    assert isinstance(outcome, Ambiguous)
    assert outcome.error_class == "read_timeout"


def test_a_refused_connection_is_the_accounts_trouble_for_now() -> None:
    settings = {"host": "127.0.0.1", "port": str(refused_port()), "security": "none"}
    outcome = provider("smtp").open_channel(settings, request_timeout=PATIENCE).submit(outgoing())
    assert outcome == Rejected(scope="account", retryable=True, reason="connect refused at connect", phase="connect")  # type: ignore[arg-type]


# ── security, log-in, alphabets ──────────────────────────────────────────────────────────────────────────────────────


def test_a_server_without_starttls_gets_neither_password_nor_message() -> None:
    outcome, server = submit(Dialogue({}), security="starttls", username="u", password="p")
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable, outcome.phase) == ("account", False, "starttls")
    assert [command.partition(" ")[0] for command in server.commands] == ["EHLO"]


def test_a_certificate_that_nobody_vouches_for_ends_it(untrusted_tls: ssl.SSLContext) -> None:
    dialogue = Dialogue({"EHLO": "250-mx\r\n250 STARTTLS", "STARTTLS": "220 go"}, untrusted_tls)
    outcome, server = submit(dialogue, security="starttls")
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable, outcome.phase) == ("account", True, "starttls")
    assert server.commands == [server.commands[0], "STARTTLS"]


def test_words_slipped_in_before_tls_end_it(trusted_tls: ssl.SSLContext) -> None:
    dialogue = Dialogue({"EHLO": "250-mx\r\n250 STARTTLS", "STARTTLS": b"220 go\r\n250 slipped in\r\n"}, trusted_tls)
    outcome, _ = submit(dialogue, security="starttls")
    assert isinstance(outcome, Rejected)
    assert outcome.phase == "starttls"


@pytest.mark.parametrize("code", ["530 5.7.0", "534 5.7.9", "535 5.7.8"])
@pytest.mark.parametrize("stage", ["AUTH", "MAIL"])
def test_a_refused_log_in_is_the_accounts_fault_at_any_command(stage: str, code: str) -> None:
    script = {"EHLO": "250-mx\r\n250 AUTH PLAIN", stage: f"{code} no"}
    outcome, _ = submit(Dialogue(script), username="u", password="p")
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable, outcome.error_code) == ("account", False, code)


def test_a_server_without_any_known_log_in_is_the_accounts_fault() -> None:
    outcome, _ = submit(Dialogue({"EHLO": "250-mx\r\n250 AUTH GSSAPI"}), username="u", password="p")
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable, outcome.phase) == ("account", False, "auth")


def test_a_local_part_in_another_script_needs_a_server_that_takes_it() -> None:
    outcome, server = submit(Dialogue({}), address="адa@example.com")
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable) == ("message", False)
    assert not any(command.startswith("MAIL") for command in server.commands)
    outcome, server = submit(Dialogue({"EHLO": "250-mx\r\n250 SMTPUTF8"}), address="адa@example.com")
    assert isinstance(outcome, Accepted)
    assert server.commands[1:3] == ["MAIL FROM:<shop@example.com> SMTPUTF8", "RCPT TO:<адa@example.com>"]


# ── the submit deadline ──────────────────────────────────────────────────────────────────────────────────────────────


def test_after_the_submit_deadline_not_even_a_connection_is_made() -> None:
    with Server(Dialogue({})) as server:
        assert opened(server).submit(outgoing(seconds=0)) == NeverWritten("submit deadline passed")
        assert server.connections == 0


@pytest.mark.parametrize(("stage", "forbidden"), [("EHLO", "MAIL"), ("RCPT", "DATA")])
def test_a_talk_that_outlasts_the_deadline_is_given_up(stage: str, forbidden: str) -> None:
    outcome, server = submit(Dialogue({stage: SILENT}), seconds=0.3)
    assert outcome == NeverWritten("submit deadline passed")
    assert not any(command.startswith(forbidden) for command in server.commands)


def test_a_354_that_comes_too_late_gets_no_body() -> None:
    dialogue = Dialogue({})
    deadline = Deadline.after(0.3)
    rest: list[bytes] = []

    def behave(connection: socket.socket, _: int) -> None:
        for reply in ("220 mx", "250 mx", "250 ok", "250 ok"):
            connection.sendall(f"{reply}\r\n".encode())
            connection.recv(1000)
        connection.sendall(b"354")
        dialogue.stop.wait(max(0.0, deadline.at - boot_time() + 0.05))
        connection.sendall(b" go on\r\n")
        rest.append(connection.recv(1000))

    with Server(behave) as server:
        outcome = opened(server).submit(outgoing(seconds=deadline.at - boot_time()))
        assert server.done.acquire(timeout=PATIENCE)
    assert outcome == NeverWritten("submit deadline passed")
    assert all(chunk == b"" for chunk in rest)


# ── kept connections ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_connection_is_kept_after_a_yes_and_after_a_refusal() -> None:
    dialogue = Dialogue({"RCPT": "550 5.1.1 no such user"})
    with Server(dialogue) as server:
        channel = opened(server)
        assert isinstance(channel.submit(outgoing()), Rejected)
        dialogue.script["RCPT"] = "250 ok"
        assert isinstance(channel.submit(outgoing()), Accepted)
        assert isinstance(channel.submit(outgoing()), Accepted)
        channel.close()
        assert server.connections == 1
    assert dialogue.commands.count("RSET") == 2


@pytest.mark.parametrize("stale", [RESET, CLOSE, "421 4.4.2 idle too long", "\0"])
def test_a_kept_connection_that_fails_is_replaced_before_anything_is_said(stale: str) -> None:
    dialogue = Dialogue({"RSET": stale})
    with Server(dialogue) as server:
        channel = opened(server)
        assert isinstance(channel.submit(outgoing()), Accepted)
        assert isinstance(channel.submit(outgoing()), Accepted)
        channel.close()
        assert server.connections == 2


def test_a_kept_connection_that_fails_at_mail_is_a_definite_no() -> None:
    dialogue = Dialogue({})
    with Server(dialogue) as server:
        channel = opened(server)
        assert isinstance(channel.submit(outgoing()), Accepted)
        dialogue.script["MAIL"] = RESET
        outcome = channel.submit(outgoing())
        channel.close()
        assert server.connections == 1
    assert isinstance(outcome, Rejected)
    assert (outcome.retryable, outcome.phase) == (True, "mail_from")


def test_after_421_the_connection_is_given_up() -> None:
    dialogue = Dialogue({"end": "421 4.3.0 shutting down"})
    with Server(dialogue) as server:
        channel = opened(server)
        outcome = channel.submit(outgoing())
        dialogue.script["end"] = "250 ok"
        assert isinstance(channel.submit(outgoing()), Accepted)
        channel.close()
        assert server.connections == 2
    assert isinstance(outcome, Rejected)
    assert outcome.retryable


def test_a_connection_whose_log_in_was_refused_is_not_used_without_one() -> None:
    dialogue = Dialogue({"EHLO": "250-mx\r\n250 AUTH PLAIN", "AUTH": "454 4.7.0 later"})
    with Server(dialogue) as server:
        channel = opened(server, username="u", password="p")
        assert isinstance(channel.submit(outgoing()), Rejected)
        dialogue.script["AUTH"] = "235 ok"
        assert isinstance(channel.submit(outgoing()), Accepted)
        channel.close()
        assert server.connections == 2


def test_threads_share_a_channel() -> None:
    outcomes: list[Outcome] = []
    with Server(Dialogue({})) as server:
        channel = opened(server)
        threads = [threading.Thread(target=lambda: outcomes.append(channel.submit(outgoing()))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        channel.close()
    assert [type(outcome) for outcome in outcomes] == [Accepted] * 8
