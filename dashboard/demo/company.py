"""The company of the demo: its mailstreams, its accounts, its people, and the mail that its business asks for."""

from __future__ import annotations

import base64
import random
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from dashboard.ledger import access
from dashboard.ledger.accounts import save_account
from dashboard.ledger.alert_rules import add_defaults
from dashboard.ledger.database import Connection
from dashboard.ledger.streams import rules_for, save_stream
from dashboard.ledger.tables import Role
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import MailClass

KEY_WINDOW = timedelta(hours=24)

SIMULATOR = "the simulator"
"""The endpoint of both accounts: its ports change from run to run, its books and the keys it knows do not."""

STREAMS = (
    # name, class, owner, account
    ("receipts", MailClass.TRANSACTIONAL, "Payments team", "resend"),
    ("password-reset", MailClass.SECURITY, "Identity team", "resend"),
    ("trial-day-7", MailClass.LIFECYCLE, "Growth team", "resend"),
    ("monthly-statement", MailClass.SCHEDULED, "Finance team", "smtp"),
    ("product-news", MailClass.CAMPAIGN, "Marketing team", "resend"),
    ("shipping-notice", MailClass.TRANSACTIONAL, "Warehouse team", "resend"),  # sent by the warehouse's own queue job
)

PEOPLE = (
    # login, name, role
    ("admin", "Ada Admin", Role.ADMIN),
    ("operator", "Omar Operator", Role.OPERATOR),
    ("support", "Sue Support", Role.SUPPORT),
)

_FIRST = ("ada", "grace", "alan", "linus", "barbara", "edsger", "donald", "margaret", "tim", "radia", "ken", "frances")
_LAST = ("byron", "hopper", "turing", "liskov", "knuth", "hamilton", "lee", "perlman", "allen", "dijkstra", "wirth")


@dataclass(frozen=True, slots=True)
class Company:
    """What was set up. ``webhook_secret`` signs the events of the account called ``resend``."""

    workspace_id: UUID
    accounts: dict[str, UUID]
    webhook_secret: str


@dataclass(frozen=True, slots=True)
class Intent:
    """One email that somebody is meant to get, and who asks for it: more than one trigger is an overlap."""

    mailstream: str
    key: str
    recipient_id: str
    address: str
    triggers: tuple[tuple[str, str], ...]
    message: dict[str, Any]


def set_up(
    connection: Connection,
    vault: Vault,
    *,
    http_url: str,
    smtp_port: int,
    keys_honoured: bool,
    graces: dict[MailClass, timedelta],
    password: str | None,
) -> Company:
    """Make the company, or bring the addresses of an existing one up to date.

    ``graces``: shorter grace periods than the classes' own. ``password``: of all people; None makes no people.
    """
    row = connection.execute(
        "insert into sendonce.workspaces (name, title) values ('default', 'Lovelace & Co.')"
        " on conflict (name) do update set title = excluded.title returning id"
    ).fetchone()
    assert row is not None
    workspace_id: UUID = row[0]
    window = KEY_WINDOW if keys_honoured else None
    secret = _webhook_secret(connection)
    accounts = {
        "resend": save_account(
            connection, vault, workspace_id=workspace_id, name="resend", provider="resend",
            settings={"base_url": http_url, "honours_keys": "true" if keys_honoured else "false"},
            secrets={"api_key": "re_demo", "webhook_secret": secret}, endpoint=SIMULATOR, key_window=window,
        ),
        "smtp": save_account(
            connection, vault, workspace_id=workspace_id, name="smtp", provider="smtp",
            settings={"host": "127.0.0.1", "port": str(smtp_port), "security": "none"}, secrets={},
            endpoint=SIMULATOR,
        ),
    }  # fmt: skip
    for name, mail_class, owner, account in STREAMS:
        rules = rules_for(mail_class, window if account == "resend" else None)
        save_stream(
            connection, workspace_id=workspace_id, name=name, mail_class=mail_class, account_id=accounts[account],
            title=name.replace("-", " ").capitalize(), owner=owner,
            rules=replace(rules, grace=graces.get(mail_class, rules.grace)),
        )  # fmt: skip
    add_defaults(connection, workspace_id)
    if password is not None:
        _hire(connection, workspace_id, password)
    return Company(workspace_id, accounts, secret)


def _hire(connection: Connection, workspace_id: UUID, password: str) -> None:
    for login, name, role in PEOPLE:
        if access.find_person(connection, login) is None:
            user_id = access.add_person(connection, login=login, name=name, password=password)
            access.put_role(connection, user_id=user_id, workspace_id=workspace_id, role=role)


def _webhook_secret(connection: Connection) -> str:
    """The demo's webhook secret, kept so that a second start understands the simulator's older events."""
    made = "whsec_" + base64.b64encode(secrets.token_bytes(24)).decode()
    row = connection.execute(
        "insert into sendonce.settings (name, value) values ('demo_webhook_secret', to_jsonb(%s::text))"
        " on conflict (name) do update set name = excluded.name returning value",
        (made,),
    ).fetchone()
    assert row is not None
    secret: str = row[0]
    return secret


