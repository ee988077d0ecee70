"""What must be true when the dust has settled, whatever happened before."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from tests.crew import PATIENCE, until
from tests.flow.town import Town


def wait_for_rest(town: Town, *, seconds: float = PATIENCE) -> dict[str, int]:
    """Until nothing moves any more: all that was asked for is recorded, and accepted or held. How many are where."""

    def at_rest() -> bool:
        return set(town.states()) <= {"accepted", "held"}

    try:
        until(at_rest, seconds=seconds)
    except AssertionError:
        raise AssertionError(f"still {town.states()}\n{town.log.read_text()[-4000:]}") from None
    return town.states()


def nothing_lost_nothing_twice(town: Town, sends: Sequence[UUID]) -> None:
    """Each send is in the ledger; what it calls accepted the provider took once, and nothing went out twice.

    A held send may have been taken: that is why it is held. The simulator's books are the judge.
    """
    copies = town.copies()
    state = {
        str(row["id"]): row["state"]
        for row in town.place.all(
            "select s.id, coalesce(w.state::text, s.state::text) as state"
            " from sendonce.sends s left join sendonce.work w on w.send_id = s.id"
        )
    }
    assert set(state) == set(map(str, sends)), "every send that was asked for, and no other, is on record"
    assert {send: n for send, n in copies.items() if n > 1} == {}, "sent twice"
    assert set(copies) <= set(state)
    assert {send for send, where in state.items() if where == "accepted"} <= set(copies), "accepted, and never taken"
    assert {where for send, where in state.items() if send in copies} <= {"accepted", "held"}
