-- Who asked for these sends to be cancelled, also where it was too late, oldest first. No row: nobody did.
select a.id, a.subject::uuid as send_id, a.at, coalesce(u.name, t.name) as who, a.reason
  from sendonce.audit a
  left join sendonce.users u on u.id = a.user_id
  left join sendonce.api_tokens t on t.id = a.token_id
 where a.subject = any(%(subjects)s::text[]) and a.action = 'cancel_send'
 order by a.at, a.id
