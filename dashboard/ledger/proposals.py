"""Deciding many held sends at once: preview, reason, a second person where one has to agree, then send by send.

A proposal names each send with the evidence that its maker saw; what is held later is none of it. It is carried out in
small batches, each send decided by ``holds.decide`` under the same locks as a single decision, so that evidence, or
somebody who decides that send alone meanwhile, wins, and the proposal tells why that one was left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import LiteralString
from uuid import UUID

from psycopg.types.json import Jsonb

from dashboard.ledger import acceptance, audit, holds
from dashboard.ledger.database import Connection
from dashboard.ledger.holds import Decided, HoldFilter, OpenHold, Refused
from dashboard.ledger.tables import Stage
from dashboard.lifecycle import Decision

MOST = 10_000
"""So many sends are decided at once at most: those that have waited longest."""
BATCH = 20
"""So many are decided in one transaction."""
PREVIEW_LASTS = timedelta(hours=1)
ANSWER_WITHIN = timedelta(hours=24)
"""How long a second person may take to agree."""

NO_SUCH_PROPOSAL = "There is no such proposal."
NOTHING_FITS = "No held send fits, or none of them allows this decision."


@dataclass(frozen=True, slots=True)
class Pick:
    """One hold as somebody saw it."""

    hold_id: int
    evidence: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A decision about many, and how far it has come."""

    id: UUID
    user_id: UUID
    person: str
    decision: Decision
    filters: dict[str, str] | None
    """All that fit these (empty: all that were held). None: they were picked one by one."""
    sends: int
    left_out: int
    """Chosen too, but the decision is none that they allow."""
    mailstreams: dict[str, int]
    stage: Stage
    second_person: str | None
    """Why a second person has to agree. None: nobody has to."""
    reason: str | None
    created_at: datetime
    proposed_at: datetime | None
    expires_at: datetime
    answered_by: str | None
    """The second person, who agreed or declined."""
    answered_at: datetime | None
    answer: str | None
    ended_at: datetime | None

    @property
    def under_way(self) -> bool:
        """It is still to be agreed to or carried out."""
        return self.stage in (Stage.WAITING, Stage.RUNNING)


@dataclass(frozen=True, slots=True)
class Progress:
    """What came of the sends of a proposal so far."""

    done: int
    refused: int
    left: int
    doubled: int
    """Submitted again, and since then the provider holds them under more than one id: accepted more than once."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one send. ``refused``: why it was left as it was; None: decided, or, without a time, not yet."""

    send_id: UUID
    key: str
    mailstream: str
    decided_at: datetime | None
    refused: str | None


# ── making one ───────────────────────────────────────────────────────────────────────────────────────────────────────


def preview(
    connection: Connection,
    *,
    workspace_id: UUID,
    user_id: UUID,
    decision: Decision,
    chosen: HoldFilter | Sequence[Pick],
) -> Proposal | Refused:
    """Name the sends that a decision would be about: those picked, as they were seen, or all that fit a filter now.

    Nothing is decided yet. The evidence of this moment (of a pick: its own) is what the maker is taken to have seen.
    """
    if isinstance(chosen, HoldFilter):
        found = holds.open_holds(connection, workspace_id, filters=chosen, limit=MOST)
        seen = {hold.hold_id: hold.evidence for hold in found}
    else:
        seen = {pick.hold_id: pick.evidence for pick in chosen[:MOST]}
        found = list(holds.read_holds(connection, workspace_id, seen).values())
    fitting = [hold for hold in found if decision in hold.choices]
    if not fitting:
        return Refused(NOTHING_FITS)
    filters = {k: v for k, v in asdict(chosen).items() if v} if isinstance(chosen, HoldFilter) else None
    row = connection.execute(
        "insert into sendonce.proposals (workspace_id, user_id, decision, filters, sends, left_out, mailstreams,"
        " second_person, expires_at) values (%s, %s, %s, %s, %s, %s, %s, %s, now() + %s) returning id",
        (
            workspace_id, user_id, decision, None if filters is None else Jsonb(filters), len(fitting),
            len(found) - len(fitting),
            Jsonb(dict(Counter(hold.mailstream for hold in fitting).most_common())),
            _why_a_second(connection, workspace_id, fitting), PREVIEW_LASTS,
        ),
    ).fetchone()  # fmt: skip
    assert row is not None
    connection.execute(
        "insert into sendonce.proposal_sends (proposal_id, send_id, hold_id, evidence)"
        " select %s, s, h, e from unnest(%b::uuid[], %b::bigint[], %b::int[]) t (s, h, e)",
        (
            row[0], [hold.send_id for hold in fitting], [hold.hold_id for hold in fitting],
            [seen[hold.hold_id] for hold in fitting],
        ),
    )  # fmt: skip
    made = read_proposal(connection, workspace_id, row[0])
    assert made is not None
    return made


