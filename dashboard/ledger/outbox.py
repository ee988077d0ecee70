"""The outbox: requests written inside somebody's transaction, moved into the ledger by the relay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from dashboard.ledger.database import Connection, run
from dashboard.ledger.dead_letters import REFUSED, refusal
from dashboard.ledger.recording import Recorded, record
from dashboard.ledger.requests import BadRequest, Request, read_outbox_text
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import Verdict

BYTES = 4_000_000
"""Of one pass, as the database stores them (compressed): a pass holds no more in memory, however large its rows are."""


@dataclass(frozen=True, slots=True)
class Relayed:
    """What one pass did."""

    taken: int = 0
    won: int = 0
    later: int = 0
    dead: int = 0
    met: tuple[Recorded, ...] = field(default=(), compare=False)
    """What each request met, of which won and later are the numbers."""


class _Row(NamedTuple):
    position: int
    id: UUID
    send_id: UUID
    workspace_id: UUID
    asked_at: datetime | None
    source: str
    request: str
    """JSON, not read yet: what Python cannot read must spoil its own row alone."""


def relay(connection: Connection, vault: Vault, *, limit: int, worker: UUID | None = None) -> Relayed:
    """Move up to ``limit`` requests into the ledger, in the connection's transaction (DESIGN §5.10).

    A request that cannot be understood becomes a dead letter and holds nobody up. One that met a send which is gone by
    now stays in the outbox for the next pass.
    """
    rows = [_Row(*row) for row in run(connection, "lock_outbox", limit=limit, bytes=BYTES).fetchall()]
    requests, dead = _read(rows)
    done, met = _record(connection, vault, requests, dead, worker)
    won = sum(result.verdict is Verdict.WON for result in met)
    for row, reason in dead:
        _bury(connection, vault, row, reason)
    positions = [row.position for row in done] + [row.position for row, _ in dead]
    if positions:
        connection.execute("delete from sendonce.outbox where position = any(%b::bigint[])", [positions])
    return Relayed(len(rows), won, len(done) - won, len(dead), tuple(met))


def _read(rows: Sequence[_Row]) -> tuple[list[tuple[_Row, Request]], list[tuple[_Row, str]]]:
    requests, dead = [], []
    for row in rows:
        try:
            request = _request(row)
        except BadRequest as error:
            dead.append((row, str(error)))
            continue
        if request.send_id != row.send_id:
            dead.append((row, "the send id of this outbox row does not follow from its key"))
        else:
            requests.append((row, request))
    return requests, dead


def _request(row: _Row) -> Request:
    """Raises :class:`BadRequest`."""
    if row.asked_at is None:
        raise BadRequest("asked_at", "lies outside the calendar")
    return read_outbox_text(
        row.request, workspace_id=row.workspace_id, source=row.source, asked_at=row.asked_at, outbox_id=row.id
    )


def _record(
    connection: Connection,
    vault: Vault,
    requests: Sequence[tuple[_Row, Request]],
    dead: list[tuple[_Row, str]],
    worker: UUID | None,
) -> tuple[list[_Row], list[Recorded]]:
    """Record as one set; where the database refuses the set, one by one, so that one bad row spoils no other."""
    requests = sorted(requests, key=lambda pair: (pair[1].send_id.int, pair[0].id.int))
    try:
        with connection.transaction():
            return _record_set(connection, vault, requests, worker)
    except REFUSED as error:
        if len(requests) == 1:
            dead.append((requests[0][0], refusal(error)))
            return [], []
    done: list[_Row] = []
    met: list[Recorded] = []
    for pair in requests:
        rows, results = _record(connection, vault, [pair], dead, worker)
        done, met = done + rows, met + results
    return done, met


def _record_set(
    connection: Connection, vault: Vault, requests: Sequence[tuple[_Row, Request]], worker: UUID | None
) -> tuple[list[_Row], list[Recorded]]:
    recorded = record(connection, vault, [request for _, request in requests], worker=worker)
    done = [row for (row, _), result in zip(requests, recorded, strict=True) if not result.gone]
    return done, [result for result in recorded if not result.gone]


def _bury(connection: Connection, vault: Vault, row: _Row, reason: str) -> None:
    connection.execute(
        "insert into sendonce.dead_letters (workspace_id, outbox_id, source, reason, payload)"
        " values (%s, %s, %s, %s, %s)",
        (
            row.workspace_id, row.id, row.source, reason,
            vault.encrypt(row.request.encode(), row.id.bytes),
        ),
    )  # fmt: skip
