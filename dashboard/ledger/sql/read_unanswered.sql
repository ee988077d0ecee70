-- Open sends in doubt whose call can no longer be running, on accounts of providers that can be asked and still are where
-- the call went; in the order of their ids, behind %(after)s. Empty: there are no more.
select w.send_id, w.workspace_id, a.id, a.endpoint, e.started_at, m.address
from sendonce.accounts a
join sendonce.work w on w.account_id = a.id
cross join lateral (
  select min(started_at) as started_at from sendonce.attempts
  where send_id = w.send_id and status = 'ambiguous' and account_id = a.id and endpoint = a.endpoint
) e
join sendonce.messages m on m.send_id = w.send_id
where a.provider = any (%(providers)b::text[]) and coalesce(a.paused_until <= now(), true)
  and w.check_at is not null and w.settled_after <= now() and w.send_id > %(after)s::uuid
  and e.started_at is not null
order by w.send_id
limit %(limit)s
