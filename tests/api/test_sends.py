"""POST /api/v1/sends and its readers: every answer as promised, whatever is sent."""

from __future__ import annotations

import http.client
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from dashboard.identity import send_id
from dashboard.ledger.access import add_token, revoke_token
from dashboard.ledger.database import Database
from dashboard.ledger.search import Reading, search
from dashboard.web.api import waiting
from tests.api.conftest import ASKED, Api, app_on, asked
from tests.place import Place
from tests.serving import served


def sent(api: Api) -> str:
    return str(send_id(api.place.workspace, "receipts", ASKED["key"]))


# ── the answers ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_send_is_201_with_its_place_and_its_members(api: Api) -> None:
    answer = api.post(ASKED)
    assert (answer.status_code, answer.headers["Location"]) == (201, f"/api/v1/sends/{sent(api)}")
    assert "Idempotent-Replayed" not in answer.headers
    assert "Set-Cookie" not in answer.headers
    told_ = answer.json
    assert told_ is not None
    links = {
        "self": f"https://mail.example.com/api/v1/sends/{sent(api)}",
        "trace": f"https://mail.example.com/api/v1/sends/{sent(api)}/trace",
        "page": f"https://mail.example.com/sends/{sent(api)}",
    }
    assert told_.pop("first_seen").endswith("Z")
    assert told_.pop("next_try").endswith("Z")
    assert told_ == {
        "id": sent(api), "mailstream": "receipts", "key": ASKED["key"], "state": "pending", "settled": False,
        "reason": "due", "provider": None, "provider_message_id": None, "delivery": None, "deliveries": 1,
        "may_retry": False, "retry_by": None, "links": links,
    }  # fmt: skip
    stored = api.place.one("select source, trigger_id, metadata from sendonce.sends")
    assert stored == {"source": "api", "trigger_id": "evt_991", "metadata": {"order": "84721"}}


def test_a_repeat_is_202_until_the_send_is_settled_and_200_with_its_outcome_after(api: Api) -> None:
    api.post(ASKED)
    second = api.post(ASKED)
    assert (second.status_code, second.headers["Idempotent-Replayed"]) == (202, "true")
    assert "Location" not in second.headers
    api.place.send_all("49a3")
    third = api.post(ASKED)
    assert (third.status_code, third.headers["Idempotent-Replayed"]) == (200, "true")
    assert third.json is not None
    names = ("state", "settled", "provider", "provider_message_id", "deliveries")
    assert [third.json[name] for name in names] == ["accepted", True, "resend", "49a3", 3]
    assert api.get(f"/api/v1/sends/{sent(api)}").json == third.json
    assert [row["verdict"] for row in api.place.all("select verdict::text from sendonce.duplicates order by id")] == [
        "in_progress", "duplicate",
    ]  # fmt: skip


def test_other_content_under_the_key_is_422_that_names_the_first_and_is_recorded(api: Api) -> None:
    first = api.post(ASKED).json
    answer = api.post(asked(message__text="Something else"))
    assert first is not None
    assert answer.json is not None
    assert (answer.status_code, answer.content_type) == (422, "application/problem+json")
    assert answer.json["type"] == "https://mail.example.com/docs/problems/mismatch"
    assert (answer.json["send_id"], answer.json["first_seen"]) == (sent(api), first["first_seen"])
    assert api.place.one("select verdict::text, difference from sendonce.duplicates") == {
        "verdict": "mismatch", "difference": ["content"],
    }  # fmt: skip


