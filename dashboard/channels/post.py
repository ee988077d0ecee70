"""One POST to an address that an operator typed in: only to where it may go.

The name is looked up once, every address that it has is judged, and the connection is made to one of those very
addresses, so that a name that answers otherwise the second time gains nothing. No redirects, no proxies, no cookies,
and nothing of the answer but its status is kept.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Mapping
from urllib.parse import urlsplit

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection

from dashboard.channels import Arrived, NotArrived, Outcome
from dashboard.providers.base import boot_time
from dashboard.providers.wire import TimedSocket, seconds_left, tls_context

SECONDS = 15.0
"""For all of it: the look-up aside, which nobody can bound."""

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class NotAllowed(Exception):
    """The address leads to where nothing may go."""


def post(url: str, *, body: bytes, headers: Mapping[str, str], private: bool) -> Outcome:
    """Send it, once. ``private``: addresses of the own network are allowed. Raises nothing."""
    try:
        status = _status(url, body, headers, private)
    except NotAllowed as error:
        return NotArrived(str(error), for_good=True)
    except TimeoutError:
        return NotArrived("no answer in time")
    except urllib3.exceptions.HTTPError as error:
        return NotArrived("no answer in time" if isinstance(error.__cause__, TimeoutError) else "no usable answer")
    except (OSError, ValueError) as error:
        return NotArrived("the name cannot be found" if isinstance(error, socket.gaierror) else "cannot be reached")
    if 200 <= status < 300:
        return Arrived()
    if 300 <= status < 400:
        return NotArrived(f"answered {status}, and redirects are not followed")  # a proxy's, while it is mended, passes
    return NotArrived(f"answered {status}", for_good=status == 410)  # gone: Standard Webhooks has the sender stop


def _status(url: str, body: bytes, headers: Mapping[str, str], private: bool) -> int:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise NotAllowed("the address is neither http nor https")
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    address = allowed_address(parts.hostname, port, private=private)
    until = boot_time() + SECONDS
    connection = (
        _TLS(parts.hostname, port, ssl_context=tls_context(), cert_reqs="CERT_REQUIRED")
        if secure
        else _Plain(parts.hostname, port)
    )
    connection.to, connection.until = (address, port), until
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(
            "POST", path, body=body, headers={"User-Agent": "Sendonce", **headers}, preload_content=False
        )
        answer = connection.getresponse()
        return answer.status
    finally:
        connection.close()


def allowed_address(host: str, port: int, *, private: bool) -> str:
    """An address of this name to connect to. Raises :class:`NotAllowed` where any of them is not allowed."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(where[4][0]).partition("%")[0] for where in found]
    if not addresses:
        raise NotAllowed("the name has no address")
    if not private and not all(map(is_public, addresses)):
        raise NotAllowed("the address is in a private network; the operator has not allowed that")
    return addresses[0]


def is_public(text: str) -> bool:
    """Whether an IP address belongs to the public internet, also where it is wrapped into another one."""
    address = ipaddress.ip_address(text)
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else None)
        if inner is None and address in _NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(str(inner))
    return address.is_global and not address.is_multicast and not address.is_reserved


def _connected(to: tuple[str, int], until: float) -> socket.socket:
    sock = TimedSocket(socket.AF_INET6 if ":" in to[0] else socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.settimeout(seconds_left(until))
        sock.connect(to)
    except OSError:
        sock.close()
        raise
    sock.begin(submit_by=None, until=until)
    return sock


class _Plain(HTTPConnection):
    """To an address that was judged; the name is for the Host header only."""

    to = ("", 0)
    until = 0.0

    def _new_conn(self) -> socket.socket:
        return _connected(self.to, self.until)


class _TLS(HTTPSConnection):
    """The same with TLS, whose certificate must be that of the name."""

    to = ("", 0)
    until = 0.0

    def _new_conn(self) -> socket.socket:
        return _connected(self.to, self.until)