def _why_a_second(connection: Connection, workspace_id: UUID, chosen: Sequence[OpenHold]) -> str | None:
    """The rule by which a second person has to agree, for people to read."""
    row = connection.execute(
        "select second_person_above from sendonce.workspaces where id = %s", (workspace_id,)
    ).fetchone()
    limit = row[0] if row else None
    if limit is not None and len(chosen) > limit:
        return f"more than {limit} sends are decided at once"
    strict = sorted({hold.mailstream for hold in chosen if hold.second_person})
    return f"the rules of {', '.join(strict)} demand it" if strict else None


def propose(
    connection: Connection, *, workspace_id: UUID, proposal_id: UUID, user_id: UUID, reason: str
) -> Proposal | Refused:
    """Decide what was previewed, with a reason: it is carried out, or waits for a second person."""
    found = _locked(connection, workspace_id, proposal_id)
    if isinstance(found, Refused):
        return found
    if found.user_id != user_id:
        return Refused("Somebody else made this preview: make your own.")
    if found.stage is not Stage.PREVIEW:
        return Refused("This has been decided already.")
    if not reason.strip():
        return Refused("Give a reason: it stands beside each decision for whoever looks at it later.")
    stage = Stage.WAITING if found.second_person else Stage.RUNNING
    connection.execute(
        "update sendonce.proposals set stage = %s, reason = %s, proposed_at = now(), expires_at = now() + %s"
        " where id = %s",
        (stage, reason.strip(), ANSWER_WITHIN, proposal_id),
    )
    _audit(
        connection, audit.Action.HELD_PROPOSE, found, workspace_id, user_id, reason.strip(),
        decision=found.decision.value, sends=found.sends, mailstreams=list(found.mailstreams),
    )  # fmt: skip
    return _again(connection, workspace_id, proposal_id)


def decide_or_propose(
    connection: Connection,
    *,
    workspace_id: UUID,
    send_id: UUID,
    hold_id: int,
    user_id: UUID,
    decision: Decision,
    reason: str,
    evidence: int,
) -> Decided | Proposal | Refused:
    """Decide one held send, or, where its mailstream wants a second person, propose that one."""
    hold = holds.read_holds(connection, workspace_id, [hold_id]).get(hold_id)
    if hold is None or hold.send_id != send_id or not hold.second_person:
        return holds.decide(
            connection, workspace_id=workspace_id, send_id=send_id, hold_id=hold_id, user_id=user_id,
            decision=decision, reason=reason, evidence=evidence,
        )  # fmt: skip
    if not reason.strip():
        return Refused("Give a reason: it stands beside the decision for whoever looks at it later.")
    made = preview(
        connection, workspace_id=workspace_id, user_id=user_id, decision=decision, chosen=[Pick(hold_id, evidence)]
    )
    if isinstance(made, Refused):
        return made
    return propose(connection, workspace_id=workspace_id, proposal_id=made.id, user_id=user_id, reason=reason)


# ── the second person ────────────────────────────────────────────────────────────────────────────────────────────────


def agree(connection: Connection, *, workspace_id: UUID, proposal_id: UUID, user_id: UUID) -> Proposal | Refused:
    """The second person agrees; it is carried out. Never its maker."""
    found = _waiting(connection, workspace_id, proposal_id)
    if isinstance(found, Refused):
        return found
    if found.user_id == user_id:
        return Refused("Somebody else has to agree: nobody is their own second person.")
    connection.execute(
        "update sendonce.proposals set stage = 'running', answered_by = %s, answered_at = now() where id = %s",
        (user_id, proposal_id),
    )
    _audit(connection, audit.Action.HELD_AGREE, found, workspace_id, user_id, found.reason, sends=found.sends)
    return _again(connection, workspace_id, proposal_id)


