"""Who may report where a provider signs nothing: a password in the webhook's address, and whence the request comes."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress

from dashboard.providers.base import CannotVerify, NotAuthentic, Setting, Settings, WebhookRequest

PASSWORDS = Setting(
    name="webhook_secret",
    help="user:password as written into the webhook's address, or the Bearer token that comes with each event; two "
    "apart by a space while one replaces the other.",
    secret=True,
    for_events=True,
)
NETWORKS = Setting(
    name="webhook_networks",
    help="Addresses or networks (198.51.100.0/24) that may report, apart by spaces; empty: all that have the password.",
    for_events=True,
)


REPLY_PASSWORDS = Setting(
    name="reply_secret",
    help="user:password as written into the address for replies, which nothing signs; two apart by a space while one "
    "replaces the other.",
    secret=True,
    for_events=True,
)


def check_sender(request: WebhookRequest, settings: Settings, passwords_in: Setting = PASSWORDS) -> None:
    """Pass a request that satisfies all that the account configured: a password, a network, or both.

    Raises NotAuthentic with the reason; CannotVerify for an account that configured neither, or a network that is none.
    """
    passwords = settings.get(passwords_in.name, "").split()
    networks = settings.get(NETWORKS.name, "").split()
    if not passwords and not networks:
        raise CannotVerify(f"the account has neither {passwords_in.name} nor {NETWORKS.name}")
    if passwords and not _knows_one(request.headers.get("authorization", ""), passwords):
        raise NotAuthentic("no user and password, or wrong ones")
    if networks and not _is_in_one(request.remote_address, networks):
        raise NotAuthentic("the request comes from elsewhere")


def _knows_one(authorization: str, passwords: list[str]) -> bool:
    """RFC 7617 for a name and a password, RFC 6750 for a token."""
    scheme, _, credentials = authorization.partition(" ")
    try:
        match scheme.lower():
            case "basic":
                given = base64.b64decode(credentials.strip(), validate=True)
            case "bearer":
                given = credentials.strip().encode()
            case _:
                return False
    except (binascii.Error, ValueError):
        return False
    return any(hmac.compare_digest(given, password.encode()) for password in passwords)


def _is_in_one(address: str | None, networks: list[str]) -> bool:
    try:
        allowed = [ipaddress.ip_network(network, strict=False) for network in networks]
    except ValueError:
        raise CannotVerify("webhook_networks holds what is no address and no network") from None
    try:
        known = ipaddress.ip_address(address or "")
    except ValueError:
        return False
    if isinstance(known, ipaddress.IPv6Address) and known.ipv4_mapped is not None:
        known = known.ipv4_mapped
    return any(known in network for network in allowed)
