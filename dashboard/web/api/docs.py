"""``/openapi.json``, ``/docs`` and the page of each kind of problem."""

from __future__ import annotations

import json

from flask import Blueprint, Response, abort, render_template

from dashboard.web.api.openapi import document
from dashboard.web.api.problems import KINDS
from dashboard.web.permissions import open_to_all
from dashboard.web.state import ground

blueprint = Blueprint("api_docs", __name__)


@blueprint.get("/openapi.json")
@open_to_all
def openapi() -> Response:
    """The API for programs that write programs."""
    return Response(json.dumps(document(ground().settings.public_url)), content_type="application/json")


@blueprint.get("/docs")
@open_to_all
def page() -> str:
    """The API for people."""
    described = document(ground().settings.public_url)
    return render_template("pages/api_docs.html", api=described, problems=KINDS)


@blueprint.get("/docs/problems/<string:name>")
@open_to_all
def problem(name: str) -> str:
    """What one kind of problem means, and what to do."""
    if name not in KINDS:
        abort(404)
    return render_template("pages/api_problem.html", name=name, problem=KINDS[name])
