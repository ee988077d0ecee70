-- The straight path's end: the provider said yes to the open attempt of a claim that still holds. Attempt, work row and
-- ledger row in one statement, without a row of history. Returns what was accepted; the others' claims had ended.
with answered as (
  select * from unnest(%(send_id)b::uuid[], %(n)b::int[], %(claim_number)b::int[], %(provider_message_id)b::text[],
    %(request_id)b::text[], %(duration_ms)b::int[]) a (send_id, n, claim_number, provider_message_id, request_id, duration_ms)
), mine as (
  select w.send_id, a.n, a.provider_message_id, a.request_id, a.duration_ms
  from answered a join sendonce.work w on w.send_id = a.send_id
  where w.state = 'claimed' and w.claimed_by = %(worker)s::uuid and w.claim_number = a.claim_number and w.open_attempt = a.n
  order by w.send_id
  for update of w
), gone as (
  delete from sendonce.work w using mine m where w.send_id = m.send_id
  returning w.send_id, w.workspace_id, w.mailstream, w.due_at, w.account_id, w.claim_number, w.last_attempt
), finished as (
  update sendonce.attempts t
  set status = 'accepted', finished_at = now(), settled_by = %(settled_by)s::sendonce.made_by, provider_message_id = m.provider_message_id,
    request_id = m.request_id, duration_ms = m.duration_ms
  from mine m where t.send_id = m.send_id and t.n = m.n and t.finished_at is null
  returning t.workspace_id, t.mailstream, t.started_at
), settled as (
  update sendonce.sends s
  set state = 'accepted', reason = 'answered', account_id = g.account_id, settled_at = now(), last_claim = g.claim_number,
    last_attempt = g.last_attempt
  from gone g where s.id = g.send_id
), dirtied as (
  insert into sendonce.dirty (workspace_id, mailstream, minute)
  select distinct c.workspace_id, c.mailstream, date_trunc('minute', c.at)
  from (select g.workspace_id, g.mailstream, g.due_at from gone g
    union all select f.workspace_id, f.mailstream, f.started_at from finished f) c (workspace_id, mailstream, at)
)
select send_id from gone
