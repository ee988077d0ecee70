"""The dashboard: thin views over the ledger. It never sends."""

from __future__ import annotations

import importlib
from pathlib import Path

from flask import Flask
from flask_wtf import CSRFProtect
from htmx_flask import Htmx
from werkzeug.middleware.proxy_fix import ProxyFix

from dashboard.ledger.database import Database
from dashboard.ledger.vault import Vault
from dashboard.settings import Settings
from dashboard.web import api, compressed, errors, formats, headers, login, meters, pages, permissions
from dashboard.web.state import NAME, Ground

TOP = Path(__file__).resolve().parents[2]
"""Where ``templates/`` and ``static/`` are: the checkout, or the folder of the image."""

VIEWS = (
    "login",
    "investigate",
    "replies",
    "search",
    "sends",
    "saved_views",
    "send",
    "rows",
    "notes",
    "evidence",
    "cancel",
    "held",
    "proposals",
    "overview",
    "operations",
    "alerts",
    "accounts",
    "dead_letters",
    "suspects",
    "audit",
    "health",
)


def create_app(settings: Settings, database: Database, vault: Vault) -> Flask:
    """The WSGI application on these parts. It opens no connection before its first request."""
    app = Flask("dashboard.web", root_path=str(TOP), static_folder="static", template_folder="templates")
    app.extensions[NAME] = Ground(settings, database, vault)
    app.config.update(MAX_CONTENT_LENGTH=32_000_000, MAX_FORM_MEMORY_SIZE=1_000_000, WTF_CSRF_TIME_LIMIT=None)
    if settings.trusted_proxies:
        # The client's address alone: addresses of our own come from the settings, whatever a header says.
        app.wsgi_app = ProxyFix(app.wsgi_app, x_for=settings.trusted_proxies, x_proto=0, x_host=0)  # type: ignore[method-assign]
    app.jinja_options = {**app.jinja_options, "trim_blocks": True, "lstrip_blocks": True}
    Htmx(app)
    csrf = CSRFProtect(app)  # type: ignore[no-untyped-call]
    for part in (meters, headers, compressed, permissions, errors, formats, pages):
        part.install(app)
    login.install(app, settings)
    for name in VIEWS:
        app.register_blueprint(importlib.import_module(f"dashboard.web.views.{name}").blueprint)
    api.install(app, csrf)
    return app