def test_a_repeat_with_another_address_or_time_is_a_duplicate(api: Api) -> None:
    api.post(ASKED)
    answer = api.post(asked(recipient__address="ada@example.org", not_before="2099-01-01T00:00:00Z"))
    assert answer.status_code == 202
    difference = api.place.one("select difference from sendonce.duplicates")["difference"]
    assert difference == ["address", "not_before"]


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (asked(key=None), "key"),
        (asked(key="receipt:ada@example.com"), "key"),
        (asked(key="ü"), "key"),
        (asked(key="x" * 256), "key"),
        (asked(mailstream=None), "mailstream"),
        (asked(recipient__address="nobody"), "recipient.address"),
        (asked(recipient__cc="b@example.com"), "recipient.cc"),
        (asked(trigger=None), "trigger"),
        (asked(trigger__at="yesterday"), "trigger.at"),
        (asked(not_before="2026-11-30T09:00:00"), "not_before"),
        (asked(message__text=None), "message"),
        (asked(message__text="NUL \0"), "message.text"),
        (asked(message__text="half \ud83d"), "message.text"),
        (asked(message__subject="two\nlines"), "message.subject"),
        (asked(message__attachments=[{"name": "a"}]), "message.attachments"),
        (asked(message__variables={"n": 2**80}), "message"),
        (asked(metadata={"a": "\udfff"}), "metadata.a"),
        (asked(metadata={"a": 1}), "metadata"),
        (asked(workspace="other"), "workspace"),
        (asked(priority=1), "priority"),
        ([ASKED], "request"),
        ("text", "request"),
    ],
)
def test_a_bad_field_is_400_that_names_it_and_nothing_is_recorded(api: Api, request_: Any, field: str) -> None:
    answer = api.send("POST", "/api/v1/sends", data=json.dumps(request_), content_type="application/json")
    assert answer.json is not None
    assert (answer.status_code, answer.json["field"]) == (400, field)
    assert answer.content_type == "application/problem+json"
    assert answer.json["type"] == "https://mail.example.com/docs/problems/bad-request"
    assert "ada@example.com" not in answer.text
    assert (api.place.count("sends"), api.place.count("duplicates")) == (0, 0)


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff", b'{"key": NaN}', b'{"key": 1e999}' * 2, b'{"a":' * 100_000, b'{"key": ' + b"9" * 5000 + b"}"],
)
def test_a_body_that_is_no_json_is_400(api: Api, body: bytes) -> None:
    answer = api.send("POST", "/api/v1/sends", data=body, content_type="application/json")
    assert answer.json is not None
    assert (answer.status_code, answer.json["field"]) == (400, "request")


def test_an_unknown_mailstream_is_404_and_nothing_is_recorded(api: Api) -> None:
    answer = api.post(asked(mailstream="recipes"))
    assert answer.json is not None
    assert (answer.status_code, answer.json["type"].rsplit("/", 1)[1]) == (404, "unknown-mailstream")
    assert api.place.count("sends") == 0


def test_a_body_of_another_kind_is_415_and_one_that_is_too_large_413(api: Api) -> None:
    form = api.send("POST", "/api/v1/sends", data=json.dumps(ASKED), content_type="application/x-www-form-urlencoded")
    large = api.post(asked(message__text="x" * 10_000_001))
    charset = api.send("POST", "/api/v1/sends", data=json.dumps(ASKED), content_type="application/json; charset=utf-8")
    assert (form.status_code, large.status_code, charset.status_code) == (415, 413, 201)
    assert {form.content_type, large.content_type} == {"application/problem+json"}


def test_a_template_that_cannot_be_rendered_fails_the_send_with_a_way_out(api: Api) -> None:
    answer = api.post(asked(message__text="Dear {{ name }}", message__variables={"order": 1}))
    assert answer.json is not None
    assert (answer.status_code, answer.json["state"], answer.json["reason"]) == (201, "failed", "cannot_render")
    assert (answer.json["may_retry"], answer.json["retry_by"]) == (True, "new_key")
    assert api.place.one("select made_by::text from sendonce.moves")["made_by"] == "api"


