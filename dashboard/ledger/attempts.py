"""Attempts: written ahead of every call, settled after it.

**Starting.** No byte goes to a provider without a committed attempt row. In one transaction the claimed sends are
locked, evidence that came meanwhile is looked at, everything that could forbid the call is checked (suppression,
lateness, pause, cancel, rule G), and the rest get their attempt: work row and attempt row in one statement.

**Finishing.** A plain yes under the claim it was made for takes the straight path, as a set. Everything else (refusals,
doubt, answers that come after the claim has ended) is decided one by one from the locked work row, and then moved as
sets. A worker may always settle its own attempt, however late; it never starts or touches another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal, NamedTuple
from uuid import UUID, uuid4

from dashboard.ledger import acceptance, events, moves, work
from dashboard.ledger.accounts import TROUBLES_TO_PAUSE, Trouble, lock_accounts, note_answers, note_troubles, try_again
from dashboard.ledger.database import Connection, database_now, run, transposed
from dashboard.ledger.moves import Target, Who
from dashboard.ledger.retry import Backoff, Terms, used_up
from dashboard.ledger.tables import Policy
from dashboard.ledger.work import Claim, Work
from dashboard.lifecycle import AttemptStatus, By, Reason, State


@dataclass(frozen=True, slots=True)
class Windows:
    """The time limits of an attempt. A lease outlives submit window, request time-out and margin together."""

    submit: timedelta = timedelta(seconds=10)
    request: timedelta = timedelta(seconds=30)
    margin: timedelta = timedelta(seconds=15)


class Started(NamedTuple):
    """A committed attempt, ready to be submitted once its transaction is committed.

    A tuple, as all that is made once for every send: a frozen dataclass takes four times as long to make.
    """

    send_id: UUID
    n: int
    claim_number: int
    account_id: UUID
    endpoint: bytes
    """The account's at the start: where the call must go, or nowhere."""
    recorded_at: datetime
    address: bytes
    """Encrypted, as ``body`` is; both empty where the caller of ``send_once`` keeps its own content."""
    body: bytes
    batch: UUID | None = None
    """The call that it shares with all others that have the same here. None: it goes alone."""


Part = Callable[[Sequence[Started]], Iterable[Sequence[UUID]]]
"""Says which of these may go out together: the ids of each call that several share. One that is in none goes alone."""


# ── starting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def start(
    connection: Connection,
    worker: UUID,
    claims: Sequence[Claim],
    windows: Windows,
    *,
    by: By = By.WORKER,
    part: Part | None = None,
) -> list[Started]:
    """Start an attempt for each claim that nothing forbids; move the others to where they belong.

    ``part`` is asked about first attempts of mailstreams that send in batches; None: each send goes alone.

    The caller may submit what is returned only after the transaction is known to be committed.
    """
    ids = [claim.send_id for claim in claims]
    work.only_lock(connection, ids)
    events.rematch(connection, send_ids=ids)
    numbers = {claim.send_id: claim.number for claim in claims}
    rows = [
        _Examined(*row)
        for row in run(
            connection,
            "examine_claims",
            ids=ids,
            worker=worker,
            submit_window=windows.submit,
            troubles=TROUBLES_TO_PAUSE,
        ).fetchall()
        if row[1] == numbers[row[0]]  # not a newer claim of this worker's, taken by another of its lanes
    ]
    who = Who(by, worker=worker)
    _turn_away(connection, who, [row for row in rows if row.obstacle])
    sharing = [row.started() for row in rows if row.shares and not row.obstacle] if part else []
    calls = part(sharing) if part and sharing else ()
    allowed = _within_rate(connection, who, _trying_again(connection, who, windows, rows))
    return _insert(connection, worker, allowed, _batches(calls, allowed), windows)


