-- Sends with their work rows, in one statement, so that no state is told from two moments; and how many rows hang on each,
-- counted up to a cap. No row: these workspaces have no such send.
select s.id, s.workspace_id, s.mailstream, s.key, s.recipient_id, s.fingerprint, s.outbox_id, s.run_by::text as run_by,
       nullif(s.state::text, 'open') as settled_state, s.reason, s.delivery::text as delivery, s.delivery_at, s.taken_at,
       s.source, s.trigger_type, s.trigger_id, s.triggered_at, s.last_claim, s.last_attempt, s.metadata,
       s.asked_at, s.recorded_at, s.due_at, s.settled_at, s.stripped_at,
       m.address is not null as has_address, m.body is not null as has_body,
       w.state::text as work_state, w.reason as work_reason, w.due_at as work_due_at, w.claim_at as work_claim_at,
       case when w.check_at < '9999-01-01' then w.check_at end as work_check_at, w.claim_number as work_claim_number, w.claimed_by as work_claimed_by,
       w.claimed_at as work_claimed_at, w.lease_until as work_lease_until, w.lapses as work_lapses,
       w.last_attempt as work_last_attempt, w.counted_attempts as work_counted_attempts,
       w.first_attempt_at as work_first_attempt_at, w.open_attempt as work_open_attempt,
       w.submit_deadline as work_submit_deadline, w.request_deadline as work_request_deadline,
       w.ambiguous_since as work_ambiguous_since, w.settled_after as work_settled_after,
       w.unknown_since as work_unknown_since, w.released_by::text as work_released_by, w.evidence as work_evidence,
       w.cancel_reason as work_cancel_reason,
       (select count(*) from (select from sendonce.duplicates d where d.send_id = s.id limit %(cap)s::int) c) as count_duplicates,
       (select count(*) from (select from sendonce.moves v where v.send_id = s.id limit %(cap)s::int) c) as count_moves,
       (select count(*) from (select from sendonce.events e where e.send_id = s.id limit %(cap)s::int) c) as count_events
  from sendonce.sends s
  left join sendonce.work w on w.send_id = s.id
  left join sendonce.messages m on m.send_id = s.id
 where s.id = any(%(send_ids)s::uuid[]) and s.workspace_id = any(%(workspace_ids)s::uuid[])
 order by s.recorded_at, s.id
