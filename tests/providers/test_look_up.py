"""Asking a provider about a send: only what shows our own id is told, and anything but a listing is no answer."""

from __future__ import annotations

import json
import socket
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.lifecycle import EventType
from dashboard.providers import PROVIDERS, mailgun, parse_events, postmark, provider, sendgrid
from dashboard.providers.base import CannotLookUp, LooksUp, ProviderEvent, Question
from tests.providers.reporters import NOW, as_json, from_mailgun
from tests.providers.rig import JSON, PATIENCE, SEND_ID, Server, http_answer, read_request, refused_port, reset

QUESTION = Question(send_id=SEND_ID, address="ada+x@example.com", since=NOW)
MINE, OTHER = {"send_id": str(SEND_ID), "attempt": "2"}, {"send_id": str(uuid4())}
ACCOUNTS = {
    "sendgrid": {"api_key": "SG.x"},
    "postmark": {"server_token": "token"},
    "mailgun": {"api_key": "key", "domain": "mg.example.com"},
}
LISTS = {"sendgrid": "messages", "postmark": "Messages", "mailgun": "items"}
each = pytest.mark.parametrize("name", ACCOUNTS)


def ask(name: str, url: str, *, request_timeout: float = PATIENCE) -> tuple[ProviderEvent, ...]:
    channel = provider(name).open_channel(ACCOUNTS[name] | {"base_url": url}, request_timeout=request_timeout)
    assert isinstance(channel, LooksUp)
    try:
        return channel.look_up(QUESTION)
    finally:
        channel.close()


def asked(name: str, answer: bytes) -> tuple[str, tuple[ProviderEvent, ...]]:
    """The first line of the request, and what was found."""
    seen: list[bytes] = []

    def behave(connection: socket.socket, _: int) -> None:
        seen.append(read_request(connection))
        connection.sendall(answer)

    with Server(behave) as server:
        found = ask(name, server.url)
        assert server.connections == 1
    return seen[0].split(b"\r\n")[0].decode(), found


def test_who_can_be_asked_says_so_and_declares_no_settling_time_that_is_documented_nowhere() -> None:
    able = [known for known in PROVIDERS if known.capabilities({}).look_up]
    assert {known.name for known in able} >= set(ACCOUNTS)
    assert [known.capabilities({}).settling_time for known in able] == [None] * len(able)


def test_postmark_is_asked_by_our_id() -> None:
    message = {"MessageID": "m-1", "ReceivedAt": "2026-11-30T04:00:00-05:00", "Metadata": MINE, "Recipients": ["a@b.c"]}
    body = as_json({"TotalCount": 2, "Messages": [{"MessageID": "m-2", "Metadata": OTHER}, message]})
    line, (event,) = asked("postmark", http_answer(body))
    assert line == f"GET /messages/outbound?metadata_send_id={SEND_ID}&count=50&offset=0 HTTP/1.1"
    told = (
        event.event_type,
        event.event_id,
        event.provider_message_id,
        event.send_id,
        event.attempt,
        event.occurred_at,
    )
    assert told == (EventType.ACCEPTED, "look-up:m-1", "m-1", str(SEND_ID), 2, NOW)


def test_mailgun_is_asked_by_recipient_and_time_and_tells_what_a_webhook_would() -> None:
    item = {"event": "delivered", "id": "e", "timestamp": 1796029200.5, "recipient": "ada+x@example.com",
            "user-variables": MINE, "message": {"headers": {"message-id": "m-1@mg.example.com"}}}  # fmt: skip
    others = [item | {"user-variables": OTHER}, item | {"user-variables": {}}, item | {"event": "stored"}]
    line, (event,) = asked("mailgun", http_answer(as_json({"items": [*others, item]})))
    since = int(NOW.timestamp()) - 300
    query = f"recipient=ada%2Bx%40example.com&begin={since}&ascending=yes&limit=300"
    assert line == f"GET /v3/mg.example.com/events?{query} HTTP/1.1"
    webhook = from_mailgun(item)
    (reported,) = parse_events("mailgun", webhook.headers, webhook.body, {"webhook_secret": "signing-key"}, now=NOW)
    assert replace(event, raw=b"") == replace(reported, raw=b"")


def at_sendgrid(messages: list[dict[str, Any]], details: dict[str, bytes]) -> tuple[list[bytes], Any]:
    """What was asked, and what was found, where the logs list ``messages`` and know ``details`` of each."""
    seen: list[bytes] = []

    def behave(connection: socket.socket, _: int) -> None:
        while head := read_request(connection):
            seen.append(head)
            if head.startswith(b"POST"):
                connection.sendall(http_answer(as_json({"messages": messages})))
            else:
                connection.sendall(details[head.split()[1].decode()])

    with Server(behave) as server:
        found = ask("sendgrid", server.url)
    return seen, found