class _Examined(NamedTuple):
    send_id: UUID
    claim_number: int
    n: int
    account_id: UUID
    endpoint: bytes
    recorded_at: datetime
    idempotency_key: str | None
    address: bytes | None
    body: bytes | None
    obstacle: str | None
    detail: str | None
    late_policy: str
    troubled: bool
    """The breaker of its account was open, and nobody has reached the provider since."""
    shares: bool
    """It may share its call with others."""

    def started(self, batch: UUID | None = None) -> Started:
        """What it is once its attempt is on record."""
        return Started(
            self.send_id, self.n, self.claim_number, self.account_id, self.endpoint, self.recorded_at,
            self.address or b"", self.body or b"", batch,
        )  # fmt: skip


def _turn_away(connection: Connection, who: Who, rows: Sequence[_Examined]) -> None:
    """Move what must not start: each to the end that its obstacle names."""
    ends: dict[str, list[Target]] = {"give_back": [], "hold": [], "suppress": [], "cancel": []}
    for row in rows:
        end, target = _end_of_obstacle(row)
        ends[end].append(target)
    moves.give_back(connection, who, ends["give_back"])
    moves.hold(connection, who, ends["hold"])
    moves.suppress(connection, who, ends["suppress"])
    moves.cancel(connection, who, ends["cancel"])


def _end_of_obstacle(row: _Examined) -> tuple[str, Target]:
    def target(reason: str, waives: tuple[str, ...] = ()) -> Target:
        return Target(send_id=row.send_id, reason=reason, claim_number=row.claim_number, waives=waives)

    match row.obstacle:
        case "cancelled":
            return "cancel", target(row.detail or Reason.CANCELLED_BY_PERSON)
        case "suppressed":
            return "suppress", target(row.detail or Reason.SUPPRESSED_BY_PERSON)
        case "late" if row.late_policy == Policy.CANCEL:
            return "cancel", target(Reason.LATE)
        case "late":
            return "hold", target(Reason.LATE, ("late",))
        case "stream_paused":
            return "give_back", target(Reason.STREAM_PAUSED)
        case "provider_paused":
            return "give_back", target(Reason.PROVIDER_PAUSED)
        case "ledger_moved":
            return "give_back", target(Reason.LEDGER_MOVED)
        case "message_gone":
            return "hold", target(Reason.MESSAGE_GONE)
        case _:  # unreleased, key_ended
            return "hold", target(Reason.KEY_ENDED, ("ambiguous",))


def _trying_again(connection: Connection, who: Who, windows: Windows, rows: Sequence[_Examined]) -> list[_Examined]:
    """The rows that nothing forbids; of an account whose breaker was open, one, if nobody else's is under way.

    The others go back, so that a provider that comes back does not meet everything at once that has waited for it.
    """
    free = [row for row in rows if not row.obstacle]
    allowed = [row for row in free if not row.troubled]
    for account_id in sorted({row.account_id for row in free if row.troubled}):
        own = [row for row in free if row.account_id == account_id]
        longest = windows.submit + windows.request + windows.margin
        number = int(try_again(connection, account_id, for_at_most=longest))
        allowed += own[:number]
        waiting = [
            Target(send_id=row.send_id, reason=Reason.PROVIDER_PAUSED, claim_number=row.claim_number)
            for row in own[number:]
        ]
        moves.give_back(connection, who, waiting)
    return allowed


def _within_rate(connection: Connection, who: Who, rows: Sequence[_Examined]) -> list[_Examined]:
    """As many of the rows as their accounts' rate limits allow at this moment.

    The others go back, each until a token can be there for it, so that a slow account holds up nobody else's mail.
    """
    limited = {
        row[0]
        for row in connection.execute(
            "select account_id from sendonce.account_tokens where account_id = any(%b::uuid[])",
            [sorted({row.account_id for row in rows})],
        )
    }
    allowed = [row for row in rows if row.account_id not in limited]
    for account_id in sorted(limited):
        own = [row for row in rows if row.account_id == account_id]
        number, rate = run(connection, "take_tokens", account_id=account_id, wanted=len(own)).fetchone() or (0, 1.0)
        now = database_now(connection)
        allowed += own[:number]
        later = [
            Target(
                send_id=row.send_id, reason=Reason.NO_CAPACITY, claim_number=row.claim_number,
                at=now + timedelta(seconds=place / rate),
            )
            for place, row in enumerate(own[number:], start=1)
        ]  # fmt: skip
        moves.give_back(connection, who, later)
    return allowed


