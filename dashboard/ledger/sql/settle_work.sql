-- Moves that settle an open send: accept, fail, suppress, cancel. The work row goes, the ledger row says how it ended.
-- Returns what moved; the fence refused the others.
with asked as (
  select * from unnest(%(send_id)b::uuid[], %(claim_number)b::int[], %(reason)b::text[], %(event_id)b::bigint[])
    a (send_id, claim_number, reason, event_id)
), before as (
  select send_id, state from sendonce.work where send_id = any (%(send_id)b::uuid[]) order by send_id for update
), gone as (
  delete from sendonce.work w
  using asked a join before b on b.send_id = a.send_id
  where w.send_id = a.send_id and w.state::text = any (%(from_states)s::text[])
    and (a.claim_number is null or w.claim_number = a.claim_number and w.claimed_by = %(worker)s::uuid)
  returning w.send_id, w.workspace_id, w.mailstream, w.due_at, w.account_id, w.claim_number, w.last_attempt,
    b.state as from_state, a.reason, a.event_id
), settled as (
  update sendonce.sends s
  set state = %(to_state)s::text::sendonce.send_state, reason = g.reason, account_id = g.account_id, settled_at = now(),
    last_claim = g.claim_number, last_attempt = g.last_attempt
  from gone g where s.id = g.send_id
), history as (
  insert into sendonce.moves (send_id, workspace_id, move, from_state, to_state, made_by, reason, worker, user_id,
    claim_number, attempt, event_id)
  select send_id, workspace_id, %(move)s::text::sendonce.move, from_state::text::sendonce.state, %(to_state)s::text::sendonce.state,
    %(made_by)s::text::sendonce.made_by, reason, %(worker)s::uuid, %(user_id)s::uuid, claim_number, nullif(last_attempt, 0), event_id
  from gone
  returning send_id, at
), closed as (
  update sendonce.holds h set closed_at = now(), closed_by = %(made_by)s::text::sendonce.made_by
  from gone g where h.send_id = g.send_id and h.closed_at is null
), dirtied as (
  insert into sendonce.dirty (workspace_id, mailstream, minute)
  select distinct g.workspace_id, g.mailstream, date_trunc('minute', v.at)
  from gone g join history h on h.send_id = g.send_id
    cross join lateral (values (g.due_at), (h.at)) v (at)
)
select send_id from gone
