-- Mark every minute that anything in the ledger tells of, and every one that is rolled up. Reads the ledger whole.
insert into sendonce.dirty (workspace_id, mailstream, minute)
select workspace_id, mailstream, date_trunc('minute', recorded_at) from sendonce.sends
union select workspace_id, mailstream, date_trunc('minute', due_at) from sendonce.sends
union select workspace_id, mailstream, date_trunc('minute', at) from sendonce.duplicates
union select workspace_id, mailstream, date_trunc('minute', started_at) from sendonce.attempts
union select workspace_id, mailstream, date_trunc('minute', doubted_at) from sendonce.attempts where doubted_at is not null
union select e.workspace_id, s.mailstream, date_trunc('minute', least(e.occurred_at, e.received_at))
  from sendonce.events e join sendonce.sends s on s.id = e.send_id
union select h.workspace_id, s.mailstream, date_trunc('minute', h.at) from sendonce.moves h join sendonce.sends s on s.id = h.send_id
union select workspace_id, mailstream, minute from sendonce.rollups where mailstream <> ''
