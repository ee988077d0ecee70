"""Record requests: the first arrival of a key becomes the send, every later one a duplicate of it.

The only way into the ledger. The relay, the API, ``send_once`` and files all come through :func:`record`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from dashboard.ledger import contents
from dashboard.ledger.database import Connection, run, transposed
from dashboard.ledger.rendering import CannotRender
from dashboard.ledger.requests import Request
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import Reason, RunBy, State, Verdict


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one delivery met. ``gone``: the row it met vanished meanwhile; deliver it again."""

    send_id: UUID
    verdict: Verdict
    state: State
    first_seen: datetime | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class _Met:
    """An existing send, as a later delivery finds it."""

    outbox_id: UUID | None
    fingerprint: bytes
    recipient_id: str
    address_lookup: bytes | None
    due_at: datetime
    recorded_at: datetime
    state: State
    settled: bool


def record(
    connection: Connection,
    vault: Vault,
    requests: Sequence[Request],
    *,
    run_by: RunBy = RunBy.WORKER,
    worker: UUID | None = None,
) -> list[Recorded]:
    """Record each request in the connection's transaction; the results are in the order of the requests.

    Waits for other transactions that record the same keys. New sends are inserted in the order of their ids, so that
    two recorders never wait for each other in a circle.
    """
    in_order = sorted(range(len(requests)), key=lambda i: (requests[i].send_id, i))
    first: dict[UUID, int] = {}
    for i in in_order:
        first.setdefault(requests[i].send_id, i)
    new = _insert(connection, vault, [requests[i] for i in first.values()], run_by)
    won = {i for send_id, i in first.items() if send_id in new}
    results: dict[int, Recorded] = {
        i: Recorded(requests[i].send_id, Verdict.WON, new[requests[i].send_id]) for i in won
    }
    results |= _record_later(connection, vault, [(i, requests[i]) for i in in_order if i not in won], worker)
    return [results[i] for i in range(len(requests))]


def _insert(connection: Connection, vault: Vault, proposals: Sequence[Request], run_by: RunBy) -> dict[UUID, State]:
    """Insert what is new among the proposals, sorted by id. Returns the new ids with their first state."""
    rows, sealed = [], {}
    for request in proposals:
        problem, parts = _frozen(vault, request, run_by)
        sealed[request.send_id] = parts
        rows.append(
            (
                request.send_id, request.workspace_id, request.mailstream, request.key, request.recipient_id,
                vault.lookup(request.address) if request.address else None, request.fingerprint, request.outbox_id,
                str(run_by), problem, request.source, request.trigger_type, request.trigger_id, request.triggered_at,
                json.dumps(request.metadata) if request.metadata else None, request.asked_at, request.not_before,
            )
        )  # fmt: skip
    columns = transposed(rows, len(_SEND_COLUMNS))
    inserted = run(connection, "insert_sends", **dict(zip(_SEND_COLUMNS, columns, strict=True))).fetchall()
    ids = sorted(row[0] for row in inserted)
    if ids:
        addresses, bodies = transposed([sealed[send_id] for send_id in ids], 2)
        run(connection, "insert_work", id=ids, address=addresses, body=bodies)
        by_id = {request.send_id: request for request in proposals}
        mark_dirty(
            connection,
            [(by_id[i].workspace_id, by_id[i].mailstream, t) for i in ids for t in _minutes_touched(by_id[i])],
        )
    failed = {row[0] for row in rows if row[9] is not None}
    return {send_id: State.FAILED if send_id in failed else State.PENDING for send_id in ids}


_SEND_COLUMNS = (
    "id", "workspace_id", "mailstream", "key", "recipient_id", "address_lookup", "fingerprint", "outbox_id", "run_by",
    "problem", "source", "trigger_type", "trigger_id", "triggered_at", "metadata", "asked_at", "not_before",
)  # fmt: skip


