-- Count what was told again: under the same id, or the same fact under another id.
with told as (
  select * from unnest(%(account_id)b::uuid[], %(event_id)b::text[], %(event_day)b::text[], %(recipient)b::bytea[],
    %(fact)b::bytea[]) t (account_id, event_id, event_day, recipient, fact)
), same_id as (
  select e.id, count(*) as n
  from told t join sendonce.unmatched e on e.account_id = t.account_id and e.event_id = t.event_id
    and e.recipient = t.recipient and e.event_day = t.event_day
  group by e.id
), same_fact as (
  select e.id, count(*) as n
  from told t join sendonce.unmatched e on e.fact = t.fact and e.event_id <> t.event_id
  group by e.id
), known as (
  select e.id from sendonce.unmatched e
  where e.id in (select id from same_id union all select id from same_fact)
  order by e.id
  for update
)
update sendonce.unmatched e
set repeats = e.repeats + coalesce((select n from same_id s where s.id = e.id), 0),
  other_ids = e.other_ids + coalesce((select n from same_fact s where s.id = e.id), 0)
from known k where e.id = k.id
