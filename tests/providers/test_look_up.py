"""Asking a provider about a send: only what shows our own id is told, and anything but a listing is no answer."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.lifecycle import EventType
from dashboard.providers import PROVIDERS, mailgun, parse_events, postmark, provider
from dashboard.providers.base import CannotLookUp, LooksUp, ProviderEvent, Question
from tests.providers.reporters import NOW, as_json, from_mailgun
from tests.providers.rig import JSON, PATIENCE, SEND_ID, Server, http_answer, refused_port, reset

QUESTION = Question(send_id=SEND_ID, address="ada+x@example.com", since=NOW)
MINE, OTHER = {"send_id": str(SEND_ID), "attempt": "2"}, {"send_id": str(uuid4())}
ACCOUNTS = {
    "postmark": {"server_token": "token"},
    "mailgun": {"api_key": "key", "domain": "mg.example.com"},
}
LISTS = {"postmark": "Messages", "mailgun": "items"}
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
        seen.append(connection.recv(65536))
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


@each
def test_nothing_found_is_no_event(name: str) -> None:
    assert asked(name, http_answer(as_json({LISTS[name]: []})))[1] == ()


@each
@pytest.mark.parametrize(
    "answer",
    [
        http_answer(b'{"Messages":[],"items":[]}', status="500 Oops"),
        http_answer(b"{}", status="401 No"),
        http_answer(b"", status="429 Slow"),
        http_answer(b"<html>"),
        http_answer(b"[]"),
        http_answer(b'{"Messages":{},"items":{}}'),
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
    silent = Server(lambda connection, _: connection.recv(65536) and connection.recv(1))
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
