"""A rise is laid at the door of what carries it, and at nobody's where nothing does."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from dashboard.insight.rise import CARRIES, KINDS, OF_LATER, PATTERNS, TELLING, explain
from dashboard.ledger.metrics import Carrier

USUAL = [
    Carrier(mailstream="receipts", source="outbox", trigger_type="order.paid", endpoint="", version="", recorded=900),
    Carrier(mailstream="welcome", source="api", trigger_type="user.joined", endpoint="", version="", recorded=100),
    Carrier(
        mailstream="receipts", source="outbox", trigger_type="order.paid", endpoint="/hooks/shop", version="1",
        duplicate=20,
    ),
    Carrier(
        mailstream="welcome", source="api", trigger_type="user.joined", endpoint="/join", version="", duplicate=2
    ),
]  # fmt: skip


def with_more(**change: object) -> list[Carrier]:
    more = {"mailstream": "receipts", "source": "outbox", "trigger_type": "order.paid", "endpoint": "/hooks/shop"}
    return [*USUAL, Carrier(**({"version": "1", "duplicate": 200} | more | change))]  # type: ignore[arg-type]


def named(during: list[Carrier]) -> dict[str, str]:
    found = explain(USUAL, during)
    assert found is not None
    return {share.kind: share.value for share in found.named}


def test_no_rise_has_no_explanation_and_more_mail_alone_is_none() -> None:
    assert explain(USUAL, USUAL) is None
    assert explain([], []) is None
    assert (
        explain(USUAL, [replace(one, recorded=one.recorded * 3, duplicate=one.duplicate * 3) for one in USUAL]) is None
    )


def test_a_webhook_that_was_set_up_twice_is_named_by_its_endpoint() -> None:
    found = explain(USUAL, with_more(endpoint="/hooks/shop-2"))
    assert found is not None
    assert (found.named[0].kind, found.named[0].value, found.named[0].is_new) == ("endpoint", "/hooks/shop-2", True)
    assert "the endpoint /hooks/shop-2 carries 100 % of them, and carried none before" in found.sentence
    assert found.pattern == PATTERNS["webhook"]
    assert round(found.extra) == 200


def test_two_webhooks_that_ask_at_the_same_moment_take_turns_and_the_new_one_is_named() -> None:
    old, new = with_more(duplicate=110)[-1], with_more(duplicate=90, endpoint="/hooks/shop-2")[-1]
    found = explain(USUAL, [*USUAL, old, new])
    assert found is not None
    assert [(share.kind, share.value) for share in found.named] == [("endpoint", "/hooks/shop-2")]
    assert "the endpoint /hooks/shop-2 carries 45 % of them, and carried none before" in found.sentence
    assert found.pattern == PATTERNS["webhook"]


def test_each_kind_can_be_named() -> None:
    fields = {
        "source": "source",
        "mailstream": "mailstream",
        "trigger type": "trigger_type",
        "worker version": "version",
    }
    for kind, field in [*fields.items(), ("worker version", "version")]:
        assert named(with_more(**{field: "new"}))[kind] == "new"


def test_what_always_carries_nearly_all_explains_nothing_by_carrying_the_rise() -> None:
    assert named(with_more()) == {}
    found = explain(USUAL, with_more())
    assert found is not None
    assert "nothing in particular carries the rise" in found.sentence


def test_a_job_that_is_not_acknowledged_a_slow_downstream_and_a_careless_key_are_told_apart() -> None:
    patterns = [
        explain(USUAL, with_more(source="queue", duplicate=0, in_progress=200)),
        explain(USUAL, with_more(duplicate=0, in_progress=200)),
        explain(USUAL, with_more(duplicate=0, mismatch=200)),
        explain(USUAL, with_more(version="2")),
    ]
    told = [one.pattern for one in patterns if one]
    assert told == [PATTERNS[name] for name in ("queue", "in_progress", "mismatch", "version")]


carrier = st.builds(
    Carrier,
    mailstream=st.sampled_from(["receipts", "welcome"]),
    source=st.sampled_from(["outbox", "api", "queue"]),
    trigger_type=st.sampled_from(["a", "b", "c"]),
    endpoint=st.sampled_from(["", "/x", "/y"]),
    version=st.sampled_from(["", "1", "2"]),
    recorded=st.integers(0, 1000),
    duplicate=st.integers(0, 1000),
    in_progress=st.integers(0, 1000),
    mismatch=st.integers(0, 1000),
)
carriers = st.lists(carrier, max_size=12)


@given(carriers, carriers)
def test_the_shares_of_each_kind_add_up_to_the_whole_rise(before: list[Carrier], during: list[Carrier]) -> None:
    found = explain(before, during)
    if found is None:
        return
    assert found.extra > 0
    for kind in KINDS:
        shares = [share for share in found.shares if share.kind == kind]
        assert abs(sum(share.share for share in shares) - 1) < 1e-6
        assert abs(sum(share.extra for share in shares) - found.extra) < 1e-6 * max(found.extra, 1000)
    for share in found.named:
        assert share.share >= CARRIES or (share.kind == "endpoint" and share.share >= TELLING)
        assert share.share > share.before


@given(carriers, carriers)
def test_neither_order_nor_how_the_counts_are_split_matters(before: list[Carrier], during: list[Carrier]) -> None:
    first_only = [replace(one, duplicate=0, in_progress=0, mismatch=0) for one in reversed(during)]
    later_only = [replace(one, recorded=0) for one in during]
    whole, split = explain(before, during), explain(before, [*first_only, *later_only])
    assert (whole and whole.sentence) == (split and split.sentence)


@given(carriers, st.sampled_from(list(KINDS)), st.integers(1000, 100_000))
def test_a_newcomer_that_alone_brings_more_is_always_named(before: list[Carrier], kind: str, number: int) -> None:
    field = {"trigger type": "trigger_type", "worker version": "version"}.get(kind, kind)
    usual = Carrier(mailstream="receipts", source="outbox", trigger_type="a", endpoint="", version="", duplicate=number)
    found = explain(before, [*before, replace(usual, **{field: "newcomer"})])
    assert found is not None
    assert "newcomer" in [share.value for share in found.named]
    assert found.shares
    assert set(OF_LATER) < set(KINDS)
