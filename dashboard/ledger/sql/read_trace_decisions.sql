-- What people decided about each of these sends, oldest first. No row: nothing was decided.
select d.send_id, d.id, d.hold_id, u.name as person, d.decision::text as decision, d.reason, d.before_state::text as before_state,
       d.after_state::text as after_state, d.at, b.name as approved_by
  from sendonce.decisions d
  join sendonce.users u on u.id = d.user_id
  left join sendonce.users b on b.id = d.approved_by
 where d.send_id = any(%(send_ids)s::uuid[]) and d.workspace_id = any(%(workspace_ids)s::uuid[])
 order by d.at, d.id
