"""How a send is shown to programs."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from flask import Response

from dashboard.ledger.standing import Standing
from dashboard.web.state import ground


def shown(standing: Standing) -> dict[str, object]:
    """The members of a send."""
    retry_by = standing.retry_by
    return {
        "id": str(standing.send_id),
        "mailstream": standing.mailstream,
        "key": standing.key,
        "state": str(standing.state),
        "settled": standing.settled,
        "reason": standing.reason,
        "provider": standing.provider,
        "provider_message_id": standing.provider_message_id,
        "delivery": None if standing.delivery is None else str(standing.delivery),
        "deliveries": standing.deliveries,
        "first_seen": iso(standing.first_seen),
        "may_retry": retry_by is not None,
        "retry_by": retry_by,
        "next_try": None if standing.next_try is None else iso(standing.next_try),
        "links": links(standing),
    }


def links(standing: Standing) -> dict[str, str]:
    """``self`` and ``trace`` for programs, ``page`` for people."""
    base = ground().settings.public_url
    own = f"{base}/api/v1/sends/{standing.send_id}"
    return {"self": own, "trace": f"{own}/trace", "page": f"{base}/sends/{standing.send_id}"}


def iso(at: datetime) -> str:
    """``2026-11-30T14:10:03.250000Z``."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def answer(body: object, status: int = 200, **headers: str) -> Response:
    """A JSON answer; underscores in the names of headers stand for hyphens."""
    response = Response(json.dumps(body) + "\n", status, content_type="application/json")
    for name, value in headers.items():
        response.headers[name.replace("_", "-")] = value
    return response
