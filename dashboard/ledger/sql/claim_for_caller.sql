-- Claim one send for whoever makes its provider call himself. Empty: it is not his to claim, not now, or not any more.
update sendonce.work w
set state = 'claimed', reason = 'claimed', claim_number = w.claim_number + 1, claimed_by = %(caller)s::uuid,
  claimed_at = now(), lease_until = now() + %(lease)s::interval
where w.send_id = %(send_id)s::uuid and w.state = 'pending' and w.run_by = 'caller' and w.claim_at <= now()
  and exists (
    select from sendonce.mailstreams m
    join sendonce.workspaces s on s.id = m.workspace_id
    join sendonce.accounts a on a.id = coalesce(w.account_id, m.account_id)
    where m.workspace_id = w.workspace_id and m.name = w.mailstream and m.paused_at is null and s.paused_at is null
      and (a.paused_until is null or a.paused_until <= now()))
returning w.claim_number, w.mail_class::text
