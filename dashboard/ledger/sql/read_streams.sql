-- The mailstreams of a workspace with their volume of the last day, from roll-ups. No row: none is configured.
with volume as (
    select mailstream, sum(recorded)::bigint as recorded, sum(duplicate + in_progress + mismatch)::bigint as later_deliveries,
           sum(attempts_accepted)::bigint as attempts_accepted,
           max(minute) filter (where recorded > 0) as last_recorded_minute
      from sendonce.rollups
     where workspace_id = %(workspace_id)s::uuid and minute > now() - interval '1 day'
     group by mailstream
)
select m.name, m.title, m.owner, m.mail_class::text as mail_class, a.name as account, a.provider,
       m.unknown_policy::text as unknown_policy, m.late_policy::text as late_policy, m.grace, m.too_late_after,
       m.max_attempts, m.retry_for, m.paused_at, m.paused_reason, m.batches, coalesce(v.recorded, 0) as recorded,
       coalesce(v.later_deliveries, 0) as later_deliveries, coalesce(v.attempts_accepted, 0) as attempts_accepted,
       v.last_recorded_minute
  from sendonce.mailstreams m
  join sendonce.accounts a on a.id = m.account_id
  left join volume v on v.mailstream = m.name
 where m.workspace_id = %(workspace_id)s::uuid
 order by m.name
