"""Many held sends decided at once: each as if it were alone, and all of them told of."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

import psycopg
import pytest

from dashboard.ledger import proposals
from dashboard.ledger.holds import Decided, HoldFilter, Refused, open_holds
from dashboard.ledger.proposals import Pick, Proposal
from dashboard.ledger.tables import Stage
from dashboard.lifecycle import Decision, EventType
from tests.crew import (
    Hand,
    Rival,
    ask,
    decide,
    graces_end,
    hear,
    person,
    reconciled,
    state_of,
    told,
    violations,
)
from tests.place import Place

T = TypeVar("T")


def all_held(place: Place, *keys: str, **wanted: Any) -> list[UUID]:
    """Held sends, their calls unanswered."""
    sends, hand = ask(place, *keys, **wanted), Hand(place)
    for started in hand.start():
        hand.finish(started, "ambiguous", error_class="read_timeout", phase="response")
    graces_end(place)
    reconciled(place)
    return sends


def do(place: Place, act: Callable[..., T], **given: Any) -> T:
    with place.database.transaction() as connection:
        return act(connection, workspace_id=place.workspace, **given)


def previewed(place: Place, decision: Decision, chosen: Any = None, login: str = "ada") -> Proposal:
    made = do(
        place, proposals.preview, user_id=person(place, login), decision=decision,
        chosen=HoldFilter() if chosen is None else chosen,
    )  # fmt: skip
    assert isinstance(made, Proposal)
    return made


def proposed(place: Place, made: Proposal, reason: str = "the provider's log shows nothing") -> Proposal | Refused:
    return do(place, proposals.propose, proposal_id=made.id, user_id=made.user_id, reason=reason)


def carried_out(place: Place) -> list[int]:
    """The sizes of the batches until nothing is left."""
    sizes = []
    while True:
        with place.database.transaction() as connection:
            sizes.append(proposals.carry_out(connection, limit=3))
        if not sizes[-1]:
            return sizes[:-1]


def looked(place: Place, act: Callable[..., T], *given: Any, **named: Any) -> T:
    with place.database.transaction() as connection:
        return act(connection, *given, **named)


def stage(place: Place, made: Proposal) -> Stage:
    found = looked(place, proposals.read_proposal, place.workspace, made.id)
    assert found is not None
    return found.stage


def test_all_that_fit_are_counted_and_named_before_anything_is_decided(place: Place) -> None:
    place.stream("letters", "transactional")
    all_held(place, "a", "b")
    all_held(place, "c", stream="letters")
    made = previewed(place, Decision.CANCEL)
    assert (made.sends, made.mailstreams, made.second_person) == (3, {"receipts": 2, "letters": 1}, None)
    one = previewed(place, Decision.CANCEL, HoldFilter(mailstream="letters", failure="read_timeout", account="main"))
    assert (one.sends, one.filters) == (1, {"mailstream": "letters", "failure": "read_timeout", "account": "main"})
    nothing = do(
        place, proposals.preview, user_id=person(place), decision=Decision.CANCEL, chosen=HoldFilter(account="other")
    )
    assert isinstance(nothing, Refused)
    assert (place.count("decisions"), place.count("audit"), carried_out(place)) == (0, 0, [])


def test_they_are_decided_in_batches_each_with_its_own_decision_and_audit_row(place: Place) -> None:
    sends = all_held(place, *"abcdefgh")
    made = previewed(place, Decision.CANCEL)
    assert isinstance(proposed(place, made), Proposal)
    assert carried_out(place) == [3, 3, 2]
    assert {state_of(place, send) for send in sends} == {"cancelled"}
    rows = place.all("select distinct reason, user_id, proposal_id, approved_by from sendonce.decisions")
    assert rows == [
        {"reason": "the provider's log shows nothing", "user_id": made.user_id, "proposal_id": made.id,
         "approved_by": None}
    ]  # fmt: skip
    audited = place.all("select action, count(*) as n from sendonce.audit group by action order by action")
    assert audited == [{"action": "held.cancel", "n": 8}, {"action": "held.propose", "n": 1}]
    progress = looked(place, proposals.read_progress, made.id)
    assert (progress.done, progress.refused, progress.left, stage(place, made)) == (8, 0, 0, Stage.DONE)
    assert violations(place) == []


def test_what_was_heard_decided_or_held_since_the_preview_is_left_as_it_is_and_told(place: Place) -> None:
    taken, spoken_of, decided, plain = all_held(place, *"abcd")
    made = previewed(place, Decision.RESEND)
    (late,) = all_held(place, "e")
    hear(place, told(EventType.DELIVERED, taken), told(EventType.UNKNOWN, spoken_of))
    hold = next(h for h in looked(place, open_holds, place.workspace) if h.send_id == decided)
    assert isinstance(decide(place, Decision.CANCEL, hold=hold, login="bob"), Decided)
    proposed(place, made)
    carried_out(place)
    states = [state_of(place, send) for send in (taken, spoken_of, decided, plain, late)]
    assert states == ["accepted", "held", "cancelled", "pending", "held"]
    left_out = {o.send_id: o.refused for o in looked(place, proposals.read_outcomes, made.id, refused=True)}
    assert left_out.keys() == {taken, spoken_of, decided}
    assert "somebody decided already, or evidence settled it" in (left_out[taken] or "")
    assert "Look again" in (left_out[spoken_of] or "")
    assert {o.key for o in looked(place, proposals.read_outcomes, made.id)} == set("abcd")
    assert violations(place) == []


def test_of_two_who_decide_the_same_many_each_send_is_decided_once(place: Place) -> None:
    sends = all_held(place, *"abcdef")
    mine, theirs = previewed(place, Decision.CANCEL), previewed(place, Decision.RESEND, login="bob")
    for made in (mine, theirs):
        proposed(place, made)

    def work_off() -> int:
        return sum(carried_out(place))

    assert sum(rival.result for rival in [Rival(work_off), Rival(work_off)]) == 12
    assert place.count("decisions") == 6
    assert {state_of(place, send) for send in sends} <= {"cancelled", "pending"}
    done = [looked(place, proposals.read_progress, made.id).done for made in (mine, theirs)]
    assert sum(done) == 6
    assert violations(place) == []


def test_picked_ones_are_decided_on_the_evidence_that_was_seen(place: Place) -> None:
    first, second, other = all_held(place, *"abc")
    holds = {hold.send_id: hold for hold in looked(place, open_holds, place.workspace)}
    picks = [Pick(holds[send].hold_id, holds[send].evidence) for send in (first, second)]
    hear(place, told(EventType.UNKNOWN, second))  # between the page and the button
    made = previewed(place, Decision.MARK_ACCEPTED, picks)
    assert (made.sends, made.filters) == (2, None)
    proposed(place, made)
    carried_out(place)
    assert [state_of(place, send) for send in (first, second, other)] == ["accepted", "held", "held"]


def test_a_decision_that_some_do_not_allow_leaves_those_out_from_the_start(place: Place) -> None:
    first, _ = all_held(place, "a", "b")
    place.run("update sendonce.work set cancel_reason = 'cancelled_by_person' where send_id = %s", first)
    made = previewed(place, Decision.RESEND)
    assert (made.sends, made.left_out) == (1, 1)


def test_no_reason_no_decision_and_only_its_maker_decides_a_preview_once(place: Place) -> None:
    all_held(place, "a")
    made = previewed(place, Decision.CANCEL)
    assert isinstance(proposed(place, made, reason="  "), Refused)
    theirs = do(place, proposals.propose, proposal_id=made.id, user_id=person(place, "bob"), reason="x")
    assert isinstance(theirs, Refused)
    assert isinstance(proposed(place, made), Proposal)
    assert isinstance(proposed(place, made), Refused)
    other = Place(place.database, name="other")
    refused = do(other, proposals.propose, proposal_id=made.id, user_id=made.user_id, reason="x")
    assert refused == Refused(proposals.NO_SUCH_PROPOSAL)


# ── the second person ────────────────────────────────────────────────────────────────────────────────────────────────


def test_above_the_number_of_the_workspace_a_second_person_agrees_first(place: Place) -> None:
    place.run("update sendonce.workspaces set second_person_above = 2")
    sends = all_held(place, *"abc")
    made = previewed(place, Decision.CANCEL)
    assert made.second_person == "more than 2 sends are decided at once"
    assert previewed(place, Decision.CANCEL, [Pick(1, 0)]).second_person is None
    proposed(place, made)
    assert (stage(place, made), carried_out(place)) == (Stage.WAITING, [])
    own = do(place, proposals.agree, proposal_id=made.id, user_id=made.user_id)
    assert isinstance(own, Refused)
    assert "nobody is their own second person" in own.reason
    bob = person(place, "bob")
    assert isinstance(do(place, proposals.agree, proposal_id=made.id, user_id=bob), Proposal)
    assert isinstance(do(place, proposals.agree, proposal_id=made.id, user_id=person(place, "eve")), Refused)
    carried_out(place)
    assert {state_of(place, send) for send in sends} == {"cancelled"}
    assert place.all("select distinct user_id, approved_by from sendonce.decisions") == [
        {"user_id": made.user_id, "approved_by": bob}
    ]
    actions = [row["action"] for row in place.all("select action from sendonce.audit order by id")]
    assert actions[:2] == ["held.propose", "held.agree"]
    assert violations(place) == []


def test_a_stream_may_demand_a_second_person_for_each_of_its_sends(place: Place) -> None:
    place.run("update sendonce.mailstreams set second_person = true where name = 'receipts'")
    (send,) = all_held(place, "a")
    alone = decide(place, Decision.RESEND)
    assert isinstance(alone, Refused)
    assert "second person" in alone.reason
    made = previewed(place, Decision.RESEND)
    assert made.second_person == "the rules of receipts demand it"
    proposed(place, made)
    do(place, proposals.agree, proposal_id=made.id, user_id=person(place, "bob"))
    carried_out(place)
    assert state_of(place, send) == "pending"


def test_the_database_itself_refuses_a_maker_who_agrees_with_himself(place: Place) -> None:
    place.run("update sendonce.workspaces set second_person_above = 0")
    all_held(place, "a")
    made = previewed(place, Decision.CANCEL)
    proposed(place, made)
    for change in ("answered_by = user_id, stage = 'running'", "stage = 'running'"):
        with pytest.raises(psycopg.errors.CheckViolation):
            place.run(f"update sendonce.proposals set {change}")


@pytest.mark.parametrize(("login", "end"), [("ada", Stage.WITHDRAWN), ("bob", Stage.DECLINED)])
def test_what_is_withdrawn_or_declined_decides_nothing(place: Place, login: str, end: Stage) -> None:
    place.run("update sendonce.workspaces set second_person_above = 0")
    (send,) = all_held(place, "a")
    made = previewed(place, Decision.CANCEL)
    proposed(place, made)
    user = person(place, login)
    assert isinstance(do(place, proposals.decline, proposal_id=made.id, user_id=user, reason=" "), Refused)
    assert isinstance(do(place, proposals.decline, proposal_id=made.id, user_id=user, reason="look first"), Proposal)
    assert isinstance(do(place, proposals.agree, proposal_id=made.id, user_id=person(place, "eve")), Refused)
    assert (stage(place, made), carried_out(place), state_of(place, send)) == (end, [], "held")


def test_what_nobody_agrees_to_in_time_ends_and_forgotten_previews_go(place: Place) -> None:
    place.run("update sendonce.workspaces set second_person_above = 0")
    all_held(place, "a")
    waiting, forgotten = previewed(place, Decision.CANCEL), previewed(place, Decision.CANCEL)
    proposed(place, waiting)
    place.run("update sendonce.proposals set expires_at = now() - %s", timedelta(seconds=1))
    too_late = do(place, proposals.agree, proposal_id=waiting.id, user_id=person(place, "bob"))
    assert isinstance(too_late, Refused)
    assert "too old" in too_late.reason
    assert isinstance(proposed(place, forgotten), Refused)
    assert looked(place, proposals.expire) == 2
    assert stage(place, waiting) is Stage.EXPIRED
    assert looked(place, proposals.read_proposal, place.workspace, forgotten.id) is None
