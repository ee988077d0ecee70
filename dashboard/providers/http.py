"""The one HTTP client of the send path: a single request, once, and an honest answer about what became of it.

No retries, no redirects, no proxies from the environment, verified TLS. The rule it exists for: only a failure before
the first byte of the request proves that nothing was taken; anything later is an answer, or nobody knows.

Bounds: connecting ends with ``connect_timeout`` and the submit deadline, whichever is first; the exchange ends
``request_timeout`` after its first byte, so it is over by submit deadline + request time-out, as the lease assumes
(DESIGN §5.1).
"""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.response import BaseHTTPResponse

from dashboard.providers.base import Deadline, NeverWritten, boot_time
from dashboard.providers.results import Answer, NoAnswer
from dashboard.providers.wire import IdlePool, SubmitDeadlinePassed, TimedSocket, open_socket, tls_context

LARGEST_ANSWER = 1 << 20
"""Bytes of a response that are read. Documented answers have some hundred; what is longer is not one of them."""
TOO_LATE = NeverWritten("submit deadline passed")
NO_DEADLINE = Deadline(float("inf"))
"""For questions, which submit nothing."""


class _PlainConnection(HTTPConnection):
    auto_open = 0  # a request on a closed connection is an error, never a silent second connection
    until = float("inf")

    def _new_conn(self) -> socket.socket:
        return open_socket(self.host, self.port or 80, self.until)


class _TLSConnection(HTTPSConnection):
    auto_open = 0
    until = float("inf")

    def _new_conn(self) -> socket.socket:
        return open_socket(self.host, self.port or 443, self.until)


_Connection = _PlainConnection | _TLSConnection


class HttpClient:
    """An account's connections to one base URL, shared by threads. Raises ValueError for a URL that cannot be one."""

    def __init__(
        self, base_url: str, *, request_timeout: float, connect_timeout: float = 10.0, pool_size: int = 32
    ) -> None:
        parts = urlsplit(base_url)
        if (
            parts.scheme not in ("http", "https")
            or not parts.hostname
            or parts.query
            or parts.fragment
            or parts.username
        ):
            raise ValueError("base_url must look like https://host or https://host/path")
        self._host, self._port, self._path = parts.hostname, parts.port, parts.path.rstrip("/")
        self._tls = tls_context() if parts.scheme == "https" else None
        self._request_timeout, self._connect_timeout = request_timeout, connect_timeout
        self._idle: IdlePool[_Connection] = IdlePool(size=pool_size, usable=_still_open)

    def post(
        self, path: str, *, headers: Mapping[str, str], body: bytes, submit_by: Deadline
    ) -> Answer | NoAnswer | NeverWritten:
        """Send one request, at most once. Raises nothing for what a network or a server may do."""
        return self._call("POST", path, headers=headers, body=body, submit_by=submit_by)

    def get(self, path: str, *, headers: Mapping[str, str]) -> Answer | NoAnswer | NeverWritten:
        """Ask for something, once; within connect and request time-out. Raises nothing either."""
        return self._call("GET", path, headers=headers, body=None, submit_by=NO_DEADLINE)

    def _call(
        self, method: str, path: str, *, headers: Mapping[str, str], body: bytes | None, submit_by: Deadline
    ) -> Answer | NoAnswer | NeverWritten:
        connection = self._idle.take() or self._connect(submit_by)
        if not isinstance(connection, _Connection):
            return connection
        try:
            return self._exchange(
                connection, method, self._path + path, headers=headers, body=body, submit_by=submit_by
            )
        finally:
            if connection.is_closed:
                connection.close()
            else:
                self._idle.give(connection)

    def close(self) -> None:
        """Close the idle connections."""
        self._idle.close()

    def _connect(self, submit_by: Deadline) -> _Connection | NoAnswer | NeverWritten:
        connection: _Connection
        if self._tls is None:
            connection = _PlainConnection(self._host, self._port)
        else:
            connection = _TLSConnection(self._host, self._port, ssl_context=self._tls, cert_reqs="CERT_REQUIRED")
        connection.until = min(boot_time() + self._connect_timeout, submit_by.at)
        try:
            connection.connect()
        except (OSError, ValueError, urllib3.exceptions.HTTPError) as error:
            failed_in_tls = connection.sock is not None
            connection.close()
            if submit_by.passed:
                return TOO_LATE
            return NoAnswer(error="tls_error" if failed_in_tls else connect_error(error), request_written=False)
        return connection

    def _exchange(
        self,
        connection: _Connection,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None,
        submit_by: Deadline,
    ) -> Answer | NoAnswer | NeverWritten:
        sock = connection.sock
        assert isinstance(sock, TimedSocket)
        sock.begin(submit_by=submit_by, until=boot_time() + self._request_timeout)
        answer: Answer | None = None
        try:
            whole = _write(connection, method, path, headers, body)
            answer = _read(connection.getresponse())
            if not whole:
                connection.close()
            return answer
        except SubmitDeadlinePassed:
            return TOO_LATE
        except Exception as error:
            # Everything, also what nobody expected: once a byte has left, an exception may not hide that.
            return NoAnswer(error=_exchange_error(error), request_written=sock.wrote)
        finally:
            if answer is None or not answer.end_marked:
                connection.close()


def _write(connection: _Connection, method: str, path: str, headers: Mapping[str, str], body: bytes | None) -> bool:
    """Write the request; False when the server closed in the middle, perhaps with an answer that can still be read."""
    try:
        connection.request(
            method, path, body=body, headers={"User-Agent": "Sendonce", **headers}, preload_content=False
        )
    except BrokenPipeError:
        if isinstance(connection.sock, TimedSocket) and connection.sock.wrote:
            return False
        raise
    return True


def _read(response: BaseHTTPResponse) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    body = bytearray()
    try:
        while chunk := response.read(65536, decode_content=False):
            body += chunk
            if len(body) > LARGEST_ANSWER:
                raise http.client.LineTooLong("response body")
    except BaseException:
        response.close()
        raise
    end_marked = headers.get("content-length", "").isdecimal() or "chunked" in headers.get("transfer-encoding", "")
    return Answer(status=response.status, headers=headers, body=bytes(body), end_marked=end_marked)


def _still_open(connection: _Connection) -> bool:
    sock = connection.sock
    return connection.is_connected and not (isinstance(sock, ssl.SSLSocket) and sock.pending())


def connect_error(error: Exception) -> str:
    """The name of a failure to connect."""
    match error:
        case socket.gaierror() | UnicodeError():
            return "dns"
        case ssl.SSLError():
            return "tls_error"
        case TimeoutError():
            return "connect_timeout"
        case ConnectionRefusedError():
            return "connect_refused"
        case _:
            return "connect_failed"


def _exchange_error(error: BaseException) -> str:
    """The name of a failure after connecting. urllib3 wraps what the socket raised: look at the cause first."""
    match error:
        case TimeoutError() | urllib3.exceptions.ReadTimeoutError():
            return "read_timeout"
        case http.client.RemoteDisconnected() | http.client.IncompleteRead() | ssl.SSLEOFError():
            return "cut_off"
        case ConnectionError():
            return "reset"
        case urllib3.exceptions.ProtocolError() if error.__cause__ is not None:
            return _exchange_error(error.__cause__)
        case urllib3.exceptions.IncompleteRead():
            return "cut_off"
        case http.client.HTTPException() | urllib3.exceptions.HTTPError() | ValueError():
            return "garbage"
        case ssl.SSLError():
            return "tls_error"
        case _:
            return type(error).__name__
