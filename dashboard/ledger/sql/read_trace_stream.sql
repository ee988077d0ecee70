-- The mailstream of each of these sends as it is configured now. No row: it is not configured any more.
select s.id as send_id, m.name, m.title, m.owner, m.mail_class::text as mail_class, m.unknown_policy::text as unknown_policy, m.grace,
       m.too_late_after, m.late_policy::text as late_policy, m.max_attempts, m.retry_for, m.paused_at, m.paused_reason,
       k.paused_at as workspace_paused_at, k.paused_reason as workspace_paused_reason
  from sendonce.sends s
  join sendonce.mailstreams m on m.workspace_id = s.workspace_id and m.name = s.mailstream
  join sendonce.workspaces k on k.id = m.workspace_id
 where s.id = any(%(send_ids)s::uuid[]) and s.workspace_id = any(%(workspace_ids)s::uuid[])
