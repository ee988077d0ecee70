"""What becomes of a webhook that was damaged before it was signed: it is read or refused, and no good event is lost.

The recorded samples are cut, doubled and overwritten byte by byte, and parts of their batches are replaced.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote_from_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.providers import NotAuthentic
from dashboard.providers.base import Webhook
from tests.providers.json_apis import APIS, NAMES, Api, form_value, is_storable
from tests.providers.rig import JSON, SAMPLES, sample

every_api = pytest.mark.parametrize("api", APIS, ids=NAMES)
every_batch = pytest.mark.parametrize("api", [api for api in APIS if api.batch], ids=lambda api: api.name)


def told(api: Api) -> list[Any]:
    """What each recorded webhook of the provider says."""
    recorded = [sample(api.name, file.name) for file in sorted((SAMPLES / api.name).glob("webhook_*.json"))]
    return [
        json.loads(form_value(one["body_text"].encode())) if "body_text" in one else one["body"] for one in recorded
    ]


def request(api: Api, said: bytes) -> bytes:
    """The body of a request that says just these bytes."""
    return b"mandrill_events=" + quote_from_bytes(said).encode() if api.name == "mandrill" else said


DAMAGE = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.integers(0, 12),
        st.binary(max_size=6) | st.sampled_from([b"null", b"[]", b"{}", b'"', b"9" * 5000, b"\\ud800", b"\0", b"\xe9"]),
    ),
    min_size=1,
    max_size=4,
)
"""Where (as a share of the whole), how many bytes go, and what comes in their place."""


def damaged(said: bytes, damage: list[tuple[float, int, bytes]]) -> bytes:
    for share, gone, instead in damage:
        at = int(share * len(said))
        said = said[:at] + instead + said[at + gone :]
    return said


@every_api
@given(number=st.integers(0, 99), damage=DAMAGE)
def test_a_damaged_request_is_read_or_refused_and_what_is_read_can_be_stored(
    api: Api, number: int, damage: list[tuple[float, int, bytes]]
) -> None:
    bodies = [json.dumps(said).encode() for said in told(api)]
    body = request(api, damaged(bodies[number % len(bodies)], damage))
    try:
        webhook = api.read(body)
    except NotAuthentic:
        raise AssertionError("it was signed as it is") from None
    except ValueError:
        return
    assert all(is_storable(event) for event in webhook.events)
    assert all(part.reason for part in webhook.unreadable)


@every_batch
@given(number=st.integers(0, 99), place=st.integers(0, 9), odd=JSON)
def test_whatever_one_event_of_a_batch_turns_into_the_others_say_what_they_said(
    api: Api, number: int, place: int, odd: Any
) -> None:
    assert api.batch is not None
    events = [event for said in told(api) for event in api.parts(said)]
    events = events[number % len(events) :]
    before = api.read(api.written(api.batch(events)))
    place %= len(events)
    after = api.read(api.written(api.batch([*events[:place], odd, *events[place + 1 :]])))
    kept = [event for event in before.events if json.loads(event.raw) != events[place]]
    assert [event for event in after.events if json.loads(event.raw) != odd] == kept


UNTIDY = {
    "a byte that is no UTF-8": b'{"odd": "caf\xe9"}',
    "a line break within a text": b'{"odd": "450\r\n4.7.1"}',
    "a number of a thousand digits": b'{"odd": ' + b"9" * 5000 + b"}",
    "half of a pair": b'{"odd": "\\ud800"}',
    "the same name twice": b'{"odd": 1, "odd": 2}',
    "not a number": b'{"odd": NaN}',
}


@every_batch
@pytest.mark.parametrize("untidy", UNTIDY.values(), ids=UNTIDY)
def test_an_untidy_event_of_a_batch_spoils_no_good_one(api: Api, untidy: bytes) -> None:
    """Answers of mail servers, which go into events, are in any encoding and have any control character."""
    assert api.batch is not None
    whole = json.dumps(api.batch([api.event, {"here": 0}])).encode().replace(b'{"here": 0}', untidy)
    webhook = api.read(request(api, whole))
    assert isinstance(webhook, Webhook)
    assert [event.event_id for event in webhook.events if "odd" not in json.loads(event.raw)] == [api.event_id]


@every_api
def test_an_untidy_text_within_an_event_does_not_lose_it(api: Api) -> None:
    word = b"jane@example.net"
    for instead in (b"jane@ex\xe9mple.net", b"jane@example.net\r\n", b"jane\x1f@example.net"):
        whole = json.dumps(api.event if api.batch is None else api.batch([api.event])).encode()
        (event,) = api.read(request(api, whole.replace(word, instead))).events
        assert is_storable(event)
