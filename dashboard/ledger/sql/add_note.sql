-- Keeps a note with a send. Empty: the workspace has no such send, it is stripped, or it has as many notes as it may.
insert into sendonce.notes (workspace_id, send_id, user_id, ticket, ticket_lookup, note)
select s.workspace_id, s.id, %(user_id)s::uuid, %(ticket)s::text, %(ticket_lookup)s::text, %(note)s::bytea
  from sendonce.sends s
 where s.id = %(send_id)s::uuid and s.workspace_id = %(workspace_id)s::uuid and s.stripped_at is null
   and (select count(*) from (select from sendonce.notes n where n.send_id = s.id limit %(most)s::int) kept) < %(most)s::int
   for share of s -- against being stripped at this moment
returning id
