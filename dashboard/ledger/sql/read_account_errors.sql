-- What the newest moves of a workspace that were no straight way tell of its accounts' attempts. No row: no trouble.
with newest as (
  select m.send_id, m.attempt, m.at
  from unnest(array['failed', 'pending', 'unknown']) s (to_state)
  cross join lateral (
    select m.send_id, m.attempt, m.at from sendonce.moves m
    where m.workspace_id = %(workspace_id)s::uuid and m.to_state = s.to_state::sendonce.state
      and m.at > now() - interval '1 day'
    order by m.at desc
    limit %(looked_at)s::int) m
)
select t.account_id, t.status::text as status, t.error_class, t.error_code, (array_agg(t.reason order by n.at desc))[1] as said,
  count(*) as number, max(n.at) as last_at
from (select distinct on (send_id, attempt) * from newest where attempt is not null) n
join sendonce.attempts t on t.send_id = n.send_id and t.n = n.attempt
where t.status in ('rejected', 'ambiguous', 'abandoned')
group by t.account_id, t.status, t.error_class, t.error_code
order by last_at desc
