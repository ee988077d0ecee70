"""Provider accounts: their settings, the pauses that all workers share, and trouble that is no single send's fault."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from dashboard.ledger import audit
from dashboard.ledger.database import Connection, statement
from dashboard.ledger.vault import Vault

TROUBLES_TO_PAUSE = 3
"""Failures in a row to reach a provider, after which the breaker opens."""

TRIED_AGAIN = "one call tries whether the provider can be reached again"
"""The reason of a pause while that call runs: its answer ends the pause, or begins the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A provider account as it is configured, secrets in plain: never to be logged or shown."""

    id: UUID
    workspace_id: UUID
    name: str
    provider: str
    settings: Mapping[str, str] = field(repr=False)
    """All settings, secret ones included."""
    endpoint: bytes
    """Equal as long as calls go to the same place, as the same customer."""


def read_account(connection: Connection, vault: Vault, account_id: UUID) -> Account | None:
    """One account with its settings decrypted. Raises vault.Unreadable where its key is not configured."""
    row = connection.execute(
        "select id, workspace_id, name, provider, settings, secrets, endpoint from sendonce.accounts where id = %s",
        (account_id,),
    ).fetchone()
    if row is None:
        return None
    secrets = json.loads(vault.decrypt(row[5], account_id.bytes)) if row[5] else {}
    return Account(
        id=row[0], workspace_id=row[1], name=row[2], provider=row[3], settings={**row[4], **secrets}, endpoint=row[6]
    )  # fmt: skip


def save_account(
    connection: Connection,
    vault: Vault,
    *,
    workspace_id: UUID,
    name: str,
    provider: str,
    settings: Mapping[str, str],
    secrets: Mapping[str, str],
    endpoint: str,
    key_window: timedelta | None = None,
    settling_time: timedelta | None = None,
    rate_per_second: float | None = None,
) -> UUID:
    """Make an account, or change the one of that name. Secrets are stored encrypted. Returns its id.

    ``endpoint``: where its calls go and as whom, as ``providers.base.endpoint`` says it; only a keyed hash is stored.
    """
    found = connection.execute(
        "select id from sendonce.accounts where workspace_id = %s and name = %s for update", (workspace_id, name)
    ).fetchone()
    account_id: UUID = found[0] if found else uuid4()
    connection.execute(
        """
        insert into sendonce.accounts (id, workspace_id, name, provider, settings, secrets, endpoint, key_window,
          settling_time, rate_per_second)
        values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
        on conflict (id) do update set provider = excluded.provider, settings = excluded.settings,
          secrets = excluded.secrets, endpoint = excluded.endpoint, key_window = excluded.key_window,
          settling_time = excluded.settling_time, rate_per_second = excluded.rate_per_second
        """,
        (
            account_id, workspace_id, name, provider, Jsonb(dict(settings)),
            vault.encrypt(json.dumps(dict(secrets)).encode(), account_id.bytes) if secrets else None,
            vault.keyed_hash(endpoint)[:16], key_window, settling_time, rate_per_second,
        ),
    )  # fmt: skip
    if rate_per_second is None:
        connection.execute("delete from sendonce.account_tokens where account_id = %s", (account_id,))
    else:
        connection.execute(
            "insert into sendonce.account_tokens (account_id, tokens) values (%s, %s) on conflict do nothing",
            (account_id, max(rate_per_second, 1.0)),
        )
    return account_id


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """An account of the list; nothing of it is secret."""

    id: UUID
    name: str
    provider: str
    key_window: timedelta | None
    rate_per_second: float | None
    paused_for_good: bool
    """Until a person resumes it."""
    paused_until: datetime | None
    paused_reason: str | None
    troubles: int
    """Failures in a row to reach the provider; :data:`TROUBLES_TO_PAUSE` of them open the breaker."""
    settling_time: timedelta | None
    mailstreams: list[str]

    @property
    def breaker(self) -> str:
        """closed, open (nothing is tried until the pause ends), or trying (one call tries)."""
        if self.paused_until is not None and self.paused_reason == TRIED_AGAIN:
            return "trying"
        return "open" if self.troubles >= TROUBLES_TO_PAUSE else "closed"


def list_accounts(connection: Connection, workspace_id: UUID) -> list[AccountRow]:
    """The accounts of a workspace, by name."""
    rows = connection.cursor(row_factory=class_row(AccountRow)).execute(
        """
        select id, name, provider, key_window, rate_per_second,
          coalesce(paused_until = 'infinity', false) as paused_for_good,
          case when isfinite(paused_until) and paused_until > now() then paused_until end as paused_until,
          case when paused_until > now() then paused_reason end as paused_reason, troubles, settling_time,
          array(select m.name from sendonce.mailstreams m where m.account_id = accounts.id order by m.name)
            as mailstreams
        from sendonce.accounts where workspace_id = %s order by name
        """,
        (workspace_id,),
    )
    return rows.fetchall()


def find_account(connection: Connection, workspace_id: UUID, name: str) -> UUID | None:
    """The id of the account of that name."""
    row = connection.execute(
        "select id from sendonce.accounts where workspace_id = %s and name = %s", (workspace_id, name)
    ).fetchone()
    return row[0] if row else None


def webhook_url(public_url: str, account_id: UUID) -> str:
    """Where the provider of an account reports to. Nobody else should know it."""
    return f"{public_url}/webhooks/{account_id}"


def replies_url(public_url: str, account_id: UUID) -> str:
    """Where the provider of an account hands in mail that came in. Nobody else should know it either."""
    return f"{webhook_url(public_url, account_id)}/replies"


MANY = 1000
"""So far :func:`in_doubt_elsewhere` counts."""


def in_doubt_elsewhere(connection: Connection, account_id: UUID) -> int:
    """How many open sends of an account may have been taken at another endpoint than its present one."""
    row = connection.execute(
        """
        select count(*) from (
          select from sendonce.work w join sendonce.accounts a on a.id = w.account_id
          where a.id = %s and w.ambiguous_since is not null and exists (
            select from sendonce.attempts e
            where e.send_id = w.send_id and e.status = 'ambiguous' and e.endpoint <> a.endpoint)
          limit %s) found
        """,
        (account_id, MANY),
    ).fetchone()
    return row[0] if row else 0


def pause_account(connection: Connection, account_id: UUID, *, reason: str) -> None:
    """Start no attempt on this account until a person resumes it; what is open runs to its end."""
    connection.execute(
        "update sendonce.accounts set paused_until = 'infinity', paused_reason = %s where id = %s", (reason, account_id)
    )


def resume_account(connection: Connection, account_id: UUID) -> None:
    """End a pause, whoever made it, and forget the troubles that led to it."""
    connection.execute(
        "update sendonce.accounts set paused_until = null, paused_reason = null, troubles = 0 where id = %s",
        (account_id,),
    )


def pause_by_person(
    connection: Connection, *, workspace_id: UUID, name: str, reason: str, user_id: UUID | None = None
) -> bool:
    """Pause an account by its name, with an audit row. False where the workspace has none of that name."""
    account_id = find_account(connection, workspace_id, name)
    if account_id is not None:
        pause_account(connection, account_id, reason=reason)
        audit.record(
            connection, audit.Action.PAUSE_ACCOUNT, workspace_id=workspace_id, user_id=user_id, subject=name,
            reason=reason,
        )  # fmt: skip
    return account_id is not None


def resume_by_person(
    connection: Connection, *, workspace_id: UUID, name: str, user_id: UUID | None = None, reason: str | None = None
) -> bool:
    """End a pause of an account by its name, with an audit row. False where the workspace has none of that name."""
    account_id = find_account(connection, workspace_id, name)
    if account_id is not None:
        resume_account(connection, account_id)
        audit.record(
            connection, audit.Action.RESUME_ACCOUNT, workspace_id=workspace_id, user_id=user_id, subject=name,
            reason=reason,
        )  # fmt: skip
    return account_id is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountError:
    """How attempts of an account ended lately that were not accepted at once. ``said``: the newest reason."""

    account_id: UUID
    status: str
    error_class: str | None
    error_code: str | None
    said: str | None
    number: int
    last_at: datetime


ERRORS_LOOKED_AT = 300


def read_account_errors(connection: Connection, workspace_id: UUID) -> dict[UUID, list[AccountError]]:
    """What the newest moves of the last day that were no straight way tell of each account, the newest first.

    At most :data:`ERRORS_LOOKED_AT` moves to each of failed, pending and unknown are looked at.
    """
    rows = connection.cursor(row_factory=class_row(AccountError)).execute(
        statement("read_account_errors"), {"workspace_id": workspace_id, "looked_at": ERRORS_LOOKED_AT}, binary=True
    )
    found: dict[UUID, list[AccountError]] = {}
    for row in rows:
        found.setdefault(row.account_id, []).append(row)
    return found


@dataclass(frozen=True, slots=True)
class Trouble:
    """What an account's provider answered that no other send of this account would get past either."""

    reason: str
    pause: timedelta | None
    """How long to leave the account alone at once; None: only count it, the breaker decides."""
    count: int = 1


