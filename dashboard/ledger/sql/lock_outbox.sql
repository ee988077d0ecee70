-- Take the oldest requests that no other relay holds, up to so many bytes. Empty: nothing to relay now.
-- Nothing in here can be beyond what a client reads, or one row would hold up all others: the request comes as text, and
-- a time outside the calendar as none.
with taken as materialized (
  select position, id, send_id, workspace_id, asked_at, source, request
  from sendonce.outbox
  order by position
  limit %(limit)s
  for update skip locked
), weighed as (
  select taken.*, sum(pg_column_size(request)) over (order by position rows between unbounded preceding and 1 preceding) as before
  from taken
)
select position, id, send_id, workspace_id,
  case when asked_at >= '0001-01-02' and asked_at < '9999-12-31' then asked_at end, source, request::text
from weighed
where coalesce(before, 0) < %(bytes)s::bigint
order by position
