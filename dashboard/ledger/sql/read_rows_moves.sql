-- A page of the moves of a send off the straight path, oldest first, behind (time, id). No row: that was all.
select v.id, v.at, v.move::text as move, v.from_state::text as from_state, v.to_state::text as to_state,
       v.made_by::text as made_by, v.reason, v.worker, u.name as person, v.claim_number, v.attempt, v.event_id,
       case when isfinite(v.next_try_at) then v.next_try_at end as next_try_at, v.detail
  from sendonce.moves v
  left join sendonce.users u on u.id = v.user_id
 where v.send_id = %(send_id)s::uuid and v.workspace_id = %(workspace_id)s::uuid
   and (v.at, v.id) > (%(after_at)s::timestamptz, %(after_id)s::bigint)
 order by v.at, v.id
 limit %(limit)s::int
