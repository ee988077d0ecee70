"""The face for programs: tokens instead of cookies, problem documents instead of pages."""

from __future__ import annotations

from flask import Flask
from flask_wtf import CSRFProtect

from dashboard.web import webhooks
from dashboard.web.api import docs, held, investigations, markers, operations, sends


def install(app: Flask, csrf: CSRFProtect) -> None:
    """Register the API, its docs and the webhooks. Nobody's browser brings a token along, so nothing can be forged."""
    for blueprint in (
        sends.blueprint, held.blueprint, operations.blueprint, investigations.blueprint, markers.blueprint,
        webhooks.blueprint,
    ):  # fmt: skip
        csrf.exempt(blueprint)  # type: ignore[no-untyped-call]
        app.register_blueprint(blueprint)
    app.register_blueprint(docs.blueprint)
