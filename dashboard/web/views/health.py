"""For machines that watch: is the process up, is it ready. For pages: the banner."""

from __future__ import annotations

from functools import cache
from hmac import compare_digest
from pathlib import Path

import psycopg
from alembic.script import ScriptDirectory
from flask import Blueprint, jsonify, request
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from werkzeug.wrappers import Response

from dashboard import migrations
from dashboard.ledger.tables import Role
from dashboard.log import Action, log
from dashboard.web.meters import exposition
from dashboard.web.permissions import by_token, needs, open_to_all
from dashboard.web.show import show
from dashboard.web.state import database, ground

blueprint = Blueprint("health", __name__)


@blueprint.get("/pulse")
@needs(Role.SUPPORT)
def pulse() -> Response:
    """The banner and the number of held sends, asked for again and again by open pages."""
    return show("pulse", fragment="pulse")


@blueprint.get("/healthz")
@open_to_all
def alive() -> Response:
    """The process answers."""
    answer: Response = jsonify(status="ok")
    return answer


@blueprint.get("/readyz")
@open_to_all
def ready() -> tuple[Response, int]:
    """The database answers, and its schema is the one of this version."""
    try:
        with database().transaction(durable=False) as connection:
            row = connection.execute("select version_num from sendonce.alembic_version").fetchone()
    except psycopg.errors.UndefinedTable:
        row = None
    except (psycopg.Error, DBAPIError, PoolTimeout) as error:
        log.error(Action.DATABASE_UNREACHABLE, error=type(error).__name__)
        return jsonify(status="unavailable", reason="the database cannot be reached"), 503
    if row is None or row[0] != newest_schema():
        return jsonify(status="unavailable", reason="the schema is not current: run sendonce migrate"), 503
    return jsonify(status="ok"), 200


@blueprint.get("/metrics")
@by_token
def metrics() -> Response:
    """For Prometheus. The figures name mailstreams and accounts, so that whoever asks has to bring the token."""
    wanted = ground().settings.metrics_token
    if not wanted:
        return Response("There is no SENDONCE_METRICS_TOKEN, so that nobody may ask.\n", 404, content_type="text/plain")
    given = request.authorization
    if given is None or given.type != "bearer" or not compare_digest((given.token or "").encode(), wanted.encode()):
        refusal = Response("Bring the token of SENDONCE_METRICS_TOKEN.\n", 401, content_type="text/plain")
        refusal.headers["WWW-Authenticate"] = 'Bearer realm="metrics"'
        return refusal
    return Response(exposition(database()), content_type=CONTENT_TYPE_PLAIN_0_0_4)


@cache
def newest_schema() -> str | None:
    """The revision that ``sendonce migrate`` brings a database to."""
    return ScriptDirectory(str(Path(migrations.__file__).parent)).get_current_head()
