"""The floor: the fewest durable state changes for the same work, done in sets by plain psycopg.

A row a request in an outbox, a row a mail in a ledger with a unique key, a claim, an attempt written before the call,
its outcome after it: four commits a set, each of them on disk. No product: no encryption, no rendering, no eligibility,
no fences, no history. Nobody who wants these five facts on record can do less, except by merging commits.
"""

from __future__ import annotations

import json
import time

import psycopg

from bench.mail import asked, key, recipient, variables

SET = 1000

SCHEMA = """
create table outbox (id bigint generated always as identity primary key, key text not null, recipient text not null,
  payload jsonb not null, asked_at timestamptz not null default now());
create table mails (id bigint generated always as identity primary key, key text not null unique,
  recipient text not null, payload jsonb not null, state smallint not null default 0, worker int,
  lease_until timestamptz, message_id text, made_at timestamptz not null default now(), changed_at timestamptz)
  with (fillfactor = 70);
create index mails_by_recipient on mails (recipient, made_at);
create index mails_waiting on mails (id) where state = 0;
create index mails_by_message on mails (message_id) where message_id is not null;
create table tries (mail_id bigint not null, n smallint not null, worker int,
  started_at timestamptz not null default now(), ended_at timestamptz, outcome smallint,
  primary key (mail_id, n)) with (fillfactor = 70);
"""

RELAY = """
with taken as (
  delete from outbox where id in (select id from outbox order by id limit %s for update skip locked)
  returning key, recipient, payload
)
insert into mails (key, recipient, payload) select key, recipient, payload from taken on conflict do nothing
"""
CLAIM = """
update mails m set state = 1, worker = %s, lease_until = now() + interval '1 minute'
from (select id from mails where state = 0 order by id limit %s for update skip locked) free
where m.id = free.id
returning m.id, m.key, m.payload::text
"""
TRY = "insert into tries (mail_id, n, worker) select unnest(%b::bigint[]), 1, %s"
OUTCOME = """
with told as (select * from unnest(%b::bigint[], %b::text[]) t (id, message_id)), ended as (
  update tries t set ended_at = now(), outcome = 1 from told where t.mail_id = told.id and t.n = 1
)
update mails m set state = 2, message_id = told.message_id, changed_at = now(), lease_until = null
from told where m.id = told.id
"""


def prepare(url: str, count: int) -> None:
    """A fresh schema with all requests in the outbox."""
    with psycopg.connect(url) as connection:
        connection.execute(SCHEMA)
        with connection.cursor().copy("copy outbox (key, recipient, payload) from stdin") as copy:
            for number in asked(count):
                payload = {"to": recipient(number), "template": "receipt", "variables": variables(number)}
                copy.write_row((key(number), recipient(number), json.dumps(payload)))


def drain(url: str, count: int) -> float:
    """Work the outbox off with one connection; seconds."""
    done = 0
    with psycopg.connect(url, autocommit=True, prepare_threshold=0) as connection:
        cursor = connection.cursor(binary=True)
        began = time.perf_counter()
        while done < count:
            cursor.execute(RELAY, (SET,))
            claimed = cursor.execute(CLAIM, (1, SET)).fetchall()
            if claimed:
                cursor.execute(TRY, ([row[0] for row in claimed], 1))
                answers = [(row[0], _call(row[1], row[2])) for row in claimed]
                ids, messages = zip(*answers, strict=True)
                cursor.execute(OUTCOME, (list(ids), list(messages)))
                done += len(claimed)
        return time.perf_counter() - began


def _call(mail_key: str, payload: str) -> str:
    """The provider that does nothing."""
    json.loads(payload)
    return f"message-{mail_key}"
