-- Lock settled sends whose retention has ended, in the order of their ids. Empty: nothing to strip.
-- What was settled, old enough and not being replayed is asked again of the locked rows themselves.
with old as (
  select o.id, m.retain_for
  from sendonce.mailstreams m cross join lateral (
    select s.id from sendonce.sends s
    where s.workspace_id = m.workspace_id and s.mailstream = m.name and s.stripped_at is null
      and s.recorded_at < now() - m.retain_for and s.settled_at < now() - m.retain_for
    order by s.recorded_at
    limit %(limit)s) o
  where m.retain_for is not null
  limit %(limit)s
)
select s.id, s.fingerprint
from old o join sendonce.sends s on s.id = o.id
where s.state <> 'open' and s.stripped_at is null and s.settled_at < now() - o.retain_for
order by s.id
for update of s skip locked
