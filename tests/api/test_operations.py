"""Operations over the API: what the pages do, with the same rules."""

from __future__ import annotations

from dataclasses import asdict
from uuid import uuid4

import pytest

from dashboard.ledger.account_checks import save_check
from dashboard.ledger.dead_letters import bury_webhook
from dashboard.ledger.tables import Role
from dashboard.providers.findings import Finding
from tests.api.conftest import Api, asked
from tests.api.test_held import SCHEMAS, ok, refused, token_of
from tests.crew import Hand, person

WHY = {"reason": "new version"}


@pytest.fixture
def ada(api: Api) -> str:
    return token_of(api, "ada")


def test_workers_are_listed_and_asked_to_end(api: Api, ada: str) -> None:
    worker = api.place.one(
        "insert into sendonce.workers (id, name, version, loops) values (gen_random_uuid(), 'h:1:a', '1', '{relay}')"
        " returning id"
    )["id"]
    (listed,) = ok(api.get("/api/v1/workers", token=ada), 200, "Workers")["workers"]
    assert set(listed) == set(SCHEMAS["Worker"]["properties"])
    assert (listed["id"], listed["state"]) == (str(worker), "running")
    ok(api.send("POST", f"/api/v1/workers/{worker}/drain", json=WHY, token=ada), 202, "Draining")
    assert ok(api.get("/api/v1/workers", token=ada), 200, "Workers")["workers"][0]["state"] == "draining"
    refused(api.send("POST", f"/api/v1/workers/{uuid4()}/drain", json=WHY, token=ada))
    refused(api.send("POST", "/api/v1/workers/x/drain", json=WHY, token=ada), 404)


def test_accounts_are_paused_and_resumed(api: Api, ada: str) -> None:
    api.post(asked())
    Hand(api.place).send("refused")
    (listed,) = ok(api.get("/api/v1/accounts", token=ada), 200, "Accounts")["accounts"]
    assert set(listed) == set(SCHEMAS["AccountWithErrors"]["properties"])
    assert [error["status"] for error in listed["errors"]] == ["rejected"]
    assert set(listed["errors"][0]) == set(SCHEMAS["AccountError"]["properties"])
    paused = ok(api.send("POST", "/api/v1/accounts/main/pause", json=WHY, token=ada), 200, "Account")
    assert (paused["paused"], paused["paused_reason"]) == (True, "new version")
    resumed = ok(api.send("POST", "/api/v1/accounts/main/resume", json=WHY, token=ada), 200, "Account")
    assert resumed["paused"] is False
    refused(api.send("POST", "/api/v1/accounts/other/pause", json=WHY, token=ada), 404)
    for verb, reason in (("pause", "new version"), ("resume", None)):
        path = f"/api/v1/mailstreams/receipts/{verb}"
        stream = ok(api.send("POST", path, json=WHY, token=ada), 200, "Pause")
        assert stream == {"name": "receipts", "paused": reason is not None, "paused_reason": reason}
        row = api.place.one("select paused_reason from sendonce.mailstreams where name = 'receipts'")
        assert row["paused_reason"] == reason
        refused(api.send("POST", f"/api/v1/mailstreams/other/{verb}", json=WHY, token=ada), 404)
    actions = api.place.all("select action from sendonce.audit order by id")
    assert [row["action"] for row in actions[-2:]] == ["pause_stream", "resume_stream"]
    assert api.place.one("select count(distinct user_id) as n from sendonce.audit") == {"n": 1}


def test_all_sending_is_stopped_and_goes_on(api: Api, ada: str) -> None:
    api.post(asked())
    paused = ok(api.send("POST", "/api/v1/workspace/pause", json=WHY, token=ada), 200, "Pause")
    assert paused == {"name": "default", "paused": True, "paused_reason": "new version"}
    assert Hand(api.place).claim() == []
    ok(api.send("POST", "/api/v1/workspace/resume", json=WHY, token=ada), 200, "Pause")
    assert len(Hand(api.place).claim()) == 1
    actions = api.place.all("select action, reason from sendonce.audit order by id")
    assert [(row["action"], row["reason"]) for row in actions] == [
        ("pause_workspace", "new version"), ("resume_workspace", "new version"),
    ]  # fmt: skip