def _batches(calls: Iterable[Sequence[UUID]], allowed: Sequence[_Examined]) -> dict[UUID, UUID]:
    """The batch of each send that shares its call with others: a name that no other call ever has."""
    ids = {row.send_id for row in allowed} if calls else set()
    batches: dict[UUID, UUID] = {}
    for call in calls:
        members = [send_id for send_id in call if send_id in ids]
        if len(members) > 1:
            batches |= dict.fromkeys(members, uuid4())
    return batches


def _insert(
    connection: Connection, worker: UUID, rows: Sequence[_Examined], batches: Mapping[UUID, UUID], windows: Windows
) -> list[Started]:
    if not rows:
        return []
    started = {
        row[0]
        for row in run(
            connection,
            "start_attempts",
            send_id=[r.send_id for r in rows], claim_number=[r.claim_number for r in rows], n=[r.n for r in rows],
            account_id=[r.account_id for r in rows], endpoint=[r.endpoint for r in rows],
            batch=[batches.get(r.send_id) for r in rows], key=[_key(r, batches.get(r.send_id)) for r in rows],
            worker=worker, submit_window=windows.submit, request_timeout=windows.request, margin=windows.margin,
        ).fetchall()
    }  # fmt: skip
    return [r.started(batches.get(r.send_id)) for r in rows if r.send_id in started]


def _key(row: _Examined, batch: UUID | None) -> str | None:
    """The idempotency key of its call, where the account honours keys: a batch has its own, which is no send's."""
    return row.idempotency_key if batch is None or row.idempotency_key is None else str(batch)


# ── finishing ────────────────────────────────────────────────────────────────────────────────────────────────────────

Kind = Literal[
    "accepted",
    "refused",
    "refused_for_now",
    "account_trouble",
    "ambiguous",
    "never_written",
    "cannot_be_written",
    "message_gone",
]


class Finished(NamedTuple):
    """What one call came to, in the ledger's words."""

    send_id: UUID
    n: int
    claim_number: int
    account_id: UUID
    kind: Kind
    provider_message_id: str | None = None
    request_id: str | None = None
    retry_after: float | None = None
    pause: timedelta | None = None
    """Account trouble: leave the account alone for so long at once. None: the breaker decides."""
    error_class: str | None = None
    error_code: str | None = None
    reason: str | None = None
    phase: str | None = None
    duration_ms: int | None = None
    batch: UUID | None = None
    """The call that it shared with others."""


def unconfirmed(started: Started) -> Finished:
    """The outcome of an attempt whose start may not have been committed, so that it was not submitted."""
    return Finished(
        send_id=started.send_id, n=started.n, claim_number=started.claim_number, account_id=started.account_id,
        kind="never_written", reason="the write-ahead could not be confirmed",
    )  # fmt: skip


_STATUS: dict[Kind, AttemptStatus] = {
    "accepted": AttemptStatus.ACCEPTED,
    "refused": AttemptStatus.REJECTED,
    "refused_for_now": AttemptStatus.REJECTED,
    "account_trouble": AttemptStatus.REJECTED,
    "ambiguous": AttemptStatus.AMBIGUOUS,
    "never_written": AttemptStatus.ABANDONED,
    "cannot_be_written": AttemptStatus.ABANDONED,
    "message_gone": AttemptStatus.ABANDONED,
}


@dataclass(slots=True)
class Settled:
    """What :func:`finish` did."""

    accepted: int = 0
    late: int = 0
    """Answers that came after their claim had ended."""
    paused: set[UUID] = field(default_factory=set)
    """Accounts that are paused now and were not before."""


