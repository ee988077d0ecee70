-- Write an attempt ahead of its call: one conditional update of the work row beside the attempt's insert.
-- Returns what was started; a send that is not returned must not be submitted.
with asked as (
  select * from unnest(%(send_id)b::uuid[], %(claim_number)b::int[], %(n)b::int[], %(account_id)b::uuid[], %(endpoint)b::bytea[],
    %(batch)b::uuid[], %(key)b::text[]) a (send_id, claim_number, n, account_id, endpoint, batch, key)
), started as (
  update sendonce.work w
  set open_attempt = a.n, last_attempt = a.n, account_id = a.account_id, counted_attempts = w.counted_attempts + 1,
    first_attempt_at = coalesce(w.first_attempt_at, now()), lapses = 0, released_by = null, waived = null,
    submit_deadline = now() + %(submit_window)s::interval,
    request_deadline = now() + %(submit_window)s::interval + %(request_timeout)s::interval,
    lease_until = now() + %(submit_window)s::interval + %(request_timeout)s::interval + %(margin)s::interval
  from asked a
  where w.send_id = a.send_id and w.state = 'claimed' and w.claimed_by = %(worker)s::uuid
    and w.claim_number = a.claim_number and w.lease_until > now() and w.open_attempt is null and w.last_attempt = a.n - 1
    and w.cancel_reason is null and (w.ambiguous_since is null or w.released_by = 'reconcile'
      or w.released_by = 'person' and 'ambiguous' = any (w.waived))
    and (w.account_id is null or w.account_id = a.account_id or w.released_by = 'person' or w.ambiguous_since is null)
  returning w.send_id, w.workspace_id, w.mailstream, w.open_attempt, w.account_id, w.claim_number, w.claimed_at,
    w.submit_deadline, w.request_deadline, a.endpoint, a.batch, a.key
), dirtied as (
  insert into sendonce.dirty (workspace_id, mailstream, minute)
  select distinct workspace_id, mailstream, date_trunc('minute', now()) from started
)
insert into sendonce.attempts (send_id, n, workspace_id, mailstream, account_id, endpoint, batch, idempotency_key, worker,
  claim_number, claimed_at, submit_deadline, request_deadline)
select send_id, open_attempt, workspace_id, mailstream, account_id, endpoint, batch, key, %(worker)s::uuid, claim_number,
  claimed_at, submit_deadline, request_deadline
from started
returning send_id, n
