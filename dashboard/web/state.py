"""What a request stands on: the settings, the database and the vault of this process, and whose request it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast
from uuid import UUID

from flask import current_app, g

from dashboard.ledger.access import Membership, Person
from dashboard.ledger.database import Database
from dashboard.ledger.vault import Vault
from dashboard.settings import Settings

NAME = "sendonce"


@dataclass(frozen=True, slots=True)
class Ground:
    """What ``create_app`` was given, and what has to be known while the database is away.

    ``come_again``: the status by which the provider of each account that was met is asked to repeat a webhook.
    """

    settings: Settings
    database: Database
    vault: Vault
    come_again: dict[UUID, int] = field(default_factory=dict)


def ground() -> Ground:
    """What ``create_app`` was given."""
    return cast(Ground, current_app.extensions[NAME])


def database() -> Database:
    """The ledger's database."""
    return ground().database


def vault() -> Vault:
    """Opens what is encrypted."""
    return ground().vault


def me() -> Person:
    """Who is logged in. Only in views that need a role."""
    return cast(Person, g.person)


def here() -> Membership:
    """The workspace of this request, and one's role in it. Only in views that need a role."""
    return cast(Membership, g.membership)


def home() -> Membership:
    """The workspace that one chose to work in: that of this request, unless its link leads into another one."""
    return cast(Membership, g.home)
