"""What the check of an account found, when, and whose turn it is. What is asked, and how, is known elsewhere.

One worker checks an account at a time: it takes it, asks outside of any transaction, and stores what came of it. A
worker that ends in between leaves an account that is taken for no longer than :data:`TAKEN_FOR`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from email.utils import parseaddr
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Jsonb

from dashboard.identity import BadAddress, normal_address
from dashboard.ledger import audit, contents
from dashboard.ledger.accounts import find_account
from dashboard.ledger.database import Connection, run
from dashboard.ledger.mail_replies import SetAside, read_set_aside
from dashboard.ledger.vault import Unreadable, Vault

EVERY = timedelta(days=1)
AT_FIRST = timedelta(hours=1)
"""How old an account is when it is looked at for the first time, unless somebody asks earlier."""
TAKEN_FOR = timedelta(minutes=3)
"""Longer than any check takes."""
STREAMS_LOOKED_AT, SENDS_LOOKED_AT = 50, 10
"""So many mailstreams of an account, and of each so many of its newest sends, tell which domains it sends from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountCheck:
    """The last check of an account. ``findings``: as they were stored, what, verdict, words, about, rule, publish."""

    account_id: UUID
    name: str
    provider: str
    checked_at: datetime | None
    asked_at: datetime | None
    under_way: bool
    findings: Sequence[Mapping[str, str]]
    broke_at: datetime | None
    set_aside: Sequence[SetAside] = ()
    """Mail that came in lately and answers nothing; only of an account that is asked for by its name."""

    @property
    def verdict(self) -> str:
        """What all findings come to; empty before the first check."""
        there = {finding["verdict"] for finding in self.findings}
        return next((verdict for verdict in ("wrong", "unknown", "weak", "good") if verdict in there), "")

    @property
    def awaited(self) -> bool:
        """Somebody asked, and no answer has come yet."""
        return self.under_way or self.asked_at is not None


def take_check(connection: Connection, account_id: UUID | None = None) -> UUID | None:
    """The account to check now: this one, else the next that is due. None: none is, or another worker has it."""
    row = run(
        connection, "take_account_check", account_id=account_id, taken_for=TAKEN_FOR, every=EVERY, at_first=AT_FIRST
    ).fetchone()
    return row[0] if row else None


def save_check(connection: Connection, account_id: UUID, findings: Sequence[Mapping[str, str]]) -> bool:
    """Store what a check found, and give the account back. True where something broke that was well before."""
    row = connection.execute(
        "select standing, broke_at is not null from sendonce.account_checks where account_id = %s for update",
        (account_id,),
    ).fetchone()
    if row is None:  # the account is gone
        return False
    standing = new_standing(row[0], findings)
    broken = "broken" in standing.values()
    connection.execute(
        "update sendonce.account_checks set taken_at = null, asked_at = null, checked_at = now(), findings = %s,"
        " standing = %s, broke_at = case when %s then coalesce(broke_at, now()) end where account_id = %s",
        (Jsonb([dict(finding) for finding in findings]), Jsonb(standing), broken, account_id),
    )
    return broken and not row[1]


def new_standing(before: Mapping[str, str], findings: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Each question's last known answer: ``well``, ``broken`` (it was well once), or ``never`` (it never was).

    A question without an answer keeps the one that it had, so that a name server's bad hour neither breaks anything nor
    mends it; one that is no longer asked is forgotten.
    """
    verdicts: dict[str, set[str]] = {}
    for finding in findings:
        verdicts.setdefault(f"{finding['what']} {finding.get('about', '')}".strip(), set()).add(finding["verdict"])
    standing = {}
    for question, answers in verdicts.items():
        old = before.get(question)
        if "wrong" in answers:
            standing[question] = "broken" if old in ("well", "broken") else "never"
        elif "unknown" not in answers:
            standing[question] = "well"
        elif old is not None:
            standing[question] = old
    return standing


def ask_for_check(
    connection: Connection, *, workspace_id: UUID, name: str, user_id: UUID | None = None, token_id: UUID | None = None
) -> bool:
    """Have the next worker check an account, with an audit row. False where the workspace has none of that name.

    Asking again before it was done changes nothing, and is not written down again.
    """
    account_id = find_account(connection, workspace_id, name)
    if account_id is None:
        return False
    asked = connection.execute(
        "insert into sendonce.account_checks as c (account_id, asked_at) values (%s, now())"
        " on conflict (account_id) do update set asked_at = now() where c.asked_at is null",
        (account_id,),
    )
    if asked.rowcount:
        audit.record(
            connection, audit.Action.CHECK_ACCOUNT, workspace_id=workspace_id, user_id=user_id, token_id=token_id,
            subject=name,
        )  # fmt: skip
    return True


def read_checks(connection: Connection, workspace_id: UUID) -> dict[UUID, AccountCheck]:
    """The last check of each account of a workspace, also of those that were never checked."""
    rows = connection.cursor(row_factory=class_row(AccountCheck)).execute(
        """
        select a.id as account_id, a.name, a.provider, c.checked_at, c.asked_at,
          coalesce(c.taken_at > now() - %s, false) as under_way, coalesce(c.findings, '[]') as findings, c.broke_at
        from sendonce.accounts a left join sendonce.account_checks c on c.account_id = a.id where a.workspace_id = %s
        """,
        (TAKEN_FOR, workspace_id),
    )
    return {row.account_id: row for row in rows}


def read_check(connection: Connection, workspace_id: UUID, name: str) -> AccountCheck | None:
    """The last check of the account of that name."""
    found = next((one for one in read_checks(connection, workspace_id).values() if one.name == name), None)
    return found and replace(found, set_aside=read_set_aside(connection, found.account_id))


def sending_domains(connection: Connection, vault: Vault, account_id: UUID) -> list[str]:
    """The domains that the newest mail of an account came from, the most used first, in IDNA form."""
    rows = run(
        connection, "read_newest_bodies", account_id=account_id, streams=STREAMS_LOOKED_AT, each=SENDS_LOOKED_AT
    ).fetchall()
    seen: dict[str, int] = {}
    for send_id, body in rows:
        try:
            content: dict[str, Any] = contents.opened(vault, send_id, body)
            domain = normal_address(parseaddr(str(content.get("from")))[1]).rpartition("@")[2]
        except (Unreadable, BadAddress, ValueError):
            continue
        seen[domain] = seen.get(domain, 0) + 1
    return sorted(seen, key=lambda domain: -seen[domain])
