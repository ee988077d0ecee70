"""The invariants of the ledger, checked on a live database as far as SQL can see them.

One repeatable-read snapshot, no locks: it may run beside the workers. Each check is one statement of
``sql/verify_*.sql`` whose rows are violations; only the first of them are shown. What each check sees, and what only
tests can prove, stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from dashboard import identity
from dashboard.ledger.database import Connection, run, statement
from dashboard.lifecycle import DELIVERY_OF_EVENT, MOVES, PROVES_ACCEPTANCE

SHOWN = 20
"""So many rows of one invariant are named."""

SAMPLED_FROM = 500_000
"""In a larger ledger the ids of about so many sends are computed again, on pages picked at random."""

_FETCHED = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One place where an invariant breaks. ``send_id`` is None where no send is known."""

    send_id: UUID | None
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """How one invariant stands. ``more``: further rows break it, beyond those in ``rows``."""

    invariant: int
    title: str
    holds: bool
    rows: list[Row]
    more: bool
    sees: str
    only_tests: str


@dataclass(frozen=True, slots=True)
class Check:
    """An invariant by its number, the statement that looks for violations, and what that can and cannot see."""

    invariant: int
    title: str
    statement: str
    sees: str
    only_tests: str


CHECKS = (
    Check(
        1, "One intent, one row", "verify_identity",
        "The id of a send follows from its workspace, mailstream and key; the primary key does the rest.",
        "That callers with one intent use one key.",
    ),
    Check(
        2, "Write-ahead", "verify_write_ahead",
        "Attempts are numbered without gaps, each started under a claim of its own and before its deadline; the open"
        " attempt and the work row name each other.",
        "That no byte went out before the attempt was committed, or after its deadline.",
    ),
    Check(
        3, "No blind retry", "verify_no_blind_retry",
        "Between two attempts the send became pending again; after one in doubt by a release: a person's, or one by key"
        " inside the account's key window as it is set now, which what went in a batch never gets. No open send has"
        " forgotten its doubt.",
        "That the provider keeps its word about keys.",
    ),
    Check(
        4, "Terminal is terminal", "verify_terminal",
        "No attempt was started after the send was accepted, suppressed or cancelled; every move in the history is one"
        " that the state machine has.",
        "That a worker which was late did not write to the provider.",
    ),
    Check(
        5, "Nothing lost", "verify_nothing_lost",
        "An outbox row is in one place only; an open send has its work row, a settled one has none; a held one has its"
        " hold, an end has its move.",
        "That no committed outbox row vanished: a row that is nowhere leaves no trace.",
    ),
    Check(
        6, "Events commute", "verify_events",
        "The delivery of each send is the fold of its events, and what proves acceptance left none open or failed.",
        "That every order of the same events gives the same send.",
    ),
    Check(
        7, "Eligibility last", "verify_eligibility",
        "No attempt was started more than a minute after a suppression that is still in force was stored.",
        "That lateness, pause, cancel and suppressions that were lifted since were checked in the same transaction.",
    ),
    Check(
        8, "Same key on every retry", "verify_same_key",
        "A key is the id of the send, or of the batch that it went in; what repeats an attempt in doubt has its key,"
        " account and endpoint, or a person's word. The members of a batch were begun together, by one worker, on one"
        " account, at one endpoint and under one key, and no batch was begun twice.",
        "That the bytes were the same.",
    ),
    Check(
        9, "Deletion is safe", "verify_deletion",
        "What workers must still send has its address and body; attempts, events and deliveries have their send; a"
        " tombstone holds nothing personal.",
        "That a late retry of a deleted send is a duplicate.",
    ),
    Check(
        10, "People are accountable", "verify_people",
        "Each decision has what was seen, a move by the same person and an audit row; so has each move of a person.",
        "That the person had seen what the decision says.",
    ),
    Check(
        11, "The trace says only what is known", "verify_trace",
        "What is accepted or taken is proved by an answer, an event or a decision, and what is proved is said.",
        "What the pages say.",
    ),
)  # fmt: skip


def verify(connection: Connection, *, shown: int = SHOWN) -> list[Finding]:
    """How each invariant stands, in the connection's transaction: give it one of ``Database.snapshot()``."""
    connection.execute("set local work_mem = '64MB'")  # each check reads its tables once, by hash joins
    return [_finding(connection, check, shown) for check in CHECKS]


def _finding(connection: Connection, check: Check, shown: int) -> Finding:
    sees = check.sees
    if check.statement == "verify_identity":
        rows, sampled = _wrong_ids(connection, shown + 1)
        sees += sampled
    else:
        bind = {name: _FACTS[name] for name in _BOUND.get(check.statement, ())}
        found = run(connection, check.statement, limit=shown + 1, **bind).fetchall()
        rows = [Row(send_id=row[0], what=row[1]) for row in found]
    return Finding(
        invariant=check.invariant, title=check.title, holds=not rows, rows=rows[:shown], more=len(rows) > shown,
        sees=sees, only_tests=check.only_tests,
    )  # fmt: skip


def _wrong_ids(connection: Connection, limit: int) -> tuple[list[Row], str]:
    """Sends whose id is not theirs, and what to say where only a sample was looked at."""
    estimate = connection.execute("select reltuples from pg_class where oid = 'sendonce.sends'::regclass").fetchone()
    assert estimate is not None
    percent = min(100.0, 100.0 * SAMPLED_FROM / max(estimate[0], 1))
    rows: list[Row] = []
    seen = 0
    with connection.cursor(name="verify_identity") as cursor:
        cursor.itersize = _FETCHED
        cursor.execute(statement("verify_identity"), {"percent": percent}, binary=True)
        for send_id, workspace_id, mailstream, key in cursor:
            seen += 1
            if identity.send_id(workspace_id, mailstream, key) != send_id and len(rows) < limit:
                rows.append(Row(send_id=send_id, what=f"the id does not follow from the key {key!r} in {mailstream}"))
    return rows, f" Looked at {seen:,} of about {estimate[0]:,.0f} sends." if percent < 100 else ""


_ALLOWED = [
    (move.name, str(before or ""), str(after), str(by))
    for move in MOVES
    for before in move.from_states
    for after in move.to_states
    for by in move.made_by
]

_FACTS: dict[str, list[str]] = {
    "move": [row[0] for row in _ALLOWED],
    "from_state": [row[1] for row in _ALLOWED],
    "to_state": [row[2] for row in _ALLOWED],
    "made_by": [row[3] for row in _ALLOWED],
    "event_type": [str(event_type) for event_type in DELIVERY_OF_EVENT],
    "word": [str(word) for word in DELIVERY_OF_EVENT.values()],
    "proves": sorted(map(str, PROVES_ACCEPTANCE)),
}
"""What the statements must know of the state machine; none of them spells it out."""

_BOUND = {
    "verify_terminal": ("move", "from_state", "to_state", "made_by"),
    "verify_events": ("event_type", "word", "proves"),
    "verify_trace": ("proves",),
}
