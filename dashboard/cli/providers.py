"""``sendonce provider``: whether an account can send, and whether its provider can report."""

from __future__ import annotations

import json
import os

import click

from dashboard.cli import Mistake
from dashboard.cli.options import example, json_option, workspace_option
from dashboard.insight.checked import address_to_paste, document, replies_address_to_paste
from dashboard.ledger.access import find_workspace
from dashboard.ledger.account_checks import AccountCheck, ask_for_check, read_check, take_check
from dashboard.ledger.accounts import find_account
from dashboard.ledger.database import Database
from dashboard.ledger.vault import Vault
from dashboard.settings import Settings, read_settings
from dashboard.worker.check import check_taken


@click.group(epilog=example("sendonce provider check resend"))
def provider() -> None:
    """What the other side says to an account."""


@provider.command("check", epilog=example("sendonce provider check resend", "sendonce provider check resend --json"))
@click.argument("account")
@json_option
@workspace_option
def check(*, account: str, as_json: bool, workspace: str) -> int:
    """Try out an account. Sends nothing.

    Its credentials, by a call of the send endpoint without a message; what its events are verified with; its webhook
    address, from here; and SPF, DKIM and DMARC of the domains that it sends from. What was found is stored, and stands
    on the account's page. Exit code 1 where something is wrong.
    """
    settings = read_settings(os.environ)
    database = Database(settings.database_url, pool_size=1, application_name="sendonce provider")
    try:
        found = _checked(database, settings, account, workspace)
    finally:
        database.close()
    if as_json:
        click.echo(json.dumps(document(found, settings.public_url), indent=2, ensure_ascii=False))
    else:
        for finding in found.findings:
            rule = f" ({finding['rule']})" if finding["rule"] else ""
            about = f"{finding['about']}: " if finding["about"] else ""
            click.echo(f"{finding['verdict']:8} {finding['what']:12} {about}{finding['words']}{rule}")
            if finding["publish"]:
                click.echo(f"{'':21} publish: {finding['publish']}")
        for what, address in (
            ("webhook", address_to_paste(found, settings.public_url)),
            ("replies", replies_address_to_paste(found, settings.public_url)),
        ):
            if address:
                click.echo(f"{'to paste':8} {what:12} {address}")
        for one in found.set_aside:
            click.echo(f"{'aside':8} {'replies':12} {one.number} of the last week: {one.reason}")
    return 1 if found.verdict == "wrong" else 0


def _checked(database: Database, settings: Settings, account: str, workspace: str) -> AccountCheck:
    with database.transaction() as connection:
        workspace_id = find_workspace(connection, workspace)
        account_id = find_account(connection, workspace_id, account)
        if account_id is None:
            raise Mistake(f"{workspace} has no account {account}; see: sendonce account list")
        ask_for_check(connection, workspace_id=workspace_id, name=account)
        taken = take_check(connection, account_id)
    if taken is None:
        raise Mistake("a worker checks this account just now; ask again in a minute")
    check_taken(database, Vault(settings.encryption_keys), settings, taken)
    with database.transaction(durable=False) as connection:
        found = read_check(connection, workspace_id, account)
    if found is None:
        raise Mistake(f"the account {account} was removed meanwhile")
    return found