def decline(
    connection: Connection, *, workspace_id: UUID, proposal_id: UUID, user_id: UUID, reason: str
) -> Proposal | Refused:
    """The second person does not agree, or, where it is the maker, withdraws it: nothing is decided."""
    found = _waiting(connection, workspace_id, proposal_id)
    if isinstance(found, Refused):
        return found
    if not reason.strip():
        return Refused("Give a reason: it stands beside the proposal for whoever made it.")
    own = found.user_id == user_id
    connection.execute(
        "update sendonce.proposals set stage = %s, answered_by = %s, answered_at = now(), answer = %s, ended_at = now()"
        " where id = %s",
        (Stage.WITHDRAWN if own else Stage.DECLINED, None if own else user_id, reason.strip(), proposal_id),
    )
    action = audit.Action.HELD_WITHDRAW if own else audit.Action.HELD_DECLINE
    _audit(connection, action, found, workspace_id, user_id, reason.strip(), sends=found.sends)
    return _again(connection, workspace_id, proposal_id)


def _waiting(connection: Connection, workspace_id: UUID, proposal_id: UUID) -> Proposal | Refused:
    found = _locked(connection, workspace_id, proposal_id)
    if isinstance(found, Refused) or found.stage is Stage.WAITING:
        return found
    return Refused(f"It waits for nobody: it is {_SAID[found.stage]}.")


_SAID = {
    Stage.PREVIEW: "a preview that its maker has not decided",
    Stage.RUNNING: "being carried out",
    Stage.DONE: "carried out",
    Stage.WITHDRAWN: "withdrawn",
    Stage.DECLINED: "declined",
    Stage.EXPIRED: "expired, since nobody agreed in time",
}


# ── carrying it out ──────────────────────────────────────────────────────────────────────────────────────────────────


def carry_out(connection: Connection, proposal_id: UUID | None = None, *, limit: int = BATCH) -> int:
    """Decide up to ``limit`` sends of one proposal that runs, in the connection's transaction. Returns how many.

    Any number may do so at once: each takes another proposal, or finds that there is none.
    """
    row = connection.execute(
        "select id, workspace_id, user_id, answered_by, decision, reason from sendonce.proposals"
        " where ended_at is null and stage = 'running' and (%(id)s::uuid is null or id = %(id)s)"
        " order by expires_at limit 1 for update skip locked",
        {"id": proposal_id},
    ).fetchone()
    if row is None:
        return 0
    proposal, workspace_id, user_id, second, decision, reason = row
    left = connection.execute(
        "select send_id, hold_id, evidence from sendonce.proposal_sends"
        " where proposal_id = %s and decided_at is null order by send_id limit %s",
        (proposal, limit),
    ).fetchall()
    acceptance.lock_sends(connection, [send_id for send_id, _, _ in left])  # all of them first, in their order
    for send_id, hold_id, evidence in left:
        outcome = holds.decide(
            connection, workspace_id=workspace_id, hold_id=hold_id, send_id=send_id, user_id=user_id,
            decision=Decision(decision), reason=reason, evidence=evidence, approved_by=second, proposal_id=proposal,
        )  # fmt: skip
        connection.execute(
            "update sendonce.proposal_sends set decided_at = now(), refused = %s"
            " where proposal_id = %s and send_id = %s",
            (outcome.reason if isinstance(outcome, Refused) else None, proposal, send_id),
        )
    if len(left) < limit:
        connection.execute("update sendonce.proposals set stage = 'done', ended_at = now() where id = %s", (proposal,))
    return len(left)


def expire(connection: Connection) -> int:
    """End what nobody agreed to in time, and forget previews that nobody decided. Returns how many."""
    ended = connection.execute(
        "update sendonce.proposals set stage = 'expired', ended_at = now()"
        " where ended_at is null and expires_at < now() and stage = 'waiting'"
    ).rowcount
    forgotten = connection.execute(
        "delete from sendonce.proposals where id = (select id from sendonce.proposals"
        " where ended_at is null and expires_at < now() and stage = 'preview' limit 1 for update skip locked)"
    ).rowcount
    return ended + forgotten


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_PROPOSALS: LiteralString = """
    select p.id, p.user_id, u.name, p.decision::text, p.filters, p.sends, p.left_out, p.mailstreams, p.stage::text,
      p.second_person, p.reason, p.created_at, p.proposed_at, p.expires_at, b.name, p.answered_at, p.answer, p.ended_at
    from sendonce.proposals p join sendonce.users u on u.id = p.user_id
    left join sendonce.users b on b.id = p.answered_by
    where p.workspace_id = %(workspace_id)s
"""