def finish(
    connection: Connection,
    worker: UUID,
    finished: Sequence[Finished],
    *,
    backoff: Backoff,
    breaker: timedelta,
    by: By = By.WORKER,
) -> Settled:
    """Store what became of this worker's calls. Safe to repeat with the same outcomes."""
    who = Who(by, worker=worker)
    yes = [f for f in finished if f.kind == "accepted"]
    rest = [f for f in finished if f.kind != "accepted"]
    locked = work.lock(connection, [f.send_id for f in finished]) if rest else {}
    accepted = _accept_answered(connection, who, yes)
    late = [f for f in yes if f.send_id not in accepted]
    if late:
        acceptance.accept_on_evidence(
            connection,
            who,
            [
                acceptance.Evidence(f.send_id, f.account_id, f.provider_message_id, f.n, Reason.LATE_ANSWER)
                for f in late
            ],
        )
    result = Settled(accepted=len(accepted), late=len(late))
    if yes:
        events.rematch(connection, message_ids=[f.provider_message_id for f in yes if f.provider_message_id])
    if rest:
        for f in yes:  # accepted by now: a refusal of another attempt of it in this same set moves nothing
            locked.pop(f.send_id, None)
        result.late += _settle_refusals(connection, who, rest, locked, backoff)
    result.paused = _note_accounts(connection, finished, breaker)
    return result


def _accept_answered(connection: Connection, who: Who, yes: Sequence[Finished]) -> set[UUID]:
    if not yes:
        return set()
    rows = run(
        connection,
        "accept_answered",
        send_id=[f.send_id for f in yes], n=[f.n for f in yes], claim_number=[f.claim_number for f in yes],
        provider_message_id=[f.provider_message_id for f in yes], request_id=[f.request_id for f in yes],
        duration_ms=[f.duration_ms for f in yes], worker=who.worker, settled_by=str(who.by),
    ).fetchall()  # fmt: skip
    return {row[0] for row in rows}


def _settle_refusals(
    connection: Connection, who: Who, rest: Sequence[Finished], locked: dict[UUID, Work], backoff: Backoff
) -> int:
    """Settle attempts that were not taken, or nobody knows; then move each send to where that leads."""
    told = tell(connection, who.by, [(f, _STATUS[f.kind]) for f in rest], worker=who.worker)
    now = database_now(connection)
    terms = read_terms(connection, list(locked))
    in_doubt = read_doubts(connection, list(locked))
    plan = _Plan()
    late = 0
    for f in rest:
        row = locked.get(f.send_id)
        if row is None or (f.send_id, f.n, f.claim_number) not in told:
            late += 1  # settled by evidence meanwhile, stored before, or of an attempt whose commit was lost
            continue
        own_claim = row.state is State.CLAIMED and row.claimed_by == who.worker and row.open_attempt == f.n
        if own_claim:
            plan.add(*_next_move(f, row, terms[f.send_id], in_doubt, now, backoff))
        else:
            late += 1
            if f.send_id not in in_doubt and f.kind != "ambiguous":
                if row.state in (State.UNKNOWN, State.HELD):
                    plan.add(*_next_move(f, row, terms[f.send_id], in_doubt, now, backoff))
                else:
                    _clear_doubt(connection, f.send_id)
    plan.carry_out(connection, who)
    return late


class _Plan:
    """Moves to make, grouped, so that each kind is one statement."""

    def __init__(self) -> None:
        self._targets: dict[str, list[Target]] = {}

    def add(self, move: str, target: Target) -> None:
        self._targets.setdefault(move, []).append(target)

    def carry_out(self, connection: Connection, who: Who) -> None:
        for move, targets in self._targets.items():
            match move:
                case "retry_later":
                    moves.retry_later(connection, who, targets, proved=True)
                case "give_back":
                    moves.give_back(connection, who, targets)
                case "doubt":
                    moves.doubt(connection, who, targets)
                case "hold":
                    moves.hold(connection, who, targets)
                case "fail":
                    moves.fail(connection, who, targets)
                case "cancel":
                    moves.cancel(connection, who, targets)