def test_sendgrid_is_asked_by_recipient_and_time_and_only_what_shows_our_id_is_told() -> None:
    listed = [
        {"sg_message_id": "b/2.recvd-1", "sg_message_id_created_at": "2026-11-30T09:00:02Z"},
        {"sg_message_id": "a.recvd-1", "sg_message_id_created_at": "2026-11-30T09:00:01Z"},
    ]
    details = {
        "/v3/logs/a.recvd-1": http_answer(as_json({"sg_message_id": "a.recvd-1", "custom_args": OTHER})),
        "/v3/logs/b%2F2.recvd-1": http_answer(as_json(
            {"sg_message_id": "b/2.recvd-1", "to_email": "Ada+x@example.com",
             "custom_args": {"send_id": str(SEND_ID), "send_attempt": "2"}}
        )),
    }  # fmt: skip
    seen, (event,) = at_sendgrid(listed, details)
    assert [head.split(b" HTTP")[0].decode() for head in seen] == [
        "POST /v3/logs", "GET /v3/logs/a.recvd-1", "GET /v3/logs/b%2F2.recvd-1",
    ]  # fmt: skip
    assert json.loads(seen[0].partition(b"\r\n\r\n")[2]) == {
        "query": 'to_email = "ada+x@example.com" AND sg_message_id_created_at >= TIMESTAMP "2026-11-30T08:55:00Z"',
        "limit": 100,
    }
    told = (event.event_type, event.event_id, event.provider_message_id, event.send_id, event.attempt, event.recipient)
    assert told == (EventType.ACCEPTED, "look-up:b/2.recvd-1", "b/2", str(SEND_ID), 2, "ada+x@example.com")


def test_sendgrid_looks_at_few_of_many_messages_the_oldest_first() -> None:
    listed = [{"sg_message_id": f"m{n:02}", "sg_message_id_created_at": f"2026-11-30T09:00:{n:02}Z"} for n in range(30)]
    details = {f"/v3/logs/m{n:02}": http_answer(as_json({"custom_args": OTHER})) for n in range(30)}
    seen, found = at_sendgrid(listed[::-1], details)
    assert found == ()
    assert [head.split()[1].decode() for head in seen[1:]] == [f"/v3/logs/m{n:02}" for n in range(10)]


def test_sendgrid_a_message_that_cannot_be_looked_at_is_no_answer() -> None:
    with pytest.raises(CannotLookUp):
        at_sendgrid([{"sg_message_id": "m"}], {"/v3/logs/m": http_answer(b"{}", status="429 Slow")})


@each
def test_nothing_found_is_no_event(name: str) -> None:
    assert asked(name, http_answer(as_json({LISTS[name]: []})))[1] == ()


@each
@pytest.mark.parametrize(
    "answer",
    [
        http_answer(b'{"Messages":[],"items":[],"messages":[]}', status="500 Oops"),
        http_answer(b"{}", status="401 No"),
        http_answer(b"", status="429 Slow"),
        http_answer(b"<html>"),
        http_answer(b"[]"),
        http_answer(b'{"Messages":{},"items":{},"messages":{}}'),
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{",
    ],
)
def test_anything_but_a_listing_is_no_answer(name: str, answer: bytes) -> None:
    with pytest.raises(CannotLookUp):
        asked(name, answer)


@each
def test_a_provider_that_does_not_answer_gave_no_answer(name: str) -> None:
    with pytest.raises(CannotLookUp, match="connect_refused"):
        ask(name, f"http://127.0.0.1:{refused_port()}")
    with Server(lambda connection, _: reset(connection)) as server, pytest.raises(CannotLookUp):
        ask(name, server.url)
    silent = Server(lambda connection, _: read_request(connection) and connection.recv(1))
    with silent as server, pytest.raises(CannotLookUp, match="read_timeout"):
        ask(name, server.url, request_timeout=0.2)


@settings(max_examples=40, deadline=None)
@given(
    items=st.lists(JSON | st.dictionaries(st.sampled_from(["event", "id", "MessageID", "Metadata"]), JSON), max_size=4),
    extra=st.dictionaries(st.sampled_from(["timestamp", "message", "recipient", "ReceivedAt", "Recipients"]), JSON),
)
def test_no_odd_neighbour_and_no_odd_field_hides_our_own(items: list[Any], extra: dict[str, Any]) -> None:
    message = {"MessageID": "m", "Metadata": MINE} | extra
    assert [event.event_id for event in postmark.found_of(QUESTION, [*items, message])] == ["look-up:m"]
    item = {"event": "accepted", "id": "e", "user-variables": MINE} | extra
    assert [event.event_id for event in mailgun.found_of(QUESTION, [*items, item])] == ["e"]
    listed = {"sg_message_id": "m", "sg_message_id_created_at": ""}
    assert "m" in sendgrid.candidates_of([*items, listed | extra])
    found = sendgrid.found_of(QUESTION, {"sg_message_id": "m", "custom_args": MINE} | extra)
    assert found is not None
