"""An answer as it is shown: the rows of proof in words, the sends side by side, and all of it as one JSON document.

Page, API and command line tell the same, from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from dashboard.identity import discreet
from dashboard.insight.case import (
    Answer,
    Case,
    Complaint,
    Proof,
    least_copies,
    most_copies,
    same_content,
    taken_at,
)
from dashboard.insight.complaints import not_looked_into
from dashboard.insight.replies import reply
from dashboard.insight.timeline import timeline
from dashboard.insight.wording import because, provider
from dashboard.ledger.evidence import Evidence
from dashboard.ledger.investigations import Investigation
from dashboard.ledger.trace import Trace


def case_of(asked: Investigation, evidence: Evidence, now: datetime) -> Case:
    """The case of what was asked. ``now`` is in the customer's zone."""
    return Case(Complaint(asked.complaint), evidence, now, asked.message_ids)


# ── proof ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A row of proof in words. ``anchor`` is its place on the page of its send; None where it has none."""

    proof: Proof
    what: str
    at: datetime | None = None
    who: str = ""
    detail: str = ""
    anchor: str | None = None


def facts(case: Case, answer: Answer) -> list[Fact]:
    """What proves the answer: of each row, in the order in which they were given, all that a timeline tells of it."""
    traces = {trace.send.id: trace for trace in case.evidence.traces}
    drawn: dict[UUID, dict[str, list[Fact]]] = {}
    found: list[Fact] = []
    for proof in dict.fromkeys(answer.proof):
        if proof.send is None:
            found.append(_beside(case.evidence, proof))
            continue
        trace = traces[proof.send]
        if proof.send not in drawn:
            drawn[proof.send] = _marks(trace)
        found += drawn[proof.send].get(proof.row) or [_undrawn(case.evidence, trace, proof)]
    return found


def _marks(trace: Trace) -> dict[str, list[Fact]]:
    """What the timeline of a send tells of each row."""
    marks: dict[str, list[Fact]] = {}
    for entry in timeline(trace):
        marks.setdefault(entry.evidence, []).append(
            Fact(
                proof=Proof(trace.send.id, entry.evidence), what=entry.what, at=entry.at, who=entry.who,
                detail=entry.detail, anchor=entry.evidence.replace(" ", "-"),
            )
        )  # fmt: skip
    return marks


def _undrawn(evidence: Evidence, trace: Trace, proof: Proof) -> Fact:
    """Rows of a send that its timeline does not draw."""
    kind, _, name = proof.row.partition(" ")
    if kind == "suppression":
        for rule in evidence.suppressions:
            if f"{rule.scope} {rule.mailstream}".strip() == name or rule.scope == name:
                what = f"{'Suppressed' if rule.suppressed else 'Lifted'}: {rule.source.replace('_', ' ')}"
                return Fact(proof=proof, what=what, at=rule.said_at, who=rule.person or "", detail=rule.reason or "")
    if kind == "work" and trace.work is not None:
        return Fact(proof=proof, what=f"It is {trace.work.state}, because {because(trace.work.reason)}")
    return Fact(proof=proof, what=proof.row[:1].upper() + proof.row[1:])


def _beside(evidence: Evidence, proof: Proof) -> Fact:
    """Rows that belong to no send."""
    kind, _, name = proof.row.rpartition(" ")
    for request in evidence.waiting:
        if kind == "outbox" and str(request.id) == name:
            who = " ".join(filter(None, (request.trigger_type, request.trigger_id)))
            return Fact(proof=proof, what="Waits in the outbox", at=request.asked_at, who=who, detail=request.key or "")
    for letter in evidence.unreadable:
        if kind == "dead letter" and str(letter.id) == name:
            return Fact(proof=proof, what="A request that could not be taken", at=letter.at, detail=letter.reason)
    for stray in evidence.strays:
        if kind == "unmatched event" and str(stray.id) == name:
            return Fact(
                proof=proof, what=f"{provider(stray.provider)} tells: {stray.event_type}", at=stray.occurred_at,
                who=f"account {stray.account}", detail=f"message id {stray.provider_message_id or 'not given'}",
            )  # fmt: skip
    return Fact(proof=proof, what=proof.row)


