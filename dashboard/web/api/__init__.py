"""The face for programs: tokens instead of cookies, problem documents instead of pages."""

from __future__ import annotations

from flask import Flask
from flask_wtf import CSRFProtect

from dashboard.web import webhooks
from dashboard.web.api import alerts, docs, held, investigations, markers, operations, sends


def install(app: Flask, csrf: CSRFProtect) -> None:
    """Register the API, its docs and the webhooks. Nobody's browser brings a token along, so nothing can be forged."""
    for part in (sends, alerts, held, operations, investigations, markers, webhooks):
        csrf.exempt(part.blueprint)  # type: ignore[no-untyped-call]
        app.register_blueprint(part.blueprint)
    app.register_blueprint(docs.blueprint)
