"""A ledger of any size, made by the server itself: every table that grows with the mail has its rows.

For the tests of plans, and for measuring how long finding takes. Nothing in it is encrypted, and its invariants are not
those of a real ledger: ``bench.verify`` has one of that kind.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from dashboard.ledger.database import Connection
from dashboard.ledger.vault import Vault

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

SUBJECTS = 1_000
"""Distinct subjects; one in ten messages has the same one."""
RECIPIENTS = 5_000
BUSY = "evt_busy"
"""A trigger that asked for one send in 20: a campaign, say."""

STREAMS = ("receipts", "welcome")

_STATEMENTS = (
    """
    insert into sendonce.sends (id, workspace_id, mailstream, key, recipient_id, address_lookup, fingerprint, source,
      trigger_type, trigger_id, asked_at, recorded_at, due_at, state, reason, settled_at)
    select md5('send ' || i)::uuid, %(workspace)s, case when i %% 10 = 0 then 'welcome' else 'receipts' end,
      case when i %% 10 = 0 then 'welcome:recipient_' || i %% %(recipients)s || ':' || i
        else 'receipt:order_' || i || ':v3' end,
      'recipient_' || i %% %(recipients)s, decode(md5('address ' || i %% %(recipients)s), 'hex'),
      decode(md5('content ' || i), 'hex'), 'outbox', 'order.paid',
      case when i %% 20 = 0 then %(busy)s else 'evt_' || i end, t, t, t,
      (case when i %% 100 = 97 then 'failed' when settled then 'accepted' else 'open' end)::sendonce.send_state,
      case when settled then 'answered' end, case when settled then t end
    from (select i, i %% 100 < 98 or i <= %(sends)s - %(backlog)s as settled, %(began)s + i * %(apart)s::interval as t
      from generate_series(1, %(sends)s) i) n
    """,
    """
    insert into sendonce.work (send_id, workspace_id, mailstream, mail_class, reason, due_at, claim_at)
    select id, workspace_id, mailstream, 'transactional', 'due', due_at, due_at from sendonce.sends where state = 'open'
    """,
    """
    insert into sendonce.attempts (send_id, n, workspace_id, mailstream, account_id, worker, claim_number, claimed_at,
      started_at, submit_deadline, request_deadline, finished_at, status, provider_message_id)
    select id, 1, workspace_id, mailstream, %(account)s, %(account)s, 1, due_at, due_at, due_at, due_at, due_at,
      'accepted', 'm-' || id
    from sendonce.sends where state <> 'open'
    """,
    """
    insert into sendonce.events (workspace_id, account_id, event_id, fact, event_type, occurred_at, received_at,
      send_id, matched_by)
    select workspace_id, %(account)s, 'e-' || id, uuid_send(id), 'delivered', due_at, due_at, id, 'send_id'
    from sendonce.sends where state = 'accepted' and extract(second from due_at)::int %% 4 = 0
    """,
    """
    insert into sendonce.duplicates (send_id, workspace_id, mailstream, source, trigger_id, at, state_met, verdict)
    select id, workspace_id, mailstream, 'api', trigger_id, due_at, 'accepted',
      (case when key like '%%77:v3' then 'mismatch' else 'duplicate' end)::sendonce.verdict
    from sendonce.sends where extract(second from due_at)::int %% 3 = 0
    """,
    """
    insert into sendonce.moves (send_id, workspace_id, at, move, from_state, to_state, made_by, reason)
    select id, workspace_id, due_at, m::sendonce.move, 'claimed', s::sendonce.state, 'worker', 'refused'
    from sendonce.sends, (values ('retry_later', 'pending'), ('fail', 'failed')) v (m, s)
    where state = 'failed' or m = 'retry_later' and extract(second from due_at)::int %% 5 = 0
    """,
    """
    insert into sendonce.messages (send_id, subject_lookup, subject_at)
    select id, case when mod(extract(epoch from due_at)::bigint, 10) = 0 then %(subject)s
        else substring(decode(md5('subject ' || mod(extract(epoch from due_at)::bigint, %(subjects)s)), 'hex'), 1, 8)
        end,
      recorded_at
    from sendonce.sends
    """,
    """
    insert into sendonce.notes (workspace_id, send_id, user_id, at, ticket, ticket_lookup)
    select workspace_id, id, (select min(id::text)::uuid from sendonce.users), due_at, 'T-' || right(key, 8),
      lower('T-' || right(key, 8))
    from sendonce.sends where extract(second from due_at)::int = 7
    """,
)

SUBJECT = "Your receipt"


TYPED = {
    "a send id": "0b6e2f1c-0000-5000-8000-000000000001",
    "a key": "receipt:order_77:v3",
    "the start of a key": "receipt:order_77",
    "an order": "order_77",
    "the start of many keys": "order_",
    "an order's number": "order 7777",
    "a recipient": "recipient_77",
    "a trigger": "evt_77",
    "a trigger of very many": BUSY,
    "an address": "ada@example.com",
    "a Message-ID": "<m-1@x>",
    "a subject of very many": SUBJECT,
    "a ticket": "#T-1007:v3",
    "nothing": "nothing is called so",
}
"""What somebody may type, each read in another way."""

MISTYPED = {
    "an order": "ordr_77777",
    "a trigger": "evt_7771x",
    "a recipient": "recipiant_77",
    "a key": "receipt:order_77v3",
    "a piece of a message id": "m-0b6e2f1c-00",
    "a piece of a send id": "0b6e2f1c",
    "a send id": "0b6e2f1c-0000-5000-8000-0000000000001",
    "an address": "ada@exmaple.com",
    "nothing": "nothing is called so",
}
"""What nothing is called, and something is close to."""


def fill(
    connection: Connection, vault: Vault, *, workspace: UUID, account: UUID, sends: int, began: datetime = BEGAN,
    apart: timedelta = timedelta(seconds=1), backlog: int | None = None,
) -> None:  # fmt: skip
    """Put so many sends into this workspace, which has the mailstreams of :data:`STREAMS` and a person.

    They were asked for one after the other, ``apart``. Of the newest ``backlog`` (None: of all) one in fifty is open.
    """
    bind = {
        "workspace": workspace, "account": account, "began": began, "apart": apart, "sends": sends, "busy": BUSY,
        "backlog": sends if backlog is None else backlog, "recipients": RECIPIENTS, "subjects": SUBJECTS,
        "subject": vault.subject_lookup(workspace, SUBJECT),
    }  # fmt: skip
    for statement in _STATEMENTS:
        connection.execute(statement, bind)  # type: ignore[arg-type]


_ROLLUPS = (
    """
    insert into sendonce.rollups (workspace_id, mailstream, minute, recorded, duplicate, due, due_accepted, attempts)
    select %(workspace)s, stream, minute, 60, 3, 60, 59, 61 from minutes
    """,
    """
    insert into sendonce.latencies (workspace_id, mailstream, minute, measure, step, number)
    select %(workspace)s, stream, minute, 'acceptance', 4, 20 from minutes
    """,
    """
    insert into sendonce.carriers (workspace_id, mailstream, minute, source, trigger_type, endpoint, version, recorded,
      duplicate, in_progress, mismatch)
    select %(workspace)s, stream, minute, 'outbox', 'order.paid', '', '', 60, 3, 0, 0 from minutes
    """,
    """
    insert into sendonce.rollup_hours (workspace_id, mailstream, minute, recorded, duplicate)
    select %(workspace)s, stream, minute, 3600, 180 from hours
    """,
    """
    insert into sendonce.latency_hours (workspace_id, mailstream, minute, measure, step, number)
    select %(workspace)s, stream, minute, measure, 4, 1200
    from hours, unnest('{outbox,acceptance,attempt,delivery}'::text[]) measure
    """,
)


def roll_up(connection: Connection, *, workspace: UUID, days: int) -> None:
    """Roll-ups of each minute of the last so many days, and of each hour of the last four months, as a busy workspace
    has them; they do not count its sends."""
    buckets = """
    with minutes as (
      select stream, minute from unnest(%(streams)s::text[]) stream,
        generate_series(date_trunc('hour', now()) - %(days)s * interval '1 day', now(), interval '1 minute') minute
    ), hours as (
      select stream, minute from unnest(%(streams)s::text[]) stream,
        generate_series(date_trunc('hour', now()) - interval '4 months', now(), interval '1 hour') minute
    )
    """
    for statement in _ROLLUPS:
        bind = {"workspace": workspace, "streams": list(STREAMS), "days": days}
        connection.execute(buckets + statement, bind)  # type: ignore[arg-type]
