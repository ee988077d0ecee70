"""SMTP on real sockets: acceptance, refusals by name, and each fault around the final dot."""

from __future__ import annotations

import smtplib
import socket
import threading
import time
from collections.abc import Callable
from email.message import EmailMessage

import pytest

from dashboard.simulator import Simulator
from tests.simulator.client import Client

Start = Callable[..., Simulator]


def letter(send_id: str = "send-1") -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "shop@example.test", "ada@example.test", "Grüße"
    message["Message-ID"] = f"<{send_id}@example.test>"
    message["X-Send-Id"] = send_id
    message.set_content("Hello\n.a line with a dot first\n")
    return message


def send(sim: Simulator, send_id: str = "send-1", *, to: str = "ada@example.test", timeout: float = 10) -> None:
    """One message over one connection. Raises what a client meets."""
    client = smtplib.SMTP(sim.smtp_host, sim.smtp_port, timeout=timeout)
    try:
        client.send_message(letter(send_id), to_addrs=[to])
    finally:
        client.close()


def test_an_accepted_message_is_in_the_books_with_its_send_id(start: Start) -> None:
    sim = start()
    with smtplib.SMTP(sim.smtp_host, sim.smtp_port, timeout=10) as client:
        for n in range(3):
            client.send_message(letter(f"send-{n}"), to_addrs=[f"u{n}@example.test"])
    assert [(row.send_id, row.recipient, row.protocol) for row in sim.books] == [
        (f"send-{n}", f"u{n}@example.test", "smtp") for n in range(3)
    ]
    assert sim.counts()["smtp_250"] == 3


def test_the_reply_to_the_dot_names_the_queue_id_of_the_books(start: Start) -> None:
    sim = start()
    client = smtplib.SMTP(sim.smtp_host, sim.smtp_port, timeout=10)
    client.ehlo()
    client.mail("shop@example.test")
    client.rcpt("ada@example.test")
    code, text = client.data(letter().as_bytes())
    client.quit()
    assert code == 250
    assert sim.books[0].message_id in text.decode()


def test_pipelined_commands_get_their_replies_in_order_and_dots_are_unstuffed(start: Start) -> None:
    sim = start()
    with socket.create_connection((sim.smtp_host, sim.smtp_port), timeout=10) as sock, sock.makefile("rb") as replies:
        sock.sendall(
            b"EHLO me\r\nMAIL FROM:<a@example.test>\r\nRCPT TO:<reject+x@example.test>\r\nRCPT TO:<b@example.test>\r\n"
            b"DATA\r\n"
        )
        codes = []
        while not codes or codes[-1] != "354":
            codes.append(replies.readline().decode()[:3])
        assert codes[-5:] == ["250", "250", "550", "250", "354"]
        sock.sendall(b"Subject: x\r\n\r\n..\r\n..two\r\n.\r\nQUIT\r\n")
        assert [replies.readline()[:3] for _ in range(2)] == [b"250", b"221"]
    assert [row.recipient for row in sim.books] == ["b@example.test"]
    page = Client(sim).call("GET", f"/_mailbox/{sim.books[0].message_id}").text
    assert "<pre>.\r\n.two" in page


def test_commands_out_of_order_are_refused(start: Start) -> None:
    sim = start()
    with smtplib.SMTP(sim.smtp_host, sim.smtp_port, timeout=10) as client:
        client.ehlo()
        assert client.docmd("DATA")[0] == 503
        assert client.docmd("RCPT", "TO:<a@example.test>")[0] == 503
        assert client.docmd("MAIL", "nonsense")[0] == 501
        assert client.docmd("NONSENSE")[0] == 500
        assert client.mail("a@example.test", ["SIZE=999999999"])[0] == 552
        assert client.mail("a@example.test")[0] == 250
        assert client.docmd("DATA")[0] == 503
        assert client.rset()[0] == 250
    assert sim.books == []


def test_a_password_is_asked_for_where_one_is_set(start: Start) -> None:
    sim = start(smtp_password="right")
    with smtplib.SMTP(sim.smtp_host, sim.smtp_port, timeout=10) as client:
        client.ehlo()
        assert client.mail("a@example.test")[0] == 530
        with pytest.raises(smtplib.SMTPAuthenticationError):
            client.login("user", "wrong")
        client.user, client.password = "user", "right"
        assert client.auth("LOGIN", client.auth_login)[0] == 235
        assert client.auth("PLAIN", client.auth_plain)[0] == 235
        client.send_message(letter())
    assert len(sim.books) == 1