def test_a_refused_send_needs_a_new_key_and_one_that_used_up_its_attempts_a_replay(api: Api) -> None:
    api.post(ASKED)
    api.place.fail_all("refused")
    refused = api.get(f"/api/v1/sends/{sent(api)}").json
    api.place.run("update sendonce.mailstreams set max_attempts = 1 where name = 'receipts'")
    api.post(asked(key="another"))
    api.place.fail_all("refused_for_now")
    used_up = api.post(asked(key="another")).json
    assert refused is not None
    assert used_up is not None
    assert [(s["state"], s["reason"], s["may_retry"], s["retry_by"]) for s in (refused, used_up)] == [
        ("failed", "refused", True, "new_key"),
        ("failed", "attempts_used_up", True, "replay"),
    ]


def test_a_waiting_send_tells_why_and_when_it_is_tried_next(api: Api) -> None:
    scheduled = api.post(asked(not_before="2099-01-01T00:00:00Z")).json
    api.place.run("update sendonce.mailstreams set paused_at = now(), paused_reason = 'an incident'")
    paused = api.get(f"/api/v1/sends/{sent(api)}").json
    assert scheduled is not None
    assert paused is not None
    assert (scheduled["reason"], scheduled["next_try"]) == ("scheduled", "2099-01-01T00:00:00Z")
    assert (paused["reason"], paused["next_try"]) == ("stream_paused", None)


# ── the key in the header ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("header", ["order:84721", '"order:84721"', ' "order:84721" ', '"order:84721";a=1'])
def test_the_key_may_come_in_the_header_quoted_or_bare(api: Api, header: str) -> None:
    body = asked()
    del body["key"]
    answer = api.post(body, headers={"Idempotency-Key": header})
    assert answer.json is not None
    assert (answer.status_code, answer.json["key"]) == (201, "order:84721")
    assert api.post(asked(key="order:84721")).status_code == 202


def test_escapes_of_a_quoted_key_are_undone(api: Api) -> None:
    answer = api.post(asked(key='a"b\\c'), headers={"Idempotency-Key": r'"a\"b\\c"'})
    assert answer.status_code == 201


@pytest.mark.parametrize("header", ["another", '"another"', '"open', '"bad \\x"', ""])
def test_two_different_keys_and_a_broken_header_are_400(api: Api, header: str) -> None:
    assert api.post(ASKED, headers={"Idempotency-Key": header}).status_code == 400
    assert api.place.count("sends") == 0


