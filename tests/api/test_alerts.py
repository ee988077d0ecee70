"""Alerts over the API: the same rules as on the page."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.ledger import access
from dashboard.ledger.tables import Role
from tests.api.conftest import Api

RULES, SILENCES = "/api/v1/alerts/rules", "/api/v1/alerts/silences"


@pytest.fixture
def api(api: Api) -> Api:
    """A program that acts for an operator."""
    with api.place.database.transaction() as connection:
        user = access.add_person(connection, login="omar", name="Omar", password="correct horse battery")
        access.put_role(connection, user_id=user, workspace_id=api.place.workspace, role=Role.OPERATOR)
        _, api.token = access.add_token(connection, workspace_id=api.place.workspace, name="ops", user_id=user)
    return api


def test_a_token_that_acts_for_nobody_may_not(api: Api) -> None:
    with api.place.database.transaction() as connection:
        _, token = access.add_token(connection, workspace_id=api.place.workspace, name="producer")
    for method, path in (("GET", RULES), ("PUT", f"{RULES}/held"), ("POST", SILENCES)):
        assert api.send(method, path, token=token, json={}).status_code == 403


RULE: dict[str, Any] = {"measure": "held", "threshold": 10, "clears_at": 2, "for_seconds": 60, "severity": "critical"}


def test_a_rule_is_made_replaced_listed_and_removed(api: Api) -> None:
    made = api.send("PUT", f"{RULES}/held", json=RULE)
    assert made.status_code == 200
    assert made.json is not None
    assert made.json["state"] == "quiet"
    assert api.send("PUT", f"{RULES}/held", json=RULE | {"mailstream": "receipts"}).status_code == 200
    listed = api.get(RULES).json
    assert listed is not None
    ((name, stream),) = [(rule["name"], rule["mailstream"]) for rule in listed["rules"]]
    assert (name, stream) == ("held", "receipts")
    assert api.send("DELETE", f"{RULES}/held").status_code == 204
    assert api.send("DELETE", f"{RULES}/held").status_code == 404
    audited = api.place.all("select action, user_id is not null as by_omar from sendonce.audit order by id")
    assert [(row["action"], row["by_omar"]) for row in audited] == [
        ("set_alert_rule", True), ("set_alert_rule", True), ("remove_alert_rule", True)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"measure": "weather"}, "is one of: outbox_age"), ({"threshold": "many"}, "must be a number"),
        ({"clears_at": 11}, "must not be greater"), ({"mailstream": "nothing"}, "no mailstream"),
        ({"colour": "red"}, "not a field"), ({"enabled": "yes"}, "true or false"), ({"for_seconds": -1}, "7 days"),
    ],
)  # fmt: skip
def test_a_rule_that_makes_no_sense_is_refused_with_the_reason(api: Api, changed: dict[str, Any], why: str) -> None:
    answer = api.send("PUT", f"{RULES}/held", json=RULE | changed)
    assert answer.status_code == 400
    assert why in answer.text
    assert api.get(RULES).json == {"rules": []}


def test_a_silence_is_made_and_ended(api: Api) -> None:
    made = api.send("POST", SILENCES, json={"seconds": 3600, "reason": "a migration"})
    assert made.status_code == 201
    assert made.json is not None
    assert made.json["who"] == "omar"
    assert api.send("DELETE", f"{SILENCES}/{made.json['id']}").status_code == 204
    assert api.get(SILENCES).json == {"silences": []}
    assert api.send("DELETE", f"{SILENCES}/{made.json['id']}").status_code == 404
    assert api.send("POST", SILENCES, json={"seconds": 3600, "reason": " "}).status_code == 400


CHANNELS = "/api/v1/alerts/channels"


def test_a_channel_is_for_admins_and_is_added_tried_and_removed(api: Api) -> None:
    wanted = {"name": "on-call", "kind": "webhook", "url": "https://hooks.example.com/planted"}
    assert api.send("POST", CHANNELS, json=wanted).status_code == 403
    api.place.run("update sendonce.roles set role = 'admin'")
    made = api.send("POST", CHANNELS, json=wanted)
    assert made.status_code == 201
    assert made.json is not None
    assert made.json["secret"].startswith("whsec_")
    people = {"name": "ops", "kind": "email", "addresses": ["ada@example.com"], "least_severity": "critical"}
    assert api.send("POST", CHANNELS, json=people).status_code == 201
    assert api.send("POST", f"{CHANNELS}/on-call/test").status_code == 202
    listed = api.get(CHANNELS)
    assert "planted" not in listed.text
    assert "whsec_" not in listed.text
    assert listed.json is not None
    shown = [(one["name"], one["least_severity"], one["last_notice"] is None) for one in listed.json["channels"]]
    assert shown == [("on-call", "warning", False), ("ops", "critical", True)]
    assert set(made.json) - {"secret"} == set(listed.json["channels"][0])
    for status in (204, 404):
        assert api.send("DELETE", f"{CHANNELS}/on-call").status_code == status
    assert api.send("POST", f"{CHANNELS}/on-call/test").status_code == 404


def test_a_channel_that_makes_no_sense_is_refused_with_the_reason(api: Api) -> None:
    api.place.run("update sendonce.roles set role = 'admin'")
    wanted = {"name": "on-call", "kind": "webhook", "url": "https://hooks.example.com/x"}
    changes: list[tuple[dict[str, Any], str]] = [
        ({"kind": "pigeon"}, "is one of: webhook"), ({"url": "ftp://example.com"}, "must look like https"),
        ({"name": "On Call"}, "lower-case"), ({"colour": "red"}, "not a field"), ({"least_severity": 3}, "is one of"),
        ({"kind": "email"}, "must be a list"), ({"kind": "email", "addresses": []}, "1 to 20"),
    ]  # fmt: skip
    for changed, why in changes:
        answer = api.send("POST", CHANNELS, json=wanted | changed)
        assert answer.status_code == 400, changed
        assert why in answer.text
    assert api.get(CHANNELS).json == {"channels": []}


def test_what_fires_is_listed(api: Api) -> None:
    for closed in ("null", "now()"):
        api.place.run(
            "insert into sendonce.alerts (workspace_id, rule, measure, severity, threshold, value, worst, closed_at)"
            f" values (%s, 'held-{closed[:1]}', 'held', 'critical', 10, 12, 15, {closed})", api.place.workspace,
        )  # fmt: skip
    everything, firing = api.get("/api/v1/alerts").json, api.get("/api/v1/alerts?open=true").json
    assert everything is not None
    assert firing is not None
    assert [alert["rule"] for alert in everything["alerts"]] == ["held-n", "held-n"]
    assert [alert["closed_at"] for alert in firing["alerts"]] == [None]
    assert api.get("/api/v1/alerts?open=maybe").status_code == 400


def test_without_a_token_nothing_is_told(api: Api) -> None:
    for path in ("/api/v1/alerts", RULES, SILENCES):
        assert api.get(path, token="so_unknown").status_code == 401