def test_recipients_are_refused_by_name_at_rcpt(start: Start) -> None:
    sim = start()
    with pytest.raises(smtplib.SMTPRecipientsRefused) as refused:
        send(sim, to="reject+ada@example.test")
    assert refused.value.recipients["reject+ada@example.test"][0] == 550
    with pytest.raises(smtplib.SMTPRecipientsRefused) as refused:
        send(sim, to="greylist+ada@example.test")
    assert refused.value.recipients["greylist+ada@example.test"][0] == 451
    send(sim, to="greylist+ada@example.test")
    assert [row.recipient for row in sim.books] == ["greylist+ada@example.test"]


def meet(sim: Simulator, *, timeout: float, to: str = "ada@example.test") -> str:
    """What a client sees instead of the reply to its final dot."""
    try:
        send(sim, to=to, timeout=timeout)
    except TimeoutError:
        return "timeout"
    except smtplib.SMTPDataError as error:
        return str(error.smtp_code)
    except smtplib.SMTPServerDisconnected as error:
        return "reset" if "reset" in str(error).lower() else f"timeout? {error}"
    except ConnectionResetError:
        return "reset"
    return "250"


FAULTS = [
    ("accept_then_timeout", "timeout", "timeout", 1),
    ("drop_after_dot_taken", "lost", "reset", 1),
    ("drop_after_dot_not_taken", "reset", "reset", 0),
    ("reply_451", "error", "451", 0),
    ("reply_421", "busy", "421", 0),
    ("slow", "slow", "250", 1),
    ("garbage", "garbage", "-1", 1),
]


@pytest.mark.parametrize(("fault", "word", "seen", "taken"), FAULTS)
def test_each_fault_after_the_dot_shows_and_leaves_what_it_says(
    start: Start, fault: str, word: str, seen: str, taken: int
) -> None:
    timeout = 0.3 if seen == "timeout" else 10
    by_chance = start(smtp={fault: 1.0}, slow_ms=30)
    assert meet(by_chance, timeout=timeout).startswith(seen)
    assert len(by_chance.books) == taken
    by_name = start(slow_ms=30)
    assert meet(by_name, timeout=timeout, to=f"{word}+ada@example.test").startswith(seen)
    assert len(by_name.books) == taken
    assert meet(by_name, timeout=10, to=f"{word}+ada@example.test") == "250", "only the first time"


def test_a_held_reply_leaves_when_it_is_released_though_the_message_was_taken(start: Start) -> None:
    sim = start(hold_answers=True)
    thread = threading.Thread(target=send, args=(sim,))
    thread.start()
    assert sim.wait_taken(1)
    assert thread.is_alive()
    sim.release_answers()
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_a_body_that_breaks_off_before_the_dot_is_not_taken(start: Start) -> None:
    sim = start()
    with socket.create_connection((sim.smtp_host, sim.smtp_port), timeout=10) as sock:
        sock.sendall(
            b"HELO me\r\nMAIL FROM:<a@example.test>\r\nRCPT TO:<b@example.test>\r\nDATA\r\nSubject: x\r\n\r\nbody\r\n"
        )
        while b"354" not in sock.recv(4096):
            pass
    send(sim, "after")
    assert [row.send_id for row in sim.books] == ["after"]


def test_what_goes_wrong_is_repeated_by_the_seed(start: Start) -> None:
    def outcomes(seed: int) -> list[str]:
        sim = start(seed=seed, smtp={"reply_451": 0.4, "drop_after_dot_not_taken": 0.3})
        seen = []
        for n in range(20):
            try:
                send(sim, f"send-{n}")
                seen.append("250")
            except smtplib.SMTPDataError:
                seen.append("451")
            except (smtplib.SMTPServerDisconnected, ConnectionResetError):
                seen.append("reset")
        return seen

    first = outcomes(3)
    assert outcomes(3) == first
    assert outcomes(4) != first
    assert set(first) == {"250", "451", "reset"}


def test_a_silent_server_takes_the_message_at_once(start: Start) -> None:
    sim = start(smtp={"accept_then_timeout": 1.0})
    began = time.monotonic()
    assert meet(sim, timeout=0.3).startswith("timeout")
    assert time.monotonic() - began >= 0.3
    assert len(sim.books) == 1
