"""The story of the demo is the same for the same seed, and everything in it can be asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from dashboard.demo.business import BURST
from dashboard.demo.company import STREAMS
from dashboard.demo.story import RARELY, Asked, Job, happenings
from dashboard.ledger.requests import read_request
from dashboard.simulator.recipients import words_of

WHOLE = [(number, happening) for number in range(RARELY) for happening in happenings(1, number)]
ASKED = [happening for _, happening in WHOLE if isinstance(happening, Asked)]


def test_the_same_seed_tells_the_same_story_and_another_one_another() -> None:
    assert happenings(1, 7) == happenings(1, 7)
    assert [happenings(1, n) for n in range(20)] != [happenings(2, n) for n in range(20)]


def test_every_request_of_the_story_keeps_the_rules() -> None:
    for asked in ASKED:
        intent, (kind, trigger) = asked.intent, asked.trigger
        raw = {
            "mailstream": intent.mailstream, "key": intent.key, "message": asked.message,
            "recipient": {"id": intent.recipient_id, "address": intent.address},
            "trigger": {"type": kind, "id": trigger},
        }  # fmt: skip
        read_request(raw, workspace_id=UUID(int=0), source="outbox", asked_at=datetime.now(UTC))


def test_a_key_belongs_to_one_email_and_one_recipient() -> None:
    owners: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for asked in ASKED:
        intent = asked.intent
        owners.setdefault((intent.mailstream, intent.key), set()).add((intent.recipient_id, intent.address))
    assert all(len(owner) == 1 for owner in owners.values())


@pytest.mark.parametrize("words", ["bounce", "complain", "reject", "error", "timeout-quiet", "lost-quiet", "delay"])
def test_the_burst_of_the_first_start_has_every_scene(words: str) -> None:
    burst = [asked.intent.address for number, asked in WHOLE if number < BURST and isinstance(asked, Asked)]
    assert set(words.split("-")) in [words_of(address) for address in burst]


def test_the_burst_has_overlaps_a_mismatch_a_scheduled_email_and_queue_jobs_in_every_mailstream() -> None:
    burst = [happening for number, happening in WHOLE if number < BURST]
    asked = [happening for happening in burst if isinstance(happening, Asked)]
    assert any(isinstance(happening, Job) for happening in burst)
    assert any(one.not_before for one in asked)
    assert any(one.message != one.intent.message for one in asked)
    assert any(one.trigger != one.intent.triggers[0] and one.message == one.intent.message for one in asked)
    by_queue = {"shipping-notice"}
    assert {one.intent.mailstream for one in asked} == {name for name, *_ in STREAMS} - by_queue
