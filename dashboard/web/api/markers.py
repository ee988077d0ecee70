"""``/api/v1/markers``: a deploy or an incident, told by whoever deploys or watches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from flask import Blueprint, Response, request

from dashboard.ledger.markers import Marker, add_marker, list_markers
from dashboard.ledger.requests import BadRequest
from dashboard.web.api import problems, reading
from dashboard.web.api.problems import Problem
from dashboard.web.api.shown import answer, iso
from dashboard.web.bodies import raw_body
from dashboard.web.permissions import by_token
from dashboard.web.state import database

blueprint = Blueprint("api_markers", __name__, url_prefix="/api/v1/markers")
problems.install(blueprint)

RECENT = timedelta(days=7)
FIELDS = {"kind", "title", "at"}


@blueprint.post("")
@by_token
def mark() -> Response:
    """Mark a moment, now where none is given."""
    token = reading.token()
    if request.mimetype != "application/json":
        raise Problem("wrong-content-type", "Send the marker as application/json.")
    raw = reading.parsed(raw_body(reading.MAX_REASON_BODY))
    if not isinstance(raw, dict) or raw.keys() - FIELDS:
        raise BadRequest("request", "must be a JSON object with kind, title and, if it was not just now, at")
    at = None if raw.get("at") is None else _moment("at", raw["at"])
    with database().transaction() as connection:
        number = add_marker(
            connection, workspace_id=token.workspace_id, kind=raw.get("kind"), title=raw.get("title"), at=at,
            token_id=token.id,
        )  # fmt: skip
    return answer({"id": number}, 201)


@blueprint.get("")
@by_token
def recent() -> Response:
    """The markers of a time, the last seven days where none is given, newest first."""
    token = reading.token()
    until = _moment("until", reading.query_text("until") or datetime.now(UTC).isoformat())
    since = reading.query_text("since")
    with database().transaction(durable=False) as connection:
        begin = _moment("since", since) if since else until - RECENT
        found = list_markers(connection, token.workspace_id, begin, until)
    return answer({"markers": [_shown(marker) for marker in found]})


def _moment(name: str, value: object) -> datetime:
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        if at is None or at.tzinfo is None:
            raise ValueError
        return at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadRequest(name, "must be an ISO 8601 time with a zone, such as 2026-11-30T09:00:00Z") from None


def _shown(marker: Marker) -> dict[str, Any]:
    return {
        "id": marker.id, "at": iso(marker.at), "kind": marker.kind, "title": marker.title, "who": marker.who,
    }  # fmt: skip
