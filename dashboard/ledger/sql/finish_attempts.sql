-- Say what became of attempts that are open, or ambiguous so far. Returns those that it could still say it of: an attempt
-- under another claim is another attempt, though it has the same number where the first one's commit was lost.
with told as (
  select * from unnest(%(send_id)b::uuid[], %(n)b::int[], %(claim_number)b::int[], %(status)b::text[],
    %(error_class)b::text[], %(error_code)b::text[], %(reason)b::text[], %(phase)b::text[], %(request_id)b::text[],
    %(provider_message_id)b::text[], %(duration_ms)b::int[])
    t (send_id, n, claim_number, status, error_class, error_code, reason, phase, request_id, provider_message_id,
      duration_ms)
), finished as (
  update sendonce.attempts a
  set status = t.status::sendonce.attempt_status, finished_at = coalesce(a.finished_at, now()),
    settled_by = %(settled_by)s::text::sendonce.made_by,
    doubted_at = coalesce(a.doubted_at, case when t.status = 'ambiguous' then now() end),
    error_class = coalesce(t.error_class, a.error_class), error_code = coalesce(t.error_code, a.error_code),
    reason = coalesce(t.reason, a.reason), phase = coalesce(t.phase, a.phase),
    request_id = coalesce(t.request_id, a.request_id), duration_ms = coalesce(t.duration_ms, a.duration_ms),
    provider_message_id = coalesce(t.provider_message_id, a.provider_message_id)
  from told t
  where a.send_id = t.send_id and a.n = t.n and a.claim_number = t.claim_number and a.status in ('submitting', 'ambiguous')
    and (%(worker)s::uuid is null or a.worker = %(worker)s::uuid)
  returning a.send_id, a.n, a.claim_number, a.workspace_id, a.mailstream, a.started_at
), dirtied as (
  insert into sendonce.dirty (workspace_id, mailstream, minute)
  select distinct f.workspace_id, f.mailstream, date_trunc('minute', t)
  from finished f cross join lateral (values (f.started_at), (now())) v (t)
)
select send_id, n, claim_number from finished
