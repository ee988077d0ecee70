-- Keep mails that came in. One that was told before is counted. Returns the digests of those that were not.
with told as (
  insert into sendonce.mail_replies as known (workspace_id, account_id, digest, send_id, matched_by, reason, at, received_at,
    automatic, own_address, sender, content)
  select p.workspace_id, p.account_id, p.digest, p.send_id, p.matched_by, p.reason, p.at, p.received_at, p.automatic,
    p.own_address, p.sender, p.content
  from unnest(%(workspace_id)b::uuid[], %(account_id)b::uuid[], %(digest)b::bytea[], %(send_id)b::uuid[],
    %(matched_by)b::text[], %(reason)b::text[], %(at)b::timestamptz[], %(received_at)b::timestamptz[],
    %(automatic)b::bool[], %(own_address)b::bool[], %(sender)b::text[], %(content)b::bytea[])
    as p (workspace_id, account_id, digest, send_id, matched_by, reason, at, received_at, automatic, own_address, sender,
          content)
  order by p.digest
  on conflict (workspace_id, digest) do update set repeats = known.repeats + 1
  returning digest, repeats
)
select digest from told where repeats = 0
