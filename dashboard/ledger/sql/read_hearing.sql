-- Of each account: sends accepted and events told within the hour, and attempts of the last ten minutes with how many
-- of them were not answered, from roll-ups. What was accepted in the last ten minutes is left out: its events may
-- still come.
with heard as (
  select mailstream, sum(attempts_accepted) filter (where minute < now() - interval '10 minutes') as accepted,
    sum(delivered + bounced + complained) as events
  from sendonce.rollups
  where workspace_id = %(workspace_id)s::uuid and minute > now() - interval '70 minutes'
  group by mailstream
), tried as (
  select account_id, sum(attempts) as attempts, sum(attempts_ambiguous) as unanswered
  from sendonce.rollups
  where workspace_id = %(workspace_id)s::uuid and minute > now() - interval '10 minutes'
  group by account_id
)
select a.name as account, a.provider, coalesce(sum(h.accepted), 0)::bigint as accepted,
  coalesce(sum(h.events), 0)::bigint as events,
  coalesce(max(t.attempts), 0)::bigint as attempts, coalesce(max(t.unanswered), 0)::bigint as unanswered
from sendonce.accounts a
join sendonce.mailstreams m on m.account_id = a.id left join heard h on h.mailstream = m.name
left join tried t on t.account_id = a.id
where a.workspace_id = %(workspace_id)s::uuid
group by a.name, a.provider
order by a.name
