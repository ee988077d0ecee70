-- Open sends in doubt whose call can no longer be running, on accounts of providers that can be asked; in the order of
-- their ids, behind %(after)s. Empty: there are no more.
select w.send_id, w.workspace_id, e.account_id, e.endpoint, e.started_at, m.address
from sendonce.work w
join lateral (
  select account_id, endpoint, started_at from sendonce.attempts
  where send_id = w.send_id and status = 'ambiguous' order by n limit 1
) e on true
join sendonce.accounts a on a.id = e.account_id and a.endpoint = e.endpoint and a.provider = any (%(providers)b::text[])
join sendonce.messages m on m.send_id = w.send_id
where w.check_at is not null and w.settled_after <= now() and w.send_id > %(after)s::uuid
  and coalesce(a.paused_until <= now(), true)
order by w.send_id
limit %(limit)s