def _frozen(vault: Vault, request: Request, run_by: RunBy) -> tuple[str | None, tuple[bytes | None, bytes | None]]:
    """Why it cannot be rendered, if so, and its encrypted address and body."""
    if run_by is RunBy.CALLER:  # the caller keeps its own content
        address = vault.encrypt(request.address.encode(), request.send_id.bytes) if request.address else None
        return None, (address, None)
    try:
        return None, contents.sealed(vault, request, contents.rendered(request.message))
    except CannotRender:
        return Reason.CANNOT_RENDER.value, contents.sealed(vault, request, request.message)


def _minutes_touched(request: Request) -> tuple[datetime | None, ...]:
    """When it was recorded (now), and when it is due."""
    return None, max(request.not_before or request.asked_at, request.asked_at)


def mark_dirty(connection: Connection, touched: Sequence[tuple[UUID, str, datetime | None]]) -> None:
    """Have the roll-ups of these (workspace, mailstream, time; None is now) made again."""
    minutes = {(w, m, t and t.replace(second=0, microsecond=0)) for w, m, t in touched}
    workspaces, streams, times = transposed(list(minutes), 3)
    run(connection, "mark_dirty", workspace_id=workspaces, mailstream=streams, at=times)


# ── later deliveries ─────────────────────────────────────────────────────────────────────────────────────────────────


def _record_later(
    connection: Connection, vault: Vault, later: Sequence[tuple[int, Request]], worker: UUID | None
) -> dict[int, Recorded]:
    if not later:
        return {}
    met = {
        row[0]: _Met(row[1], row[2], row[3], row[4], row[5], row[6], _shown(row[7]), row[8])
        for row in run(connection, "read_met_sends", ids=sorted({r.send_id for _, r in later})).fetchall()
    }
    results: dict[int, Recorded] = {}
    rows = []
    for i, request in later:
        send = met.get(request.send_id)
        if send is None:
            results[i] = Recorded(request.send_id, Verdict.IN_PROGRESS, State.PENDING, gone=True)
        elif request.outbox_id is not None and request.outbox_id == send.outbox_id:
            # This very outbox row made the send: it was relayed before, and only its deletion was lost.
            results[i] = Recorded(request.send_id, Verdict.WON, send.state, send.recorded_at)
        else:
            verdict = _verdict(request, send)
            results[i] = Recorded(request.send_id, verdict, send.state, send.recorded_at)
            difference = ",".join(_differences(vault, request, send)) or None
            rows.append(
                (
                    request.send_id, request.workspace_id, request.mailstream, request.outbox_id, request.source,
                    request.trigger_type, request.trigger_id, request.triggered_at, worker, str(send.state),
                    str(verdict), difference,
                )
            )  # fmt: skip
    if rows:
        columns = transposed(rows, len(_DUPLICATE_COLUMNS))
        run(connection, "insert_duplicates", **dict(zip(_DUPLICATE_COLUMNS, columns, strict=True)))
        mark_dirty(connection, [(row[1], row[2], None) for row in rows])
    return results


_DUPLICATE_COLUMNS = (
    "send_id", "workspace_id", "mailstream", "outbox_id", "source", "trigger_type", "trigger_id", "triggered_at",
    "worker", "state_met", "verdict", "difference",
)  # fmt: skip


def _shown(state: str) -> State:
    # A send that is open in ``sends`` and has no work row is being replayed right now: it will be pending.
    return State.PENDING if state == "open" else State(state)


def _verdict(request: Request, send: _Met) -> Verdict:
    if request.fingerprint != send.fingerprint:
        return Verdict.MISMATCH
    return Verdict.DUPLICATE if send.settled else Verdict.IN_PROGRESS


def _differences(vault: Vault, request: Request, send: _Met) -> list[str]:
    """The names of what came with another value. The values themselves are not kept."""
    names = []
    if request.fingerprint != send.fingerprint:
        names.append("content")
    if request.recipient_id != send.recipient_id:
        names.append("recipient")
    if request.address and send.address_lookup not in vault.lookups(request.address):
        names.append("address")
    if request.not_before is not None and request.not_before != send.due_at:
        names.append("not_before")
    return names
