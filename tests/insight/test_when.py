"""When it happened, as people say it, in the customer's zone."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.insight.pasted import message_ids
from dashboard.insight.when import EXAMPLES, BadTime, read_when

NOW = datetime(2026, 12, 1, 9, 30, tzinfo=ZoneInfo("Europe/Vienna"))
"""A Tuesday."""


@pytest.mark.parametrize(
    ("said", "since", "until"),
    [
        ("yesterday evening", "2026-11-30 17:00:00", "2026-11-30 23:59:59"),
        ("  Yesterday,   EVENING ", "2026-11-30 17:00:00", "2026-11-30 23:59:59"),
        ("last night", "2026-11-30 20:00:00", "2026-12-01 05:59:59"),
        ("tonight", "2026-12-01 17:00:00", "2026-12-01 23:59:59"),
        ("this morning", "2026-12-01 05:00:00", "2026-12-01 11:59:59"),
        ("today", "2026-12-01 00:00:00", "2026-12-01 23:59:59"),
        ("on monday", "2026-11-30 00:00:00", "2026-11-30 23:59:59"),
        ("wednesday at noon", "2026-11-25 11:00:00", "2026-11-25 13:59:59"),
        ("today 14:30", "2026-12-01 14:30:00", None),
        ("monday 8 pm", "2026-11-30 20:00:00", None),
        ("8:15 p.m.", "2026-11-30 20:15:00", None),
        ("07:00", "2026-12-01 07:00:00", None),
        ("30 Nov 20:15", "2026-11-30 20:15:00", None),
        ("Nov 30th at 8:15pm", "2026-11-30 20:15:00", None),
        ("24.12.", "2025-12-24 00:00:00", "2025-12-24 23:59:59"),
        ("24.12.2024", "2024-12-24 00:00:00", "2024-12-24 23:59:59"),
        ("2026-11-30", "2026-11-30 00:00:00", "2026-11-30 23:59:59"),
        ("2 hours ago", "2026-12-01 07:30:00", None),
        ("an hour ago", "2026-12-01 08:30:00", None),
        ("3 days ago", "2026-11-28 00:00:00", "2026-11-28 23:59:59"),
        ("2026-11-30T20:15", "2026-11-30 20:15:00", None),
        ("2026-11-30T20:15Z", "2026-11-30 21:15:00", None),
    ],
)
def test_a_time_is_read_as_people_say_it(said: str, since: str, until: str | None) -> None:
    found = read_when(said, NOW)
    assert found is not None
    assert [f"{time.astimezone(NOW.tzinfo):%Y-%m-%d %H:%M:%S}" for time in found] == [since, until or since]


@pytest.mark.parametrize("said", EXAMPLES.split(", "))
def test_every_example_is_understood(said: str) -> None:
    assert read_when(said, NOW)


@pytest.mark.parametrize(
    "said", ["soon", "31 feb", "25:00", "13 pm", "99999 hours ago", "yesterday today", "0000-00-00"]
)
def test_what_is_no_time_is_refused_with_examples(said: str) -> None:
    with pytest.raises(BadTime, match="yesterday evening"):
        read_when(said, NOW)


def test_nothing_said_is_no_time() -> None:
    assert read_when("  ", NOW) is None


@given(st.text(max_size=40))
def test_any_text_is_a_time_or_refused(said: str) -> None:
    try:
        found = read_when(said, NOW)
    except BadTime:
        return
    assert found is None or found[0] <= found[1]


@pytest.mark.parametrize(
    ("pasted", "ids"),
    [
        ("Received: x\nMessage-ID: <a@b>\nSubject: y\n\nmessage-id:\n <c@d>\nReferences: <q@r>", ("a@b", "c@d")),
        ("> Message-Id: <a@b>\r\n> Message-Id: <a@b>", ("a@b", "a@b")),
        ("<a@b>\n<a@b>\n", ("a@b", "a@b")),
        ("In-Reply-To: <a@b>", ()),
        ("", ()),
    ],
)
def test_message_ids_are_taken_out_of_pasted_headers(pasted: str, ids: tuple[str, ...]) -> None:
    assert message_ids(pasted) == ids
