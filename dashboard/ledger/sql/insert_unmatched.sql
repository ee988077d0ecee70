-- Keep events of no known send. What is not returned was told before.
insert into sendonce.unmatched (workspace_id, account_id, event_id, event_day, recipient, fact, provider_message_id, attempt,
  event_type, occurred_at, received_at, bounce_class, reason, machine, url, raw, send_id)
select p.workspace_id, p.account_id, p.event_id, p.event_day, p.recipient, p.fact, p.provider_message_id, p.attempt,
  p.event_type::sendonce.event_type, p.occurred_at, p.received_at, p.bounce_class, p.reason, p.machine, p.url, p.raw,
  p.send_id
from unnest(%(workspace_id)b::uuid[], %(account_id)b::uuid[], %(event_id)b::text[], %(event_day)b::text[],
  %(recipient)b::bytea[], %(fact)b::bytea[], %(provider_message_id)b::text[], %(attempt)b::int[], %(event_type)b::text[],
  %(occurred_at)b::timestamptz[], %(received_at)b::timestamptz[], %(bounce_class)b::text[], %(reason)b::text[],
  %(machine)b::bool[], %(url)b::text[], %(raw)b::bytea[], %(send_id)b::uuid[])
  as p (workspace_id, account_id, event_id, event_day, recipient, fact, provider_message_id, attempt, event_type,
        occurred_at, received_at, bounce_class, reason, machine, url, raw, send_id)
on conflict do nothing
returning id, fact
