"""Where an address that somebody typed in may lead, and where not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from dashboard.channels import NotArrived
from dashboard.channels.post import is_public, post
from dashboard.channels.webhook import signed

PRIVATE = (
    "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1",
    "255.255.255.255", "::1", "::", "fe80::1", "fd00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::", "::7f00:1",
)  # fmt: skip
PUBLIC = ("93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101")


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_of_a_private_network_is_known_however_it_is_wrapped(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_internet_is_known(address: str) -> None:
    assert is_public(address)


@pytest.fixture
def listener() -> Iterator[tuple[str, list[bytes]]]:
    """An address of this machine, and all that was said to it."""
    said: list[bytes] = []
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                said.append(connection.recv(65536))
                connection.sendall(b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1/\r\ncontent-length: 0\r\n\r\n")

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"127.0.0.1:{server.getsockname()[1]}", said
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f000001", "127.1", "[::ffff:127.0.0.1]"])
def test_nothing_is_said_to_this_machine_however_it_is_called(host: str, listener: tuple[str, list[bytes]]) -> None:
    port = listener[0].partition(":")[2]
    outcome = post(f"http://{host}:{port}/", body=b"{}", headers={}, private=False)
    assert outcome == NotArrived("the address is in a private network; the operator has not allowed that", True)
    assert listener[1] == []


def test_where_the_operator_allows_it_a_redirect_is_still_not_followed(listener: tuple[str, list[bytes]]) -> None:
    outcome = post(f"http://{listener[0]}/hook", body=b"{}", headers={}, private=True)
    assert outcome == NotArrived("answered 302, and redirects are not followed")
    assert len(listener[1]) == 1


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.com/", "gopher://example.com/", "//example.com"])
def test_only_http_and_https_are_spoken(url: str) -> None:
    assert post(url, body=b"", headers={}, private=True) == NotArrived("the address is neither http nor https", True)


def test_a_name_is_looked_up_once_and_the_connection_goes_to_what_was_judged(
    monkeypatch: pytest.MonkeyPatch, listener: tuple[str, list[bytes]]
) -> None:
    """A name that answers first with a public and then with a private address gains nothing."""
    answers = iter(["93.184.216.34", "127.0.0.1"])
    port = int(listener[0].partition(":")[2])

    def changing(*_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (next(answers), port))]

    reached: list[object] = []

    def connect(_: socket.socket, where: object) -> None:
        reached.append(where)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "getaddrinfo", changing)
    monkeypatch.setattr("dashboard.channels.post.TimedSocket.connect", connect, raising=False)
    assert post(f"http://rebinding.example:{port}/", body=b"", headers={}, private=False) == NotArrived(
        "cannot be reached"
    )
    assert reached == [("93.184.216.34", port)]


def test_the_signature_is_that_of_the_specification() -> None:
    """The example of the Standard Webhooks reference libraries."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    at = datetime.fromtimestamp(1614265330, UTC)
    headers = signed("msg_p5jXN8AQM9LWM0D4loKWxJek", at, b'{"test": 2432232314}', secret)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    assert headers["webhook-timestamp"] == "1614265330"
