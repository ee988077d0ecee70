"""Replies: a wording for each cause, with times and nothing else filled in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from dashboard.insight.case import Answer, Finding
from dashboard.insight.judging import Sureness
from dashboard.insight.replies import PLACEHOLDERS, REPLIES, BadReply, check_reply, reply
from dashboard.insight.wording import isolated

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
NOW = NOON.astimezone(ZoneInfo("Asia/Tokyo"))


def answer(finding: Finding = Finding.ONE_COPY, **times: datetime) -> Answer:
    return Answer(
        finding=finding, sureness=Sureness.PROVED, sentence="secret@example.com", next="secret", times=times
    )  # fmt: skip


@pytest.mark.parametrize("finding", Finding)
@pytest.mark.parametrize("known", [False, True])
def test_every_wording_of_ours_is_good_and_complete_whatever_is_known(finding: Finding, known: bool) -> None:
    check_reply(REPLIES[finding])
    times = {name: NOON + timedelta(hours=n) for n, name in enumerate(PLACEHOLDERS)} if known else {}
    words = reply(answer(finding, **times), NOW)
    assert not set("{}[]…") & set(words)
    assert "secret" not in words
    assert "  " not in words
    assert words.endswith((".", "?"))


def test_times_are_told_in_the_customers_zone_and_left_out_where_they_are_not_known() -> None:
    assert "once, on 30 November at 21:00. A second" in reply(answer(when=NOON), NOW)
    assert "once. A second" in reply(answer(), NOW)
    assert "30 November 2025 at" in reply(answer(when=NOON - timedelta(days=365)), NOW)


def test_one_minute_is_not_told_twice() -> None:
    words = reply(answer(Finding.SAME_CONTENT_TWO_KEYS, first=NOON, second=NOON + timedelta(seconds=9)), NOW)
    assert "sent to you twice. You can" in words


def test_a_workspace_words_it_its_own_way() -> None:
    own = {"one_copy": "Einmal[, am {when}]."}
    assert reply(answer(when=NOON), NOW, own) == "Einmal, am 30 November at 21:00."
    assert reply(answer(), NOW, own) == "Einmal."
    assert reply(answer(), NOW, {"one_copy": "Am {when}."}) == "Am …."


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "Write what"),
        ("  ", "Write what"),
        ("x" * 5000, "at most 4000"),
        ("to {address}", "{address} is not known"),
    ],
)
def test_a_wording_that_cannot_be_used_is_refused(text: str, says: str) -> None:
    with pytest.raises(BadReply, match=says):
        check_reply(text)


def test_a_name_never_turns_a_sentence_round() -> None:
    assert isolated("evil\N{RIGHT-TO-LEFT OVERRIDE}gpj.\nexe") == "evilgpj. exe"
    assert isolated("שלום") == "\N{FIRST STRONG ISOLATE}שלום\N{POP DIRECTIONAL ISOLATE}"
