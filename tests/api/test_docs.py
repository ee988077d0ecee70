"""The API's documents say what the routes do."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dashboard.lifecycle import State
from dashboard.web.api.openapi import document
from dashboard.web.api.problems import KINDS
from tests.api.conftest import ASKED, Api

DOCUMENT = document("https://mail.example.com")


def test_openapi_names_exactly_the_routes_for_programs(api: Api) -> None:
    served = {
        (re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in api.app.url_map.iter_rules()
        if rule.rule.startswith(("/api/", "/webhooks/"))
        for method in rule.methods or ()
        if method in ("GET", "POST", "PUT", "PATCH", "DELETE")
    }
    described = {
        (path, method)
        for path, item in DOCUMENT["paths"].items()
        for method in item
        if method in ("get", "post", "put", "delete")
    }
    assert described == served


def test_every_reference_of_openapi_leads_somewhere() -> None:
    def references(value: Any) -> list[str]:
        if isinstance(value, dict):
            own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
            return own + [found for inner in value.values() for found in references(inner)]
        if isinstance(value, list):
            return [found for inner in value for found in references(inner)]
        return []

    assert set(references(DOCUMENT)) == {f"#/components/schemas/{name}" for name in DOCUMENT["components"]["schemas"]}


def test_the_schema_of_a_send_has_exactly_the_members_of_an_answer(api: Api) -> None:
    answer = api.post(ASKED).json
    schema = DOCUMENT["components"]["schemas"]["Send"]
    assert answer is not None
    assert set(answer) == set(schema["properties"]) == set(schema["required"])
    assert set(answer["links"]) == set(schema["properties"]["links"]["properties"])
    assert schema["properties"]["state"]["enum"] == [str(state) for state in State]


def test_the_schema_of_a_request_has_exactly_the_fields_that_are_taken() -> None:
    from dashboard.ledger.requests import MESSAGE_FIELDS, REQUEST_FIELDS

    schemas = DOCUMENT["components"]["schemas"]
    assert set(schemas["Request"]["properties"]) == REQUEST_FIELDS - {"workspace"}
    assert set(schemas["Message"]["properties"]) == MESSAGE_FIELDS


def test_openapi_is_served_to_anybody(api: Api) -> None:
    answer = api.app.test_client().get("/openapi.json")
    assert (answer.status_code, answer.content_type) == (200, "application/json")
    assert answer.json == DOCUMENT


def test_the_docs_are_a_page_that_runs_nothing_of_others(api: Api) -> None:
    page = api.app.test_client().get("/docs")
    assert page.status_code == 200
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert "unsafe-inline" not in page.headers["Content-Security-Policy"]
    for path in DOCUMENT["paths"]:
        assert path in page.text
    assert not re.search(r"<script(?![^>]*\bsrc=)|\bstyle=|\bon\w+=", page.text)


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_problem_has_its_page(api: Api, name: str) -> None:
    page = api.app.test_client().get(f"/docs/problems/{name}")
    assert "`" not in page.text
    assert page.status_code == 200
    assert KINDS[name].title in page.text


def test_a_problem_that_does_not_exist_has_no_page(api: Api) -> None:
    assert api.app.test_client().get("/docs/problems/nothing").status_code == 404
