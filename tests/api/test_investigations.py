"""``POST /api/v1/investigations`` judges a complaint for programs."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.web.api.openapi import document
from tests.api.conftest import ASKED, Api

ASKING = {"who": "evt_991", "complaint": "twice"}


def investigate(api: Api, **changes: Any) -> Any:
    return api.send("POST", "/api/v1/investigations", json=ASKING | changes)


def test_a_complaint_is_judged(api: Api) -> None:
    send = api.post(ASKED).json
    assert send is not None
    api.place.send_all()
    told = investigate(api).json
    assert (told["cause"], told["sureness"], told["send"]) == ("one_copy", "proved", send["id"])
    assert told["reply"].startswith("Our records show that this email left us once, on ")
    assert [proof["row"] for proof in told["proof"]] == ["attempt 1", "attempt 1"]
    assert "ada@example.com" not in str(told)
    schema = document("")["components"]["schemas"]["Answer"]
    assert set(told) == set(schema["properties"]) == set(schema["required"])


def test_nothing_known_is_an_answer_too(api: Api) -> None:
    answer = investigate(api, who="nobody@example.com", when="yesterday evening", zone="Asia/Tokyo")
    assert answer.status_code == 200
    assert (answer.json["cause"], answer.json["sureness"]) == ("nothing_known", "cannot_tell")
    assert answer.json["since"].endswith("T08:00:00Z"), "17:00 in Tokyo"


def test_it_stands_in_the_audit_log_with_the_token(api: Api) -> None:
    investigate(api)
    row = api.place.one(
        "select detail ->> 'complaint' as said, token_id from sendonce.audit where action = 'investigate'"
    )
    assert row["said"] == "twice"
    assert row["token_id"]


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"who": ""}, "who"), ({"who": None}, "who"), ({"who": "x" * 1001}, "who"), ({"who": 7}, "who"),
        ({"who": "a\0b"}, "who"), ({"complaint": "rude"}, "complaint"), ({"when": "whenever"}, "when"),
        ({"zone": "Mars"}, "zone"), ({"more": "x"}, "more"),
    ],
)  # fmt: skip
def test_a_bad_field_is_named(api: Api, changes: dict[str, object], field: str) -> None:
    answer = investigate(api, **changes)
    assert (answer.status_code, answer.json["field"]) == (400, field)


def test_a_token_is_needed(api: Api) -> None:
    assert api.send("POST", "/api/v1/investigations", json=ASKING, token="so_wrong").status_code == 401


def test_a_body_of_another_kind_is_refused(api: Api) -> None:
    answer = api.send("POST", "/api/v1/investigations", data="who=x", content_type="text/plain")
    assert answer.status_code == 415
