"""Where am I? A ledger that was restored, cloned or failed over must not go on sending (DESIGN §5.22).

What a restored ledger calls pending may have been sent since the backup was made; what a clone calls pending, its
original sends. So the ledger remembers its *place*, written down when a worker first starts on it: the environment's
name (``SENDONCE_ENVIRONMENT``), the server's system identifier, its timeline (a new one with each promotion and each
recovery to a point in time), and the database within the server. Where one differs, sending is off, for all workers,
until a named person adopts the new place; then everything unsettled from before is held, and a person decides on it.
The one exception is the promotion of a synchronous standby that was declared and in force: see ``standby.py``.

What this cannot see: a copy of the server's files that is started under the same environment name without any recovery
to a point in time has the same identifier, timeline and database. Give every environment its own name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, astuple, dataclass, fields, replace
from datetime import datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from dashboard.ledger import attempts, audit, moves, standby, work
from dashboard.ledger.attempts import Doubt
from dashboard.ledger.database import Connection, database_now, run
from dashboard.ledger.moves import Target, Who
from dashboard.ledger.retry import Terms
from dashboard.ledger.work import Work
from dashboard.lifecycle import By, Reason
from dashboard.log import Action, log

SET = 1000
"""So many sends are held by one statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a ledger is. None: the database role may not ask for it, so it is not compared."""

    environment: str
    system_identifier: str | None
    timeline: str | None
    database: str | None

    @property
    def unknown(self) -> list[str]:
        """What the database role may not ask for."""
        return [_WORDS[f.name] for f in fields(self) if getattr(self, f.name) is None]


_WORDS = {
    "environment": "environment name",
    "system_identifier": "server",
    "timeline": "timeline",
    "database": "database",
}


@dataclass(frozen=True, slots=True)
class Same:
    """The ledger is where it always was, or has just been told where it is."""


@dataclass(frozen=True, slots=True)
class Moved:
    """The ledger is somewhere else. ``what`` says what differs, a sentence each."""

    what: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SendingOff:
    """Why and since when nothing is sent."""

    reason: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FromBefore:
    """What was asked for before sending went off, and is not settled."""

    outbox: int
    pending: int
    claimed: int
    unknown: int
    held: int
    in_doubt: int
    """How many of these have an attempt that may have been taken."""

    @property
    def to_hold(self) -> int:
        """How many sends an adoption would hold."""
        return self.pending + self.claimed + self.unknown


class CannotAdopt(Exception):
    """The new place cannot be adopted now; the message says what to do."""


# ── checking ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_place(connection: Connection, environment: str) -> Place:
    """Where this connection stands now."""
    allowed = connection.execute(_ALLOWED).fetchone()
    assert allowed is not None
    questions = [question if may else "null" for (_, question), may in zip(_QUESTIONS.values(), allowed, strict=True)]
    answers = connection.execute(f"select {', '.join(questions)}".encode()).fetchone()
    assert answers is not None
    return Place(environment=environment, **dict(zip(_QUESTIONS, answers, strict=True)))


_QUESTIONS: dict[str, tuple[list[str], str]] = {
    "system_identifier": (["pg_control_system()"], "(select system_identifier::text from pg_control_system())"),
    # The timeline that is being written, so that a promoted standby shows at once; a standby writes none.
    "timeline": (
        ["pg_walfile_name(pg_lsn)", "pg_current_wal_lsn()"],
        "case when not pg_is_in_recovery() then substring(pg_walfile_name(pg_current_wal_lsn()) for 8) end",
    ),
    "database": ([], "(select oid::text from pg_database where datname = current_database())"),
}
"""What tells one place from another: the functions that a role may be forbidden to call, and the question."""

_ALLOWED = "select " + ", ".join(
    " and ".join(["true", *(f"has_function_privilege('{name}', 'execute')" for name in functions)])
    for functions, _ in _QUESTIONS.values()
)


def remembered_place(connection: Connection) -> Place | None:
    """Where the ledger believes to be. None: no worker has started on it yet."""
    row = connection.execute("select value from sendonce.settings where name = 'place'").fetchone()
    return Place(**row[0]) if row else None


def check_place(connection: Connection, environment: str) -> Same | Moved:
    """Compare the place with the remembered one, and switch sending off where they differ.

    The first check ever writes the place down. Sending that is off stays off: only :func:`adopt_place` ends it. The
    declared standby of this place, promoted, takes over what it is, if nothing can have been lost (``standby.py``).
    """
    here = read_place(connection, environment)
    connection.execute(
        "insert into sendonce.settings (name, value) values ('place', %s) on conflict do nothing", [Jsonb(asdict(here))]
    )
    if not _moved(connection, here):
        return Same()
    # Again with a lock, which waits for an adoption that is under way: it must not be undone by an older look.
    connection.execute("select from sendonce.settings where name = 'place' for update")
    what = _moved(connection, here)
    if not what:
        return Same()
    if sending_allowed(connection) and _is_promotion(connection, here) and standby.survived(connection):
        _carry_on(connection, here, what)
        return Same()
    connection.execute(
        "insert into sendonce.settings (name, value) values ('sending_off', %s) on conflict do nothing",
        [Jsonb({"reason": " ".join(what)})],
    )
    return Moved(what)


def is_home(connection: Connection, environment: str) -> bool:
    """Whether this connection is where the ledger believes to be, its declared standby in force; changes nothing."""
    return not _moved(connection, read_place(connection, environment)) and standby.was_in_force(connection)


def _is_promotion(connection: Connection, here: Place) -> bool:
    """Whether all is known, and nothing differs but that the timeline is the next one."""
    before = remembered_place(connection)
    if before is None or None in (*astuple(before), *astuple(here)):
        return False
    assert before.timeline is not None
    return replace(before, timeline=f"{int(before.timeline, 16) + 1:08X}") == here


def _carry_on(connection: Connection, here: Place, what: tuple[str, ...]) -> None:
    """The standby goes on where its primary ended. The next failover needs a declaration of its own."""
    remembered, declared = remembered_place(connection), standby.declared(connection)
    assert remembered is not None
    assert declared is not None
    _write(connection, here)
    standby.forget(connection)
    detail = {
        "was": asdict(remembered), "is": asdict(here), "standby": declared.name,
        "seen_in_force": declared.seen_at.isoformat(),
    }  # fmt: skip
    for (workspace_id,) in connection.execute("select id from sendonce.workspaces order by id").fetchall():
        audit.record(
            connection, audit.Action.CARRY_ON, workspace_id=workspace_id, subject="place", reason=" ".join(what),
            detail=detail,
        )  # fmt: skip
    log.warning(Action.FAILED_OVER, standby=declared.name)


def _write(connection: Connection, here: Place) -> None:
    connection.execute(
        "update sendonce.settings set value = %s, changed_at = now() where name = 'place'", [Jsonb(asdict(here))]
    )


def _moved(connection: Connection, here: Place) -> tuple[str, ...]:
    remembered = remembered_place(connection)
    return differences(remembered, here) if remembered else ()


def differences(remembered: Place, here: Place) -> tuple[str, ...]:
    """What differs between two places, a sentence each; what is unknown of either is not compared."""
    return tuple(
        f"The {_WORDS[f.name]} is {now}, and was {before}."
        for f in fields(Place)
        if (now := getattr(here, f.name)) is not None
        and (before := getattr(remembered, f.name)) is not None
        and now != before
    )


def sending_off(connection: Connection) -> SendingOff | None:
    """Why and since when nothing is sent. None: sending is on."""
    row = connection.execute("select value, changed_at from sendonce.settings where name = 'sending_off'").fetchone()
    return SendingOff(row[0]["reason"], row[1]) if row else None


def sending_allowed(connection: Connection) -> bool:
    """False while sending is off."""
    return sending_off(connection) is None


def may_send(connection: Connection, environment: str) -> bool:
    """Check the place, then say whether attempts may be started. Recording and hearing of events go on in any case."""
    at_home = isinstance(check_place(connection, environment), Same) and sending_allowed(connection)
    return at_home and standby.may_send(connection)


# ── adopting ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def count_from_before(connection: Connection, before: datetime) -> FromBefore:
    """What an adoption would meet."""
    row = run(connection, "count_from_before", before=before).fetchone()
    assert row is not None
    return FromBefore(outbox=row[0], pending=row[1], claimed=row[2], unknown=row[3], held=row[4], in_doubt=row[5])


def adopt_place(connection: Connection, environment: str, *, user_id: UUID, reason: str) -> int:
    """Take the present place for the ledger's own: a named person answers for it.

    Every send from before that is not settled is held; attempts that were running become ambiguous. Then sending is on
    again. Returns how many sends were held. Raises :class:`CannotAdopt`.
    """
    if not reason.strip():
        raise CannotAdopt("give a reason: it stands in the audit log for whoever looks at it later")
    known = connection.execute("select from sendonce.users where id = %s and disabled_at is null", [user_id])
    if known.rowcount != 1:
        raise CannotAdopt("only a person with an account that is not disabled can adopt a place")
    check_place(connection, environment)
    connection.execute("select from sendonce.settings where name = 'place' for update")
    off = sending_off(connection)
    if off is None:
        raise CannotAdopt("sending is not off, so there is nothing to adopt")
    before = count_from_before(connection, off.since)
    if before.outbox:
        raise CannotAdopt(
            f"{before.outbox} requests from before still wait in the outbox: start a worker, which relays them while"
            " sending is off, and adopt the place when they are recorded"
        )
    remembered, here = remembered_place(connection), read_place(connection, environment)
    held = sum(_hold(connection, ids) for ids in _from_before(connection, off.since))
    _write(connection, here)
    standby.forget(connection)
    connection.execute("delete from sendonce.settings where name = 'sending_off'")
    audit.record(
        connection,
        audit.Action.ADOPT_PLACE,
        workspace_id=None,
        user_id=user_id,
        subject="place",
        reason=reason.strip(),
        detail={
            "was": remembered and asdict(remembered), "is": asdict(here), "sending_off": off.reason,
            "since": off.since.isoformat(), "held": held, "in_doubt": before.in_doubt,
        },
    )  # fmt: skip
    return held


def _from_before(connection: Connection, before: datetime) -> Iterator[list[UUID]]:
    last: UUID | None = None
    while ids := [
        row[0] for row in run(connection, "read_sends_from_before", before=before, after=last, limit=SET).fetchall()
    ]:
        yield ids
        last = ids[-1]


def _hold(connection: Connection, ids: list[UUID]) -> int:
    locked = work.lock(connection, ids)
    attempts.leave_unanswered(
        connection, By.RECONCILE, locked.values(),
        error_class="ledger_moved", reason="the ledger was moved while the call was running",
    )  # fmt: skip
    terms, doubts = attempts.read_terms(connection, ids), attempts.read_doubts(connection, ids)
    now = database_now(connection)
    targets = [_target(row, terms[row.send_id], doubts.get(row.send_id), now) for row in locked.values()]
    return len(moves.hold(connection, Who(By.RECONCILE), targets))


def _target(row: Work, terms: Terms, doubt: Doubt | None, now: datetime) -> Target:
    if doubt is None:
        return Target(send_id=row.send_id, reason=Reason.LEDGER_MOVED)
    in_doubt = attempts.doubtful(row, terms, doubt, now, Reason.LEDGER_MOVED)
    # A held send is looked at by people, not at a time.
    return replace(in_doubt, at=None, waives=("ambiguous",))
