-- Claim up to a quota of each mailstream, oldest first, skipping what others hold. Returns what was claimed.
with quota as (
  select * from unnest(%(workspace_id)b::uuid[], %(mailstream)b::text[], %(quota)b::int[]) q (workspace_id, mailstream, n)
), candidate as (
  select picked.send_id
  from quota q
  join sendonce.mailstreams m on m.workspace_id = q.workspace_id and m.name = q.mailstream and m.paused_at is null
  join sendonce.workspaces s on s.id = m.workspace_id and s.paused_at is null
    and not exists (select from sendonce.settings where name = 'sending_off')
  cross join lateral (
    select w.send_id
    from sendonce.work w
    join sendonce.accounts a on a.id = coalesce(w.account_id, m.account_id)
    where w.mail_class = m.mail_class and w.workspace_id = m.workspace_id and w.mailstream = m.name
      and w.claim_at <= now() and w.state = 'pending' and w.run_by = 'worker'
      and (a.paused_until is null or a.paused_until <= now())
    order by w.claim_at
    limit q.n
    for update of w skip locked) picked
)
update sendonce.work w
set state = 'claimed', reason = 'claimed', claim_number = w.claim_number + 1, claimed_by = %(worker)s::uuid,
  claimed_at = now(), lease_until = now() + %(lease)s::interval
from candidate c
where w.send_id = c.send_id and w.state = 'pending' and w.run_by = 'worker' and w.claim_at <= now()
returning w.send_id, w.claim_number, w.mail_class::text
