"""Whatever an operator does on a page is also a call of the API and a command."""

from __future__ import annotations

import click
from flask import Flask

from dashboard.cli import sendonce
from dashboard.ledger.database import Database
from dashboard.ledger.vault import Vault
from dashboard.settings import Settings
from dashboard.web import create_app
from dashboard.web.api.openapi import document
from tests.place import KEYS

PAGES = ("accounts", "alerts", "cancel", "dead_letters", "held", "operations", "overview", "proposals", "suspects")
"""The blueprints of pages on which operators act."""

ACTIONS = {
    "accounts.pause": ("post /accounts/{name}/pause", "account pause"),
    "accounts.check_now": ("post /accounts/{name}/check", "provider check"),
    "accounts.resume": ("post /accounts/{name}/resume", "account resume"),
    "alerts.add_channel": ("post /alerts/channels", "alerts add-channel"),
    "alerts.end_silence": ("delete /alerts/silences/{number}", "alerts unsilence"),
    "alerts.save_rule": ("put /alerts/rules/{name}", "alerts set"),
    "alerts.remove_channel": ("delete /alerts/channels/{name}", "alerts remove-channel"),
    "alerts.remove_rule": ("delete /alerts/rules/{name}", "alerts remove"),
    "alerts.silence": ("post /alerts/silences", "alerts silence"),
    "alerts.try_channel": ("post /alerts/channels/{name}/test", "alerts test"),
    "cancel.carry_out": ("post /sends/{id}/cancel", "cancel"),
    "dead_letters.discard": ("post /dead-letters/{number}/discard", "dead-letters discard"),
    "dead_letters.requeue": ("post /dead-letters/{number}/requeue", "dead-letters requeue"),
    "held.settle": ("post /held/{id}", "held decide"),
    "operations.drain": ("post /workers/{id}/drain", "workers drain"),
    "operations.pause_sending": ("post /workspace/pause", "workspace pause"),
    "operations.resume_sending": ("post /workspace/resume", "workspace resume"),
    "operations.pause_stream": ("post /mailstreams/{name}/pause", "stream pause"),
    "operations.resume_stream": ("post /mailstreams/{name}/resume", "stream resume"),
    "overview.mark": ("post /markers", "marker add"),
    "proposals.answer": ("post /held/proposals/{id}/agree", "held agree"),
    "proposals.preview": ("post /held/proposals", "held decide"),
}
"""Of each action of a page: the call and the command."""


def test_each_action_of_a_page_is_a_call_and_a_command(read_database: Database) -> None:
    settings = Settings(database_url=read_database.url, secret_key="s" * 40, encryption_keys=KEYS)
    acts = actions_of(create_app(settings, read_database, Vault(KEYS)))
    assert acts == set(ACTIONS)
    paths = document("https://mail.example.com")["paths"]
    for action, (call, command) in ACTIONS.items():
        method, _, path = call.partition(" ")
        assert method in paths.get(f"/api/v1{path}", {}), f"{action} has no call {call}"
        assert command_of(sendonce, command.split()) is not None, f"{action} has no command {command}"


def actions_of(app: Flask) -> set[str]:
    return {
        rule.endpoint for rule in app.url_map.iter_rules()
        if "POST" in (rule.methods or ()) and rule.endpoint.partition(".")[0] in PAGES
    }  # fmt: skip


def command_of(group: click.Command, names: list[str]) -> click.Command | None:
    found: click.Command | None = group
    for name in names:
        found = found.get_command(click.Context(found), name) if isinstance(found, click.Group) else None
    return found
