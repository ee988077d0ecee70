"""Whom to tell of alerts: webhooks, Slack-compatible webhooks, and email. Where they go is encrypted."""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit
from uuid import UUID, uuid4

from psycopg.rows import class_row

from dashboard.identity import BadAddress, masked, normal_address
from dashboard.ledger import audit
from dashboard.ledger.database import Connection
from dashboard.ledger.refused import Refused
from dashboard.ledger.tables import ChannelKind, Severity
from dashboard.ledger.vault import Vault

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
MOST_CHANNELS = 20
MOST_ADDRESSES = 20
LONGEST_URL = 1000


@dataclass(frozen=True, slots=True)
class Target:
    """Where a channel goes: a URL, with the secret that signs for it, or addresses. Never logged, never shown."""

    url: str = ""
    secret: str = ""
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRow:
    """A channel of the list. ``shown`` is all that is told of where it goes."""

    id: UUID
    name: str
    kind: ChannelKind
    shown: str
    least_severity: Severity
    created_at: datetime
    last_at: datetime | None
    last_delivered_at: datetime | None
    last_gave_up_at: datetime | None
    last_error: str | None


def webhook_target(url: str) -> Target:
    """A webhook with a new secret, as Standard Webhooks writes it. Raises :class:`Refused`."""
    _check_url(url)
    return Target(url=url, secret="whsec_" + base64.b64encode(secrets.token_bytes(32)).decode())


def slack_target(url: str) -> Target:
    """A webhook that takes Slack's messages. Its URL is its secret. Raises :class:`Refused`."""
    _check_url(url)
    return Target(url=url)


def email_target(addresses: Sequence[str]) -> Target:
    """People. Raises :class:`Refused`."""
    wanted = tuple(dict.fromkeys(filter(None, map(str.strip, addresses))))
    if not 1 <= len(wanted) <= MOST_ADDRESSES:
        raise Refused(f"give 1 to {MOST_ADDRESSES} addresses")
    for position, address in enumerate(wanted, start=1):
        try:
            normal_address(address)
        except BadAddress as error:
            raise Refused(f"address {position}: {error}") from None
        if not address.isascii() or not address.isprintable():
            raise Refused(f"address {position} has characters that a plain SMTP server does not take")
    return Target(addresses=wanted)


def add_channel(
    connection: Connection, vault: Vault, *, workspace_id: UUID, name: str, kind: ChannelKind, target: Target,
    least_severity: Severity, user_id: UUID | None, token_id: UUID | None = None,
) -> UUID:  # fmt: skip
    """Tell of alerts there, too, from this severity on. Raises :class:`Refused`."""
    if not NAME.fullmatch(name):
        raise Refused("a channel's name has 1 to 63 lower-case letters, digits or -, such as on-call")
    present = [channel.name for channel in list_channels(connection, workspace_id)]
    if name in present:
        raise Refused(f"there is a channel {name} already: remove it first, or choose another name")
    if len(present) >= MOST_CHANNELS:
        raise Refused(f"a workspace has at most {MOST_CHANNELS} channels")
    channel_id = uuid4()
    plain = json.dumps({"url": target.url, "secret": target.secret, "addresses": target.addresses}).encode()
    connection.execute(
        "insert into sendonce.alert_channels (id, workspace_id, name, kind, shown, target, least_severity)"
        " values (%s, %s, %s, %s::sendonce.channel_kind, %s, %s, %s::sendonce.severity)",
        (
            channel_id, workspace_id, name, str(kind), _shown(target), vault.encrypt(plain, channel_id.bytes),
            str(least_severity),
        ),
    )  # fmt: skip
    audit.record(
        connection, audit.Action.ADD_ALERT_CHANNEL, workspace_id=workspace_id, user_id=user_id, token_id=token_id,
        subject=name, detail={"kind": str(kind), "to": _shown(target), "from": str(least_severity)},
    )  # fmt: skip
    return channel_id


def remove_channel(
    connection: Connection, name: str, *, workspace_id: UUID, user_id: UUID | None, token_id: UUID | None = None
) -> None:
    """Tell nobody there any more, of what waits neither. Raises :class:`Refused`."""
    gone = connection.execute(
        "delete from sendonce.alert_channels where workspace_id = %s and name = %s", (workspace_id, name)
    )
    if gone.rowcount == 0:
        raise Refused(f"there is no channel {name!r}")
    audit.record(
        connection, audit.Action.REMOVE_ALERT_CHANNEL, workspace_id=workspace_id, user_id=user_id, token_id=token_id,
        subject=name,
    )  # fmt: skip


def try_channel(
    connection: Connection, name: str, *, workspace_id: UUID, user_id: UUID | None, token_id: UUID | None = None
) -> None:
    """Have a worker send a test there. Raises :class:`Refused`."""
    made = connection.execute(
        "insert into sendonce.alert_notices (workspace_id, channel_id, kind)"
        " select workspace_id, id, 'test' from sendonce.alert_channels where workspace_id = %s and name = %s",
        (workspace_id, name),
    )
    if made.rowcount == 0:
        raise Refused(f"there is no channel {name!r}")
    audit.record(
        connection, audit.Action.TEST_ALERT_CHANNEL, workspace_id=workspace_id, user_id=user_id, token_id=token_id,
        subject=name,
    )  # fmt: skip


def list_channels(connection: Connection, workspace_id: UUID) -> list[ChannelRow]:
    """The channels by name, each with what came of its last notice."""
    rows = connection.cursor(row_factory=class_row(ChannelRow)).execute(
        """
        select c.id, c.name, c.kind::text as kind, c.shown, c.least_severity::text as least_severity, c.created_at,
          n.made_at as last_at, n.delivered_at as last_delivered_at, n.gave_up_at as last_gave_up_at, n.last_error
        from sendonce.alert_channels c
        left join lateral (select n.* from sendonce.alert_notices n where n.channel_id = c.id
          order by n.id desc limit 1) n on true
        where c.workspace_id = %s order by c.name
        """,
        (workspace_id,),
    )
    return rows.fetchall()


def open_target(vault: Vault, channel_id: UUID, target: bytes) -> Target:
    """Where a channel goes, in plain. Raises vault.Unreadable."""
    plain = json.loads(vault.decrypt(target, channel_id.bytes))
    return Target(url=plain["url"], secret=plain["secret"], addresses=tuple(plain["addresses"]))


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username
        _ = parts.port  # raises where it is no number
    except ValueError:
        usable = False
    if not usable or len(url) > LONGEST_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise Refused("the address must look like https://host/path, without a user name")


def _shown(target: Target) -> str:
    if target.url:
        parts = urlsplit(target.url)
        return f"{parts.scheme}://{parts.netloc}/…"
    return ", ".join(map(masked, target.addresses))
