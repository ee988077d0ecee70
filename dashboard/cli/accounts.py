"""``sendonce account``: the provider accounts of a workspace, and the address to which each provider reports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from uuid import UUID

import click

from dashboard.cli import Mistake, secrets
from dashboard.cli.account_settings import apart, ask_missing, check, read_given
from dashboard.cli.ledger import answering_if_named, ledger
from dashboard.cli.options import example, maybe_user_option, span, workspace_option
from dashboard.ledger import accounts, audit, streams
from dashboard.ledger.access import find_workspace
from dashboard.ledger.database import Connection
from dashboard.ledger.vault import Vault
from dashboard.providers import PROVIDERS, provider
from dashboard.providers.base import Provider, endpoint
from dashboard.settings import Settings, read_settings

WEBHOOK_SECRET = "webhook_secret"

set_option = click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="A setting that is no secret.")
file_option = click.option(
    "--secret-file", "files", multiple=True, metavar="NAME=FILE", help="A secret setting, read from a file."
)
stdin_option = click.option("--secret-stdin", metavar="NAME", help="A secret setting, read from standard input.")
rate_option = click.option(
    "--rate", type=click.FloatRange(0.01), metavar="N", help="Calls a second, over all workers; unlimited otherwise."
)


@click.group(epilog=example("sendonce account add resend --provider resend", "sendonce account list"))
def account() -> None:
    """Provider accounts. Secrets are asked for, or read from a file or standard input; they are stored encrypted."""


@account.command(
    "add",
    epilog=example(
        "sendonce account add resend --provider resend --secret-file api_key=/run/secrets/resend_key",
        "sendonce account add relay --provider smtp --set host=smtp.example.com --set username=shop",
    ),
)
@click.argument("name")
@click.option("--provider", "kind", required=True, type=click.Choice([known.name for known in PROVIDERS]))
@set_option
@file_option
@stdin_option
@rate_option
@workspace_option
def add_account(
    *,
    name: str,
    kind: str,
    given: tuple[str, ...],
    files: tuple[str, ...],
    secret_stdin: str | None,
    rate: float | None,
    workspace: str,
) -> None:
    """Add an account. Prints the webhook address to enter at the provider."""
    chosen, settings = provider(kind), read_settings(os.environ)
    plain, secret = read_given(chosen, given, files, secret_stdin)
    ask_missing(chosen, secret)
    with ledger() as connection:
        workspace_id = find_workspace(connection, workspace)
        if accounts.find_account(connection, workspace_id, name):
            raise Mistake(f"there is an account {name} already; change it with: sendonce account set {name}")
        account_id = _save(connection, settings, workspace_id, name, chosen, plain, secret, rate)
        audit.record(
            connection, audit.Action.ADD_ACCOUNT, workspace_id=workspace_id, subject=name, detail={"provider": kind}
        )
    click.echo(f"The account {name} is there.")
    _tell_webhook(settings, chosen, {**plain, **secret}, name, account_id)


@account.command(
    "set", epilog=example("sendonce account set resend --rate 2", "sendonce account set resend --secret-stdin api_key")
)
@click.argument("name")
@set_option
@file_option
@stdin_option
@rate_option
@workspace_option
def set_account(
    *,
    name: str,
    given: tuple[str, ...],
    files: tuple[str, ...],
    secret_stdin: str | None,
    rate: float | None,
    workspace: str,
) -> None:
    """Change settings of an account; what is not named stays. An empty value (NAME=) takes a setting away."""
    settings = read_settings(os.environ)
    with ledger() as connection:
        workspace_id, account_id = _known(connection, workspace, name)
        row = next(one for one in accounts.list_accounts(connection, workspace_id) if one.id == account_id)
        chosen = provider(row.provider)
        plain, secret = read_given(chosen, given, files, secret_stdin)
        old_plain, old_secret = apart(chosen, _settings_of(connection, settings, account_id))
        kept = row.rate_per_second if rate is None else rate
        _save(connection, settings, workspace_id, name, chosen, {**old_plain, **plain}, {**old_secret, **secret}, kept)
        audit.record(
            connection, audit.Action.SET_ACCOUNT, workspace_id=workspace_id, subject=name,
            detail={"settings": sorted({*plain, *secret}), "rate": rate},
        )  # fmt: skip
        elsewhere = accounts.in_doubt_elsewhere(connection, account_id)
    click.echo(f"The account {name} is changed; from now on workers use it so.")
    if elsewhere:
        many = f"{elsewhere}{' or more' if elsewhere == accounts.MANY else ''}"
        click.echo(
            f"Sends in doubt whose last call went elsewhere, or as somebody else: {many}. Their idempotency keys count"
            " for nothing here, so that no policy repeats them: they will be held. The old settings bring that back."
        )


@account.command("list", epilog=example("sendonce account list"))
@workspace_option
def list_accounts(workspace: str) -> None:
    """The accounts, each with its state and the webhook address for its provider."""
    settings = read_settings(os.environ)
    with ledger() as connection:
        rows = accounts.list_accounts(connection, find_workspace(connection, workspace))
    for row in rows:
        state = "active"
        if row.paused_for_good or row.paused_until:
            until = "until it is resumed" if row.paused_until is None else f"until {row.paused_until:%H:%M:%S} UTC"
            state = f"paused {until}: {row.paused_reason}"
        keys = f"honours keys for {span(row.key_window)}" if row.key_window else "honours no keys"
        address = _address(settings, row.id) if provider(row.provider).capabilities({}).webhooks else "no webhooks"
        click.echo(f"{row.name}\t{row.provider}\t{keys}\t{state}\t{address}")


@account.command(
    "rotate-webhook-secret",
    epilog=example(
        "sendonce account rotate-webhook-secret resend", "sendonce account rotate-webhook-secret resend --end"
    ),
)
@click.argument("name")
@click.option("--secret-file", "file", metavar="FILE", help="Read the new secret from a file.")
@click.option("--secret-stdin", is_flag=True, help="Read the new secret from standard input.")
@click.option("--end", is_flag=True, help="Take no new one: forget the old one, once the provider signs with the new.")
@workspace_option
def rotate_webhook_secret(*, name: str, file: str | None, secret_stdin: bool, end: bool, workspace: str) -> None:
    """Set the secret that the provider signs its webhooks with; the one before stays good until --end."""
    settings = read_settings(os.environ)
    with ledger() as connection:
        workspace_id, account_id = _known(connection, workspace, name)
        row = next(one for one in accounts.list_accounts(connection, workspace_id) if one.id == account_id)
        chosen = provider(row.provider)
        if WEBHOOK_SECRET not in {one.name for one in chosen.settings}:
            raise Mistake(f"{chosen.title} has no webhooks that a secret signs")
        plain, secret = apart(chosen, _settings_of(connection, settings, account_id))
        old = secret.get(WEBHOOK_SECRET, "").split()[:1]
        new = [] if end else [_new_secret(file, secret_stdin)]
        if not old and not new:
            raise Mistake(f"{name} has no webhook secret yet")
        secret[WEBHOOK_SECRET] = " ".join(dict.fromkeys(new + old))
        _save(connection, settings, workspace_id, name, chosen, plain, secret, row.rate_per_second)
        audit.record(connection, audit.Action.ROTATE_WEBHOOK_SECRET, workspace_id=workspace_id, subject=name)
    click.echo("The old one is forgotten." if end else "Set." + (" The old one is good until --end." if old else ""))


@account.command("pause", epilog=example("sendonce account pause resend --reason 'a red status page' --user ada"))
@click.argument("name")
@click.option("--reason", required=True, help="Stands in every trace that waits for it.")
@maybe_user_option
@workspace_option
def pause_account(name: str, reason: str, login: str | None, workspace: str) -> None:
    """Start no attempt on an account until it is resumed. What is under way runs to its end."""
    with ledger() as connection:
        workspace_id, _ = _known(connection, workspace, name)
        accounts.pause_by_person(
            connection, workspace_id=workspace_id, name=name, reason=reason,
            user_id=answering_if_named(connection, login),
        )  # fmt: skip
    click.echo(f"{name} is paused.")


@account.command("resume", epilog=example("sendonce account resume resend --user ada"))
@click.argument("name")
@click.option("--reason", help="Stands in the audit log.")
@maybe_user_option
@workspace_option
def resume_account(name: str, reason: str | None, login: str | None, workspace: str) -> None:
    """End a pause, a person's or one that the provider's trouble made."""
    with ledger() as connection:
        workspace_id, _ = _known(connection, workspace, name)
        accounts.resume_by_person(
            connection, workspace_id=workspace_id, name=name, reason=reason,
            user_id=answering_if_named(connection, login),
        )  # fmt: skip
    click.echo(f"{name} is active.")


# ── inside ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _known(connection: Connection, workspace: str, name: str) -> tuple[UUID, UUID]:
    workspace_id = find_workspace(connection, workspace)
    account_id = accounts.find_account(connection, workspace_id, name)
    if account_id is None:
        raise Mistake(f"{workspace} has no account {name}; see: sendonce account list")
    return workspace_id, account_id


def _new_secret(file: str | None, from_stdin: bool) -> str:
    if file is not None:
        return secrets.read_file(file)
    if from_stdin:
        return secrets.read_stdin()
    return secrets.ask(WEBHOOK_SECRET, needed=True, how_else="--secret-file FILE, or --secret-stdin")


def _settings_of(connection: Connection, settings: Settings, account_id: UUID) -> Mapping[str, str]:
    found = accounts.read_account(connection, Vault(settings.encryption_keys), account_id)
    return found.settings if found else {}


def _save(
    connection: Connection, settings: Settings, workspace_id: UUID, name: str, chosen: Provider,
    plain: Mapping[str, str], secret: Mapping[str, str], rate: float | None,
) -> UUID:  # fmt: skip
    """Check and store. Raises :class:`Mistake` for settings that cannot work, also with the account's mailstreams."""
    plain = {key: value for key, value in plain.items() if value}
    whole = {**plain, **secret}
    check(chosen, whole)
    can = chosen.capabilities(whole)
    account_id = accounts.save_account(
        connection, Vault(settings.encryption_keys), workspace_id=workspace_id, name=name, provider=chosen.name,
        settings=plain, secrets=secret, endpoint=endpoint(chosen, whole), key_window=can.key_window,
        settling_time=can.settling_time, rate_per_second=rate,
    )  # fmt: skip
    for stream in streams.streams_of_account(connection, account_id):
        try:
            streams.check_rules(stream.rules, key_window=can.key_window, settling_time=can.settling_time)
        except streams.BadStream as error:
            raise Mistake(f"the mailstream {stream.name} could not keep its rules: {error}") from None
    return account_id


def _address(settings: Settings, account_id: UUID) -> str:
    return accounts.webhook_url(settings.public_url, account_id)


def _tell_webhook(settings: Settings, chosen: Provider, given: Mapping[str, str], name: str, account_id: UUID) -> None:
    if not chosen.capabilities(given).webhooks:
        return
    click.echo(f"Webhook address, to enter at {chosen.title}: {_address(settings, account_id)}")
    if chosen.capabilities(given).replies:
        click.echo(f"Where it is to hand in replies: {accounts.replies_url(settings.public_url, account_id)}")
    if settings.public_url == Settings.public_url:
        click.echo("Set SENDONCE_PUBLIC_URL first: the provider cannot reach this address.")
    if WEBHOOK_SECRET in {one.name for one in chosen.settings} and not given.get(WEBHOOK_SECRET):
        click.echo(f"Then store the secret that it shows: sendonce account rotate-webhook-secret {name}")
