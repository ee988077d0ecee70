-- Which mailstreams have work that may be claimed now, in claiming order. Empty: nothing to claim.
select m.workspace_id, m.name, m.mail_class::text
from sendonce.mailstreams m
join sendonce.workspaces s on s.id = m.workspace_id
where m.paused_at is null and s.paused_at is null
  and exists (
    select from sendonce.work w
    where w.mail_class = m.mail_class and w.workspace_id = m.workspace_id and w.mailstream = m.name
      and w.claim_at <= now() and w.state = 'pending' and w.run_by = 'worker')
order by m.mail_class, m.workspace_id, m.name
