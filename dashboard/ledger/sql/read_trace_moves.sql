-- The moves of each of these sends off the straight path, oldest first: of very many, half of the limit from the
-- beginning and half from the end. No row: it went straight so far.
select v.send_id, v.id, v.at, v.move::text as move, v.from_state::text as from_state, v.to_state::text as to_state,
       v.made_by::text as made_by, v.reason, v.worker, u.name as person, v.claim_number, v.attempt, v.event_id,
       case when isfinite(v.next_try_at) then v.next_try_at end as next_try_at, v.detail
  from unnest(%(send_ids)s::uuid[]) asked (send_id)
 cross join lateral ((select f.id from sendonce.moves f
                       where f.send_id = asked.send_id order by f.at, f.id limit %(limit)s::int / 2)
                     union (select l.id from sendonce.moves l
                       where l.send_id = asked.send_id order by l.at desc, l.id desc limit %(limit)s::int / 2)) ends
  join sendonce.moves v on v.id = ends.id and v.workspace_id = any(%(workspace_ids)s::uuid[])
  left join sendonce.users u on u.id = v.user_id
 order by v.at, v.id
