-- Take kept events out, each for the send it belongs to, whose rows are locked. One that is gone was taken by somebody else.
-- In the order in which repeats are counted, so that the two never wait for each other.
with asked as (
  select * from unnest(%(id)b::bigint[], %(send_id)b::uuid[], %(matched_by)b::text[]) a (id, send_id, matched_by)
), locked as (
  select u.id from sendonce.unmatched u where u.id = any (%(id)b::bigint[]) order by u.fact for update
), taken as (
  delete from sendonce.unmatched u using locked l where u.id = l.id
  returning u.*
)
select t.workspace_id, t.account_id, t.event_id, t.event_day, t.recipient, t.fact, t.provider_message_id, t.attempt,
  t.event_type::text, t.occurred_at, t.received_at, t.bounce_class, t.reason, t.machine, t.url, t.raw, a.send_id, a.matched_by,
  t.repeats, t.other_ids
from taken t join asked a on a.id = t.id
order by t.id