# ── who asks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("authorization", [None, "Basic YTpi", "Bearer", "Bearer so_wrong", "so_wrong"])
@pytest.mark.parametrize("path", ["/api/v1/sends", "/api/v1/sends/batch"])
def test_without_a_valid_token_it_is_401_with_a_challenge(api: Api, authorization: str | None, path: str) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    answer = api.app.test_client().post(path, json=ASKED, headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer ")
    assert answer.content_type == "application/problem+json"


def test_a_revoked_token_opens_nothing(api: Api) -> None:
    with api.place.database.transaction() as connection:
        token_id, token = add_token(connection, workspace_id=api.place.workspace, name="old")
    assert api.post(ASKED, token=token).status_code == 201
    with api.place.database.transaction() as connection:
        revoke_token(connection, workspace_id=api.place.workspace, token_id=token_id)
    assert api.post(ASKED, token=token).status_code == 401


def test_a_token_sees_nothing_of_another_workspace(api: Api) -> None:
    other = Place(api.place.database, name="other")
    with api.place.database.transaction() as connection:
        _, token = add_token(connection, workspace_id=other.workspace, name="theirs")
    api.post(ASKED)
    assert api.get(f"/api/v1/sends/{sent(api)}", token=token).status_code == 404
    assert api.get(f"/api/v1/sends/{sent(api)}/trace", token=token).status_code == 404
    assert api.get(f"/api/v1/sends?key={ASKED['key']}", token=token).json == {"sends": []}
    theirs = api.post(ASKED, token=token)
    assert theirs.status_code == 201
    assert theirs.json is not None
    assert theirs.json["id"] != sent(api), "the same key in another workspace is another send"


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_send_is_found_by_its_key_in_each_mailstream_that_used_it(api: Api) -> None:
    for mailstream in ("receipts", "news"):
        api.post(asked(mailstream=mailstream))
    both = api.get(f"/api/v1/sends?key={ASKED['key']}").json
    one = api.get(f"/api/v1/sends?key={ASKED['key']}&mailstream=receipts").json
    assert both is not None
    assert one is not None
    assert [send["mailstream"] for send in both["sends"]] == ["news", "receipts"]
    assert [send["id"] for send in one["sends"]] == [sent(api)]
    assert api.get("/api/v1/sends").status_code == 400


@pytest.mark.parametrize("id_", ["0b6e2f1c-0000-5000-8000-000000000001", "no-id", "%00"])
def test_an_unknown_id_is_404(api: Api, id_: str) -> None:
    for path in (f"/api/v1/sends/{id_}", f"/api/v1/sends/{id_}/trace"):
        answer = api.get(path)
        assert (answer.status_code, answer.content_type) == (404, "application/problem+json")


def test_the_trace_tells_the_story_in_order(api: Api) -> None:
    api.post(ASKED)
    api.place.send_all()
    api.post(ASKED)
    answer = api.get(f"/api/v1/sends/{sent(api)}/trace")
    assert answer.json is not None
    assert [entry["at"] for entry in answer.json] == sorted(entry["at"] for entry in answer.json)
    assert {"trigger", "attempt", "delivery"} <= {entry["lane"] for entry in answer.json}
    assert {"at", "lane", "what", "who", "detail", "evidence"} <= set(answer.json[0])


def test_the_trace_holds_neither_address_nor_body_however_they_were_given(api: Api) -> None:
    api.post(asked(trigger__id="of ada@example.com", recipient__id="ada@example.com"))
    api.place.send_all()
    told = api.get(f"/api/v1/sends/{sent(api)}/trace").text
    assert "a\\u2022\\u2022\\u2022@example.com" in told
    assert "ada@example.com" not in told
    assert "Thank you" not in told


def test_a_send_is_found_by_its_subject_as_the_recipient_saw_it(api: Api) -> None:
    api.post(asked(message__subject="Your order {{ order }}", message__variables={"order": "84721"}))
    with api.place.database.transaction() as connection:
        hits = search(connection, api.place.vault, api.place.workspace, "Re: your order 84721")
        assert [(str(hit.send_id), hit.reading) for hit in hits] == [(sent(api), Reading.SUBJECT)]
        assert search(connection, api.place.vault, api.place.workspace, "Your order {{ order }}") == []


def test_unknown_addresses_under_the_api_are_told_as_problems(api: Api) -> None:
    answer = api.get("/api/v1/nothing")
    assert (answer.status_code, answer.content_type) == (404, "application/problem+json")


# ── waiting ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_wait_holds_the_answer_until_the_send_is_settled(api: Api) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting_ = pool.submit(api.post, ASKED, "/api/v1/sends?wait=20")
        until = time.monotonic() + 10
        while api.place.count("work") == 0:
            assert time.monotonic() < until
        api.place.send_all("49a3")
        answer = waiting_.result(20)
    assert answer.json is not None
    assert (answer.status_code, answer.json["state"], answer.json["provider_message_id"]) == (201, "accepted", "49a3")


def test_wait_ends_with_its_seconds_or_at_once_where_it_makes_no_sense(api: Api) -> None:
    began = time.monotonic()
    assert api.post(ASKED, "/api/v1/sends?wait=0.3").status_code == 201
    assert 0.3 <= time.monotonic() - began < 3
    began = time.monotonic()
    api.post(asked(key="later", not_before="2099-01-01T00:00:00Z"), "/api/v1/sends?wait=30")
    assert time.monotonic() - began < 3, "nothing is tried within these seconds"


def test_wait_is_not_given_to_more_requests_than_there_are_places(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PLACES", threading.BoundedSemaphore(1))
    assert waiting.PLACES.acquire(blocking=False)
    began = time.monotonic()
    assert api.post(ASKED, "/api/v1/sends?wait=30").status_code == 201
    assert time.monotonic() - began < 3


@pytest.mark.parametrize("wait", ["31", "-1", "soon", "1e1", "nan", ""])
def test_a_wait_that_is_no_number_up_to_30_is_400(api: Api, wait: str) -> None:
    assert api.post(ASKED, f"/api/v1/sends?wait={wait}").status_code == 400
    assert api.place.count("sends") == 0


# ── many at once ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_of_many_requests_at_once_for_one_key_exactly_one_is_201(api: Api) -> None:
    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(answer.status_code for answer in pool.map(api.post, [ASKED] * 24))
    assert statuses == [201] + [202] * 23
    assert (api.place.count("sends"), api.place.count("duplicates")) == (1, 23)


def test_recording_that_waits_too_long_for_another_transaction_is_409_with_retry_after(api: Api) -> None:
    with api.place.database.connect() as other:
        other.execute(
            "insert into sendonce.sends (id, workspace_id, mailstream, key, recipient_id, fingerprint, source,"
            " trigger_type, trigger_id, asked_at, due_at) values (%s, %s, 'receipts', %s, 'r', 'f', 'api', 't', 'i',"
            " now(), now())",
            (sent(api), api.place.workspace, ASKED["key"]),
        )
        began = time.monotonic()
        answer = api.post(ASKED)
        waited = time.monotonic() - began
        other.rollback()
    assert (answer.status_code, answer.headers["Retry-After"]) == (409, "1")
    assert 4.5 < waited < 10
    assert api.post(ASKED).status_code == 201


# ── trouble of ours ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_database_that_is_away_is_503_with_retry_after(place: Place) -> None:
    away = Database("postgresql://127.0.0.1:1/nothing")
    answer = app_on(away, place).test_client().post(
        "/api/v1/sends", json=ASKED, headers={"Authorization": "Bearer so_x"}
    )  # fmt: skip
    assert (answer.status_code, answer.content_type) == (503, "application/problem+json")
    assert int(answer.headers["Retry-After"]) > 0
    away.close()


def test_connections_that_the_server_cut_are_503_or_healed_and_nothing_is_recorded_twice(api: Api) -> None:
    api.post(ASKED)
    url = api.place.database.url
    with psycopg.connect(url, autocommit=True) as other:
        other.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where datname = current_database() and pid <> pg_backend_pid()"
        )
    answers = [api.post(ASKED).status_code for _ in range(3)]
    assert set(answers) <= {202, 503}
    assert answers[-1] == 202
    assert api.place.count("sends") == 1


# ── a batch ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def lines(*requests: Any) -> str:
    return "\n".join(line if isinstance(line, str) else json.dumps(line) for line in requests) + "\n"


def told(answer: Any) -> list[dict[str, Any]]:
    assert (answer.status_code, answer.content_type) == (200, "application/x-ndjson")
    return [json.loads(line) for line in answer.text.splitlines()]


def test_a_batch_has_one_result_a_line_in_order_and_a_bad_line_spoils_no_other(api: Api) -> None:
    api.post(asked(key="old"))
    answer = api.batch(
        lines(
            asked(key="z"),
            "{broken",
            asked(key="old"),
            asked(key="z"),
            asked(key="old", message__text="other"),
            asked(key="y", mailstream="recipes"),
            asked(key="ada@example.com"),
            "",
            asked(key="a", message__text="{{ x }}", message__variables={}),
            asked(key="half", metadata={"a": "\ud800"}),
        )
    )
    results = told(answer)
    assert [(one["line"], one["status"]) for one in results] == [
        (1, 201), (2, 400), (3, 202), (4, 202), (5, 422), (6, 404), (7, 400), (9, 201), (10, 400),
    ]  # fmt: skip
    assert results[0]["send"]["key"] == "z"
    assert (results[0]["replayed"], results[2]["replayed"]) == (False, True)
    assert results[4]["problem"]["send_id"] == str(send_id(api.place.workspace, "receipts", "old"))
    assert results[7]["send"]["state"] == "failed"
    assert api.place.count("sends") == 3


def test_a_line_that_waits_for_another_transaction_is_409_and_the_others_are_recorded(
    api: Api,
) -> None:
    with api.place.database.connect() as other:
        other.execute(
            "insert into sendonce.sends (id, workspace_id, mailstream, key, recipient_id, fingerprint, source,"
            " trigger_type, trigger_id, asked_at, due_at) values (%s, %s, 'receipts', %s, 'r', 'f', 'api', 't', 'i',"
            " now(), now())",
            (sent(api), api.place.workspace, ASKED["key"]),
        )
        results = told(api.batch(lines(asked(key="a"), ASKED, asked(key="b"))))
        other.rollback()
    assert [one["status"] for one in results] == [201, 409, 201]


def test_a_line_that_only_the_database_refuses_spoils_no_other(api: Api) -> None:
    api.place.run("alter table sendonce.sends add constraint not_b check (key <> 'b')")
    results = told(api.batch(lines(asked(key="a"), asked(key="b"), asked(key="c"))))
    assert [one["status"] for one in results] == [201, 400, 201]


def test_a_batch_takes_a_thousand_lines_and_no_more(api: Api) -> None:
    full = [asked(key=f"k{i}") for i in range(1000)]
    assert api.batch(lines(*full, asked(key="one more"))).status_code == 413
    assert api.place.count("sends") == 0
    began = time.monotonic()
    results = told(api.batch(lines(*full)))
    assert time.monotonic() - began < 15
    assert [one["status"] for one in results] == [201] * 1000
    assert [one["send"]["key"] for one in results] == [f"k{i}" for i in range(1000)]


def test_a_batch_of_another_kind_without_lines_or_with_a_key_header_is_refused(api: Api) -> None:
    assert api.post(ASKED, "/api/v1/sends/batch").status_code == 415
    assert api.batch("\n \n").status_code == 400
    kind = {"Idempotency-Key": "k", "Content-Type": "application/x-ndjson"}
    assert api.send("POST", "/api/v1/sends/batch", data=lines(ASKED), headers=kind).status_code == 400


# ── over a real socket ───────────────────────────────────────────────────────────────────────────────────────────────


def test_over_a_real_socket_a_chunked_body_is_read_and_limits_hold(api: Api) -> None:
    with served(api.app) as url:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=20)
        headers = {"Authorization": f"Bearer {api.token}", "Content-Type": "application/json"}
        connection.request("POST", "/api/v1/sends", json.dumps(ASKED), headers)
        answer = connection.getresponse()
        assert answer.status == 201
        assert json.loads(answer.read())["id"] == sent(api)
        connection.request(
            "POST", "/api/v1/sends", json.dumps(ASKED), headers | {"Idempotency-Key": f'"{ASKED["key"]}"'}
        )
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Idempotent-Replayed"]) == (202, "true")
        answer.read()
        body = json.dumps(ASKED).encode()
        connection.request("POST", "/api/v1/sends", iter([body[:40], body[40:]]), headers, encode_chunked=True)
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["deliveries"]) == (202, 3)
        connection.request("GET", f"/api/v1/sends?key={ASKED['key']}", headers=headers)
        answer = connection.getresponse()
        assert [send["id"] for send in json.loads(answer.read())["sends"]] == [sent(api)]
        connection.close()
        connection.request("POST", "/api/v1/sends", iter([b" " * 1_000_000] * 11), headers, encode_chunked=True)
        assert connection.getresponse().status == 413
        connection.close()
