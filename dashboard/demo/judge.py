"""Judge a run: the ledger's invariants, and the ledger against the provider's own books."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Set
from dataclasses import asdict, dataclass, field
from uuid import UUID

from dashboard.demo.stage import Books
from dashboard.ledger.database import Database
from dashboard.ledger.verify import verify


@dataclass(slots=True)
class Summary:
    """What came of a run; the names are those of the JSON that scripts read."""

    requested: int = 0
    sends: int = 0
    deliveries: int = 0
    duplicate_deliveries: int = 0
    accepted: int = 0
    held: int = 0
    suppressed: int = 0
    failed: int = 0
    cancelled: int = 0
    unresolved: int = 0
    provider_messages: int = 0
    provider_duplicates: int = 0
    lost: int = 0
    workers_killed: int = 0
    ambiguous_attempts: int = 0
    events: int = 0
    repeated_events: int = 0
    unmatched_events: int = 0
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def good(self) -> bool:
        """True when every promise was kept."""
        return not (self.violations or self.lost or self.unresolved or self.provider_duplicates)


def judge(database: Database, books: Books, expected: Set[UUID]) -> Summary:
    """Check every invariant, and compare ledger and provider. ``expected``: the ids of all that was asked for."""
    with database.snapshot() as connection:
        states: dict[UUID, str] = {
            row[0]: row[1]
            for row in connection.execute(
                "select s.id, coalesce(w.state::text, s.state::text)"
                " from sendonce.sends s left join sendonce.work w on w.send_id = s.id"
            )
        }
        numbers = connection.execute(
            "select (select count(*) from sendonce.duplicates),"
            " (select count(*) from sendonce.attempts where doubted_at is not null),"
            " (select count(*) from sendonce.events), (select coalesce(sum(repeats + other_ids), 0)::int"
            "   from sendonce.events),"
            " (select count(*) from sendonce.unmatched), (select count(*) from sendonce.dead_letters)"
        ).fetchone()
        findings = verify(connection)
    assert numbers is not None
    taken = Counter(UUID(row["send_id"]) for row in books.rows())
    count = Counter(states.values())
    summary = Summary(
        requested=len(expected),
        sends=len(states),
        deliveries=len(states) + numbers[0],
        duplicate_deliveries=numbers[0],
        accepted=count["accepted"],
        held=count["held"],
        suppressed=count["suppressed"],
        failed=count["failed"],
        cancelled=count["cancelled"],
        unresolved=sum(count[state] for state in ("open", "pending", "claimed", "unknown")),
        provider_messages=sum(taken.values()),
        provider_duplicates=sum(copies > 1 for copies in taken.values()),
        lost=len(expected - states.keys()) + sum(s == "accepted" and i not in taken for i, s in states.items()),
        ambiguous_attempts=numbers[1],
        events=numbers[2],
        repeated_events=numbers[3],
        unmatched_events=numbers[4],
    )
    summary.violations = [
        f"invariant {finding.invariant} ({finding.title}): {row.send_id or '-'} {row.what}"
        for finding in findings if not finding.holds for row in finding.rows
    ]  # fmt: skip
    summary.violations += [f"{i} was never asked for" for i in states.keys() - expected]
    summary.violations += [
        f"the provider took {i}, which the ledger does not know" for i in taken.keys() - states.keys()
    ]
    # What nobody could know may stay held; what the ledger calls failed must not have been taken.
    summary.violations += [
        f"{i} is {s}, but the provider took it" for i, s in states.items() if s == "failed" and i in taken
    ]
    if numbers[5]:
        summary.violations.append(f"{numbers[5]} requests or events became dead letters")
    return summary


def as_json(summary: Summary) -> str:
    """The summary as one JSON object."""
    return json.dumps(asdict(summary))
