"""Shares, waits, identities and requests: what holds for whatever comes."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid5

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dashboard import identity
from dashboard.ledger import streams
from dashboard.ledger.requests import BadRequest, Request, read_caller_request, read_request
from dashboard.ledger.retry import LONGEST_WAIT, Backoff, Terms, release_holds, used_up
from dashboard.ledger.tables import Policy
from dashboard.ledger.vault import Vault
from dashboard.ledger.work import BULK_SHARE, shares
from dashboard.lifecycle import MailClass
from dashboard.providers import PROVIDERS
from dashboard.providers.base import Provider
from tests.place import KEYS

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
WORKSPACE = UUID("00000000-0000-4000-8000-000000000001")
URGENT = (MailClass.SECURITY, MailClass.TRANSACTIONAL)

# ── shares ───────────────────────────────────────────────────────────────────────────────────────────────────────────

waiting = st.lists(st.sampled_from(MailClass), min_size=1, max_size=8).map(
    lambda classes: sorted(classes, key=list(MailClass).index)
)


@given(classes=waiting, places=st.integers(0, 500), turn=st.integers(0, 1000))
def test_every_place_is_given_and_none_twice(classes: list[MailClass], places: int, turn: int) -> None:
    given_places = shares(classes, places, turn)
    assert len(given_places) == len(classes)
    assert sum(given_places) == places
    assert min(given_places) >= 0


@given(classes=waiting, places=st.integers(1, 500), turn=st.integers(0, 100))
def test_bulk_keeps_a_tenth_over_ten_turns_and_the_rest_is_the_most_urgent_groups(
    classes: list[MailClass], places: int, turn: int
) -> None:
    bulk = other = 0
    for each in range(turn, turn + BULK_SHARE):
        for mail_class, number in zip(classes, shares(classes, places, each), strict=True):
            bulk += number if mail_class not in URGENT else 0
            other += number if mail_class in URGENT and mail_class is not classes[0] else 0
    if classes[0] in URGENT and any(c not in URGENT for c in classes):
        assert bulk == places
    assert other == 0, "the next group has its time when the one before it is drained"


@given(classes=waiting, places=st.integers(1, 40))
def test_mailstreams_of_one_group_get_the_same_over_as_many_turns(classes: list[MailClass], places: int) -> None:
    same = [
        i
        for i, c in enumerate(classes)
        if (c in URGENT) == (classes[0] in URGENT) and (c is classes[0] or c not in URGENT)
    ]
    if classes[0] in URGENT and any(c not in URGENT for c in classes):
        return  # then the tenth for bulk shifts the odd place; covered by the sum above
    totals: Counter[int] = Counter()
    for turn in range(len(same)):
        for i, number in enumerate(shares(classes, places, turn)):
            totals[i] += number
    assert {totals[i] for i in same} == {places}


# ── waits ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@given(
    first=st.floats(0.001, 600), tries=st.integers(0, 10_000),
    asked=st.one_of(st.none(), st.floats(0, 1e6, allow_nan=False)),
)  # fmt: skip
def test_a_wait_is_bounded_doubles_and_is_never_shorter_than_asked(
    first: float, tries: int, asked: float | None
) -> None:
    backoff = Backoff(timedelta(seconds=first))
    wait = backoff.wait(tries, asked)
    longest = min(first * 2 ** min(max(tries - 1, 0), 60), LONGEST_WAIT.total_seconds())
    tick = 1e-5
    assert wait.total_seconds() >= (asked or 0) - tick
    assert longest / 2 - tick <= wait.total_seconds() <= max(longest, asked or 0) + tick


def _terms(**changes: Any) -> Terms:
    rules: dict[str, Any] = {
        "max_attempts": 5, "retry_for": timedelta(hours=4), "grace": timedelta(hours=1),
        "unknown_policy": Policy.RELEASE, "key_window": timedelta(hours=24), "settling_time": None, "endpoint": b"here",
    }  # fmt: skip
    return Terms(**(rules | changes))


@given(
    window=st.one_of(st.none(), st.timedeltas(timedelta(0), timedelta(days=3))),
    age=st.timedeltas(timedelta(0), timedelta(days=3)), needed=st.timedeltas(timedelta(0), timedelta(minutes=5)),
    endpoints=st.sets(st.sampled_from([b"here", b"there"]), min_size=1),
)  # fmt: skip
def test_a_release_by_key_ends_inside_the_window_of_the_first_attempt_at_its_only_endpoint(
    window: timedelta | None, age: timedelta, needed: timedelta, endpoints: set[bytes]
) -> None:
    holds = release_holds(
        _terms(key_window=window), ambiguous_since=NOON - age, endpoints=endpoints, now=NOON, needed=needed
    )  # fmt: skip
    assert holds == (endpoints == {b"here"} and window is not None and age + needed < window)


@given(counted=st.integers(0, 10), after=st.timedeltas(timedelta(0), timedelta(hours=8)), tried=st.booleans())
def test_attempts_are_used_up_by_number_or_by_time(counted: int, after: timedelta, tried: bool) -> None:
    first = NOON if tried else None
    used = used_up(_terms(), counted=counted, first_attempt_at=first, next_try=NOON + after)
    assert used == (counted >= 5 or (tried and after > timedelta(hours=4)))


# ── identity ─────────────────────────────────────────────────────────────────────────────────────────────────────────

printable = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=300)


@given(st.one_of(st.text(max_size=300), printable))
@example("receipt:ada@example.com")
@example(" a")
@example("a\n")
def test_a_key_is_taken_as_it_is_or_refused(key: str) -> None:
    try:
        taken = identity.check_key(key)
    except identity.BadKey:
        return
    assert taken is key
    assert 1 <= len(key) <= 255
    assert key.isascii()
    assert key.isprintable()
    assert key == key.strip()


@given(
    mailstream=st.from_regex(r"[a-z-]{1,20}", fullmatch=True), key=printable.filter(bool), other=printable.filter(bool)
)
def test_a_send_id_follows_from_workspace_mailstream_and_key_and_nothing_else(
    mailstream: str, key: str, other: str
) -> None:
    made = identity.send_id(WORKSPACE, mailstream, key)
    assert made == uuid5(WORKSPACE, f"{mailstream}\n{key}")
    assert made.version == 5
    assert (made == identity.send_id(WORKSPACE, mailstream, other)) == (key == other)
    assert made != identity.send_id(UUID(int=1), mailstream, key)


plain_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), st.floats(-1e15, 1e15),
              st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=8,
)  # fmt: skip


def _turned(value: Any) -> Any:
    """The same value, its objects written in the other order."""
    if isinstance(value, dict):
        return {name: _turned(value[name]) for name in reversed(list(value))}
    return [_turned(item) for item in value] if isinstance(value, list) else value


@given(variables=st.dictionaries(st.text(max_size=5), plain_json, max_size=4))
def test_a_fingerprint_does_not_see_the_order_of_members_nor_a_trip_through_json(variables: dict[str, Any]) -> None:
    message = {"from": "a@example.com", "subject": "s", "text": "t", "variables": variables}
    try:
        print_ = identity.fingerprint(message, "r")
    except ValueError:
        return
    assert identity.fingerprint(_turned(message), "r") == print_
    assert identity.fingerprint({**message, "html": None, "headers": {}}, "r") == print_, "absent and empty are alike"
    assert identity.fingerprint(json.loads(json.dumps(message)), "r") == print_
    assert identity.fingerprint(message, "other") != print_
    assert identity.fingerprint(message | {"subject": "s "}, "r") != print_


@given(value=st.dictionaries(st.text(max_size=5), plain_json, max_size=4))
def test_the_fast_way_to_canonical_json_gives_the_same_bytes_as_the_slow_one(value: dict[str, Any]) -> None:
    import rfc8785

    try:
        slow = rfc8785.dumps(value)
    except rfc8785.CanonicalizationError:
        with pytest.raises(ValueError, match="canonical"):
            identity.canonical_json(value)
        return
    assert identity.canonical_json(value) == slow


addresses = st.one_of(
    st.emails(),
    st.text(max_size=40),
    st.builds(lambda a, b: f"{a}@{b}", st.text(min_size=1, max_size=10), st.text(min_size=1, max_size=15)),
)


@given(addresses)
@example("  Straße@BÜCHER.example ")
@example("İ@example.com")
@example("ß@ß.de")
def test_the_normal_form_of_an_address_is_its_own_normal_form(address: str) -> None:
    try:
        normal = identity.normal_address(address)
    except identity.BadAddress:
        return
    assert identity.normal_address(normal) == normal
    assert identity.normal_address(f" {address.strip()}\t") == normal
    vault = Vault(KEYS)
    assert vault.lookup(address) == vault.lookup(normal)


@given(st.emails())
def test_an_address_is_found_however_its_letters_are_written(address: str) -> None:
    assert identity.normal_address(address.upper()) == identity.normal_address(address.lower()) or not address.isascii()


# ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────────

any_json = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(st.characters(), max_size=12),
        st.sampled_from(["ada@example.com", "2026-11-30T09:00:00Z", "receipts", "\ud800", "0001-01-01T00:00:00+14:00"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(
                st.text(max_size=6),
                st.sampled_from(["mailstream", "key", "recipient", "trigger", "message", "id", "type", "at", "address",
                                 "from", "subject", "text", "headers", "variables", "metadata", "not_before"]),
            ),
            inner, max_size=6,
        ),
    ),
    max_leaves=20,
)  # fmt: skip

GOOD: dict[str, Any] = {
    "mailstream": "receipts", "key": "order:1", "recipient": {"id": "r", "address": "ada@example.com", "name": "Ada"},
    "trigger": {"type": "order.paid", "id": "evt", "at": "2026-11-30T09:00:00Z"},
    "message": {"from": "a@example.com", "subject": "s", "text": "t", "headers": {"X": "y"}, "variables": {"a": 1}},
    "not_before": "2026-11-30T09:00:00Z", "metadata": {"order": "1"},
}  # fmt: skip


def _read(raw: object) -> Request | None:
    try:
        return read_request(raw, workspace_id=WORKSPACE, source="api", asked_at=NOON)
    except BadRequest:
        return None


@given(any_json)
def test_whatever_json_comes_is_a_request_or_a_bad_request(raw: object) -> None:
    _read(raw)
    with suppress(BadRequest):
        read_caller_request(raw, workspace_id=WORKSPACE, fingerprint=b"f", asked_at=NOON)


@given(
    path=st.sampled_from([(a,) for a in GOOD] + [(a, b) for a in GOOD if isinstance(GOOD[a], dict) for b in GOOD[a]]),
    value=any_json,
)  # fmt: skip
@example(path=("message", "variables"), value={"a": [[[[[]]]]]})
@example(path=("trigger", "at"), value="9999-12-31T23:59:59-23:59")
def test_a_good_request_with_one_strange_value_is_a_request_or_a_bad_request(
    path: tuple[str, ...], value: object
) -> None:
    changed = json.loads(json.dumps(GOOD))
    inner = changed
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    read = _read(changed)
    if read is not None:
        assert read.send_id == identity.send_id(WORKSPACE, read.mailstream, read.key)
        assert len(read.fingerprint) == 32


def test_a_request_nested_too_deeply_is_a_bad_request() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    changed = {**GOOD, "message": {**GOOD["message"], "variables": {"deep": deep}}}
    with pytest.raises(BadRequest, match="deep"):
        read_request(changed, workspace_id=WORKSPACE, source="api", asked_at=NOON)
    while isinstance(deep, list):  # taken apart by hand: to free it in one go is a deep recursion as well
        deep = deep.pop()


@pytest.mark.parametrize("mail_class", MailClass)
@pytest.mark.parametrize("known", PROVIDERS, ids=lambda known: known.name)
def test_the_defaults_of_every_class_make_sense_at_every_provider(mail_class: MailClass, known: Provider) -> None:
    can = known.capabilities({})
    rules = streams.rules_for(mail_class, can.key_window)
    streams.check_rules(rules, key_window=can.key_window, settling_time=can.settling_time)
    released = rules.unknown_policy is Policy.RELEASE
    assert released is (mail_class is MailClass.TRANSACTIONAL and can.key_window is not None)


def test_where_keys_count_for_minutes_doubt_is_released_while_they_still_do() -> None:
    rules = streams.rules_for(MailClass.TRANSACTIONAL, timedelta(minutes=15))
    assert rules.grace == timedelta(minutes=5)
    assert streams.rules_for(MailClass.TRANSACTIONAL, timedelta(hours=24)).grace == timedelta(minutes=30)
