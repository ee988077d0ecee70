-- Further message ids that a provider gave for a send. No row: it was not seen to be accepted more than once.
select n.provider_message_id, n.attempt, n.seen_at
  from sendonce.second_message_ids n
  join sendonce.sends s on s.id = n.send_id and s.workspace_id = %(workspace_id)s::uuid
 where n.send_id = %(send_id)s::uuid
 order by n.seen_at, n.provider_message_id
