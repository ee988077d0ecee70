-- What stands in the way of starting an attempt for each of these claimed and locked sends, with all that a call needs.
-- A send that is not returned is not claimed by this worker any more.
select w.send_id, w.claim_number, w.last_attempt + 1 as n, a.id as account_id, a.endpoint, w.recorded_at,
  case when a.key_window is not null then w.send_id::text end as idempotency_key,
  b.address, b.body,
  case
    when w.cancel_reason is not null then 'cancelled'
    when p.address_lookup is not null then 'suppressed'
    when m.too_late_after is not null and now() > w.due_at + m.too_late_after and not 'late' = any (coalesce(w.waived, '{}'))
      then 'late'
    when exists (select from sendonce.settings where name = 'sending_off') then 'ledger_moved'
    when m.paused_at is not null or s.paused_at is not null then 'stream_paused'
    when a.paused_until > now() then 'provider_paused'
    -- A person's release lifts the doubt only where the hold named it; one of a late send waives no more than lateness.
    when w.ambiguous_since is not null and (w.released_by is null
        or w.released_by = 'person' and not 'ambiguous' = any (coalesce(w.waived, '{}'))) then 'unreleased'
    -- A policy's release holds only where the unanswered attempts went, while their key is remembered there, and never for
    -- what went in a batch: its key belongs to that call with all its members (rule G).
    when w.ambiguous_since is not null and w.released_by = 'reconcile'
      and (a.key_window is null or now() + %(submit_window)s::interval > w.ambiguous_since + a.key_window
        or exists (select from sendonce.attempts e
          where e.send_id = w.send_id and e.status = 'ambiguous' and (e.endpoint <> a.endpoint or e.batch is not null)))
      then 'key_ended'
    -- Whoever makes the call himself keeps the content too.
    when w.run_by = 'worker' and (b.address is null or b.body is null) then 'message_gone'
  end as obstacle,
  case when p.source = 'bounced' then 'bounced_before' when p.source = 'complained' then 'complained_before'
    when p.source = 'unsubscribed' then 'unsubscribed' when p.source is not null then 'suppressed_by_person'
    when w.cancel_reason is not null then w.cancel_reason end as detail,
  m.late_policy::text, a.troubles >= %(troubles)s::int as troubled,
  -- Only its first attempt may share a call: what is tried again goes alone, so that no message spoils a call twice, and
  -- what is in doubt is never mixed with what is not.
  m.batches and w.last_attempt = 0 and w.run_by = 'worker' as shares
from sendonce.work w
join sendonce.mailstreams m on m.workspace_id = w.workspace_id and m.name = w.mailstream
join sendonce.workspaces s on s.id = w.workspace_id
join sendonce.accounts a on a.id = coalesce(w.account_id, m.account_id)
join sendonce.sends l on l.id = w.send_id
left join sendonce.messages b on b.send_id = w.send_id
left join lateral (
  select p.address_lookup, p.source
  from sendonce.suppressions p
  where p.workspace_id = l.workspace_id and p.address_lookup = l.address_lookup and p.suppressed
    and (p.scope = 'everything' or (p.scope = 'bulk' and w.mail_class in ('lifecycle', 'scheduled', 'campaign'))
      or (p.scope = 'stream' and p.mailstream = w.mailstream))
  order by p.scope
  limit 1) p on true
where w.send_id = any (%(ids)b::uuid[]) and w.state = 'claimed' and w.claimed_by = %(worker)s::uuid
  and w.lease_until > now() and w.open_attempt is null