# ── the mail ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def intents(seed: int, first: int, count: int) -> Iterator[Intent]:
    """The company's mail from number ``first`` on; the same seed asks for the same mail."""
    for number in range(first, first + count):
        yield intent(random.Random(f"{seed}/{number}"), number)  # noqa: S311  # a story, not a secret


def intent(dice: random.Random, number: int) -> Intent:
    """One email of any mailstream. A tenth has two triggers that overlap."""
    stream = dice.choices(list(_INTENTS), weights=[50, 15, 15, 10, 10])[0]
    return intent_of(stream, dice, number)


def intent_of(stream: str, dice: random.Random, number: int) -> Intent:
    """One email of this mailstream."""
    name = f"{dice.choice(_FIRST)}.{dice.choice(_LAST)}"
    recipient_id = f"recipient_{1000 + number}"
    address = f"{name}{number}@{dice.choice(('example.test', 'mail.example.test', 'post.example.test'))}"
    overlaps = dice.random() < 0.1
    return _INTENTS[stream](number, recipient_id, address, name.partition(".")[0].capitalize(), overlaps)


def _receipt(number: int, recipient_id: str, address: str, name: str, overlaps: bool) -> Intent:
    order = f"order_{84000 + number}"
    triggers = [("order.paid", order)] + ([("nightly.receipt-check", f"{order}-check")] if overlaps else [])
    return Intent(
        "receipts", f"receipt:{order}:{recipient_id}:v3", recipient_id, address, tuple(triggers),
        _message("Lovelace Shop <shop@lovelace.example>", f"Your receipt for {order}", "receipt",
                 "Hello {{ name }},\n\nthank you. We got your payment of {{ total }} for {{ order }}.\n",
                 {"name": name, "order": order, "total": f"{number % 90 + 9}.95 EUR"}),
    )  # fmt: skip


def _reset(number: int, recipient_id: str, address: str, name: str, overlaps: bool) -> Intent:
    request = f"reset_{number}"
    triggers = [("password.reset_requested", request)] + ([("web.form-resubmitted", request)] if overlaps else [])
    return Intent(
        "password-reset", f"reset:{recipient_id}:{request}", recipient_id, address, tuple(triggers),
        _message("Lovelace Accounts <accounts@lovelace.example>", "Choose a new password", "reset",
                 "Hello {{ name }},\n\nuse this link within 10 minutes: https://lovelace.example/r/{{ request }}\n",
                 {"name": name, "request": request}),
    )  # fmt: skip


def _trial(number: int, recipient_id: str, address: str, name: str, overlaps: bool) -> Intent:
    triggers = [("trial.day", f"trial_{number}")] + ([("crm.workflow", f"wf_{number}")] if overlaps else [])
    return Intent(
        "trial-day-7", f"trial:{recipient_id}:day-7", recipient_id, address, tuple(triggers),
        _message("Grace at Lovelace <grace@lovelace.example>", "How is your first week?", "trial-day-7",
                 "Hello {{ name }},\n\nyou have had Lovelace for a week. Reply if we can help.\n", {"name": name}),
    )  # fmt: skip


def _statement(number: int, recipient_id: str, address: str, name: str, overlaps: bool) -> Intent:
    triggers = [("calendar.month-end", f"2026-11/{number}")] + ([("calendar.retry", f"r{number}")] if overlaps else [])
    return Intent(
        "monthly-statement", f"statement:{recipient_id}:2026-11", recipient_id, address, tuple(triggers),
        _message("Lovelace Finance <finance@lovelace.example>", "Your statement for November", "statement",
                 "Dear {{ name }},\n\nyour statement for November is ready.\n", {"name": name}),
    )  # fmt: skip


def _news(number: int, recipient_id: str, address: str, name: str, overlaps: bool) -> Intent:
    triggers = [("campaign.recipient", f"news-11/{number}")] + (
        [("campaign.restarted", f"n{number}")] if overlaps else []
    )
    return Intent(
        "product-news", f"news:2026-11:{recipient_id}", recipient_id, address, tuple(triggers),
        _message("Lovelace News <news@lovelace.example>", "What is new in November", "news",
                 "Hello {{ name }},\n\nthree small things became faster this month.\n", {"name": name}),
    )  # fmt: skip


_INTENTS = {
    "receipts": _receipt, "password-reset": _reset, "trial-day-7": _trial, "monthly-statement": _statement,
    "product-news": _news,
}  # fmt: skip


def _message(sender: str, subject: str, template: str, text: str, variables: dict[str, str]) -> dict[str, Any]:
    html = "".join(f"<p>{line}</p>" for line in text.split("\n") if line)
    return {
        "from": sender, "subject": subject, "text": text, "html": html, "template": template, "revision": "v3",
        "variables": variables,
    }  # fmt: skip
