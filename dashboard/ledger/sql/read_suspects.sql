-- Sends of the same content to the same recipient under different keys, at most a span apart: pairs, the newest first.
-- Looked for among the newest sends of each mailstream before a moment. No row: there are none among these.
with newest as (
  select s.id, s.fingerprint, s.recipient_id, s.recorded_at, s.mailstream, s.key, s.source, s.trigger_type, s.trigger_id
  from sendonce.mailstreams m
  cross join lateral (
    select s.* from sendonce.sends s
    where s.workspace_id = m.workspace_id and s.mailstream = m.name and s.stripped_at is null
      and s.recorded_at < %(before)s::timestamptz
    order by s.recorded_at desc
    limit %(looked_at)s::int) s
  where m.workspace_id = %(workspace_id)s::uuid
)
select n.id, n.mailstream, n.key, n.trigger_type, n.trigger_id, n.source, n.recorded_at, n.recipient_id,
  o.id, o.mailstream, o.key, o.trigger_type, o.trigger_id, o.source, o.recorded_at
from newest n
cross join lateral (
  select o.* from sendonce.sends o
  where o.workspace_id = %(workspace_id)s::uuid and o.recipient_id = n.recipient_id
    and o.recorded_at between n.recorded_at - %(apart)s::interval and n.recorded_at
    and o.fingerprint = n.fingerprint and o.stripped_at is null and o.id <> n.id
    and (o.recorded_at, o.id) < (n.recorded_at, n.id)
  order by o.recorded_at desc
  limit 1) o
order by n.recorded_at desc
limit %(limit)s::int