# ── the sends side by side ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A send beside the others. ``group``: a letter that all sends of one content share; empty where it is alone.
    ``workspace`` is empty for the one where one asks."""

    trace: Trace
    sentence: str
    named: bool
    group: str
    workspace: str
    accepted_at: datetime | None
    copies: tuple[int, int]
    """How many copies are proved to have been taken, and how many may have left."""


def sides(case: Case) -> list[Side]:
    """The sends that were looked at, in the order of their asking."""
    evidence = case.evidence
    groups = _groups(evidence.traces)
    meant = {trace.send.id for trace in evidence.named}
    return [
        Side(
            trace=trace,
            sentence=f"{case.verdicts[trace.send.id].sentence}.",
            named=trace.send.id in meant,
            group=groups.get(trace.send.id, ""),
            workspace="" if trace.send.workspace_id == evidence.home else _workspace(evidence, trace),
            accepted_at=taken_at(trace) if least_copies(trace) else None,
            copies=(least_copies(trace), most_copies(trace)),
        )
        for trace in sorted(evidence.traces, key=lambda trace: (trace.send.asked_at, trace.send.id))
    ]


def _workspace(evidence: Evidence, trace: Trace) -> str:
    return evidence.workspaces.get(trace.send.workspace_id, "another workspace")


def _groups(traces: list[Trace]) -> dict[UUID, str]:
    """A letter for each content that several sends have."""
    groups: dict[UUID, str] = {}
    letters = iter("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    for trace in sorted(traces, key=lambda trace: (trace.send.asked_at, trace.send.id)):
        alike = [other for other in traces if same_content(trace, other)]
        if trace.send.id not in groups and len(alike) > 1:
            letter = next(letters)
            groups |= {other.send.id: letter for other in alike}
    return groups


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def document(case: Case, answer: Answer, wordings: dict[str, str] | None = None) -> dict[str, object]:
    """The answer for programs. It repeats neither whom it is about nor any address."""
    around = case.evidence.question.around
    return {
        "complaint": case.complaint.value,
        "since": _iso(around[0]) if around else None,
        "until": _iso(around[1]) if around else None,
        "at": _iso(case.evidence.now),
        "cause": answer.finding.value,
        "sureness": answer.sureness.value,
        "sentence": f"{answer.sentence}.",
        "next": answer.next,
        "would_tell": answer.would_tell or None,
        "send": str(answer.about) if answer.about else None,
        "reply": reply(answer, case.now, wordings),
        "proof": [_proof(fact) for fact in facts(case, answer)],
        "sends": [_side(side) for side in sides(case)],
        "not_looked_into": [{"what": one.what, "rests_on": one.rests_on} for one in not_looked_into(case.complaint)],
    }


def _proof(fact: Fact) -> dict[str, object]:
    return {
        "send": str(fact.proof.send) if fact.proof.send else None,
        "row": fact.proof.row,
        "at": _iso(fact.at) if fact.at else None,
        "what": fact.what,
        "who": discreet(fact.who),
        "detail": discreet(fact.detail),
    }


def _side(side: Side) -> dict[str, object]:
    send = side.trace.send
    return {
        "id": str(send.id),
        "workspace": side.workspace or None,
        "mailstream": send.mailstream,
        "owner": side.trace.stream.owner if side.trace.stream else "",
        "key": send.key,
        "trigger": {"type": send.trigger_type, "id": discreet(send.trigger_id)},
        "state": side.trace.state,
        "delivery": send.delivery,
        "recorded_at": _iso(send.recorded_at),
        "accepted_at": _iso(side.accepted_at) if side.accepted_at else None,
        "copies": {"proved": side.copies[0], "at_most": side.copies[1]},
        "asked_about": side.named,
        "same_content": side.group or None,
        "sentence": side.sentence,
    }


def _iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
