-- The provider account of each of these sends: fixed by its first attempt, before that the one of its mailstream. No
-- row: none.
select s.id as send_id, a.name, a.provider, a.key_window, a.settling_time,
       case when isfinite(a.paused_until) then a.paused_until end as paused_until,
       coalesce(not isfinite(a.paused_until), false) as paused_for_good, a.paused_reason
  from sendonce.sends s
  left join sendonce.work w on w.send_id = s.id
  left join sendonce.mailstreams m on m.workspace_id = s.workspace_id and m.name = s.mailstream
  join sendonce.accounts a on a.id = coalesce(w.account_id, s.account_id, m.account_id)
 where s.id = any(%(send_ids)s::uuid[]) and s.workspace_id = any(%(workspace_ids)s::uuid[])
