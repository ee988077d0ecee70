-- Sends that are not what their events make of them. Empty: the invariant holds.
with word as (
  select t.event_type::sendonce.event_type as event_type, t.word::sendonce.delivery as word
  from unnest(%(event_type)b::text[], %(word)b::text[]) t (event_type, word)
), told as (
  select e.send_id, w.word, min(e.occurred_at) as at
  from sendonce.events e join word w on w.event_type = e.event_type
  group by e.send_id, w.word
), folded as (
  select distinct on (send_id) send_id, word, at from told order by send_id, word desc
)
select s.id as send_id, format('its events say %%s at %%s, the send says %%s at %%s', coalesce(f.word::text, 'nothing'), f.at,
    coalesce(s.delivery::text, 'nothing'), s.delivery_at) as what
from sendonce.sends s left join folded f on f.send_id = s.id
where f.word is distinct from s.delivery or f.at is distinct from s.delivery_at
union all
select s.id, format('event %%s proves that it was taken, and the send is %%s', e.id, s.state)
from sendonce.sends s join sendonce.events e on e.send_id = s.id
where s.state in ('open', 'failed') and e.event_type = any (%(proves)b::text[]::sendonce.event_type[])
union all
select s.id, format('attempt %%s was accepted, and the send is %%s', a.n, s.state)
from sendonce.sends s join sendonce.attempts a on a.send_id = s.id
where s.state in ('open', 'failed') and a.status = 'accepted'
limit %(limit)s::int
