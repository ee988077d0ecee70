-- Who asked to cancel each of these sends when it could not be cancelled at once, oldest first; a cancel that was carried
-- out is a move or a decision. No row: nobody did.
select asked.send_id, told.id, told.at, told.person, told.reason, told.too_late
  from unnest(%(send_ids)s::uuid[]) asked (send_id)
 cross join lateral (
       select a.id, a.at, coalesce(u.name, t.name) as person, a.reason,
              coalesce((a.detail ->> 'too_late')::bool, false) as too_late
         from sendonce.audit a
         left join sendonce.users u on u.id = a.user_id
         left join sendonce.api_tokens t on t.id = a.token_id
        where a.subject = asked.send_id::text and a.workspace_id = any(%(workspace_ids)s::uuid[])
          and a.action = 'cancel_send' and (a.detail ->> 'call_running' = 'true' or a.detail ->> 'too_late' = 'true')
        order by a.id
        limit %(limit)s::int) told
 order by told.id
