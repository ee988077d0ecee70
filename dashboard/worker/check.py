"""Check: once a day, and when somebody asks, whether each account can send, report, and show who it is.

The same check for the worker and for ``sendonce provider check``; pages and API show what it stored.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from uuid import UUID

from dashboard.ledger.account_checks import save_check, sending_domains, take_check
from dashboard.ledger.accounts import read_account, webhook_url
from dashboard.ledger.database import Database
from dashboard.ledger.streams import streams_of_account
from dashboard.ledger.vault import Unreadable, Vault
from dashboard.log import Action, log
from dashboard.providers import provider
from dashboard.providers.checking import check_account
from dashboard.providers.findings import Finding
from dashboard.providers.names import Names
from dashboard.settings import Settings


def check_one(database: Database, vault: Vault, settings: Settings) -> bool:
    """Check the next account that is due. False where none is, or others are at it."""
    with database.transaction() as connection:
        account_id = take_check(connection)
    if account_id is not None:
        check_taken(database, vault, settings, account_id)
    return account_id is not None


def check_taken(database: Database, vault: Vault, settings: Settings, account_id: UUID) -> list[Finding]:
    """Check an account that the caller has taken, and store what was found. It takes up to a minute."""
    findings = _findings(database, vault, settings, account_id)
    with database.transaction() as connection:
        broke = save_check(connection, account_id, [asdict(finding) for finding in findings])
    if broke:
        log.warning(Action.ACCOUNT_BROKE, account=str(account_id))
    return findings


def _findings(database: Database, vault: Vault, settings: Settings, account_id: UUID) -> list[Finding]:
    try:
        with database.transaction(durable=False) as connection:
            account = read_account(connection, vault, account_id)
            domains = sending_domains(connection, vault, account_id)
            takes_replies = {one.rules.reply_domain for one in streams_of_account(connection, account_id)}
    except Unreadable as error:
        return [Finding("credentials", "unknown", f"They cannot be read: {error}.")]
    if account is None:
        return []
    return check_account(
        provider(account.provider), account.settings, url=webhook_url(settings.public_url, account_id),
        domains=domains, reply_domains=sorted(filter(None, takes_replies)), names=Names(settings.dns_servers),
        now=datetime.now(UTC),
    )  # fmt: skip
