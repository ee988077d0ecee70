-- The attempts of these sends, oldest first.
select send_id, n, account_id, status::text, worker, started_at, request_deadline, provider_message_id,
  idempotency_key, endpoint, batch
from sendonce.attempts
where send_id = any (%(ids)b::uuid[])
order by send_id, n
