"""The API on a committed ledger, asked through Flask's test client."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import pytest
from flask import Flask
from werkzeug.test import TestResponse

from dashboard.ledger.access import add_token
from dashboard.ledger.database import Database
from dashboard.settings import Settings
from dashboard.web import create_app
from tests.place import KEYS, Place
from tests.serving import the_app

ASKED: dict[str, Any] = {
    "mailstream": "receipts",
    "key": "receipt:order_84721:recipient_2045:receipt-v3",
    "recipient": {"id": "recipient_2045", "address": "ada@example.com", "name": "Ada"},
    "trigger": {"type": "order.paid", "id": "evt_991", "at": "2026-11-30T09:00:00Z"},
    "message": {"from": "Shop <shop@example.com>", "subject": "Your receipt", "text": "Thank you"},
    "metadata": {"order": "84721"},
}


def asked(**changes: Any) -> dict[str, Any]:
    """A good request; ``message__text`` changes a member of ``message``."""
    request = copy.deepcopy(ASKED)
    for name, value in changes.items():
        *path, last = name.split("__")
        inner = request
        for step in path:
            inner = inner[step]
        inner[last] = value
    return request


@dataclass
class Api:
    """A program with a token."""

    app: Flask
    place: Place
    token: str

    def send(self, method: str, path: str, *, token: str | None = None, **how: Any) -> TestResponse:
        """One request with the token; ``how`` as the test client takes it."""
        headers = {"Authorization": f"Bearer {token or self.token}"} | how.pop("headers", {})
        return self.app.test_client().open(path, method=method, headers=headers, **how)

    def post(self, request: Any, path: str = "/api/v1/sends", **how: Any) -> TestResponse:
        """Ask for one send."""
        return self.send("POST", path, json=request, **how)

    def get(self, path: str, **how: Any) -> TestResponse:
        """Read."""
        return self.send("GET", path, **how)

    def batch(self, body: str | bytes) -> TestResponse:
        """Ask for many."""
        return self.send("POST", "/api/v1/sends/batch", data=body, content_type="application/x-ndjson")


def app_on(database: Database, place: Place) -> Flask:
    """The web application on this database."""
    return create_app(settings_for(database), database, place.vault)


def settings_for(database: Database) -> Settings:
    """Those of the API on this database."""
    return Settings(
        database_url=database.url, secret_key="s" * 40, encryption_keys=KEYS,
        public_url="https://mail.example.com",
    )  # fmt: skip


@pytest.fixture
def api(place: Place) -> Api:
    """A program with a token of the workspace ``default``."""
    with place.database.transaction() as connection:
        _, token = add_token(connection, workspace_id=place.workspace, name="shop")
    return Api(the_app(settings_for(place.database), place.database, place.vault), place, token)