def _next_move(
    f: Finished, row: Work, terms: Terms, in_doubt: dict[UUID, Doubt], now: datetime, backoff: Backoff
) -> tuple[str, Target]:
    """Where a send goes whose attempt was refused, not written, or may have been taken (DESIGN §5.4, §5.12, §5.18)."""
    uncounted = f.kind in ("account_trouble", "never_written", "message_gone")
    counted = row.counted_attempts - uncounted
    next_try = now + _wait(f, row, counted, backoff)

    def target(reason: Reason | str, at: datetime | None = None) -> Target:
        return Target(
            send_id=f.send_id, reason=reason, at=at, uncounted=uncounted,
            claim_number=row.claim_number if row.state is State.CLAIMED else None,
        )  # fmt: skip

    if f.kind == "ambiguous" or f.send_id in in_doubt:
        reason = Reason.NO_ANSWER if f.kind == "ambiguous" else Reason.EARLIER_DOUBT
        in_question = doubtful(row, terms, in_doubt[f.send_id], now, reason)
        return "doubt", replace(in_question, claim_number=row.claim_number)
    if row.cancel_reason is not None:
        return "cancel", target(row.cancel_reason)
    if f.kind == "refused":
        return "fail", target(Reason.REFUSED)
    if f.kind == "cannot_be_written":
        return "fail", target(Reason.CANNOT_BE_WRITTEN)
    if f.kind == "message_gone" and row.state is State.CLAIMED:  # told late, its next attempt will tell it again
        return "hold", target(Reason.MESSAGE_GONE)
    if not uncounted and used_up(terms, counted=counted, first_attempt_at=row.first_attempt_at, next_try=next_try):
        return "fail", target(Reason.ATTEMPTS_USED_UP)
    match f.kind:
        case "account_trouble":
            return "retry_later", target(Reason.PROVIDER_PAUSED, next_try)
        case "never_written" | "message_gone":
            return "retry_later", target(Reason.NEVER_WRITTEN, next_try)
        case _:
            return "retry_later", target(Reason.REFUSED_FOR_NOW, next_try)


def _wait(f: Finished, row: Work, counted: int, backoff: Backoff) -> timedelta:
    """How long until the next try. What was never written is tried again at once, but only once: what is not counted
    must wait as well, or a send that can never be written would be tried without end or pause."""
    if f.kind == "never_written":
        return backoff.wait(row.last_attempt - 1) if row.last_attempt > 1 else timedelta(0)
    # What the provider said to the account is the account's pause: whoever ends that ends it for this send, too.
    asked = None if f.kind == "account_trouble" else f.retry_after
    return backoff.wait(max(counted, 1), asked)


def _clear_doubt(connection: Connection, send_id: UUID) -> None:
    """Its last unanswered attempt turned out not taken while it already waits for the next one."""
    connection.execute("update sendonce.work set ambiguous_since = null where send_id = %s", (send_id,))


def _note_accounts(connection: Connection, finished: Sequence[Finished], breaker: timedelta) -> set[UUID]:
    """What a set says of its accounts: which could be reached, and which are in trouble. Returns those paused by it."""
    reached = {f.account_id for f in finished if f.kind in ("accepted", "refused")}
    troubles = _troubles(finished)
    if reached and troubles:
        lock_accounts(connection, reached | set(troubles))
    if reached:
        note_answers(connection, reached)
    return note_troubles(connection, troubles, breaker=breaker) if troubles else set()


def _troubles(finished: Sequence[Finished]) -> dict[UUID, Trouble]:
    troubles: dict[UUID, Trouble] = {}
    calls: dict[UUID, set[object]] = {}
    for f in finished:
        if f.kind == "account_trouble":
            met = calls.setdefault(f.account_id, set())
            met.add(f.batch or (f.send_id, f.n))  # one call is one trouble, however many went in it
            before = troubles.get(f.account_id)
            pauses = [pause for pause in (f.pause, before and before.pause) if pause]
            reason = f.reason or f.error_code or f.error_class or "the provider refused the account"
            troubles[f.account_id] = Trouble(reason, max(pauses, default=None), len(met))
    return troubles


