-- Moves that end in pending: give_back, retry_later, release. Returns what moved; the fence refused the others.
with asked as (
  select * from unnest(%(send_id)b::uuid[], %(claim_number)b::int[], %(reason)b::text[], %(claim_at)b::timestamptz[],
    %(uncounted)b::int[]) a (send_id, claim_number, reason, claim_at, uncounted)
), before as (
  select send_id, state, last_attempt from sendonce.work where send_id = any (%(send_id)b::uuid[]) order by send_id for update
), moved as (
  update sendonce.work w
  set state = 'pending', reason = a.reason, claim_at = coalesce(a.claim_at, w.claim_at, now()), check_at = null,
    claimed_by = null, claimed_at = null, lease_until = null, open_attempt = null, submit_deadline = null,
    request_deadline = null, unknown_since = null, lapses = w.lapses + %(lapses)s::int,
    counted_attempts = w.counted_attempts - a.uncounted,
    ambiguous_since = case when %(proved)s::bool then null else w.ambiguous_since end,
    released_by = coalesce(%(released_by)s::text::sendonce.made_by, case when not %(proved)s::bool then w.released_by end),
    waived = coalesce(%(waived)s::text[], w.waived)
  from asked a join before b on b.send_id = a.send_id
  where w.send_id = a.send_id and w.state::text = any (%(from_states)s::text[])
    and (a.claim_number is null or w.claim_number = a.claim_number and w.claimed_by = %(worker)s::uuid)
    -- A claim whose call may be running is never simply given back.
    and (w.open_attempt is null or %(move)s::text <> 'give_back')
  returning w.send_id, w.workspace_id, w.mailstream, b.state as from_state, w.claim_number, w.last_attempt, w.reason, w.claim_at
)
, history as (
  insert into sendonce.moves (send_id, workspace_id, move, from_state, to_state, made_by, reason, worker, user_id,
    claim_number, attempt, next_try_at)
  select send_id, workspace_id, %(move)s::text::sendonce.move, from_state::text::sendonce.state, 'pending',
    %(made_by)s::text::sendonce.made_by, reason, %(worker)s::uuid, %(user_id)s::uuid, claim_number, nullif(last_attempt, 0), claim_at
  from moved
  returning send_id, at
), dirtied as (
  insert into sendonce.dirty (workspace_id, mailstream, minute)
  select distinct m.workspace_id, m.mailstream, date_trunc('minute', h.at)
  from moved m join history h on h.send_id = m.send_id
), closed as (
  update sendonce.holds h set closed_at = now(), closed_by = %(made_by)s::text::sendonce.made_by
  from moved m where h.send_id = m.send_id and h.closed_at is null
)
select send_id from moved
