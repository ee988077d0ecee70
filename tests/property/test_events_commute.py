"""Invariant 6: any order and any repetition of the same provider events gives the same send."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from hypothesis import given, settings
from hypothesis import strategies as st

from dashboard.ledger.acceptance import UNSETTLED, Attempt, Evidence, _after, close
from dashboard.ledger.events import Told
from dashboard.lifecycle import AttemptStatus, EventType, Reason
from tests.crew import Hand, ask_one, hear, told, violations
from tests.place import Place

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
number = itertools.count()


# ── closing attempts, in pure terms ──────────────────────────────────────────────────────────────────────────────────


@st.composite
def attempts_and_evidence(draw: st.DrawFn) -> tuple[list[Attempt], list[Evidence]]:
    """Attempts of one send, and what a consistent provider tells of it.

    Where keys are honoured there is one message, whoever asks; where they are not, the attempt's number travels.
    """
    honoured = draw(st.booleans())
    account, send = uuid4(), uuid4()
    statuses = draw(st.lists(st.sampled_from(AttemptStatus), min_size=1, max_size=4))
    attempts = []
    for n, status in enumerate(statuses, start=1):
        name = ("msg" if honoured else f"msg-{n}") if status is AttemptStatus.ACCEPTED and draw(st.booleans()) else None
        attempts.append(Attempt(n, account, status, name))
    told_of = draw(st.lists(st.integers(1, len(statuses)), min_size=1, max_size=4))
    evidence = [
        Evidence(send, account, "msg" if honoured else f"msg-{n}", None if honoured else n, Reason.EVENT)
        for n in told_of
    ]
    return attempts, evidence


def closed(attempts: Sequence[Attempt], evidence: Sequence[Evidence]) -> tuple[list[Attempt], set[str]]:
    """The attempts and the ids that no attempt holds, after the evidence came one by one."""
    now, second = list(attempts), set()
    for each in evidence:
        closing = close(now, each)
        if closing.second_id is not None:
            second.add(closing.second_id)
        now = [
            replace(after, status=AttemptStatus.AMBIGUOUS) if after.status is AttemptStatus.SUBMITTING else after
            for after in (_after(attempt, closing, each) for attempt in now)
        ]
    return now, second


@given(attempts_and_evidence(), st.data())
def test_closing_attempts_does_not_depend_on_the_order_or_the_repetition_of_evidence(
    case: tuple[list[Attempt], list[Evidence]], data: st.DataObject
) -> None:
    attempts, evidence = case
    shuffled = data.draw(st.permutations(evidence + data.draw(st.lists(st.sampled_from(evidence), max_size=3))))
    assert closed(attempts, shuffled) == closed(attempts, evidence)


@given(attempts_and_evidence())
def test_evidence_leaves_no_attempt_open_and_every_id_is_kept_somewhere(
    case: tuple[list[Attempt], list[Evidence]],
) -> None:
    attempts, evidence = case
    now, second = closed(attempts, evidence)
    assert all(attempt.status is not AttemptStatus.SUBMITTING for attempt in now)
    kept = {attempt.provider_message_id for attempt in now} | second
    assert {each.provider_message_id for each in evidence} <= kept
    before = {a.n: a for a in attempts}
    for attempt in now:
        if before[attempt.n].status not in UNSETTLED:
            assert attempt.status is before[attempt.n].status, "what was settled stays settled"


# ── the whole fold, on the database ──────────────────────────────────────────────────────────────────────────────────

facts = st.lists(
    st.tuples(
        st.sampled_from(EventType), st.integers(0, 3), st.sampled_from([None, "hard", "soft"]), st.booleans()
    ),
    min_size=1, max_size=6,
)  # fmt: skip


def _told(send: UUID, address: str, case: Sequence[tuple[EventType, int, str | None, bool]]) -> list[Told]:
    return [
        told(
            word, send if by_id else None, f"msg-{send}", occurred_at=NOON + timedelta(seconds=second),
            recipient=address, bounce_class=bounce if word is EventType.BOUNCED else None,
        )
        for word, second, bounce, by_id in case
    ]  # fmt: skip


def _stand(place: Place, send: UUID, address: str) -> dict[str, Any]:
    row = place.one("select state::text, delivery::text, delivery_at, taken_at is not null as taken from sendonce.sends"
                    " where id = %s", send)  # fmt: skip
    suppressed = place.all(
        "select scope::text, mailstream, suppressed, said_at, source from sendonce.suppressions"
        " where address_lookup = %s order by scope, mailstream",
        place.vault.lookup(address),
    )
    events = place.all(
        "select event_type::text, occurred_at from sendonce.events where send_id = %s order by 1, 2", send
    )
    attempts = place.all("select status::text, provider_message_id is not null as named from sendonce.attempts"
                         " where send_id = %s order by n", send)  # fmt: skip
    return {**row, "suppressed": suppressed, "events": events, "attempts": attempts}


def _play(place: Place, ending: str, case: Any, order: Any, split: int) -> dict[str, Any]:
    key = next(number)
    address = f"someone{key}@example.com"
    send = ask_one(place, f"order:{key}", address=address)
    hand = Hand(place)
    (started,) = hand.start()
    if ending == "after":
        hand.finish(started, "accepted", f"msg-{send}")
    elif ending == "doubt":
        hand.finish(started, "ambiguous")
    requests = [_told(send, address, case)[i] for i in order]
    hear(place, *requests[:split])
    for each in requests[split:]:
        hear(place, each)
    if ending != "after":
        hand.finish(started, "accepted", f"msg-{send}")
    return _stand(place, send, address)


@settings(max_examples=25)
@given(case=facts, ending=st.sampled_from(["before", "doubt", "after"]), data=st.data())
def test_the_same_events_in_any_order_repeated_in_one_request_or_in_many_give_the_same_send(
    place: Place, case: Any, ending: str, data: st.DataObject
) -> None:
    in_order = list(range(len(case)))
    again = data.draw(st.lists(st.sampled_from(in_order), max_size=3))
    shuffled = data.draw(st.permutations(in_order + again))
    split = data.draw(st.integers(0, len(shuffled)))
    first = _play(place, ending, case, in_order, len(in_order))
    second = _play(place, ending, case, shuffled, split)
    assert first == second
    assert first["state"] == "accepted"


def test_the_ledger_that_the_examples_left_holds(place: Place) -> None:
    assert violations(place) == []
