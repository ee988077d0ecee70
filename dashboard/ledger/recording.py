"""Record requests: the first arrival of a key becomes the send, every later one a duplicate of it.

The only way into the ledger. The relay, the API, ``send_once`` and files all come through :func:`record`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from dashboard.ledger import contents
from dashboard.ledger.database import Connection, run, transposed
from dashboard.ledger.rendering import CannotRender
from dashboard.ledger.requests import Request
from dashboard.ledger.retention import keyed
from dashboard.ledger.vault import Vault
from dashboard.lifecycle import Reason, RunBy, State, Verdict


class Recorded(NamedTuple):
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
    stripped: bool


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
    in_order = sorted(range(len(requests)), key=lambda i: (requests[i].send_id.int, i))
    first: dict[UUID, int] = {}
    for i in in_order:
        first.setdefault(requests[i].send_id, i)
    new = _insert(connection, vault, [requests[i] for i in first.values()], run_by)
    results: dict[int, Recorded] = {
        first[send_id]: Recorded(send_id, Verdict.WON, state) for send_id, state in new.items()
    }
    results |= _record_later(connection, vault, [(i, requests[i]) for i in in_order if i not in results], worker)
    return [results[i] for i in range(len(requests))]


def _insert(connection: Connection, vault: Vault, proposals: Sequence[Request], run_by: RunBy) -> dict[UUID, State]:
    """Insert what is new among the proposals, sorted by id. Returns the new ids with their first state."""
    frozen = [_frozen(r, run_by) for r in proposals]
    inserted = run(
        connection,
        "insert_sends",
        id=[r.send_id for r in proposals],
        workspace_id=[r.workspace_id for r in proposals],
        mailstream=[r.mailstream for r in proposals],
        key=[r.key for r in proposals],
        recipient_id=[r.recipient_id for r in proposals],
        address_lookup=[vault.lookup(r.address) if r.address else None for r in proposals],
        fingerprint=[r.fingerprint for r in proposals],
        outbox_id=[r.outbox_id for r in proposals],
        problem=[f.problem for f in frozen],
        source=[r.source for r in proposals],
        trigger_type=[r.trigger_type for r in proposals],
        trigger_id=[r.trigger_id for r in proposals],
        triggered_at=[r.triggered_at for r in proposals],
        metadata=[json.dumps(r.metadata) if r.metadata else None for r in proposals],
        asked_at=[r.asked_at for r in proposals],
        not_before=[r.not_before for r in proposals],
        run_by=str(run_by),
    ).fetchall()
    domains = {row[0].int: row[1] for row in inserted}  # numbers: comparing two UUIDs is a call each time
    new = [(r, f) for r, f in zip(proposals, frozen, strict=True) if r.send_id.int in domains]
    if new:
        run(
            connection,
            "insert_work",
            id=[r.send_id for r, _ in new],
            address=[vault.encrypt(r.address.encode(), r.send_id.bytes) if r.address else None for r, _ in new],
            body=[contents.sealed(vault, r, f.content, domains[r.send_id.int]) for r, f in new],
            subject=[_subject(vault, r, f) for r, f in new],
            detail=[f.detail for _, f in new],
        )
    return {r.send_id: State.FAILED if f.problem else State.PENDING for r, f in new}


class _Frozen(NamedTuple):
    problem: str | None
    """Why it cannot be rendered; ``content`` is as it came then."""
    content: Mapping[str, Any] | None
    """None where the caller keeps its own content."""
    detail: str | None = None
    """What about it cannot be rendered."""


def _frozen(request: Request, run_by: RunBy) -> _Frozen:
    if run_by is RunBy.CALLER:
        return _Frozen(None, None)
    try:
        return _Frozen(None, contents.rendered(request.message))
    except CannotRender as error:
        return _Frozen(Reason.CANNOT_RENDER.value, request.message, str(error))


def _subject(vault: Vault, request: Request, frozen: _Frozen) -> bytes | None:
    """What the subject is found by; None where there is none to be found."""
    subject = frozen.content and frozen.content.get("subject")
    return vault.subject_lookup(request.workspace_id, subject) if subject and isinstance(subject, str) else None


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
        row[0]: _Met(row[1], row[2], row[3], row[4], row[5], row[6], _shown(row[7]), row[8], row[9])
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
            verdict = _verdict(vault, request, send)
            results[i] = Recorded(request.send_id, verdict, send.state, send.recorded_at)
            difference = ",".join(_differences(vault, request, send)) or None
            rows.append(
                (
                    request.send_id, request.workspace_id, request.mailstream, request.outbox_id, request.source,
                    request.trigger_type, request.trigger_id, request.triggered_at, worker, str(send.state),
                    str(verdict), difference, request.endpoint,
                )
            )  # fmt: skip
    if rows:
        columns = transposed(rows, len(_DUPLICATE_COLUMNS))
        run(connection, "insert_duplicates", **dict(zip(_DUPLICATE_COLUMNS, columns, strict=True)))
        mark_dirty(connection, [(row[1], row[2], None) for row in rows])
    return results


_DUPLICATE_COLUMNS = (
    "send_id", "workspace_id", "mailstream", "outbox_id", "source", "trigger_type", "trigger_id", "triggered_at",
    "worker", "state_met", "verdict", "difference", "endpoint",
)  # fmt: skip


def _shown(state: str) -> State:
    # A send that is open in ``sends`` and has no work row is being replayed right now: it will be pending.
    return State.PENDING if state == "open" else State(state)


def _verdict(vault: Vault, request: Request, send: _Met) -> Verdict:
    if not _same_content(vault, request, send):
        return Verdict.MISMATCH
    return Verdict.DUPLICATE if send.settled else Verdict.IN_PROGRESS


def _same_content(vault: Vault, request: Request, send: _Met) -> bool:
    return send.fingerprint == (keyed(vault, request.fingerprint) if send.stripped else request.fingerprint)


def _differences(vault: Vault, request: Request, send: _Met) -> list[str]:
    """The names of what came with another value. The values themselves are not kept."""
    names = []
    if not _same_content(vault, request, send):
        names.append("content")
    if send.stripped:  # nothing else is known of a tombstone
        return names
    if request.recipient_id != send.recipient_id:
        names.append("recipient")
    if request.address and send.address_lookup not in vault.lookups(request.address):
        names.append("address")
    if request.not_before is not None and request.not_before != send.due_at:
        names.append("not_before")
    return names
