"""``sendonce provider``: whether an account can send, and whether its provider can report."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime

import click

from dashboard.cli import Mistake
from dashboard.cli.ledger import ledger
from dashboard.cli.options import example, json_option, workspace_option
from dashboard.ledger import accounts
from dashboard.ledger.access import find_workspace
from dashboard.ledger.accounts import Account
from dashboard.ledger.vault import Vault
from dashboard.providers import provider as provider_named
from dashboard.providers.checking import Finding, check_address, check_credentials, check_events
from dashboard.settings import Settings, read_settings

TIMEOUT_SECONDS = 15.0


@click.group(epilog=example("sendonce provider check resend"))
def provider() -> None:
    """What the other side says to an account."""


@provider.command("check", epilog=example("sendonce provider check resend", "sendonce provider check resend --json"))
@click.argument("account")
@json_option
@workspace_option
def check(*, account: str, as_json: bool, workspace: str) -> int:
    """Try out an account. Sends nothing.

    Its credentials, by a call of the send endpoint without a message; what its events are verified with; and its
    webhook address, from here. Exit code 1 where something is wrong.
    """
    settings = read_settings(os.environ)
    with ledger() as connection:
        workspace_id = find_workspace(connection, workspace)
        account_id = accounts.find_account(connection, workspace_id, account)
        found = account_id and accounts.read_account(connection, Vault(settings.encryption_keys), account_id)
    if not found:
        raise Mistake(f"{workspace} has no account {account}; see: sendonce account list")
    findings = list(_findings(settings, found))
    if as_json:
        click.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        for finding in findings:
            click.echo(f"{finding.verdict:8} {finding.what:12} {finding.words}")
    return 1 if any(finding.verdict == "wrong" for finding in findings) else 0


def _findings(settings: Settings, account: Account) -> Iterator[Finding]:
    chosen = provider_named(account.provider)
    yield check_credentials(chosen, account.settings, request_timeout=TIMEOUT_SECONDS)
    if not chosen.capabilities(account.settings).webhooks:
        return
    url = f"{settings.public_url}/webhooks/{account.id}"
    yield check_events(chosen, account.settings, url=url, now=datetime.now(UTC))
    yield check_address(url, request_timeout=TIMEOUT_SECONDS)
