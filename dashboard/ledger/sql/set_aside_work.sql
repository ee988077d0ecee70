-- Moves that end in unknown or held: doubt, hold. Returns what moved; the fence refused the others.
with asked as (
  select * from unnest(%(send_id)b::uuid[], %(claim_number)b::int[], %(reason)b::text[], %(check_at)b::timestamptz[],
    %(ambiguous_since)b::timestamptz[], %(settled_after)b::timestamptz[], %(waives)b::text[])
    a (send_id, claim_number, reason, check_at, ambiguous_since, settled_after, waives)
), before as (
  select send_id, state, workspace_id, mailstream from sendonce.work where send_id = any (%(send_id)b::uuid[]) order by send_id for update
), moved as (
  update sendonce.work w
  set state = %(to_state)s::text::sendonce.work_state, reason = a.reason, claim_at = null,
    -- A held send is looked at again when its mailstream wants it no more.
    check_at = case when %(to_state)s::text = 'held' and m.late_policy = 'cancel' and m.too_late_after is not null
      then w.due_at + m.too_late_after else a.check_at end,
    claimed_by = null, claimed_at = null, lease_until = null, open_attempt = null, submit_deadline = null,
    request_deadline = null, released_by = null, waived = null,
    unknown_since = case when %(to_state)s::text = 'unknown' then now() end,
    ambiguous_since = coalesce(w.ambiguous_since, a.ambiguous_since),
    settled_after = greatest(w.settled_after, a.settled_after)
  from asked a join before b on b.send_id = a.send_id
    left join sendonce.mailstreams m on m.workspace_id = b.workspace_id and m.name = b.mailstream
  where w.send_id = a.send_id and w.state::text = any (%(from_states)s::text[])
    and (a.claim_number is null or w.claim_number = a.claim_number and w.claimed_by = %(worker)s::uuid)
  returning w.send_id, w.workspace_id, w.mailstream, w.account_id, b.state as from_state, w.claim_number, w.last_attempt,
    w.reason, w.check_at, w.ambiguous_since, a.waives
), history as (
  insert into sendonce.moves (send_id, workspace_id, move, from_state, to_state, made_by, reason, worker, claim_number,
    attempt, next_try_at)
  select send_id, workspace_id, %(move)s::text::sendonce.move, from_state::text::sendonce.state, %(to_state)s::text::sendonce.state,
    %(made_by)s::text::sendonce.made_by, reason, %(worker)s::uuid, claim_number, nullif(last_attempt, 0),
    case when %(to_state)s::text = 'unknown' then check_at end
  from moved
  returning send_id, at
), dirtied as (
  insert into sendonce.dirty (workspace_id, mailstream, minute)
  select distinct m.workspace_id, m.mailstream, date_trunc('minute', h.at)
  from moved m join history h on h.send_id = m.send_id
), held as (
  insert into sendonce.holds (send_id, workspace_id, mailstream, account_id, reason, waives)
  -- Whatever the hold is for, a repeat beside an unanswered attempt has to be decided too.
  select send_id, workspace_id, mailstream, account_id, reason, string_to_array(waives, ',')
    || case when ambiguous_since is not null and not 'ambiguous' = any (string_to_array(waives, ',')) then array['ambiguous']
      else array[]::text[] end
  from moved where %(to_state)s::text = 'held'
)
select send_id from moved
