"""``/api/v1/markers``: whoever deploys marks it in the charts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.api.conftest import Api


def test_a_deploy_is_marked_and_listed_with_the_name_of_its_token(api: Api) -> None:
    made = api.post({"kind": "deploy", "title": "shop 4.2", "at": "2026-11-30T12:00:00Z"}, "/api/v1/markers")
    assert made.status_code == 201
    listed = api.get("/api/v1/markers?since=2026-11-30T00:00:00Z&until=2026-12-01T00:00:00Z").json
    assert listed is not None
    (marker,) = listed["markers"]
    assert marker.pop("who")
    assert marker == {**made.json, "at": "2026-11-30T12:00:00Z", "kind": "deploy", "title": "shop 4.2"}  # type: ignore[dict-item]
    assert api.get("/api/v1/markers?until=2026-11-30T12:00:00Z").json == {"markers": []}


def test_one_of_just_now_needs_no_time(api: Api) -> None:
    assert api.post({"kind": "incident", "title": "the queue is slow"}, "/api/v1/markers").status_code == 201
    assert len((api.get("/api/v1/markers").json or {})["markers"]) <= 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "kind"),
        ({"kind": "party", "title": "x"}, "kind"),
        ({"kind": "deploy"}, "title"),
        ({"kind": "deploy", "title": "x" * 201}, "title"),
        ({"kind": "deploy", "title": "x\u0000"}, "title"),
        ({"kind": "deploy", "title": "ada@example.com"}, "title"),
        ({"kind": "deploy", "title": "x", "at": "noon"}, "at"),
        ({"kind": "deploy", "title": "x", "at": "2126-01-01T00:00:00Z"}, "at"),
        ({"kind": "deploy", "title": "x", "more": 1}, "request"),
    ],
)
def test_what_cannot_be_taken_is_refused_by_its_field(api: Api, body: dict[str, Any], field: str) -> None:
    answer = api.post(body, "/api/v1/markers")
    assert (answer.status_code, (answer.json or {})["field"]) == (400, field)
