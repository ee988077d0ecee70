-- The replay of a failed send whose ledger row is locked: its work row is made again, above all earlier numbers, and
-- counts its attempts anew. Empty: it is not failed, or an attempt of it is not proved to have come to nothing.
with reopened as (
  update sendonce.sends s set state = 'open', reason = null, settled_at = null
  where s.id = %(send_id)s::uuid and s.state = 'failed'
    and not exists (
      select from sendonce.attempts a where a.send_id = s.id and a.status not in ('rejected', 'abandoned'))
  returning s.id, s.workspace_id, s.mailstream, s.run_by, s.account_id, s.recorded_at, s.due_at, s.last_claim, s.last_attempt
), opened as (
  insert into sendonce.work (send_id, workspace_id, mailstream, mail_class, run_by, reason, recorded_at, due_at, claim_at,
    account_id, claim_number, last_attempt, first_attempt_at, waived)
  -- Whoever asks for it again knows that it is late; that is waived for one attempt, like a decision's.
  select r.id, r.workspace_id, r.mailstream, m.mail_class, r.run_by, 'replayed', r.recorded_at, r.due_at, now(),
    r.account_id, r.last_claim, r.last_attempt, case when r.last_attempt > 0 then now() end, '{late}'
  from reopened r join sendonce.mailstreams m on m.workspace_id = r.workspace_id and m.name = r.mailstream
), history as (
  insert into sendonce.moves (send_id, workspace_id, move, from_state, to_state, made_by, reason, user_id, claim_number, attempt,
    next_try_at)
  select id, workspace_id, 'replay', 'failed', 'pending', 'person', 'replayed', %(user_id)s::uuid, last_claim,
    nullif(last_attempt, 0), now()
  from reopened
), dirtied as (
  insert into sendonce.dirty (workspace_id, mailstream, minute)
  select workspace_id, mailstream, date_trunc('minute', due_at) from reopened
)
select id from reopened