def note_troubles(connection: Connection, troubles: Mapping[UUID, Trouble], *, breaker: timedelta) -> set[UUID]:
    """Count troubles and pause accounts (DESIGN §5.18). Returns the accounts that were not paused before.

    A pause is only ever made longer here. The breaker doubles its pause with each further round of troubles: all that
    comes in while the account is paused belongs to the round that paused it, however many calls were in flight.
    """
    newly = set()
    for account_id in sorted(troubles):
        trouble = troubles[account_id]
        row = connection.execute(
            """
            with before as (
              select id, paused_until, troubles, paused_until > now() and paused_reason = %(tried)s as tried,
                coalesce(paused_until > now() and paused_reason <> %(tried)s, false) as paused
              from sendonce.accounts where id = %(id)s for update)
            update sendonce.accounts a
            set troubles = n.troubles,
              paused_until = case when b.tried then now() + v.pause else greatest(a.paused_until, now() + v.pause) end,
              paused_reason = case when v.pause is not null then %(reason)s else a.paused_reason end
            from before b, lateral (select case when b.paused then b.troubles
                when b.troubles >= %(limit)s then b.troubles + %(limit)s
                else least(b.troubles + %(count)s, %(limit)s) end as troubles) n,
              lateral (select coalesce(%(pause)s::interval, case when n.troubles >= %(limit)s and not b.paused
                then %(breaker)s::interval * power(2, least(n.troubles / %(limit)s - 1, 6)) end) as pause) v
            where a.id = b.id
            returning a.paused_until > now() and coalesce(b.paused_until <= now(), true)
            """,
            {
                "id": account_id, "count": trouble.count, "reason": trouble.reason[:200], "pause": trouble.pause,
                "limit": TROUBLES_TO_PAUSE, "breaker": breaker, "tried": TRIED_AGAIN,
            },
        ).fetchone()  # fmt: skip
        if row and row[0]:
            newly.add(account_id)
    return newly


