"""Sends whose provider call is made by the caller's own code (``send_once``, DESIGN §5.19).

Two short transactions around the call. The first records this delivery, claims the send, checks everything that could
forbid the call and writes the attempt ahead; the second stores what came of it. Workers never claim such a send: where
it returns to pending, the caller's next delivery sends it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from dashboard.ledger import attempts, place
from dashboard.ledger.attempts import Finished, Started, Windows
from dashboard.ledger.database import Connection, run
from dashboard.ledger.recording import Recorded, record
from dashboard.ledger.requests import Request
from dashboard.ledger.retry import Backoff
from dashboard.ledger.standing import Standing, read_standing
from dashboard.ledger.vault import Vault
from dashboard.ledger.work import Claim
from dashboard.lifecycle import By, MailClass, RunBy, Verdict

BREAKER = timedelta(seconds=30)
"""The first pause of an account whose provider cannot be reached several times in a row."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What one delivery met, how the send stands now, and the attempt that it may submit, if any."""

    recorded: Recorded
    standing: Standing | None
    started: Started | None = None


def begin(
    connection: Connection,
    vault: Vault,
    request: Request,
    *,
    caller: UUID,
    windows: Windows,
    environment: str | None,
) -> Begun:
    """Record a delivery and start an attempt, in the connection's transaction, if nothing forbids it.

    The call may be made only after the transaction is known to be committed. ``caller``: an identity of this delivery
    alone. ``environment``: the name of this installation, which the ledger must know; None trusts what is known so far
    of its place (DESIGN §5.22). ``standing`` is None where the send that it met vanished meanwhile; deliver it again.
    """
    recorded = record(connection, vault, [request], run_by=RunBy.CALLER, worker=caller)[0]
    started = None
    may_send = environment is None or place.may_send(connection, environment)
    if may_send and not recorded.gone and recorded.verdict in (Verdict.WON, Verdict.IN_PROGRESS):
        started = _start(connection, request.send_id, caller, windows)
    return Begun(recorded, read_standing(connection, request.workspace_id, request.send_id), started)


def _start(connection: Connection, send_id: UUID, caller: UUID, windows: Windows) -> Started | None:
    lease = windows.submit + windows.request + windows.margin
    row = run(connection, "claim_for_caller", send_id=send_id, caller=caller, lease=lease).fetchone()
    if row is None:
        return None
    claim = Claim(send_id, row[0], MailClass(row[1]))
    started = attempts.start(connection, caller, [claim], windows, by=By.CALLER)
    return started[0] if started else None


def conclude(connection: Connection, workspace_id: UUID, *, caller: UUID, finished: Finished) -> Standing | None:
    """Store what became of the caller's attempt, however late. Safe to repeat. Returns how the send stands now."""
    attempts.finish(connection, caller, [finished], backoff=Backoff(), breaker=BREAKER, by=By.CALLER)
    return read_standing(connection, workspace_id, finished.send_id)


def find_stream(connection: Connection, workspace: str, mailstream: str) -> tuple[UUID | None, bool]:
    """The id of a workspace, if there is one of this name, and whether it has the mailstream."""
    row = connection.execute(
        """
        select w.id, m.name is not null from sendonce.workspaces w
        left join sendonce.mailstreams m on m.workspace_id = w.id and m.name = %s
        where w.name = %s
        """,
        (mailstream, workspace),
    ).fetchone()
    return (row[0], row[1]) if row else (None, False)
