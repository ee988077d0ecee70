"""What each way to fail proves, on real sockets: only before the first byte of the request is it a definite no."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable

import pytest

from dashboard.providers import provider
from dashboard.providers.base import Accepted, Ambiguous, Deadline, NeverWritten, Outcome, Rejected, Scope, boot_time
from dashboard.providers.http import HttpClient
from dashboard.providers.results import Answer
from dashboard.providers.wire import open_socket
from tests.providers.rig import PATIENCE, Server, http_answer, outgoing, read_request, refused_port, reset

TAKEN = http_answer(b'{"id":"49a3999c-0ce1-4ea6-ab68-afcd6dc2e794"}')


def submit(url: str, *, request_timeout: float = PATIENCE, seconds: float = PATIENCE) -> Outcome:
    channel = provider("resend").open_channel({"api_key": "re_x", "base_url": url}, request_timeout=request_timeout)
    try:
        return channel.submit(outgoing(seconds=seconds))
    finally:
        channel.close()


def answering(answer: bytes) -> Callable[[socket.socket, int], None]:
    def behave(connection: socket.socket, _: int) -> None:
        read_request(connection)
        connection.sendall(answer)

    return behave


def retryable(outcome: Outcome) -> bool:
    return isinstance(outcome, Rejected) and outcome.retryable and outcome.scope is None


# ── nothing was written ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_refused_connection_is_a_definite_no() -> None:
    assert retryable(submit(f"http://127.0.0.1:{refused_port()}"))


def test_a_name_without_address_is_a_definite_no() -> None:
    outcome = submit("http://no-such-host.invalid")
    assert retryable(outcome)
    assert isinstance(outcome, Rejected)
    assert outcome.reason == "dns"


def test_a_connection_that_never_stands_is_a_definite_no() -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        port = listener.getsockname()[1]
        fillers = [socket.socket() for _ in range(4)]  # the queue of connections that nobody accepts is full
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        client = HttpClient(f"http://127.0.0.1:{port}", request_timeout=PATIENCE, connect_timeout=0.2)
        failure = client.post("/", headers={}, body=b"x", submit_by=Deadline.after(PATIENCE))
        for filler in fillers:
            filler.close()
    assert not isinstance(failure, Answer | NeverWritten)
    assert (failure.error, failure.request_written) == ("connect_timeout", False)


def test_a_certificate_that_nobody_vouches_for_is_a_definite_no(untrusted_tls: ssl.SSLContext) -> None:
    def behave(connection: socket.socket, _: int) -> None:
        untrusted_tls.wrap_socket(connection, server_side=True).close()

    with Server(behave) as server:
        outcome = submit(f"https://127.0.0.1:{server.port}")
    assert retryable(outcome)
    assert isinstance(outcome, Rejected)
    assert outcome.reason == "tls error"


def test_a_reset_within_the_handshake_is_a_definite_no(trusted_tls: ssl.SSLContext) -> None:
    with Server(lambda connection, _: reset(connection)) as server:
        assert retryable(submit(f"https://127.0.0.1:{server.port}"))


def test_a_first_write_that_the_kernel_refuses_has_written_nothing() -> None:
    with Server(_wait_for_close) as server:
        sock = open_socket("127.0.0.1", server.port, boot_time() + PATIENCE)
        sock.shutdown(socket.SHUT_WR)
        sock.begin(submit_by=Deadline.after(PATIENCE), until=boot_time() + PATIENCE)
        with pytest.raises(BrokenPipeError):
            sock.sendall(b"POST")
        assert not sock.wrote
        sock.close()


# ── the submit deadline ──────────────────────────────────────────────────────────────────────────────────────────────


def test_after_the_submit_deadline_no_byte_is_written_on_a_new_connection() -> None:
    with Server(lambda connection, _: None) as server:
        assert submit(server.url, seconds=0) == NeverWritten("submit deadline passed")


def test_a_connection_that_stands_too_late_carries_no_byte(trusted_tls: ssl.SSLContext) -> None:
    received: list[bytes] = []
    deadline = Deadline.after(0.4)

    def behave(connection: socket.socket, _: int) -> None:
        secured = trusted_tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        while not deadline.passed:
            time.sleep(deadline.at - boot_time() if deadline.at > boot_time() else 0)
        with secured:
            try:
                secured.do_handshake()
                received.append(secured.recv(65536))
            except OSError:
                received.append(b"")

    with Server(behave) as server:
        client = HttpClient(f"https://127.0.0.1:{server.port}", request_timeout=PATIENCE)
        outcome = client.post("/", headers={}, body=b"x", submit_by=deadline)
        assert server.done.acquire(timeout=PATIENCE)
    assert outcome == NeverWritten("submit deadline passed")
    assert received == [b""]


def test_a_kept_connection_carries_no_byte_after_the_deadline_either() -> None:
    second: list[bytes] = []

    def behave(connection: socket.socket, _: int) -> None:
        read_request(connection)
        connection.sendall(TAKEN)
        second.append(read_request(connection))

    with Server(behave) as server:
        client = HttpClient(server.url, request_timeout=PATIENCE)
        assert isinstance(client.post("/", headers={}, body=b"x", submit_by=Deadline.after(PATIENCE)), Answer)
        late = client.post("/", headers={}, body=b"x", submit_by=Deadline.after(0))
        assert server.done.acquire(timeout=PATIENCE)
    assert late == NeverWritten("submit deadline passed")
    assert second == [b""]
    assert server.connections == 1


# ── written, and then ────────────────────────────────────────────────────────────────────────────────────────────────


def close_without_reading(connection: socket.socket, _: int) -> None:
    connection.recv(1)
    reset(connection)


def read_then_reset(connection: socket.socket, _: int) -> None:
    read_request(connection)
    reset(connection)


def read_then_close(connection: socket.socket, _: int) -> None:
    read_request(connection)


AFTER_WRITING = {
    "a reset while the request is read": close_without_reading,
    "a reset instead of an answer": read_then_reset,
    "a close instead of an answer": read_then_close,
    "garbage": answering(b"\0\1\2 not http\r\n\r\n"),
    "an answer of another protocol": answering(b"220 mx ESMTP\r\n"),
    "a body shorter than promised": answering(b'HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{"id":"4'),
    "a refusal shorter than promised": answering(b'HTTP/1.1 422 No\r\nContent-Length: 99\r\n\r\n{"name":'),
    "a refusal cut off in its head": answering(b"HTTP/1.1 422 Unprocessable\r\nContent-Ty"),
    "a chunk that never ends": answering(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n20\r\n{"id":'),
    "a chunk whose size is no number": answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
    "a page instead of the API": answering(http_answer(b"<html>Welcome to the wifi</html>")),
    "a yes without an id": answering(http_answer(b'{"object":"email"}')),
    "a yes with an empty id": answering(http_answer(b'{"id":""}')),
    "a yes with another status": answering(http_answer(b'{"id":"x"}', status="202 Accepted")),
    "an endless body": answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + b" " * 3_000_000),
    "compressed words": answering(http_answer(b"\x1f\x8b\x08", headers="Content-Encoding: gzip\r\n")),
    "a gateway's own failure": answering(http_answer(b"<html>", status="502 Bad Gateway")),
    "unavailable": answering(http_answer(b"{}", status="503 Service Unavailable")),
    "an undocumented status": answering(http_answer(b"{}", status="999 Odd")),
    "see other": answering(http_answer(b"", status="303 See Other", headers="Location: /done\r\n")),
    "a gateway that had no time": answering(http_answer(b"{}", status="408 Request Timeout")),
    "a gateway that gave up": answering(http_answer(b"{}", status="499 Client Closed Request")),
    "a refusal of somebody's own": answering(http_answer(b"{}", status="460 Odd")),
    "an answer for a batch": answering(http_answer(b'{"data":[{"id":"x"}]}')),
}


@pytest.mark.parametrize("behave", AFTER_WRITING.values(), ids=AFTER_WRITING)
def test_once_written_whatever_is_no_documented_answer_is_in_doubt(
    behave: Callable[[socket.socket, int], None],
) -> None:
    with Server(behave) as server:
        outcome = submit(server.url)
        assert server.connections == 1
    assert isinstance(outcome, Ambiguous)
    assert outcome.error_class


def test_a_server_that_reads_and_is_silent_leaves_doubt_within_the_time_out() -> None:
    with Server(_wait_for_close) as server:
        began = boot_time()
        outcome = submit(server.url, request_timeout=0.3)
        assert boot_time() - began < 2
    assert isinstance(outcome, Ambiguous)
    assert outcome.error_class == "read_timeout"


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"], ids=["head", "body"])
def test_a_slow_drip_cannot_outlast_the_request_time_out(start: bytes) -> None:
    def behave(connection: socket.socket, _: int) -> None:
        read_request(connection)
        connection.sendall(start)
        drip(server, connection)

    with Server(behave) as server:
        began = boot_time()
        outcome = submit(server.url, request_timeout=0.4)
        assert 0.3 < boot_time() - began < 2
    assert isinstance(outcome, Ambiguous)
    assert outcome.error_class == "read_timeout"


def test_over_tls_a_slow_drip_cannot_outlast_it_either(trusted_tls: ssl.SSLContext) -> None:
    def behave(connection: socket.socket, _: int) -> None:
        with trusted_tls.wrap_socket(connection, server_side=True) as secured:
            read_request(secured)
            drip(server, secured)

    with Server(behave) as server:
        began = boot_time()
        outcome = submit(f"https://127.0.0.1:{server.port}", request_timeout=0.4)
        assert boot_time() - began < 2
    assert isinstance(outcome, Ambiguous)


def test_a_write_that_nobody_reads_is_in_doubt_within_the_time_out() -> None:
    def behave(connection: socket.socket, _: int) -> None:
        server.stopping.wait(PATIENCE)

    with Server(behave) as server:
        client = HttpClient(server.url, request_timeout=0.3)
        failure = client.post("/", headers={}, body=b"x" * 50_000_000, submit_by=Deadline.after(PATIENCE))
    assert not isinstance(failure, Answer | NeverWritten)
    assert (failure.error, failure.request_written) == ("read_timeout", True)


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_documented_answer_is_accepted_over_tls(trusted_tls: ssl.SSLContext) -> None:
    def behave(connection: socket.socket, _: int) -> None:
        with trusted_tls.wrap_socket(connection, server_side=True) as secured:
            read_request(secured)
            secured.sendall(TAKEN)

    with Server(behave) as server:
        outcome = submit(f"https://127.0.0.1:{server.port}")
    assert outcome == Accepted("49a3999c-0ce1-4ea6-ab68-afcd6dc2e794")


def test_an_answer_before_the_whole_request_was_read_is_still_heard() -> None:
    def behave(connection: socket.socket, _: int) -> None:
        connection.recv(1000)
        connection.sendall(
            http_answer(b'{"name":"too_large"}', status="413 Too Large", headers="Connection: close\r\n")
        )
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass

    with Server(behave) as server:
        channel = provider("resend").open_channel({"api_key": "k", "base_url": server.url}, request_timeout=PATIENCE)
        outcome = channel.submit(outgoing(text="x" * 3_000_000))
        channel.close()
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable, outcome.error_code) == (Scope.MESSAGE, False, "too_large")


@pytest.mark.parametrize(
    ("status", "scope"),
    [
        *((status, "account") for status in (301, 307, 308, 401, 402, 403, 404)),
        *((status, "message") for status in (400, 405, 410, 413, 422, 451)),
    ],
)
def test_a_definite_status_is_a_definite_no(status: int, scope: str) -> None:
    with Server(answering(http_answer(b"<html>", status=f"{status} No"))) as server:
        outcome = submit(server.url)
    assert isinstance(outcome, Rejected)
    assert (outcome.scope, outcome.retryable, outcome.error_code) == (scope, False, None)


def test_a_redirect_is_not_followed() -> None:
    location = "Location: /elsewhere\r\n"
    with Server(answering(http_answer(b"", status="307 Temporary Redirect", headers=location))) as server:
        submit(server.url)
        assert server.connections == 1


def test_a_proxy_named_in_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{refused_port()}")
    with Server(answering(TAKEN)) as server:
        assert isinstance(submit(server.url), Accepted)


# ── kept connections ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_connection_is_kept_for_the_next_message() -> None:
    def behave(connection: socket.socket, _: int) -> None:
        while read_request(connection):
            connection.sendall(TAKEN)

    with Server(behave) as server:
        channel = provider("resend").open_channel({"api_key": "k", "base_url": server.url}, request_timeout=PATIENCE)
        assert all(isinstance(channel.submit(outgoing()), Accepted) for _ in range(3))
        channel.close()
        assert server.connections == 1


def test_a_kept_connection_that_the_server_closed_is_not_written_to() -> None:
    closed = threading.Event()

    def behave(connection: socket.socket, _: int) -> None:
        read_request(connection)
        connection.sendall(TAKEN)
        connection.close()
        closed.set()

    with Server(behave) as server:
        channel = provider("resend").open_channel({"api_key": "k", "base_url": server.url}, request_timeout=PATIENCE)
        assert isinstance(channel.submit(outgoing()), Accepted)
        assert closed.wait(PATIENCE)
        assert isinstance(channel.submit(outgoing()), Accepted)
        channel.close()
        assert server.connections == 2


def test_a_kept_connection_on_which_the_server_spoke_unasked_is_not_used() -> None:
    answered, spoken = threading.Event(), threading.Event()

    def behave(connection: socket.socket, _: int) -> None:
        read_request(connection)
        connection.sendall(TAKEN)
        answered.wait(PATIENCE)
        connection.sendall(http_answer(b'{"id":"of another request"}'))
        spoken.set()
        server.stopping.wait(PATIENCE)

    with Server(behave) as server:
        client = HttpClient(server.url, request_timeout=PATIENCE)
        client.post("/", headers={}, body=b"x", submit_by=Deadline.after(PATIENCE))
        answered.set()
        assert spoken.wait(PATIENCE)
        client.post("/", headers={}, body=b"x", submit_by=Deadline.after(PATIENCE))
        assert server.connections == 2
        client.close()


def test_a_connection_that_rested_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def behave(connection: socket.socket, _: int) -> None:
        while read_request(connection):
            connection.sendall(TAKEN)

    with Server(behave) as server:
        client = HttpClient(server.url, request_timeout=PATIENCE)
        client.post("/", headers={}, body=b"x", submit_by=Deadline.after(PATIENCE))
        clock = time.clock_gettime
        monkeypatch.setattr("time.clock_gettime", lambda which: clock(which) + 60)
        client.post("/", headers={}, body=b"x", submit_by=Deadline.after(PATIENCE))
        assert server.connections == 2
        client.close()


def drip(server: Server, connection: socket.socket) -> None:
    """A byte every now and then, for far longer than the client may wait."""
    for _ in range(200):
        if server.stopping.wait(0.02):
            return
        connection.sendall(b"H")


def _wait_for_close(connection: socket.socket, _: int) -> None:
    read_request(connection)
    connection.recv(1)