# ── what both, and the sweep and the reconciler, need to know ────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Doubt:
    """Attempts of a send that may have been taken: the start of the first, the last moment one may still be running."""

    since: datetime
    running_until: datetime
    keyed: bool
    """All of them carried the send's own idempotency key, so that the provider can recognise a repeat."""
    in_a_batch: bool
    """One of them shared its call with others, whose key is known for all of them together only."""
    endpoints: frozenset[bytes]
    """Where they went: only there the key is known."""


def read_doubts(connection: Connection, ids: Sequence[UUID]) -> dict[UUID, Doubt]:
    """The sends among these that have an open or ambiguous attempt."""
    doubts: dict[UUID, Doubt] = {}
    for row in run(connection, "read_attempts", ids=ids).fetchall():
        send_id, _, _, status, _, started_at, request_deadline, _, key, endpoint, batch = row
        if status in (AttemptStatus.SUBMITTING, AttemptStatus.AMBIGUOUS):
            before = doubts.get(send_id, Doubt(started_at, request_deadline, True, False, frozenset()))
            doubts[send_id] = Doubt(
                min(before.since, started_at),
                max(before.running_until, request_deadline),
                before.keyed and key is not None and batch is None,
                before.in_a_batch or batch is not None,
                before.endpoints | {endpoint},
            )
    return doubts


def doubtful(row: Work, terms: Terms, doubt: Doubt, now: datetime, reason: Reason) -> Target:
    """The target of a doubt: looked at again when its grace is over, never before the call can have ended.

    Not even a person releases it before the submit deadline, the request time-out and the provider's declared settling
    time have passed (DESIGN §5.6). It is not fenced by a claim, since the row is locked; a worker adds its own.
    """
    settled_after = doubt.running_until + (terms.settling_time or timedelta(0))
    return Target(
        send_id=row.send_id, reason=reason, at=max(settled_after, now + terms.grace), ambiguous_since=doubt.since,
        settled_after=settled_after,
    )  # fmt: skip


def read_terms(connection: Connection, ids: Sequence[UUID]) -> dict[UUID, Terms]:
    """The retry and doubt rules of these open sends."""
    return {
        row[0]: Terms(row[1], row[2], row[3], Policy(row[4]), row[5], row[6], row[7], row[8])
        for row in run(connection, "read_terms", ids=ids).fetchall()
    }


def leave_unanswered(connection: Connection, by: By, rows: Iterable[Work], *, error_class: str, reason: str) -> None:
    """Nobody will tell any more what became of the attempts that these locked sends have open."""

    def unanswered(row: Work, n: int) -> Finished:
        assert row.account_id is not None  # the first attempt fixed it
        return Finished(
            send_id=row.send_id, n=n, claim_number=row.claim_number, account_id=row.account_id,
            kind="ambiguous", error_class=error_class, reason=reason,
        )  # fmt: skip

    lost = [unanswered(row, row.open_attempt) for row in rows if row.open_attempt is not None]
    tell(connection, by, [(f, AttemptStatus.AMBIGUOUS) for f in lost])


def tell(
    connection: Connection,
    by: By,
    outcomes: Iterable[tuple[Finished, AttemptStatus]],
    *,
    worker: UUID | None = None,
) -> set[tuple[UUID, int, int]]:
    """Set the status of attempts that are open or ambiguous; with ``worker``, only of its own. Returns which.

    An attempt is named by its send, its number and its claim: where a commit was lost, another one has its number.
    """
    columns = transposed(
        [
            (
                f.send_id, f.n, f.claim_number, str(status), f.error_class, f.error_code, f.reason and f.reason[:500],
                f.phase, f.request_id, f.provider_message_id, f.duration_ms,
            )
            for f, status in outcomes
        ],
        11,
    )  # fmt: skip
    names = (
        "send_id", "n", "claim_number", "status", "error_class", "error_code", "reason", "phase", "request_id",
        "provider_message_id", "duration_ms",
    )  # fmt: skip
    rows = run(
        connection, "finish_attempts", **dict(zip(names, columns, strict=True)), settled_by=str(by), worker=worker
    ).fetchall()
    return {(row[0], row[1], row[2]) for row in rows}