def try_again(connection: Connection, account_id: UUID, *, for_at_most: timedelta) -> bool:
    """Whether the caller's one call may try an account whose breaker was open: nobody else's may meanwhile."""
    taken = connection.execute(
        "update sendonce.accounts set paused_until = now() + %s, paused_reason = %s"
        " where id = %s and troubles >= %s and coalesce(paused_until <= now(), true)",
        (for_at_most, TRIED_AGAIN, account_id, TROUBLES_TO_PAUSE),
    )
    return taken.rowcount == 1


def lock_accounts(connection: Connection, account_ids: set[UUID]) -> None:
    """Lock them in the order in which everybody does who changes several: two sets would wait for each other."""
    connection.execute(
        "select from sendonce.accounts where id = any(%b::uuid[]) order by id for update", [sorted(account_ids)]
    )


def note_answers(connection: Connection, account_ids: set[UUID]) -> None:
    """A provider could be reached: close the breaker, and end the pause in which one call tried."""
    connection.execute(
        "with reached as (select id from sendonce.accounts where id = any(%(ids)b::uuid[]) and troubles > 0"
        "   order by id for update)"
        " update sendonce.accounts a set troubles = 0,"
        " paused_until = case when a.paused_reason is distinct from %(tried)s then a.paused_until end,"
        " paused_reason = nullif(a.paused_reason, %(tried)s)"
        " from reached where a.id = reached.id",
        {"ids": sorted(account_ids), "tried": TRIED_AGAIN},
    )
