-- Lock the work rows of these sends in the order of their ids and say how they stand. A send without one is not returned.
select send_id, workspace_id, mailstream, state::text, run_by::text, account_id, claim_number, claimed_by, lapses,
  last_attempt, counted_attempts, first_attempt_at, open_attempt, ambiguous_since, settled_after, released_by::text,
  evidence, cancel_reason, cancelled_by, due_at, recorded_at, unknown_since, waived
from sendonce.work
where send_id = any (%(ids)b::uuid[])
order by send_id
for update
