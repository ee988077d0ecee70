-- Open the new sends of this transaction: their work rows and messages. A send that failed to render gets no work row.
-- The roll-ups of the minutes in which they are recorded and due must be made again.
with new as (
  select s.id, s.workspace_id, s.mailstream, s.run_by, s.due_at, s.state, s.source, p.address, p.body, p.subject, p.detail
  from unnest(%(id)b::uuid[], %(address)b::bytea[], %(body)b::bytea[], %(subject)b::bytea[],
    %(detail)b::text[]) as p (id, address, body, subject, detail)
  join sendonce.sends s on s.id = p.id
), opened as (
  insert into sendonce.work (send_id, workspace_id, mailstream, mail_class, run_by, reason, due_at, claim_at)
  select n.id, n.workspace_id, n.mailstream, m.mail_class, n.run_by,
    case when n.run_by = 'caller' then 'waits_for_caller' when n.due_at > now() then 'scheduled' else 'due' end,
    n.due_at, n.due_at
  -- A mailstream that is not there is refused (its class is not null): an open send never goes without its work row.
  from new n left join sendonce.mailstreams m on m.workspace_id = n.workspace_id and m.name = n.mailstream
  where n.state = 'open'
  order by n.id
), failed as (
  insert into sendonce.moves (send_id, workspace_id, move, to_state, made_by, reason, detail)
  select n.id, n.workspace_id, 'record', 'failed',
    case n.source when 'api' then 'api' else 'relay' end::sendonce.made_by, 'cannot_render', n.detail
  from new n where n.state = 'failed'
), dirtied as (
  insert into sendonce.dirty (workspace_id, mailstream, minute)
  select distinct n.workspace_id, n.mailstream, date_trunc('minute', t)
  from new n cross join lateral (values (n.due_at), (now())) v (t)
)
insert into sendonce.messages (send_id, address, body, subject_lookup, subject_at)
select id, address, body, subject, case when subject is not null then now() end from new where address is not null
