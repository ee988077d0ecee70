-- Requests that are in two places, sends without what their state needs. Empty: the invariant holds.
with request as (
  select id, send_id, 'outbox' as place from sendonce.outbox
  union all select outbox_id, id, 'send' from sendonce.sends where outbox_id is not null
  union all select outbox_id, send_id, 'duplicate' from sendonce.duplicates where outbox_id is not null
  union all select outbox_id, null, 'dead letter' from sendonce.dead_letters where outbox_id is not null
), twice as (
  select id, min(send_id::text)::uuid as send_id, string_agg(place, ' and ' order by place) as places
  from request group by id having count(*) > 1
)
select send_id, format('outbox row %%s is %%s', id, places) as what from twice
union all
select s.id, case when w.send_id is null then 'the send is open and has no work row'
  else format('the send is %%s and has a work row', s.state) end
from sendonce.sends s left join sendonce.work w on w.send_id = s.id
where (s.state = 'open') <> (w.send_id is not null)
union all
select w.send_id, 'there is a work row without its send'
from sendonce.work w where not exists (select from sendonce.sends s where s.id = w.send_id)
union all
select s.id, format('the send is %%s, and no move tells of it', s.state)
from sendonce.sends s
where s.state in ('failed', 'suppressed', 'cancelled')
  and not exists (select from sendonce.moves m where m.send_id = s.id and m.to_state::text = s.state::text)
union all
select coalesce(w.send_id, h.send_id), case when h.send_id is null then 'the send is held, and no hold tells people so'
  else 'a hold is open, and the send is not held' end
from (select send_id from sendonce.work where state = 'held') w
full join (select send_id from sendonce.holds where closed_at is null) h on h.send_id = w.send_id
where w.send_id is null or h.send_id is null
limit %(limit)s::int
