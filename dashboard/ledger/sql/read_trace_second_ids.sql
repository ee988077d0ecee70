-- Further message ids that a provider gave for each of these sends. No row: it was not seen to be accepted more than once.
select n.send_id, n.provider_message_id, n.attempt, n.seen_at
  from sendonce.second_message_ids n
  join sendonce.sends s on s.id = n.send_id and s.workspace_id = any(%(workspace_ids)s::uuid[])
 where n.send_id = any(%(send_ids)s::uuid[])
 order by n.seen_at, n.provider_message_id