def read_proposal(connection: Connection, workspace_id: UUID, proposal_id: UUID) -> Proposal | None:
    """One proposal of the workspace."""
    row = connection.execute(
        _PROPOSALS + " and p.id = %(id)s", {"workspace_id": workspace_id, "id": proposal_id}
    ).fetchone()
    return _proposal(row) if row else None


def list_proposals(connection: Connection, workspace_id: UUID, *, limit: int = 20) -> list[Proposal]:
    """The newest that were more than a preview."""
    rows = connection.execute(
        _PROPOSALS + " and p.stage <> 'preview' order by p.created_at desc limit %(limit)s",
        {"workspace_id": workspace_id, "limit": limit},
    )
    return [_proposal(row) for row in rows]


def read_progress(connection: Connection, proposal_id: UUID) -> Progress:
    """How many were decided, refused and are left, and how many of those submitted again turned out double."""
    row = connection.execute(
        """
        select count(*) filter (where s.decided_at is not null and s.refused is null),
          count(*) filter (where s.refused is not null), count(*) filter (where s.decided_at is null),
          count(*) filter (where p.decision = 'resend' and s.decided_at is not null and s.refused is null and exists (
            select from sendonce.second_message_ids m where m.send_id = s.send_id and m.seen_at >= s.decided_at))
        from sendonce.proposal_sends s join sendonce.proposals p on p.id = s.proposal_id
        where s.proposal_id = %s
        """,
        (proposal_id,),
    ).fetchone()
    assert row is not None
    return Progress(*row)


def read_outcomes(
    connection: Connection, proposal_id: UUID, *, refused: bool = False, after: UUID | None = None, limit: int = 100
) -> list[Outcome]:
    """What came of each send, in the order of their ids, behind ``after``; with ``refused`` only of those left out."""
    rows = connection.execute(
        """
        select s.send_id, l.key, l.mailstream, s.decided_at, s.refused
        from sendonce.proposal_sends s join sendonce.sends l on l.id = s.send_id
        where s.proposal_id = %(id)s and (not %(refused)s or s.refused is not null)
          and (%(after)s::uuid is null or s.send_id > %(after)s)
        order by s.send_id limit %(limit)s
        """,
        {"id": proposal_id, "refused": refused, "after": after, "limit": limit},
    )
    return [Outcome(*row) for row in rows]


def sends_of(connection: Connection, proposal_id: UUID) -> list[UUID]:
    """The sends that it is about, at most :data:`MOST`."""
    rows = connection.execute("select send_id from sendonce.proposal_sends where proposal_id = %s", (proposal_id,))
    return [row[0] for row in rows]


def _locked(connection: Connection, workspace_id: UUID, proposal_id: UUID) -> Proposal | Refused:
    connection.execute(
        "select from sendonce.proposals where id = %s and workspace_id = %s for update", (proposal_id, workspace_id)
    )
    found = read_proposal(connection, workspace_id, proposal_id)
    if found is None:
        return Refused(NO_SUCH_PROPOSAL)
    row = connection.execute("select %s < now()", (found.expires_at,)).fetchone()
    if row == (True,) and found.stage in (Stage.PREVIEW, Stage.WAITING):
        return Refused("It is too old: what was seen then may have changed. Look again, and decide anew.")
    return found


def _again(connection: Connection, workspace_id: UUID, proposal_id: UUID) -> Proposal:
    found = read_proposal(connection, workspace_id, proposal_id)
    assert found is not None
    return found


def _audit(
    connection: Connection, action: audit.Action, proposal: Proposal, workspace_id: UUID, user_id: UUID,
    reason: str | None, **detail: object,
) -> None:  # fmt: skip
    audit.record(
        connection, action, workspace_id=workspace_id, user_id=user_id, subject=proposal.id, reason=reason,
        detail=detail,
    )  # fmt: skip


def _proposal(row: tuple[object, ...]) -> Proposal:
    fields = dict(zip(Proposal.__slots__, row, strict=True))
    fields["decision"], fields["stage"] = Decision(str(fields["decision"])), Stage(str(fields["stage"]))
    return Proposal(**fields)  # type: ignore[arg-type]