def test_an_account_is_checked_when_asked_and_tells_the_last_check(api: Api, ada: str) -> None:
    where = "/api/v1/accounts/main/check"
    before = ok(api.get(where, token=ada), 200, "AccountCheck")
    assert (before["verdict"], before["checked_at"], before["awaited"]) == (None, None, False)
    assert before["webhook_url"].endswith(f"/webhooks/{api.place.account}")
    assert ok(api.send("POST", where, token=ada), 202, "AccountCheck")["awaited"] is True
    found = asdict(Finding("spf", "wrong", "Two of them.", about="example.com"))
    with api.place.database.transaction() as connection:
        save_check(connection, api.place.account, [found])
    after = ok(api.get(where, token=ada), 200, "AccountCheck")
    assert (after["verdict"], after["findings"], after["awaited"]) == ("wrong", [found], False)
    assert set(found) == set(SCHEMAS["Finding"]["properties"])
    assert api.place.one("select user_id is not null as named from sendonce.audit where action = 'check_account'") == {
        "named": True
    }
    for method in ("GET", "POST"):
        refused(api.send(method, "/api/v1/accounts/other/check", token=ada), 404)


def test_dead_letters_are_listed_left_alone_and_discarded(api: Api, ada: str) -> None:
    with api.place.database.transaction() as connection:
        bury_webhook(
            connection, api.place.vault, workspace_id=api.place.workspace, account_id=api.place.account,
            payload=b"x", reason="no type",
        )  # fmt: skip
    (letter,) = ok(api.get("/api/v1/dead-letters", token=ada), 200, "DeadLetters")["dead_letters"]
    assert set(letter) == set(SCHEMAS["DeadLetter"]["properties"])
    where = f"/api/v1/dead-letters/{letter['number']}"
    assert "only the provider" in refused(api.send("POST", f"{where}/requeue", json=WHY, token=ada))
    ok(api.send("POST", f"{where}/discard", json=WHY, token=ada), 200, "Discarded")
    assert ok(api.get("/api/v1/dead-letters", token=ada), 200, "DeadLetters")["dead_letters"] == []
    refused(api.send("POST", "/api/v1/dead-letters/999/discard", json=WHY, token=ada), 404)
    refused(api.get("/api/v1/dead-letters?after=x", token=ada), 400)


def test_what_was_asked_for_under_two_keys_is_suspected(api: Api, ada: str) -> None:
    for key in ("welcome:1", "welcome:2"):
        api.post(asked(key=key))
    (pair,) = ok(api.get("/api/v1/suspects", token=ada), 200, "Suspects")["suspects"]
    assert pair["why"] == "one trigger made two keys"
    assert (pair["earlier"]["key"], pair["later"]["key"]) == ("welcome:1", "welcome:2")
    assert set(pair["later"]) == set(SCHEMAS["Intent"]["properties"])
    refused(api.get("/api/v1/suspects?before=x", token=ada), 400)


def test_the_audit_log_is_for_those_who_act_for_an_admin(api: Api, ada: str) -> None:
    api.send("POST", "/api/v1/accounts/main/pause", json=WHY, token=ada)
    refused(api.get("/api/v1/audit", token=ada), 403)
    admin = token_of(api, "eve", Role.ADMIN)
    entries = ok(api.get("/api/v1/audit?who=ada&action=pause_account", token=admin), 200, "Audit")["entries"]
    assert [(one["who"], one["subject"], one["reason"]) for one in entries] == [("ada", "main", "new version")]
    assert set(entries[0]) == set(SCHEMAS["AuditEntry"]["properties"])
    assert ok(api.get("/api/v1/audit?until=2020-01-01T00:00:00Z", token=admin), 200, "Audit")["entries"] == []
    for query in ("action=x", "before=x", "since=today"):
        refused(api.get(f"/api/v1/audit?{query}", token=admin), 400)


def test_a_producers_token_does_none_of_it(api: Api) -> None:
    person(api.place)
    for path in ("workers", "accounts", "dead-letters", "suspects", "audit"):
        refused(api.get(f"/api/v1/{path}"), 403)
    for path in (f"workers/{uuid4()}/drain", "accounts/main/pause", "accounts/main/resume", "dead-letters/1/requeue"):
        refused(api.send("POST", f"/api/v1/{path}", json=WHY), 403)
