-- Count what was told again: under the same id, or the same fact under another id.
with told as (
  select * from unnest(%(account_id)b::uuid[], %(event_id)b::text[], %(event_day)b::text[], %(recipient)b::bytea[],
    %(fact)b::bytea[]) t (account_id, event_id, event_day, recipient, fact)
), same_id as (
  select e.id, count(*) as n
  from told t join sendonce.events e on e.account_id = t.account_id and e.event_id = t.event_id
    and e.recipient = t.recipient and e.event_day = t.event_day
  group by e.id
), same_fact as (
  select e.id, count(*) as n
  from told t join sendonce.events e on e.fact = t.fact and e.event_id <> t.event_id
  group by e.id
), known as (
  select e.id from sendonce.events e
  where e.id in (select id from same_id union all select id from same_fact)
  order by e.id
  for update
), counted as (
  update sendonce.events e
  set repeats = e.repeats + coalesce((select n from same_id s where s.id = e.id), 0),
    other_ids = e.other_ids + coalesce((select n from same_fact s where s.id = e.id), 0)
  from known k where e.id = k.id
  returning e.send_id, least(e.occurred_at, e.received_at) as happened_at
)
insert into sendonce.dirty (workspace_id, mailstream, minute)
select distinct s.workspace_id, s.mailstream, date_trunc('minute', c.happened_at)
from counted c join sendonce.sends s on s.id = c.send_id
