-- How sends of a workspace stand, each told by one snapshot. A send that is not returned is not one of this workspace.
with met as (
  select d.send_id, count(*) as n from sendonce.duplicates d where d.send_id = any (%(ids)b::uuid[]) group by d.send_id
)
select s.id, s.mailstream, s.key, s.run_by::text,
  -- Open without a work row: a replay is between its two steps, and will be pending.
  coalesce(w.state::text, case s.state when 'open' then 'pending' else s.state::text end) as state,
  s.state <> 'open' and w.send_id is null as settled,
  case
    when w.state = 'pending' and (m.paused_at is not null or k.paused_at is not null) then 'stream_paused'
    when w.state = 'pending' and a.paused_until > now() then 'provider_paused'
    else coalesce(w.reason, s.reason)
  end as reason,
  case when coalesce(w.account_id, s.account_id) is not null then a.provider end as provider,
  t.provider_message_id, s.delivery::text, 1 + coalesce(d.n, 0) as deliveries, s.recorded_at,
  case
    when w.state is distinct from 'pending' or m.paused_at is not null or k.paused_at is not null then null
    when a.paused_until = 'infinity' then null
    else greatest(w.claim_at, a.paused_until)
  end as next_try,
  case w.state when 'claimed' then w.lease_until when 'unknown' then w.check_at end as changes_at,
  now()
from sendonce.sends s
left join sendonce.work w on w.send_id = s.id
left join sendonce.mailstreams m on m.workspace_id = s.workspace_id and m.name = s.mailstream
left join sendonce.workspaces k on k.id = s.workspace_id
left join sendonce.accounts a on a.id = coalesce(w.account_id, s.account_id, m.account_id)
left join met d on d.send_id = s.id
left join lateral (
  select t.provider_message_id from sendonce.attempts t
  where t.send_id = s.id and t.provider_message_id is not null
  order by t.status = 'accepted' desc, t.n desc
  limit 1) t on true
where s.workspace_id = %(workspace_id)s::uuid and s.id = any (%(ids)b::uuid[])
