-- Fold statements about recipients: for each reach the newest by its own time stands, whatever comes first. On equal
-- times a suppression stands.
with said as (
  select distinct on (workspace_id, address_lookup, scope, mailstream) *
  from unnest(%(workspace_id)b::uuid[], %(address_lookup)b::bytea[], %(scope)b::text[], %(mailstream)b::text[],
    %(suppressed)b::bool[], %(said_at)b::timestamptz[], %(source)b::text[], %(account_id)b::uuid[], %(event_id)b::text[],
    %(send_id)b::uuid[], %(user_id)b::uuid[], %(reason)b::text[])
    p (workspace_id, address_lookup, scope, mailstream, suppressed, said_at, source, account_id, event_id, send_id, user_id,
       reason)
  order by workspace_id, address_lookup, scope, mailstream, said_at desc, suppressed desc
)
insert into sendonce.suppressions as s (workspace_id, address_lookup, scope, mailstream, suppressed, said_at, source,
  account_id, event_id, send_id, user_id, reason)
select workspace_id, address_lookup, scope::sendonce.suppression_scope, mailstream, suppressed, said_at, source,
  account_id, event_id, send_id, user_id, reason
from said
order by workspace_id, address_lookup, scope, mailstream
on conflict (workspace_id, address_lookup, scope, mailstream) do update
set suppressed = excluded.suppressed, said_at = excluded.said_at, source = excluded.source,
  account_id = excluded.account_id, event_id = excluded.event_id, send_id = excluded.send_id, user_id = excluded.user_id,
  reason = excluded.reason, stored_at = excluded.stored_at
where excluded.said_at > s.said_at or excluded.said_at = s.said_at and excluded.suppressed and not s.suppressed
