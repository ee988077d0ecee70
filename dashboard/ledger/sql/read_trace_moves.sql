-- The moves of each of these sends off the straight path, oldest first, up to a limit for each. No row: it went straight
-- so far.
select moved.send_id, moved.id, moved.at, moved.move::text as move, moved.from_state::text as from_state,
       moved.to_state::text as to_state, moved.made_by::text as made_by, moved.reason, moved.worker, u.name as person,
       moved.claim_number, moved.attempt, moved.event_id,
       case when isfinite(moved.next_try_at) then moved.next_try_at end as next_try_at, moved.detail
  from unnest(%(send_ids)s::uuid[]) asked (send_id)
 cross join lateral (select v.*
                       from sendonce.moves v
                      where v.send_id = asked.send_id and v.workspace_id = any(%(workspace_ids)s::uuid[])
                      order by v.at, v.id
                      limit %(limit)s::int) moved
  left join sendonce.users u on u.id = moved.user_id
 order by moved.at, moved.id
