"""Held sends over the API: what an operator may do there, a token that acts for one may do here, and no other."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest
from werkzeug.test import TestResponse

from dashboard.ledger import access, proposals
from dashboard.ledger.tables import Role
from dashboard.web.api.openapi import document
from tests.api.conftest import Api
from tests.crew import held, person, state_of

SCHEMAS = document("https://mail.example.com")["components"]["schemas"]


def token_of(api: Api, login: str, role: Role = Role.OPERATOR) -> str:
    """A token that acts for a person of this role."""
    user = person(api.place, login)
    with api.place.database.transaction() as connection:
        access.put_role(connection, user_id=user, workspace_id=api.place.workspace, role=role)
        return access.add_token(connection, workspace_id=api.place.workspace, name=login, user_id=user)[1]


@pytest.fixture
def ada(api: Api) -> str:
    return token_of(api, "ada")


def ok(answer: TestResponse, status: int, schema: str) -> dict[str, Any]:
    """The body of an answer that has exactly the members of its schema."""
    assert answer.status_code == status, answer.text
    assert answer.json is not None
    assert set(answer.json) == set(SCHEMAS[schema]["properties"])
    body: dict[str, Any] = answer.json
    return body


def refused(answer: TestResponse, status: int = 409) -> str:
    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    assert answer.json is not None
    detail: str = answer.json["detail"]
    return detail


def carry_out(api: Api) -> None:
    with api.place.database.transaction() as connection:
        proposals.carry_out(connection)


def test_one_is_read_with_its_odds_and_decided_once(api: Api, ada: str) -> None:
    send, *_ = held(api.place)
    (listed,) = ok(api.get("/api/v1/held?mailstream=receipts", token=ada), 200, "Holds")["held"]
    read = ok(api.get(f"/api/v1/held/{send}", token=ada), 200, "HoldWithOdds")
    assert {**listed, "alike": read["alike"]} == read
    assert set(listed) == set(SCHEMAS["Hold"]["properties"])
    assert read["alike"] == [
        {"provider": "resend", "error_class": "read_timeout", "phase": None, "sends": 1, "odds": None}
    ]
    body = {"decision": "cancel", "reason": "asked to", "hold": read["hold"], "evidence": read["evidence"]}
    done = ok(api.send("POST", f"/api/v1/held/{send}", json=body, token=ada), 200, "DecisionDone")
    assert done == {"id": str(send), "state": "cancelled"}
    assert "somebody decided already" in refused(api.send("POST", f"/api/v1/held/{send}", json=body, token=ada))
    assert api.get(f"/api/v1/held/{send}", token=ada).status_code == 404
    assert api.place.one("select user_id, reason from sendonce.decisions") == {
        "user_id": person(api.place, "ada"), "reason": "asked to",
    }  # fmt: skip


def test_many_are_previewed_decided_and_told_of(api: Api, ada: str) -> None:
    sends = [held(api.place, key)[0] for key in ("a", "b")]
    made = ok(
        api.send("POST", "/api/v1/held/proposals", json={"decision": "cancel", "filters": {}}, token=ada),
        201,
        "Preview",
    )
    assert (made["sends"], made["mailstreams"], made["stage"]) == (2, {"receipts": 2}, "preview")
    where = f"/api/v1/held/proposals/{made['id']}"
    assert refused(api.send("POST", f"{where}/propose", json={"reason": " "}, token=ada), 400)
    ok(api.send("POST", f"{where}/propose", json={"reason": "the sale is over"}, token=ada), 202, "Proposal")
    carry_out(api)
    state = ok(api.get(where, token=ada), 200, "ProposalState")
    assert (state["stage"], state["progress"]) == ("done", {"done": 2, "refused": 0, "left": 0, "doubled": 0})
    assert {UUID(outcome["id"]) for outcome in state["outcomes"]} == set(sends)
    assert {state_of(api.place, send) for send in sends} == {"cancelled"}
    (known,) = ok(api.get("/api/v1/held/proposals", token=ada), 200, "Proposals")["proposals"]
    assert known["id"] == made["id"]


def test_named_ones_wait_for_a_second_person(api: Api, ada: str) -> None:
    api.place.run("update sendonce.mailstreams set second_person = true")
    send, *_ = held(api.place)
    hold = api.get(f"/api/v1/held/{send}", token=ada).json
    assert hold is not None
    pick = {"hold": hold["hold"], "evidence": hold["evidence"]}
    alone = api.send("POST", f"/api/v1/held/{send}", json={"decision": "cancel", "reason": "x", **pick}, token=ada)
    made = ok(alone, 202, "Proposal")
    assert (made["stage"], made["second_person"]) == ("waiting", "the rules of receipts demand it")
    where = f"/api/v1/held/proposals/{made['id']}"
    assert "own second person" in refused(api.send("POST", f"{where}/agree", token=ada))
    bob = token_of(api, "bob")
    ok(api.send("POST", f"{where}/decline", json={"reason": "not yet"}, token=bob), 200, "Proposal")
    again = api.send("POST", "/api/v1/held/proposals", json={"decision": "cancel", "holds": [pick]}, token=ada)
    where = f"/api/v1/held/proposals/{ok(again, 201, 'Preview')['id']}"
    assert api.get(where, token=bob).status_code == 404
    api.send("POST", f"{where}/propose", json={"reason": "x"}, token=ada)
    ok(api.send("POST", f"{where}/agree", token=bob), 202, "Proposal")
    carry_out(api)
    assert state_of(api.place, send) == "cancelled"


def test_a_token_of_somebody_who_was_shut_out_opens_nothing(api: Api, ada: str) -> None:
    send, *_ = held(api.place)
    paths = (f"/api/v1/sends/{send}", f"/api/v1/sends/{send}/trace", "/api/v1/markers", "/api/v1/held")
    assert [api.get(path, token=ada).status_code for path in paths] == [200] * 4
    with api.place.database.transaction() as connection:
        access.disable_person(connection, login="ada")
    assert [api.get(path, token=ada).status_code for path in paths] == [401] * 4
    refused(api.send("POST", f"/api/v1/sends/{send}/cancel", json={"reason": "x"}, token=ada), 401)
    assert state_of(api.place, send) == "held"


@pytest.mark.parametrize("who", ["a producer", "support", "another workspace"])
def test_a_token_that_acts_for_no_operator_sees_and_decides_nothing(api: Api, who: str) -> None:
    send, *_ = held(api.place)
    token = api.token if who == "a producer" else token_of(api, "eve", Role.SUPPORT if who == "support" else Role.ADMIN)
    if who == "another workspace":
        api.place.run("delete from sendonce.roles")
    paths = ("/api/v1/held", f"/api/v1/held/{send}", "/api/v1/held/proposals", f"/api/v1/held/proposals/{uuid4()}")
    for path in paths:
        refused(api.get(path, token=token), 403)
    body = {"decision": "cancel", "reason": "x", "hold": 1, "evidence": 0}
    refused(api.send("POST", f"/api/v1/held/{send}", json=body, token=token), 403)
    refused(api.send("POST", "/api/v1/held/proposals", json={"decision": "cancel", "filters": {}}, token=token), 403)
    for act in ("propose", "agree", "decline"):
        refused(api.send("POST", f"/api/v1/held/proposals/{uuid4()}/{act}", json={"reason": "x"}, token=token), 403)
    assert state_of(api.place, send) == "held"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"decision": "send", "filters": {}}, "decision"),
        ({"decision": "cancel"}, "filters"),
        ({"decision": "cancel", "filters": {}, "holds": []}, "filters"),
        ({"decision": "cancel", "filters": {"x": "y"}}, "filters"),
        ({"decision": "cancel", "filters": {"reason": 7}}, "filters"),
        ({"decision": "cancel", "holds": []}, "holds"),
        ({"decision": "cancel", "holds": [{"hold": 1}]}, "holds"),
        ({"decision": "cancel", "holds": [{"hold": "1", "evidence": 0}]}, "hold"),
        ({"decision": "cancel", "holds": [{"hold": 1, "evidence": True}]}, "evidence"),
        ({"decision": "cancel", "filters": {}, "more": 1}, "request"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_field(api: Api, ada: str, body: Any, field: str) -> None:
    answer = api.send("POST", "/api/v1/held/proposals", json=body, token=ada)
    refused(answer, 400)
    assert answer.json is not None
    assert answer.json["field"] == field


def test_what_is_not_there_is_404(api: Api, ada: str) -> None:
    for path in (
        f"/api/v1/held/{uuid4()}",
        "/api/v1/held/x",
        f"/api/v1/held/proposals/{uuid4()}",
        "/api/v1/held/proposals/x",
    ):
        refused(api.get(path, token=ada), 404)
    refused(api.send("POST", f"/api/v1/held/proposals/{uuid4()}/agree", token=ada), 404)
    assert refused(api.get("/api/v1/held?after=x", token=ada), 400)
