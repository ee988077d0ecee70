-- Evidence that a failed send was taken after all: the ledger row is locked by the caller.
with asked as (
  select * from unnest(%(send_id)b::uuid[], %(reason)b::text[], %(event_id)b::bigint[]) a (send_id, reason, event_id)
), accepted as (
  update sendonce.sends s set state = 'accepted', reason = a.reason, settled_at = now()
  from asked a where s.id = a.send_id and s.state = 'failed'
  returning s.id, s.workspace_id, s.mailstream, s.due_at, s.last_claim, s.last_attempt, a.reason, a.event_id
), history as (
  insert into sendonce.moves (send_id, workspace_id, move, from_state, to_state, made_by, reason, worker, user_id,
    claim_number, attempt, event_id)
  select id, workspace_id, 'accept', 'failed', 'accepted', %(made_by)s::text::sendonce.made_by, reason, %(worker)s::uuid,
    %(user_id)s::uuid, last_claim, nullif(last_attempt, 0), event_id
  from accepted
)
insert into sendonce.dirty (workspace_id, mailstream, minute)
select distinct workspace_id, mailstream, date_trunc('minute', due_at) from accepted
