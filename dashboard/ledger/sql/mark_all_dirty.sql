-- Mark every minute of the ledger, so that all roll-ups are made again from what is stored.
insert into sendonce.dirty (workspace_id, mailstream, minute)
select workspace_id, mailstream, date_trunc('minute', recorded_at) from sendonce.sends
union select workspace_id, mailstream, date_trunc('minute', due_at) from sendonce.sends
union select workspace_id, mailstream, date_trunc('minute', at) from sendonce.duplicates
union select workspace_id, mailstream, date_trunc('minute', started_at) from sendonce.attempts
union select workspace_id, mailstream, date_trunc('minute', doubted_at) from sendonce.attempts where doubted_at is not null
union select e.workspace_id, s.mailstream, date_trunc('minute', e.received_at)
  from sendonce.events e join sendonce.sends s on s.id = e.send_id
union select h.workspace_id, s.mailstream, date_trunc('minute', h.at)
  from sendonce.moves h join sendonce.sends s on s.id = h.send_id where h.made_by = 'sweep'
union select workspace_id, mailstream, minute from sendonce.rollups where mailstream <> ''
