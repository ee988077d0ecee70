-- Of each account: sends accepted and events told within the hour, from roll-ups. What was accepted in the last ten
-- minutes is left out: its events may still come.
with heard as (
  select mailstream, sum(attempts_accepted) filter (where minute < now() - interval '10 minutes') as accepted,
    sum(delivered + bounced + complained) as events
  from sendonce.rollups
  where workspace_id = %(workspace_id)s::uuid and minute > now() - interval '70 minutes'
  group by mailstream
)
select a.name as account, a.provider, coalesce(sum(h.accepted), 0)::bigint as accepted,
  coalesce(sum(h.events), 0)::bigint as events
from sendonce.accounts a
join sendonce.mailstreams m on m.account_id = a.id left join heard h on h.mailstream = m.name
where a.workspace_id = %(workspace_id)s::uuid
group by a.name, a.provider
order by a.name
