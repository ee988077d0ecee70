"""The synchronous standby that may carry the ledger on without a person, and the proof that it lost nothing.

A promoted standby may lack what its primary had confirmed: a write-ahead, whose mail then goes out a second time, or
somebody's cancel. So a failover stops all sending (``place.py``), unless loss is excluded. That takes a person's
declaration, made beforehand, and more than trust in it. While a standby is declared and was lately seen in force

* every durable transaction of ours is confirmed only when that standby has it on its disk. This is looked up after the
  COMMIT (``database.py``): the server alone would let a waiting commit through, without a word, at the moment when
  somebody empties ``synchronous_standby_names``;
* workers look every few seconds whether it is in force, and store when they last saw that. While it is not, they start
  nothing.

That stored moment is a lease. Up to :data:`LEASE` after it the standby, promoted, goes on by itself. The primary goes
on without it only when a person withdraws the declaration, who must know that it was not promoted; and that person has
to wait until :data:`STANDBY_LEASE` after it, so that a standby which cannot be told will not go on by itself any more.
It rests on clocks of the two servers that differ by less than the minute between the two.

A promoted server proves that it is the standby that was seen: it bears the declared name (``cluster_name``), and it has
been running since before it was last seen, which no restored backup and no rebuilt copy can have been.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from psycopg.types.json import Jsonb

from dashboard.ledger import audit
from dashboard.ledger.database import STANDBY_LEASE, Connection

MARGIN = timedelta(minutes=1)
LEASE = STANDBY_LEASE - MARGIN

RENEWED_AFTER = timedelta(seconds=5)
"""So old the stored moment becomes before it is written again."""


@dataclass(frozen=True, slots=True)
class Standby:
    """A declared standby. ``seen_at``: when it was last seen in force, by the primary's clock."""

    name: str
    in_force: bool
    seen_at: datetime
    lapsed: bool
    """So long ago that it would not go on without a person."""


class NotInForce(Exception):
    """The declaration cannot be made or withdrawn now; the message says why."""


def declared(connection: Connection) -> Standby | None:
    """The declared standby, as last seen."""
    row = connection.execute(
        "select value ->> 'name', (value -> 'in_force')::boolean, changed_at, changed_at + %s <= now()"
        " from sendonce.settings where name = 'standby'",
        [STANDBY_LEASE],
    ).fetchone()
    return Standby(*row) if row else None


def may_send(connection: Connection) -> bool:
    """Look whether the declared standby is in force, and store it. False while nothing may be started without it."""
    standby = declared(connection)
    if standby is None:
        return True
    if _in_force(connection, standby.name):
        connection.execute(
            "update sendonce.settings set value = value || '{\"in_force\": true}', changed_at = now()"
            " where name = 'standby' and value ->> 'name' = %s"
            " and (changed_at < now() - %s or not (value -> 'in_force')::boolean)",
            [standby.name, RENEWED_AFTER],
        )
        return True
    if standby.in_force:
        connection.execute(
            "update sendonce.settings set value = value || '{\"in_force\": false}' where name = 'standby'"
            " and value ->> 'name' = %s",
            [standby.name],
        )
    return False


def was_in_force(connection: Connection) -> bool:
    """Whether none is declared, or the last look at it was lately and good; changes nothing."""
    standby = declared(connection)
    return standby is None or (standby.in_force and not standby.lapsed)


def _in_force(connection: Connection, name: str) -> bool:
    """Whether commits wait for the only standby of this name."""
    row = connection.execute(
        "select count(*) = 1 and bool_and(coalesce(state = 'streaming' and sync_state = 'sync', false))"
        " from pg_stat_replication where application_name = %s",
        [name],
    ).fetchone()
    return row == (True,)


def survived(connection: Connection) -> bool:
    """Whether this server is the declared standby, promoted while its lease held: nothing confirmed is lost."""
    row = connection.execute(
        "select value ->> 'name' = current_setting('cluster_name') and (value -> 'in_force')::boolean"
        " and pg_postmaster_start_time() < changed_at and now() < changed_at + %s"
        " from sendonce.settings where name = 'standby'",
        [LEASE],
    ).fetchone()
    return row == (True,)


def forget(connection: Connection) -> None:
    """It was declared for a place that is left."""
    connection.execute("delete from sendonce.settings where name = 'standby'")


def declare(connection: Connection, name: str, *, user_id: UUID, reason: str) -> None:
    """Let the standby of this name carry on by itself. Raises :class:`NotInForce`."""
    if connection.execute("select current_setting('cluster_name')").fetchone() == (name,):
        raise NotInForce(f"{name!r} is the cluster_name of this server itself: the standby needs one of its own")
    if not _in_force(connection, name):
        raise NotInForce(
            f"no synchronous standby {name!r} is in force here: it must be streaming, as the only one of its name, and"
            " synchronous_standby_names must demand it; and the role of DATABASE_URL needs pg_read_all_stats to see it"
        )
    _check_withdrawable(connection)
    connection.execute(
        "insert into sendonce.settings (name, value) values ('standby', %s)"
        " on conflict (name) do update set value = excluded.value, changed_at = now()",
        [Jsonb({"name": name, "in_force": True})],
    )
    _audit(connection, audit.Action.DECLARE_STANDBY, name, user_id, reason)


def withdraw(connection: Connection, *, user_id: UUID, reason: str) -> str:
    """End the declaration; returns the standby's name. Raises :class:`NotInForce`."""
    standby = declared(connection)
    if standby is None:
        raise NotInForce("no standby is declared")
    _check_withdrawable(connection)
    forget(connection)
    _audit(connection, audit.Action.WITHDRAW_STANDBY, standby.name, user_id, reason)
    return standby.name


def _check_withdrawable(connection: Connection) -> None:
    """A standby that cannot be told must not be able to carry on any more."""
    standby = declared(connection)
    if standby and not standby.lapsed and not _in_force(connection, standby.name):
        until = f"{standby.seen_at + STANDBY_LEASE:%H:%M:%S} UTC"
        raise NotInForce(
            f"the standby {standby.name!r} cannot be told now, and may carry on by itself until {until}: wait until"
            " then, make sure that it was not promoted, and withdraw the declaration"
        )


def _audit(connection: Connection, action: audit.Action, name: str, user_id: UUID, reason: str) -> None:
    if not reason.strip():
        raise NotInForce("give a reason: it stands in the audit log for whoever looks at it later")
    audit.record(connection, action, workspace_id=None, user_id=user_id, subject=name, reason=reason.strip())
