-- Which mailstreams have work that may be claimed now, in claiming order, and whether the account of the oldest was in
-- trouble and has not been reached since. Empty: nothing to claim.
-- One whose account is paused is not among them, or it would be given the places of those that can use them.
select m.workspace_id, m.name, m.mail_class::text, due.troubled
from sendonce.mailstreams m
join sendonce.workspaces s on s.id = m.workspace_id
cross join lateral (
  select a.troubles >= %(troubles)s::int as troubled
  from sendonce.work w
  join sendonce.accounts a on a.id = coalesce(w.account_id, m.account_id)
  where w.mail_class = m.mail_class and w.workspace_id = m.workspace_id and w.mailstream = m.name
    and w.claim_at <= now() and w.state = 'pending' and w.run_by = 'worker'
    and (a.paused_until is null or a.paused_until <= now())
  order by w.claim_at
  limit 1) due
where m.paused_at is null and s.paused_at is null
  and not exists (select from sendonce.settings where name = 'sending_off')
order by m.mail_class, m.workspace_id, m.name
