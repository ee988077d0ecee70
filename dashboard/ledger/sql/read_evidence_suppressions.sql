-- What was said in a workspace about mail to these people, in force or lifted, oldest first. No row: nothing.
select p.scope::text as scope, p.mailstream, p.suppressed, p.said_at, p.stored_at, p.source, p.reason, u.name as person,
       p.send_id as by_send
  from sendonce.suppressions p
  left join sendonce.users u on u.id = p.user_id
 where p.workspace_id = %(workspace_id)s::uuid and p.address_lookup = any(%(lookups)s::bytea[])
 order by p.said_at
