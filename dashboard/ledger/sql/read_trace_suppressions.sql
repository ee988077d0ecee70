-- What suppressions say about the address of each of these sends, in force or lifted. No row: nobody ever said anything.
select s.id as send_id, p.scope::text as scope, p.mailstream, p.suppressed, p.said_at,
       p.stored_at, p.source, p.reason, u.name as person,
       p.send_id as by_send
  from sendonce.sends s
  join sendonce.suppressions p on p.workspace_id = s.workspace_id and p.address_lookup = s.address_lookup
  left join sendonce.users u on u.id = p.user_id
 where s.id = any(%(send_ids)s::uuid[]) and s.workspace_id = any(%(workspace_ids)s::uuid[])
   and (p.scope <> 'stream' or p.mailstream = s.mailstream)
 order by p.said_at
